"""Learners of streams that refuse: long-run coverage and error, in the order of the files.

Every row is answered or refused before it is learned. The share of answers is compared with the
target over the whole stream (in brackets: its range over a thousand rows each), and the error among
them with that of answering everything; for a cost the third number is the 0-d-1 risk. Needs
BUTTRESS_DATA.

    python benchmarks/stream_refusals.py [--quick] [--docs]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from _common import report
from buttress import KernelPegasos, KernelPerceptron, Norma, PARampClassifier
from buttress.datasets import load_dataset

SETS = ("elec2", "covtype_sample", "adult")
LEARNERS = (PARampClassifier, KernelPegasos, Norma, KernelPerceptron)
REQUESTS = ({"target_coverage": 0.9}, {"target_coverage": 0.7}, {"target_risk": 0.1}, {"d": 0.2})


def stream(name: str, rows: int | None) -> tuple[Any, Any]:
    data = load_dataset(name, categorical="onehot")
    X, y = np.asarray(data.X, dtype=float), np.asarray(data.y)
    complete = ~np.isnan(X).any(axis=1)
    X, y = X[complete][:rows], y[complete][:rows]
    # scaled by the first rows only: a stream has not seen the others
    mean, spread = X[:1000].mean(axis=0), X[:1000].std(axis=0)
    return np.clip((X - mean) / np.where(spread > 0, spread, 1.0), -10.0, 10.0), y


def outcome(X: Any, y: Any, model: Any, request: dict[str, float]) -> tuple[str, str]:
    """What was asked and what came of it, and the error of all answers."""
    model.set_params(**request)
    found = model.answer_or_refuse(X, y, classes=np.unique(y))
    kept, wrong = ~found.mask, np.asarray(found.data != y)
    thousand = np.arange(len(y)) // 1000
    shares = np.bincount(thousand, weights=kept) / np.bincount(thousand)
    text = f"{kept.mean():.4f}"
    if "target_coverage" in request:
        text += f" ({shares.min():.2f} to {shares.max():.2f})"
    else:
        text += f" / {wrong[kept].mean():.4f}" if kept.any() else " / none"
    if "d" in request:
        text += f" / {np.where(kept, wrong, request['d']).mean():.4f}"
    return text, f"{wrong.mean():.4f}"


def row(name: str, X: Any, y: Any, learner: Any) -> dict[str, Any]:
    cells = {"stream": name, "rows": len(y), "learner": learner.__name__}
    for request in REQUESTS:
        model = learner(budget=200, budget_policy="forget")
        text, error = outcome(X, y, model, request)
        ((key, value),) = request.items()
        cells |= {"error of all": error, f"{key} {value:g}": text}
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first 5000 rows")
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in SETS:
        X, y = stream(name, 5000 if given.quick else None)
        rows += [row(name, X, y, learner) for learner in LEARNERS]
    report("stream_refusals", rows, docs=given.docs)


if __name__ == "__main__":
    main()
