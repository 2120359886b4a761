"""Table 2 of the uncertainty set paper: the thirteen data sets."""

from __future__ import annotations

import numpy as np

from buttress.datasets import load_dataset
from buttress.datasets.registry import BY_NAME
from buttress.experiments._grids import full_or_quick, grid, read_printed, repeats, tasks_over
from buttress.experiments._ida import SETS, SPLITS_SENTENCE, realisations
from buttress.experiments._model import Experiment, Plan, Values

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


def _run(plan: Plan, name: str, number: int) -> Values:
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


EXPERIMENT = Experiment.of(
    globals(),
    title="Uncertainty sets, Table 2: the data sets",
    protocol=(
        SPLITS_SENTENCE,
        "The share of positives is the mean over ten training parts, in the paper over all. The "
        "other numbers are facts; 'rep.' is the number of realisations in the archive.",
        "The scan shows 7 test rows for breast-cancer; the archive has 77, which is taken as "
        "printed.",
    ),
    cells=grid(
        {"data": SETS, "quantity": _QUANTITIES},
        printed=read_printed(_PRINTED, 1, _QUANTITIES, spreads=False),
        exact={quantity: quantity != "P(Y=+1)" for quantity in _QUANTITIES},
        unit={quantity: quantity for quantity in _QUANTITIES},
        better=None,
        remark={"thyroid_ida/rep.": "the scan of the paper shows 85"},
    ),
    tasks=tasks_over(
        "{name}/{number}", name=full_or_quick(SETS, list(SETS)[:2]), number=repeats(10, 2)
    ),
    version=2,
)
