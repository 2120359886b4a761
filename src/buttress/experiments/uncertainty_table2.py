"""Table 2 of the uncertainty set paper: the thirteen data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from buttress.datasets import load_dataset
from buttress.datasets.registry import BY_NAME
from buttress.experiments._ida import PAPER, SETS, SPLITS_SENTENCE, realisations
from buttress.experiments._model import Cell, Experiment, Plan, Task, Values

# dimension, share of positives in the training part, training rows, test rows, realisations
_PRINTED = """
banana_ida 2 0.454 400 4900 100
breast_cancer_ida 9 0.294 200 77 100
diabetis_ida 8 0.350 468 300 100
flare_solar_ida 9 0.552 666 400 100
german_ida 20 0.301 700 300 100
heart_ida 13 0.445 170 100 100
image_ida 18 0.574 1300 1010 20
ringnorm_ida 20 0.497 400 7000 100
splice_ida 60 0.483 1000 2175 20
thyroid_ida 5 0.305 140 75 85
titanic_ida 3 0.322 150 2051 100
twonorm_ida 20 0.505 400 7000 100
waveform_ida 21 0.331 400 4600 100
"""
_QUANTITIES = ("dim", "P(Y=+1)", "train", "test", "rep.")


def _cells() -> tuple[Cell, ...]:
    cells = []
    for line in _PRINTED.strip().splitlines():
        name, *numbers = line.split()
        for quantity, printed in zip(_QUANTITIES, numbers, strict=True):
            share = quantity == "P(Y=+1)"
            remark = "the scan of the paper shows 85" if printed == "85" else ""
            cells.append(
                Cell(
                    f"{name}/{quantity}",
                    name,
                    {"data": SETS[name], "quantity": quantity},
                    printed,
                    exact=not share,
                    unit=quantity,
                    better=None,
                    remark=remark,
                )
            )
    return tuple(cells)


def _tasks(plan: Plan) -> list[Task]:
    names = list(SETS)[:2] if plan.quick else list(SETS)
    return [
        Task(f"{name}/{number}", name, {"name": name, "number": number})
        for name in names
        for number in range(plan.runs(10, 2))
    ]


def _run(arguments: Mapping[str, Any], plan: Plan) -> Values:
    name, number = arguments["name"], arguments["number"]
    bunch = load_dataset(name)
    (train, test), canonical = realisations(name, number + 1)[number]
    values: Values = {
        f"{name}/P(Y=+1)": float(np.mean(bunch.y[train] == 1)),
        f"{name}/canonical": canonical,
    }
    if number == 0:
        values |= {
            f"{name}/dim": bunch.X.shape[1],
            f"{name}/train": len(train),
            f"{name}/test": len(test),
            f"{name}/rep.": (BY_NAME[name].split or (0, 0))[1],
        }
    return values


EXPERIMENT = Experiment(
    name="uncertainty-table2",
    title="Uncertainty sets, Table 2: the data sets",
    paper=PAPER,
    protocol=(
        SPLITS_SENTENCE,
        "The share of positives is the mean over ten training parts, in the paper over all. The "
        "other numbers are facts; 'rep.' is the number of realisations in the archive.",
        "The scan shows 7 test rows for breast-cancer; the archive has 77, which is taken as "
        "printed.",
    ),
    cells=_cells(),
    tasks=_tasks,
    run=_run,
    version=2,
)
