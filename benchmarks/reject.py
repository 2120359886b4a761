"""Rejection over a grid of costs: time against plain SVC fits, and risks against Chow's rule.

Ionosphere (raw features, RBF gamma 0.125, C = 2, mu = 1, ten folds) needs BUTTRESS_DATA;
without it a synthetic set of the same size is used.

    python benchmarks/reject.py [--quick] [--time] [--docs]
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from _common import report, seconds
from buttress import (
    ChowRejector,
    DoubleHingeClassifier,
    DoubleRampClassifier,
    GeneralizedHingeClassifier,
    cross_validate_reject,
)

GAMMA, C = 0.125, 2.0
COSTS = np.linspace(0.05, 0.5, 10)
# Table 4 of the double ramp paper.
PRINTED = {
    "d=0.05": "0.025 / 34.8%", "d=0.1": "0.027 / 8.8%", "d=0.2": "0.044 / 3.5%",
    "d=0.3": "0.052 / 0.9%", "d=0.5": "0.054",
}  # fmt: skip


def load() -> tuple[str, np.ndarray, np.ndarray]:
    folder = os.environ.get("BUTTRESS_DATA")
    if folder and (Path(folder) / "ionosphere.csv").exists():
        with (Path(folder) / "ionosphere.csv").open() as file:
            rows = [line.strip().split(",") for line in file][1:]
        X = np.array([row[:-1] for row in rows], dtype=float)
        return "ionosphere", X, np.array([row[-1] == "g" for row in rows], dtype=int)
    X, y = make_classification(351, 34, n_informative=10, flip_y=0.05, random_state=0)
    return "synthetic", X / np.abs(X).max(), y


def plain_fits(X: np.ndarray, y: np.ndarray, folds: list[tuple[np.ndarray, np.ndarray]]) -> int:
    wrong = 0
    for _ in COSTS:
        for train, test in folds:
            model = SVC(C=C, gamma=GAMMA).fit(X[train], y[train])
            wrong += int((model.predict(X[test]) != y[test]).sum())
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one repetition instead of five")
    parser.add_argument("--time", action="store_true", help="only the time, not the risks")
    parser.add_argument("--docs", action="store_true", help="write the documentation's tables")
    options = parser.parse_args()
    quick = options.quick
    name, X, y = load()
    folds = list(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))
    machine = DoubleRampClassifier(C=C, gamma=GAMMA)
    cross_validate_reject(machine, X, y, [0.2], cv=folds)  # compile
    repeats = 1 if quick else 5
    plain, _ = seconds(lambda: plain_fits(X, y, folds), repeats)
    ours, _ = seconds(lambda: cross_validate_reject(machine, X, y, COSTS, cv=folds), repeats)
    loose = DoubleRampClassifier(C=C, gamma=GAMMA, tol=1e-3)
    rough, _ = seconds(lambda: cross_validate_reject(loose, X, y, COSTS, cv=folds), repeats)
    rows = [
        {"job": "100 SVC fits", "seconds": plain, "ratio": 1.0},
        {"job": "10 costs x 10 folds, double ramp, tol 1e-10", "seconds": ours,
         "ratio": ours / plain},
        {"job": "the same, tol 1e-3", "seconds": rough, "ratio": rough / plain},
    ]  # fmt: skip
    settings = {"data": name, "n": len(y), "costs": COSTS.tolist()}
    report("reject_time", rows, docs=options.docs, **settings)
    if options.time:
        return
    risks = []
    models = {
        "double ramp": machine,
        "double hinge, C=16": DoubleHingeClassifier(C=16.0, gamma=GAMMA),
        "generalised hinge": GeneralizedHingeClassifier(C=C, gamma=GAMMA),
        "Chow, sigmoid SVC": ChowRejector(SVC(C=C, gamma=GAMMA)),
        "Chow, isotonic SVC": ChowRejector(SVC(C=C, gamma=GAMMA), calibration="isotonic"),
    }
    costs = [0.05, 0.1, 0.2, 0.3, 0.5]
    for label, model in models.items():
        total = np.zeros((2, len(costs)))
        for seed in range(repeats):
            splitter = StratifiedKFold(10, shuffle=True, random_state=seed)
            found = cross_validate_reject(model, X, y, costs, cv=splitter)
            total += np.array([found.risk, 100 * found.rejection_rate]) / repeats
        cells = {
            f"d={d:g}": f"{r:.4f} / {p:.1f}%" for d, (r, p) in zip(costs, total.T, strict=True)
        }
        risks.append({"risk / rejected": label, **cells})
        if label == "double ramp" and name == "ionosphere":
            risks.append({"risk / rejected": "the paper's double ramp", **PRINTED})
    report("reject_risk", risks, docs=options.docs, data=name, repetitions=repeats)


if __name__ == "__main__":
    main()
