"""Beyond the uncertainty set paper: the library's defaults on its thirteen data sets."""

from __future__ import annotations

from buttress.experiments._beyond import DefaultsBesidePrinted, beyond, both_errors, lowest
from buttress.experiments._grids import full_or_quick, repeats, tasks_over
from buttress.experiments._ida import BY_SIZE, SETS, SPLITS_SENTENCE, realisation
from buttress.experiments._model import Plan, Values
from buttress.experiments.uncertainty_table3 import EXPERIMENT as TABLE

_DEFAULT = "UncertaintySetClassifierCV"
_BEST = {name: lowest(cell for cell in TABLE.cells if cell.group == name) for name in SETS}


def _run(plan: Plan, name: str, repeat: int) -> Values:
    from buttress.model_selection import UncertaintySetClassifierCV

    return both_errors(name, realisation(name, repeat), _DEFAULT, UncertaintySetClassifierCV())


EXPERIMENT = beyond(
    globals(),
    title="Uncertainty sets",
    protocol=(
        SPLITS_SENTENCE,
        "The first 5 realisations, features standardised on the training part. Printed: the best "
        "of the five columns of Table 3, which is known only after the test rows were seen.",
    ),
    beside=DefaultsBesidePrinted(_DEFAULT, SETS, _BEST, "five"),
    tasks=tasks_over(
        "{name}/{repeat}", repeat=repeats(5), name=full_or_quick(BY_SIZE, BY_SIZE[:1])
    ),
)
