"""Splits, scaling and seeds shared by the experiments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Split = tuple[NDArray[Any], NDArray[Any]]


class TrainTest(NamedTuple):
    """Rows to learn from and rows to test on, with their labels."""

    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]

    def error(self, model: Any) -> float:
        """Share of the test rows that a fitted model gets wrong."""
        return float(np.mean(model.predict(self.X_test) != self.y_test))


def generator(*numbers: int) -> np.random.Generator:
    """Random numbers that depend on the seed, the repetition and nothing else."""
    return np.random.default_rng(list(numbers))


def seed_of(*numbers: int) -> int:
    """A seed for interfaces that want an integer."""
    return int(generator(*numbers).integers(2**31 - 1))


def random_split(n: int, train_share: float, random: np.random.Generator) -> Split:
    """Row numbers of a random training part and of the rest."""
    order = random.permutation(n)
    cut = round(train_share * n)
    return order[:cut], order[cut:]


def standardised(X: NDArray[Any], rows: NDArray[Any] | None = None) -> NDArray[Any]:
    """Features with mean 0 and standard deviation 1 on `rows`; constant ones become 0."""
    reference = X if rows is None else X[rows]
    scale = reference.std(axis=0)
    return np.asarray((X - reference.mean(axis=0)) / np.where(scale > 0, scale, 1.0))


def folds(n: int, count: int, random: np.random.Generator) -> Iterator[Split]:
    """Training and test rows of a random partition into `count` parts."""
    groups = np.array_split(random.permutation(n), count)
    for k, test in enumerate(groups):
        yield np.concatenate([group for j, group in enumerate(groups) if j != k]), test


def balanced_folds(y: NDArray[Any], count: int, *numbers: int) -> list[Split]:
    """Stratified folds that depend on the numbers alone: the same for all learners."""
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(count, shuffle=True, random_state=seed_of(*numbers))
    return list(splitter.split(np.zeros((len(y), 1)), y))


def stratified_folds(y: NDArray[Any], count: int, random: np.random.Generator) -> list[Split]:
    """As `folds`, with the classes spread evenly over the parts."""
    fold_of = np.empty(len(y), dtype=int)
    for label in np.unique(y):
        rows = random.permutation(np.flatnonzero(y == label))
        fold_of[rows] = np.arange(len(rows)) % count
    return [(np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)) for k in range(count)]
