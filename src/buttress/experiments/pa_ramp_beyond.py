"""Beyond the PA-RAMP paper: the library's defaults on its five data sets under label noise."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from buttress.experiments._beyond import NOISE_AWARE, DefaultsBesidePrinted, beyond, noise_aware
from buttress.experiments._model import Plan, Task, Values
from buttress.experiments.pa_ramp_table1 import PAPER
from buttress.experiments.pa_ramp_table2 import EXPERIMENT as TABLE
from buttress.experiments.pa_ramp_table2 import SETS, load, noisy_split

_DEFAULT = "PARampClassifier (one pass)"
_NOISE = (0.0, 0.1)
_NAMES = {
    f"{name}@{noise:g}": f"{title}, {noise:.0%}" for name, title in SETS.items() for noise in _NOISE
}


def _best(key: str) -> str:
    """The lowest printed error of a set at a noise level."""
    accuracies = [
        float(cell.printed)
        for cell in TABLE.cells
        if cell.printed
        and cell.id.startswith(key.replace("@", "/") + "/")
        and cell.labels["quantity"] == "accuracy"
    ]
    return f"{100 - max(accuracies):.2f}"


_BEST = {key: _best(key) for key in _NAMES}
_RUNS = 3


def _tasks(plan: Plan) -> list[Task]:
    names = ("wdbc",) if plan.quick else ("wdbc", "banana_ida", "occupancy", "letter", "adult")
    return [
        Task(f"{name}/{rate:g}/{repeat}", f"{name}@{rate:g}",
             {"name": name, "noise": rate, "repeat": repeat})
        for repeat, name, rate in product(range(plan.runs(_RUNS, 1)), names, _NOISE)
    ]  # fmt: skip


def _run(arguments: Mapping[str, Any], plan: Plan) -> Values:
    from buttress.classifiers import PARampClassifier

    name, noise, repeat = arguments["name"], arguments["noise"], arguments["repeat"]
    X, y = load(name, 300 if plan.quick else None)
    data, _ = noisy_split(X, y, noise, plan.seed, repeat)
    models = {_DEFAULT: PARampClassifier(), NOISE_AWARE: noise_aware()}
    return {
        f"{name}@{noise:g}/{key}": data.error(model.fit(data.X, data.y))
        for key, model in models.items()
    }


EXPERIMENT = beyond(
    name="pa-ramp-beyond",
    title="PA-RAMP",
    paper=PAPER,
    protocol=(
        "The first 3 splits of Table 2, 0 and 10 % of the training labels flipped. Printed: the "
        "best of the four columns of Table 2, as an error.",
        "PARampClassifier with its defaults (kernel width 'scale', s = -1) makes one pass; the "
        "noise-aware classifier is a batch method and sees all rows at once.",
    ),
    beside=DefaultsBesidePrinted(_DEFAULT, _NAMES, _BEST, "four"),
    tasks=_tasks,
    run=_run,
)
