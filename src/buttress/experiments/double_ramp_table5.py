"""Table 5 of the double ramp paper: Parkinson's disease, linear classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.datasets import load_dataset
from buttress.experiments._model import Plan
from buttress.experiments._reject_tables import METHODS, RejectTable

# d; double ramp: risk sd, rejected sd, accuracy sd; double hinge: the same
_PRINTED = """
0.05 0.031 0.002 43.88 0.80 98.33 0.49 0.043 0.001 86.38 0.92 100 -
0.1 0.051 0.004 41.79 0.77 98.07 1.03 0.061 0.002 53.76 1.64 98.61 0.62
0.15 0.071 0.002 40.08 1.21 98.14 0.48 0.086 0.004 39.56 1.13 95.8 0.72
0.2 0.095 0.004 37.67 1.04 96.99 0.55 0.125 0.008 29.78 2.06 90.86 1.5
0.25 0.133 0.009 20.46 2.79 90.26 1.30 0.142 0.004 22.3 1.95 89.02 0.73
0.3 0.129 0.01 4.06 2.06 87.83 1.15 0.131 0.009 14.19 1.05 89.76 1.01
0.35 0.134 0.007 2.49 1.04 87.19 0.76 0.133 0.004 9.97 1.18 89.10 0.57
0.4 0.131 0.008 0.56 0.44 87.06 0.75 0.133 0.006 6.10 1.62 88.53 0.92
0.45 0.133 0.013 0.05 0.17 86.72 1.28 0.14 0.009 2.92 1.09 86.96 1.05
0.5 0.133 0.009 0 - 86.65 0.94 0.139 0.008 0 - 86.06 0.76
"""

_CHOSEN = (
    'missing in the paper: "the features were scaled by ..." (their sizes span six powers of ten). '
    "Scaling to [0, 1] was chosen because it gives this column's rejection rates, so its agreement "
    "proves nothing"
)
_FROM_SCALING = "scaled to [0, 1], which was chosen on the double hinge's columns, not on this one"


def _load(plan: Plan, repeat: int) -> tuple[NDArray[Any], NDArray[Any]]:
    bunch = load_dataset("parkinsons")
    low, high = bunch.X.min(axis=0), bunch.X.max(axis=0)
    return (bunch.X - low) / np.where(high > low, high - low, 1.0), bunch.y


DATA = RejectTable(
    number=5,
    name="parkinsons",
    title="Parkinson's disease",
    load=_load,
    ramp_C=32.0,
    hinge_C=32.0,
    kernel={"kernel": "linear"},
    printed=_PRINTED,
    protocol=(
        "195 rows, 22 features, scaled to [0, 1] over all rows: of the scalings tried (none, "
        "z-scores, [0, 1]) the one that gives the double hinge's rejection rates. It is checked on "
        "the double ramp's columns, which did not choose it. Several rows belong to one person.",
        "C = 32 for both, linear kernel.",
    ),
    exceptions=("0.35",),
    unknown={METHODS[1]: _CHOSEN},
    remarks={METHODS[0]: _FROM_SCALING},
    version=2,
)
EXPERIMENT = DATA.experiment()
