"""The width of a kernel: ``gamma="scale"``, ``"auto"``, ``"median"`` or a number."""

from __future__ import annotations

import sys
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist

from buttress._arrays import Array

# Rows looked at for the median: enough for two digits, and 2 million distances.
_MEDIAN_ROWS = 2000


def resolve_gamma(gamma: str | float, X: Any, weight: Array | None = None) -> float:
    """Turn the estimator's ``gamma`` into a number.

    Parameters
    ----------
    gamma : {"scale", "auto", "median"} or float
        "scale" is ``1 / (n_features * X.var())``, "auto" is ``1 / n_features`` (both as in
        scikit-learn), "median" is one over the median squared distance of two distinct rows.
    X : array or sparse matrix of shape (n, p)
        All training rows; folds share the width.
    weight : array of shape (n,), optional
        An integer weight counts as that many copies of the row.

    Examples
    --------
    >>> resolve_gamma("auto", np.zeros((3, 4)))
    0.25
    """
    check_gamma(gamma)
    if gamma == "scale":
        return _inverse_variance(X, weight)
    if gamma == "auto":
        return float(1.0 / X.shape[1])
    if gamma == "median":
        return _inverse_median(X, weight)
    return float(gamma)


def check_gamma(gamma: Any, where: str = "") -> None:
    """Raise a ValueError unless `gamma` is one of the rules or a number that can be a width.

    Examples
    --------
    >>> check_gamma(-1.0)
    Traceback (most recent call last):
    ...
    ValueError: gamma=-1.0 is not accepted: expected 'scale', 'auto', 'median' or a non-neg...
    """
    if isinstance(gamma, str):
        accepted = gamma in ("scale", "auto", "median")
    else:
        number = isinstance(gamma, Real) and not isinstance(gamma, bool)
        accepted = number and 0 <= gamma <= sys.float_info.max
    if not accepted:
        raise ValueError(
            f"gamma={gamma!r}{where} is not accepted: expected 'scale', 'auto', 'median' or a "
            "non-negative finite number."
        )


def _inverse_variance(X: Any, weight: Array | None) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        variance = _variance(X, weight)
        width = float(np.float64(1.0) / (X.shape[1] * variance)) if variance > 0 else 1.0
    vanished = variance == 0 and X.min() < X.max()  # squares too small to be told from zero
    if vanished or not (variance < np.inf and width < np.inf):
        raise ValueError(
            "gamma='scale' is not finite on these rows: squares of the features are beyond the "
            "range of floating point numbers. Scale the features."
        )
    return width


def _variance(X: Any, weight: Array | None) -> float:
    """The variance of all entries, each row counted with its weight."""
    n, p = X.shape
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    total = w.sum() * p
    if sparse.issparse(X):
        mean = float(w @ np.asarray(X.sum(axis=1)).ravel()) / total
        square = float(w @ np.asarray(X.multiply(X).sum(axis=1)).ravel()) / total
        return float(max(square - mean * mean, 0.0))
    rows = np.asarray(X, dtype=np.float64)
    mean = float(w @ rows.sum(axis=1)) / total
    return float(w @ ((rows - mean) ** 2).sum(axis=1) / total)


def _inverse_median(X: Any, weight: Array | None) -> float:
    n = X.shape[0]
    rows = np.arange(n) if n <= _MEDIAN_ROWS else np.linspace(0, n - 1, _MEDIAN_ROWS).astype(int)
    dense = X[rows].toarray() if sparse.issparse(X) else X[rows]
    distances = pdist(np.asarray(dense, dtype=np.float64), "sqeuclidean")
    i, j = np.triu_indices(len(rows), k=1)
    # Pairs of equal rows say nothing of the width, and copies of one row would add such pairs.
    distinct = distances > 0
    if not distinct.any():
        return 1.0
    distances, i, j = distances[distinct], i[distinct], j[distinct]
    pair_weight = np.ones(len(distances)) if weight is None else weight[rows][i] * weight[rows][j]
    order = np.argsort(distances)
    reached = np.cumsum(pair_weight[order])
    return float(1.0 / distances[order][np.searchsorted(reached, 0.5 * reached[-1])])
