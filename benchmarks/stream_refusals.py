"""Learners of streams that refuse: long-run coverage and error, in the order of the files.

Every row is answered or refused before it is learned. The share of answers is compared with the
target over the whole stream, and the error among them with that of answering everything. Needs
BUTTRESS_DATA.

    python benchmarks/stream_refusals.py [--quick] [--docs]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from _common import report
from buttress import KernelPegasos, PARampClassifier
from buttress.datasets import load_dataset

SETS = ("elec2", "covtype_sample", "adult")
REQUESTS = ({"target_coverage": 0.9}, {"target_coverage": 0.7}, {"target_risk": 0.1}, {"d": 0.2})


def stream(name: str, rows: int | None) -> tuple[Any, Any]:
    data = load_dataset(name, categorical="onehot")
    X, y = np.asarray(data.X, dtype=float), np.asarray(data.y)
    complete = ~np.isnan(X).any(axis=1)
    X, y = X[complete][:rows], y[complete][:rows]
    # scaled by the first rows only: a stream has not seen the others
    mean, spread = X[:1000].mean(axis=0), X[:1000].std(axis=0)
    return np.clip((X - mean) / np.where(spread > 0, spread, 1.0), -10.0, 10.0), y


def row(name: str, X: Any, y: Any, model: Any, request: dict[str, float]) -> dict[str, Any]:
    model.set_params(**request)
    found = model.answer_or_refuse(X, y, classes=np.unique(y))
    kept = ~found.mask
    wrong = np.asarray(found.data != y)
    thousand = np.arange(len(y)) // 1000
    shares = np.bincount(thousand, weights=kept) / np.bincount(thousand)
    return {
        "stream": name,
        "rows": len(y),
        "learner": type(model).__name__,
        "asked": ", ".join(f"{key} {value:g}" for key, value in request.items()),
        "answered": f"{kept.mean():.4f}",
        "in a thousand rows": f"{shares.min():.2f} to {shares.max():.2f}",
        "error among them": f"{wrong[kept].mean():.4f}",
        "error of all": f"{wrong.mean():.4f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first 5000 rows")
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in SETS:
        X, y = stream(name, 5000 if given.quick else None)
        rows += [
            row(name, X, y, learner(budget=200, budget_policy="forget"), request)
            for request in REQUESTS
            for learner in (PARampClassifier, KernelPegasos)
        ]
    report("stream_refusals", rows, docs=given.docs)


if __name__ == "__main__":
    main()
