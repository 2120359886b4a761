"""Linear kernels of many features: columns of one matrix beside Newton's method.

    python benchmarks/low_rank.py

Says whether the column solver for features (`solvers.smooth.columns`) earns its place: 100
penalties and 5 folds, the best of three runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from _common import report, seconds
from buttress import LeakyHockeyStickClassifierCV

SHAPES = ((2000, 300), (3000, 500), (4000, 800))


def row(n: int, p: int) -> dict[str, Any]:
    X, y = make_classification(n, p, n_informative=30, flip_y=0.1, random_state=0)
    X /= np.sqrt(p)
    took = {}
    for solver in ("batched", "newton"):
        model = LeakyHockeyStickClassifierCV(kernel="linear", solver=solver)
        model.fit(X[:400], y[:400])  # compiles
        took[solver] = seconds(lambda model=model: model.fit(X, y), repeats=3)[0]
    ratio = took["newton"] / took["batched"]
    return {
        "rows": n,
        "features": p,
        "columns s": took["batched"],
        "Newton s": took["newton"],
        "ratio": ratio,
    }


if __name__ == "__main__":
    report("low_rank", [row(n, p) for n, p in SHAPES])
