"""How much one pass of PA-RAMP depends on the split and the order: banana, many random splits.

s by 5-fold cross-validation on the first 1000 training rows. Where the learner warns that it
refused more than a quarter of its rows, it is fitted again with the rows in another order.

    python benchmarks/stream_orders.py [--splits N] [--docs]

The data set is found in BUTTRESS_DATA, or downloaded.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from _common import report
from buttress import PARampClassifier
from buttress.datasets import load_dataset


def tuned(X: np.ndarray, y: np.ndarray) -> PARampClassifier:
    search = GridSearchCV(
        PARampClassifier(gamma=1.0),
        {"s": [-1.0, -0.75, -0.5, -0.25]},
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
    )
    return search.fit(X[:1000], y[:1000]).best_estimator_


def refused_too_many(model: PARampClassifier, X: np.ndarray, y: np.ndarray) -> bool:
    """Fit, and say whether the learner warned."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y)
    return any("were refused" in str(warning.message) for warning in told)


def one_split(X: Any, y: Any, train: Any, test: Any, noise: float, seed: int) -> list[float]:
    """Accuracy and support vectors at first, whether it warned, and both at last."""
    random = np.random.RandomState(seed)
    labels = np.where(random.rand(len(train)) < noise, -y[train], y[train])
    model = tuned(X[train], labels)
    told = refused_too_many(model, X[train], labels)
    first = [model.score(X[test], y[test]), len(model.support_)]
    warned = told
    while told:
        order = random.permutation(len(train))
        told = refused_too_many(model, X[train[order]], labels[order])
    return [*first, warned, model.score(X[test], y[test]), len(model.support_)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=400)
    parser.add_argument("--docs", action="store_true", help="write the tables of the docs")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    data = load_dataset("banana_ida")
    X, y = StandardScaler().fit_transform(data.X), np.where(data.y == data.y.max(), 1, -1)
    splits = list(ShuffleSplit(given.splits, test_size=0.2, random_state=0).split(X))
    rows = []
    for noise in (0.0, 0.05, 0.1):
        found = np.array(
            [one_split(X, y, *split, noise, seed) for seed, split in enumerate(splits)]
        )
        fives = found[: len(found) // 5 * 5, 0].reshape(-1, 5).mean(axis=1)
        rows.append(
            {
                "flipped": f"{noise:.0%}",
                "accuracy %": round(100 * found[:, 0].mean(), 2),
                "means of five": f"{100 * fives.min():.1f} to {100 * fives.max():.1f}",
                "worst split": round(100 * found[:, 0].min(), 1),
                "vectors": round(found[:, 1].mean()),
                "splits warned of": int(found[:, 2].sum()),
                "accuracy % after": round(100 * found[:, 3].mean(), 2),
                "worst split after": round(100 * found[:, 3].min(), 1),
                "vectors after": round(found[:, 4].mean()),
            }
        )
    report("stream_orders", rows, docs=given.docs, splits=given.splits)


if __name__ == "__main__":
    main()
