"""Sums over all support vectors, one tile of the kernel matrix at a time, compiled as a whole.

A tile is a few rows against `TILE` vectors: the product that gives the exponents, a correction
where it is due, and a pass that takes the powers of two and multiplies by the coefficients while
the tile is in the first-level cache. No thread holds the interpreter's lock meanwhile, and what
a row gets does not depend on the rows beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress._compile import FAST, compiled, inner
from buttress.solvers.stream._exp import powers_of_two, weighted_powers_32, weighted_powers_64
from buttress.solvers.stream._panels import GROUP, TILE, four_rows, one_row

# Inner loops hand over whole arrays with indices, and those of all threads to nothing but
# instructions: a slice or an argument counts references, which costs as much as many a number.


# Plain tuples: Numba takes a microsecond more to recognise a named one, as long as a row's sum.

# Rows of a block, and the left side of the product that gives exponents (`RbfSource`).
Rows = tuple[Array, Array]
# Stored vectors as they came, and packed in panels.
Vectors = tuple[Array, Array]
# Where ``|x|² + |z|² - 2 x·z`` is too rough: gamma, limit, depth, near, noise, largest. The formula
# is off by `noise` times the sum of ``gamma |x|²`` and ``gamma |z|²``, of which the latter is at
# most `largest`. Where the sum exceeds `limit` every exponent that may be above ``-depth`` is
# recomputed; elsewhere those that lie within `near` times the sum of zero. A limit of 0 says that
# no exponent can be wrong.
Precision = tuple[float, float, float, float, float, float]


@inner(fastmath=FAST)
def _weighted_sum(E: Array, i: int, a: Array, p: int, m: int) -> float:
    total = 0.0
    for j in range(m):
        total += E[i, j] * a[p, j]
    return total


@inner(fastmath=FAST)
def _excess(E: Array, i: int, cut: Any, m: int) -> Any:
    """Zero when no entry is above ``-cut``; a sum is vectorised where a maximum is not."""
    zero = cut - cut
    total = zero
    for j in range(m):
        total += max(E[i, j] + cut, zero)
    return total


@inner(allocates=True)
def _cuts(left: Array, begin: int, end: int, precision: Precision) -> Array:
    """For the rows `begin` to `end`: exponents above minus this number may be wrong."""
    _, limit, depth, near, noise, largest = precision
    cuts = np.zeros(end - begin)
    if limit > 0.0:
        for i in range(begin, end):
            reach = largest - np.float64(left[i, left.shape[1] - 1])
            cuts[i - begin] = max(depth, noise * reach) if reach > limit else near * reach
    return cuts


@inner()
def _correct(
    E: Array,
    r: int,
    cut: float,
    tile: int,
    rows: Rows,
    row: int,
    vectors: Vectors,
    first: int,
    precision: Precision,
) -> None:
    """Recompute from differences the exponents that the product got wrong (`Precision`).

    Row r of `E` holds those of `row` with `tile` vectors from `first` on. The sizes
    ``gamma |x|²`` and ``gamma |z|²`` stand negated at the end of the rows of `left` and of the
    vectors in the panels. Equal rows get distance 0.
    """
    gamma, limit, _, near, _, _ = precision
    X, left = rows
    Z, panels = vectors
    width = panels.shape[2]
    end = panels.shape[1] - 1
    for j in range(tile):
        if E[r, j] > -cut:
            v = first + j
            size = -np.float64(left[row, end]) - panels[v // width, end, v % width]
            if size > limit or E[r, j] > -near * size:
                distance = 0.0
                for k in range(X.shape[1]):
                    difference = np.float64(X[row, k]) - Z[v, k]
                    distance += difference * difference
                E[r, j] = -gamma * distance


@compiled(allocates=True)
def sum_tiles(
    rows: Rows,
    span: tuple[int, int],
    vectors: Vectors,
    coef: Array,
    precision: Precision,
    F: Array,
) -> None:
    """Add ``2**exponents @ coef.T`` to the rows of `F` from the first to the second of `span`.

    `coef` has a column for every vector, or more.
    """
    (_, left), (Z, panels), (begin, end) = rows, vectors, span
    m, P = len(Z), len(coef)
    width = panels.shape[2]
    cuts = _cuts(left, begin, end, precision)
    E = np.empty((GROUP, TILE), left.dtype)
    a = np.empty((P, TILE), left.dtype)
    for first in range(0, m, TILE):
        tile = min(TILE, m - first)
        panel, after = first // width, (first + tile + width - 1) // width
        for p in range(P):
            for j in range(tile):
                a[p, j] = coef[p, first + j]
        row = begin
        while row < end:
            count = GROUP if row + GROUP <= end else 1
            if count == GROUP:
                four_rows(left, row, panels, panel, after, E)
            else:
                one_row(left, row, panels, panel, after, E)
            for r in range(count):
                cut = cuts[row + r - begin]
                # a loop without branches spares most rows the other one
                if cut > 0.0 and _excess(E, r, E.dtype.type(cut), tile) > 0.0:
                    _correct(E, r, cut, tile, rows, row + r, vectors, first, precision)
            if P > 1:
                powers_of_two(E, count, tile)
            for r in range(count):
                if P > 1:
                    for p in range(P):
                        F[row + r, p] += _weighted_sum(E, r, a, p, tile)
                elif E.itemsize == 8:
                    F[row + r, 0] += weighted_powers_64(E, r, a, tile)
                else:
                    F[row + r, 0] += weighted_powers_32(E, r, a, tile)
            row += count


@compiled(allocates=True)
def fill_tiles(
    rows: Rows, vectors: Vectors, span: tuple[int, int], precision: Precision, K: Array
) -> None:
    """``K[:, j] = 2**exponents`` for the vectors of `span`, which begins at a multiple of TILE."""
    (_, left), (_, panels), (begin, end) = rows, vectors, span
    n = len(left)
    width = panels.shape[2]
    cuts = _cuts(left, 0, n, precision)
    E = np.empty((GROUP, TILE), left.dtype)
    for first in range(begin, end, TILE):
        tile = min(TILE, end - first)
        panel, after = first // width, (first + tile + width - 1) // width
        row = 0
        while row < n:
            count = GROUP if row + GROUP <= n else 1
            if count == GROUP:
                four_rows(left, row, panels, panel, after, E)
            else:
                one_row(left, row, panels, panel, after, E)
            for r in range(count):
                cut = cuts[row + r]
                if cut > 0.0 and _excess(E, r, E.dtype.type(cut), tile) > 0.0:
                    _correct(E, r, cut, tile, rows, row + r, vectors, first, precision)
            powers_of_two(E, count, tile)
            for r in range(count):
                for j in range(tile):
                    K[row + r, first + j] = E[r, j]
            row += count
