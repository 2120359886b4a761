"""Copies of a row as one row of more weight, so that integer weights and copies are the same.

Equal rows with *different* labels stay apart, but are one place. Equal rows are either copies of
one record, then a place is held out whole, because a machine that saw the copy knows the label; or
different records of a table with few categories, then each is held out alone, because rows to come
meet their likes among the training rows too. Labels tell: those of copies agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from buttress._arrays import Array, IntArray

# Fewer rows at shared places do not tell records from copies.
_FEWEST_AT_PLACES = 20
# Rows of whole weights are written out as records up to so many: forests grow on them.
_MOST_RECORDS = 100_000


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Which rows stand for all.

    Attributes
    ----------
    rows : array of shape (m,)
        Positions of the rows that are kept.
    source : array of shape (n,)
        Which of them stands for every row; -1 for rows of weight zero.
    weight : array of shape (m,)
        Summed weights.
    point : array of shape (m,)
        Rows with equal features have the same number.
    """

    rows: IntArray
    source: IntArray
    weight: Array
    point: IntArray


def distinct_rows(X: Any, codes: IntArray, weight: Array, merge: bool = True) -> DistinctRows:
    """Drop rows of weight zero and, with `merge`, merge equal rows with equal labels.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [1.0], [3.0]])
    >>> found = distinct_rows(X, np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 1.0, 0.0]))
    >>> found.rows.tolist(), found.source.tolist(), found.weight.tolist()
    ([0, 1], [0, 1, 0, -1], [2.0, 2.0])
    >>> distinct_rows(X[:3], np.array([0, 1, 1]), np.ones(3)).point.tolist()
    [0, 0, 1]
    """
    used = np.flatnonzero(weight)
    source = np.full(len(codes), -1)
    if not merge:
        source[used] = np.arange(len(used))
        return DistinctRows(used, source, weight[used], np.arange(len(used)))
    keys = _keys(X[used], codes[used])
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    # in the order of the keys: the result depends on the rows, not on their order
    source[used] = inverse.ravel()
    total = np.zeros(len(first))
    np.add.at(total, inverse.ravel(), weight[used])
    rows = used[first]
    points = _keys(X[rows], np.zeros(len(rows), dtype=np.intp))
    point = np.unique(points, axis=0, return_inverse=True)[1].ravel()
    return DistinctRows(rows, source, total, point)


def differ_like_records(kept: DistinctRows, codes: IntArray) -> bool:
    """Whether labels of equal rows differ as those of different records do, not of copies.

    Two labels at one place differ with some probability, averaged over the rows at shared places;
    labels that owe nothing to the place differ with another. Copies have the ratio 0, records
    whose place says nothing 1: at least one half is asked for, on `_FEWEST_AT_PLACES` rows.

    Parameters
    ----------
    kept : DistinctRows
    codes : array of shape (m,)
        Labels of the rows that are kept.

    Examples
    --------
    >>> X, y = np.repeat(np.arange(10.0), 6)[:, None], np.tile([0, 0, 1], 20)
    >>> kept = distinct_rows(X, y, np.ones(60))
    >>> differ_like_records(kept, y[kept.rows])
    True
    >>> kept = distinct_rows(X, X[:, 0] > 4, np.ones(60))
    >>> differ_like_records(kept, (X[kept.rows, 0] > 4).astype(int))
    False
    """
    weight = kept.weight
    if not np.array_equal(weight, np.round(weight)) or weight.sum() > _MOST_RECORDS:
        return False
    counts = np.zeros((int(kept.point.max()) + 1, int(codes.max()) + 1))
    counts[kept.point, codes] = weight
    counts = counts[counts.sum(axis=1) > 1]
    total = counts.sum(axis=1)
    if total.sum() < _FEWEST_AT_PLACES:
        return False
    apart = (total**2 - (counts**2).sum(axis=1)) / (total - 1)
    shares = counts.sum(axis=0) / total.sum()
    return bool(apart.sum() >= 0.5 * total.sum() * (1.0 - np.sum(shares**2)) > 0.0)


def shared_places(points: IntArray) -> list[IntArray]:
    """Rows that share their place with others, places of one size together: (places, size).

    Examples
    --------
    >>> [group.tolist() for group in shared_places(np.array([0, 1, 2, 1, 0]))]
    [[[0, 4], [1, 3]]]
    """
    order = np.argsort(points, kind="stable")
    counts = np.unique(points, return_counts=True)[1]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return [
        order[starts[counts == size][:, None] + np.arange(size)]
        for size in np.unique(counts).tolist()
        if size > 1
    ]


def _keys(X: Any, codes: IntArray) -> Any:
    if not sparse.issparse(X):
        return np.column_stack([X, codes.astype(float)])
    rows = X.tocsr().sorted_indices()
    rows.eliminate_zeros()
    spans = zip(rows.indptr[:-1], rows.indptr[1:], codes.tolist(), strict=True)
    names = [
        bytes(f"{code:06d}", "ascii")
        + rows.indices[a:b].astype(">i8").tobytes()
        + rows.data[a:b].tobytes()
        for a, b, code in spans
    ]
    # text of one length: NumPy's byte strings drop zeros at the end
    return np.unique(np.array([name.hex() for name in names]), return_inverse=True)[1]
