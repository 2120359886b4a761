"""Beyond the PA-RAMP paper: the library's defaults on its five data sets under label noise."""

from __future__ import annotations

import numpy as np

from buttress.experiments._beyond import DefaultsBesidePrinted, beyond, both_errors
from buttress.experiments._grids import full_or_quick, repeats, tasks_over
from buttress.experiments._model import Plan, Values
from buttress.experiments.pa_ramp_table1 import SETS
from buttress.experiments.pa_ramp_table2 import EXPERIMENT as TABLE
from buttress.experiments.pa_ramp_table2 import load, noisy_split

_DEFAULT = "PARampClassifier (one pass)"
_NOISE = (0.0, 0.1)
_NAMES = {
    f"{name}@{noise:g}": f"{title}, {noise:.0%}" for name, title in SETS.items() for noise in _NOISE
}


def _best(key: str) -> str:
    """The lowest printed error of a set at a noise level."""
    accuracies = [
        cell.number
        for cell in TABLE.cells
        if cell.id.startswith(key.replace("@", "/") + "/") and cell.id.endswith("/accuracy")
    ]
    return f"{100 - np.nanmax(accuracies):.2f}"


_BEST = {key: _best(key) for key in _NAMES}


def _run(plan: Plan, name: str, noise: float, repeat: int) -> Values:
    from buttress.classifiers import PARampClassifier

    X, y = load(name, 300 if plan.quick else None)
    data, _ = noisy_split(X, y, noise, plan.seed, repeat)
    return both_errors(f"{name}@{noise:g}", data, _DEFAULT, PARampClassifier())


EXPERIMENT = beyond(
    globals(),
    title="PA-RAMP",
    protocol=(
        "The first 3 splits of Table 2, 0 and 10 % of the training labels flipped. Printed: the "
        "best of the four columns of Table 2, as an error.",
        "PARampClassifier with its defaults (kernel width 'scale', s = -1) makes one pass; the "
        "noise-aware classifier is a batch method and sees all rows at once.",
    ),
    beside=DefaultsBesidePrinted(_DEFAULT, _NAMES, _BEST, "four"),
    tasks=tasks_over(
        "{name}/{noise:g}/{repeat}",
        "{name}@{noise:g}",
        repeat=repeats(3),
        name=full_or_quick(("wdbc", "banana_ida", "occupancy", "letter", "adult"), ("wdbc",)),
        noise=_NOISE,
    ),
)
