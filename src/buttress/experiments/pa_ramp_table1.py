"""Table 1 of the PA-RAMP paper: how large the five data sets are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buttress.datasets import load_dataset
from buttress.experiments._model import Cell, Experiment, Plan, Task, Values

PAPER = '"Kernel learning with non-convex ramp loss" (PA-RAMP).'

_COUNTED = "the paper counts {} with the features; {} are left without them"
# name, file, rows and features as printed, what explains a difference
_PRINTED = (
    ("Breast Cancer", "wdbc", "569", "32", _COUNTED.format("identifier and label", "30")),
    ("Letters", "letter", "20000", "16", ""),
    ("Occupancy", "occupancy", "20560", "7", _COUNTED.format("date and label", "5")),
    ("Banana", "banana_ida", "5300", "2", ""),
    ("Adult", "adult", "48842", "14", ""),
)


def _cells() -> tuple[Cell, ...]:
    cells = []
    for title, name, rows, features, remark in _PRINTED:
        for what, printed in (("rows", rows), ("features", features)):
            cells.append(
                Cell(
                    f"{name}/{what}",
                    name,
                    {"data": title, "quantity": what},
                    printed,
                    exact=True,
                    unit=what,
                    remark=remark if what == "features" else "",
                )
            )
    return tuple(cells)


def _tasks(plan: Plan) -> list[Task]:
    chosen = _PRINTED[:1] if plan.quick else _PRINTED
    return [Task(name, name, {"name": name}) for _, name, _, _, _ in chosen]


def _run(arguments: Mapping[str, Any], plan: Plan) -> Values:
    name = arguments["name"]
    # The printed row count of Adult includes the rows with missing values.
    rows = len(load_dataset(name, variant="raw").y)
    return {f"{name}/rows": rows, f"{name}/features": load_dataset(name).X.shape[1]}


EXPERIMENT = Experiment(
    name="pa-ramp-table1",
    title="PA-RAMP, Table 1: the data sets",
    paper=PAPER,
    protocol=(
        "Rows are those of the raw files, features those that are used.",
        "Printed numbers are facts, compared exactly.",
    ),
    cells=_cells(),
    tasks=_tasks,
    run=_run,
)
