"""Cross-validation folds as index sets, checked before any work is done."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from buttress._arrays import Array, IntArray
from buttress.classifiers.parameters import check_splits
from buttress.solvers.numerics.rows import gather

Fold = tuple[IntArray, IntArray]


def classification_folds(
    cv: Any,
    X: Any,
    y: NDArray[Any],
    groups: NDArray[Any] | None = None,
    *,
    split_rows: Mapping[str, Any] | None = None,
    rows: IntArray | None = None,
) -> list[Fold]:
    """The (train, test) index pairs of any scikit-learn splitter.

    Parameters
    ----------
    cv : int, splitter or iterable of index pairs
        As in scikit-learn; an integer means stratified folds.
    X : array or sparse matrix of shape (n, p)
    y : array of shape (n,)
        Labels (or their codes).
    groups : array of shape (n,), optional
    split_rows : mapping, optional
        Whatever else the splitter is to know of the rows, by name.
    rows : array of shape (n,), optional
        Where these rows stand in the user's data, when some (of weight zero) were removed.
        Splitters split the rows that are left; index pairs given ready count all rows.

    Raises
    ------
    ValueError
        When the training part of a fold lacks a class: the message says which fold, which
        class and what to do.

    Examples
    --------
    >>> folds = classification_folds(2, np.zeros((4, 1)), np.array([0, 0, 1, 1]))
    >>> [test.tolist() for _, test in folds]
    [[0, 2], [1, 3]]
    """
    given_ready = not (isinstance(cv, Integral) or cv is None or hasattr(cv, "split"))
    check_splits(cv)
    if isinstance(cv, Integral) and int(cv) > len(y):
        raise ValueError(f"cv={cv!r} is out of range: there are {len(y)} rows to split.")
    splitter = check_cv(cv, y, classifier=True)
    try:
        pairs = list(splitter.split(X, y, **({"groups": groups} | dict(split_rows or {}))))
    except TypeError:
        if not given_ready:
            raise
        raise ValueError(
            f"cv={cv!r} is not accepted: expected a whole number of at least 2, a splitter or "
            "pairs of index arrays."
        ) from None
    folds = [(np.asarray(train), np.asarray(test)) for train, test in pairs]
    if given_ready and rows is not None:
        folds = [(_positions(train, rows), _positions(test, rows)) for train, test in folds]
    if not folds:
        raise ValueError(f"cv={cv!r} gives no folds.")
    classes, codes = np.unique(y, return_inverse=True)
    for number, (train, test) in enumerate(folds):
        missing = classes[np.bincount(codes[train], minlength=len(classes)) == 0]
        if len(missing):
            raise ValueError(
                f"Fold {number} of cv={cv!r} has no training rows of class "
                f"{', '.join(map(str, missing.tolist()))}. Use stratified folds "
                "(StratifiedKFold), fewer folds, or drop the class."
            )
        if len(test) == 0:
            raise ValueError(f"Fold {number} of cv={cv!r} has no test rows. Use fewer folds.")
    return folds


def fold_kernels(K: Array, fold: Fold) -> tuple[Array, Array]:
    """The kernel of the training rows, and that of the held-out rows with them.

    Compiled: NumPy's own takes three times as long, and holds the interpreter's lock.
    """
    K = np.ascontiguousarray(K)
    train, test = (indices.astype(np.intp, copy=False) for indices in fold)
    inner = np.empty((len(train), len(train)), dtype=K.dtype)
    outer = np.empty((len(test), len(train)), dtype=K.dtype)
    gather(K, train, train, inner)
    gather(K, test, train, outer)
    return inner, outer


def _positions(members: IntArray, rows: IntArray) -> IntArray:
    """Positions in `rows` (sorted) of those `members` that are still there."""
    members = np.flatnonzero(members) if members.dtype == bool else members
    position = np.minimum(np.searchsorted(rows, members), len(rows) - 1)
    return np.asarray(position[rows[position] == members])
