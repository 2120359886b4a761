"""Beyond the uncertainty set paper: the library's defaults on its thirteen data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buttress.datasets.registry import BY_NAME
from buttress.experiments._beyond import NOISE_AWARE, DefaultsBesidePrinted, beyond, noise_aware
from buttress.experiments._ida import PAPER, SETS, SPLITS_SENTENCE, realisation
from buttress.experiments._model import Plan, Task, Values, repeated
from buttress.experiments.uncertainty_table3 import EXPERIMENT as TABLE

_DEFAULT = "UncertaintySetClassifierCV"
_BEST = {
    name: min(
        (cell.printed or "nan" for cell in TABLE.cells if cell.group == name and cell.printed),
        key=float,
    )
    for name in SETS
}
_RUNS = 5


def _tasks(plan: Plan) -> list[Task]:
    by_size = sorted(SETS, key=lambda name: (BY_NAME[name].split or (0, 0))[0])
    names = by_size[:1] if plan.quick else by_size
    return repeated(names, plan.runs(_RUNS, 1))


def _run(arguments: Mapping[str, Any], plan: Plan) -> Values:
    from buttress.model_selection import UncertaintySetClassifierCV

    name = arguments["name"]
    data = realisation(name, arguments["repeat"])
    models = {_DEFAULT: UncertaintySetClassifierCV(), NOISE_AWARE: noise_aware()}
    return {f"{name}/{key}": data.error(model.fit(data.X, data.y)) for key, model in models.items()}


EXPERIMENT = beyond(
    name="uncertainty-beyond",
    title="Uncertainty sets",
    paper=PAPER,
    protocol=(
        SPLITS_SENTENCE,
        "The first 5 realisations, features standardised on the training part. Printed: the best "
        "of the five columns of Table 3, which is known only after the test rows were seen.",
    ),
    beside=DefaultsBesidePrinted(_DEFAULT, SETS, _BEST, "five"),
    tasks=_tasks,
    run=_run,
)
