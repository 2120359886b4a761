"""A user's copy of a built-in loss against the loss itself: the same fits, the same solver.

    python benchmarks/custom_loss.py

The copy is written as plain functions of one number (`buttress.losses.ScalarLoss`). Jobs are
cross-validated paths of a hundred penalties on generated rows: a Gaussian kernel on few rows
(Newton's method) and on more (all columns together), and a linear kernel. Times are processor
seconds of the best of several runs of each, in turn, after everything is compiled; the time to
compile for the copy, which is not kept on disk, stands beside them.
"""

from __future__ import annotations

import math
import time

import numpy as np
from sklearn.datasets import make_classification

from _common import report
from buttress import LeakyHockeyStickClassifierCV
from buttress.losses import ScalarLoss

JOBS = [("rbf", 150, 20), ("rbf", 500, 20), ("linear", 500, 20)]
RUNS = 7


def value(u: float) -> float:
    return 1.0 - u if u <= 1.0 else -math.log(u)


def derivative(u: float) -> float:
    return -1.0 if u <= 1.0 else -1.0 / u


def curvature(u: float) -> float:
    return 0.0 if u <= 1.0 else 1.0 / (u * u)


def conjugate(s: float) -> float:
    return -1.0 - math.log(-s) if -1.0 <= s < 0.0 else math.inf


def processor_seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def run(kernel: str, n: int, p: int) -> dict[str, object]:
    X, y = make_classification(n, p, n_informative=5, flip_y=0.1, random_state=0)
    own = ScalarLoss(
        value, derivative, curvature, curvature_bound=1.0, conjugate_at=conjugate, tail=0.5
    )
    models = {
        "built_in_s": LeakyHockeyStickClassifierCV(kernel=kernel),
        "copy_s": LeakyHockeyStickClassifierCV(kernel=kernel, loss=own),
    }
    first = {name: processor_seconds(lambda m=m: m.fit(X, y)) for name, m in models.items()}
    best = dict.fromkeys(models, np.inf)
    for _ in range(RUNS):
        for name, model in models.items():
            best[name] = min(best[name], processor_seconds(lambda m=model: m.fit(X, y)))
    scores = [model.cv_mean_ for model in models.values()]
    return {
        "job": f"{n} x {p}",
        "kernel": kernel,
        "solver": models["copy_s"].solver_,
        **best,
        "ratio": best["copy_s"] / best["built_in_s"],
        "first_copy_s": first["copy_s"],
        "cv_difference": float(np.max(np.abs(scores[0] - scores[1]))),
    }


def main() -> None:
    report("custom_loss", [run(*job) for job in JOBS], alphas=100, folds=5)


if __name__ == "__main__":
    main()
