"""Table 1 of the PA-RAMP paper: how large the five data sets are."""

from __future__ import annotations

from buttress.datasets import load_dataset
from buttress.experiments._grids import full_or_quick, grid, read_printed, tasks_over
from buttress.experiments._model import Experiment, Plan, Values

_COUNTED = "the paper counts {} with the features; {} are left without them"
SETS = {
    "wdbc": "Breast Cancer",
    "letter": "Letters",
    "occupancy": "Occupancy",
    "banana_ida": "Banana",
    "adult": "Adult",
}
_QUANTITIES = ("rows", "features")
_PRINTED = """
wdbc 569 32
letter 20000 16
occupancy 20560 7
banana_ida 5300 2
adult 48842 14
"""


def _run(plan: Plan, name: str) -> Values:
    # The printed row count of Adult includes the rows with missing values.
    rows = len(load_dataset(name, variant="raw").y)
    return {f"{name}/rows": rows, f"{name}/features": load_dataset(name).X.shape[1]}


EXPERIMENT = Experiment.of(
    globals(),
    title="PA-RAMP, Table 1: the data sets",
    protocol=(
        "Rows are those of the raw files, features those that are used.",
        "Printed numbers are facts, compared exactly.",
    ),
    cells=grid(
        {"data": SETS, "quantity": _QUANTITIES},
        printed=read_printed(_PRINTED, 1, _QUANTITIES, spreads=False),
        exact=True,
        unit={quantity: quantity for quantity in _QUANTITIES},
        remark={
            "wdbc/features": _COUNTED.format("identifier and label", "30"),
            "occupancy/features": _COUNTED.format("date and label", "5"),
        },
    ),
    tasks=tasks_over("{name}", name=full_or_quick(SETS, ("wdbc",))),
)
