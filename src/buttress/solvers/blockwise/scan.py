"""The first look at all rows: labels, weights, means and variances, and whether they are sound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from buttress._arrays import Array
from buttress.blocks.base import Block, BlockSource
from buttress.solvers.blockwise.columns import Folds


@dataclass(frozen=True, eq=False)
class Summary:
    """What is known of the data after one pass.

    Attributes
    ----------
    n_rows : int
    classes : array
        The labels, sorted.
    class_weight : array of shape (n_classes,)
        Total row weight of each class.
    fold_weight : array of shape (n_classes, n_folds + 1)
        The same within the training rows of each fold; the last column is all rows.
    mean : array of shape (p,)
        Weighted mean of every feature.
    feature_variance : array of shape (p,)
        Weighted variance of every feature.
    variance : float
        Weighted variance of all entries, as in ``X.var()``.
    """

    n_rows: int
    classes: NDArray[Any]
    class_weight: Array
    fold_weight: Array
    mean: Array
    feature_variance: Array
    variance: float


@dataclass(frozen=True, eq=False)
class _Moments:
    n_rows: int
    labels: NDArray[Any]
    fold_weight: Array
    weight: float
    mean: Array
    spread: Array  # weighted sum of squared deviations from the mean


@dataclass(frozen=True, eq=False)
class _ScanTask:
    folds: Folds

    def __call__(self, block: Block) -> _Moments:
        check_finite(block)
        if block.y is None:
            raise ValueError(f"{block.where} has no labels.")
        n = len(block)
        w = np.ones(n) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
        if not (np.isfinite(w).all() and (w >= 0).all()):
            raise ValueError(f"{block.where}: weights must be finite and not negative.")
        labels, codes = np.unique(block.y, return_inverse=True)
        weighted = self.folds.train(block.numbers) * w[:, None]
        fold_weight = np.zeros((len(labels), self.folds.n_folds + 1))
        np.add.at(fold_weight, codes.ravel(), weighted)
        weight = float(w.sum())
        X = block.X.astype(np.float64)
        scale = weight if weight > 0 else 1.0
        if sparse.issparse(X):
            mean = np.asarray(X.T @ w).ravel() / scale
            spread = np.asarray(X.multiply(X).T @ w).ravel() - weight * mean**2
        else:
            mean = w @ X / scale
            X -= mean
            spread = w @ (X * X)
        return _Moments(n, labels, fold_weight, weight, mean, np.maximum(spread, 0.0))


def check_finite(block: Block) -> None:
    """Raise a ValueError that names the place when a row holds NaN or infinity."""
    X = block.X.data if sparse.issparse(block.X) else block.X
    if np.isfinite(X.sum(dtype=np.float64)) or np.isfinite(X).all():
        return
    if sparse.issparse(block.X):
        raise ValueError(f"{block.where}: NaN or infinity in X.")
    row, column = np.argwhere(~np.isfinite(block.X))[0]
    name = column if block.names is None else repr(block.names[column])
    kind = "NaN" if np.isnan(block.X[row, column]) else "infinity"
    raise ValueError(
        f"{block.where}: column {name} holds {kind} (row {int(block.numbers[row])} of all)."
    )


def scan(source: BlockSource, folds: Folds | None = None) -> Summary:
    """Read all rows once.

    Raises
    ------
    ValueError
        For NaN or infinity (naming the block and the column), for a single class, and for a
        fold whose training rows lack a class.

    Examples
    --------
    >>> from buttress.blocks.base import ArrayBlocks
    >>> scan(ArrayBlocks(np.array([[0.0], [2.0]]), ["a", "b"])).variance
    1.0
    """
    folds = folds or Folds()
    moments = reduce(_merge, source.map(_ScanTask(folds)))
    if len(moments.labels) < 2:
        raise ValueError(
            f"The data contain only one class, {moments.labels.tolist()}: at least 2 are needed."
        )
    _check_folds(moments.labels, moments.fold_weight, folds)
    grand = float(moments.mean.mean())
    between = moments.weight * float(((moments.mean - grand) ** 2).sum())
    entries = moments.weight * len(moments.mean)
    return Summary(
        moments.n_rows,
        moments.labels,
        moments.fold_weight[:, -1],
        moments.fold_weight,
        moments.mean,
        moments.spread / moments.weight,
        (float(moments.spread.sum()) + between) / entries,
    )


def _merge(first: _Moments, second: _Moments) -> _Moments:
    labels = _union([first.labels, second.labels])
    fold_weight = np.zeros((len(labels), first.fold_weight.shape[1]))
    for moments in (first, second):
        fold_weight[np.searchsorted(labels, moments.labels)] += moments.fold_weight
    weight = first.weight + second.weight
    share = second.weight / weight if weight > 0 else 0.0
    step = second.mean - first.mean
    spread = first.spread + second.spread + first.weight * share * step**2
    return _Moments(
        first.n_rows + second.n_rows,
        labels,
        fold_weight,
        weight,
        first.mean + share * step,
        spread,
    )


def _union(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    kinds = {"text" if of_block.dtype.kind in "OUS" else "number" for of_block in labels}
    if len(kinds) > 1:
        raise ValueError("The labels are text in some blocks and numbers in others.")
    return np.unique(np.concatenate(labels))


def _check_folds(classes: NDArray[Any], fold_weight: Array, folds: Folds) -> None:
    for fold in range(folds.n_folds):
        missing = classes[fold_weight[:, fold] <= 0]
        if len(missing):
            raise ValueError(
                f"Fold {fold} of {folds.n_folds} has no training rows of class "
                f"{', '.join(map(str, missing.tolist()))}. Use fewer folds or drop the class."
            )
