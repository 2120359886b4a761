"""Copies of a row as one row of more weight, so that integer weights and copies are the same.

Equal rows with *different* labels stay apart, but are one place, and a place is held out whole: the
score of a row by machines that saw its twin with the other label speaks against its own label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from buttress._arrays import Array, IntArray


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
    place : array of shape (m,)
        Rows with equal features have the same number.
    """

    rows: IntArray
    source: IntArray
    weight: Array
    place: IntArray


def distinct_rows(X: Any, codes: IntArray, weight: Array, merge: bool = True) -> DistinctRows:
    """Drop rows of weight zero and, with `merge`, merge equal rows with equal labels.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [1.0], [3.0]])
    >>> found = distinct_rows(X, np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 1.0, 0.0]))
    >>> found.rows.tolist(), found.source.tolist(), found.weight.tolist()
    ([0, 1], [0, 1, 0, -1], [2.0, 2.0])
    >>> distinct_rows(X[:3], np.array([0, 1, 1]), np.ones(3)).place.tolist()
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
    place = np.unique(points, axis=0, return_inverse=True)[1].ravel()
    return DistinctRows(rows, source, total, place)


def shared_places(place: IntArray) -> list[IntArray]:
    """Rows that share their place with others, places of one size together: (places, size).

    Examples
    --------
    >>> [group.tolist() for group in shared_places(np.array([0, 1, 2, 1, 0]))]
    [[[0, 4], [1, 3]]]
    """
    order = np.argsort(place, kind="stable")
    counts = np.unique(place, return_counts=True)[1]
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
    parts = zip(rows.indptr[:-1], rows.indptr[1:], codes.tolist(), strict=True)
    names = [
        bytes(f"{code:06d}", "ascii")
        + rows.indices[a:b].astype(">i8").tobytes()
        + rows.data[a:b].tobytes()
        for a, b, code in parts
    ]
    # text of one length: NumPy's byte strings drop zeros at the end
    return np.unique(np.array([name.hex() for name in names]), return_inverse=True)[1]
