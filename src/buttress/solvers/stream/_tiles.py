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
def _cuts(left: Array, begin: int, end: int, correction: Array) -> Array:
    """For the rows `begin` to `end`: exponents above minus this number may be wrong."""
    limit, depth, near, noise, largest = correction
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
    place: tuple[Array, Array, int, Array, Array, int],
    gamma: float,
    correction: Array,
) -> None:
    """Recompute from differences the exponents that ``|x|² + |z|² - 2 x·z`` got wrong.

    Row r of `E` holds those of `row` with `tile` vectors from `first` on; `place` has the rows,
    their products' left side, `row`, the vectors, their panels and `first`. The sizes
    ``gamma |x|²`` and ``gamma |z|²`` stand negated at the end of the rows of `left` and of the
    vectors in `panels`. That formula is off by `noise` times the sum of the two. Where the sum
    exceeds `limit` every exponent that may be above ``-depth`` is recomputed; elsewhere those
    that lie within `near` times the sum of zero. Equal rows get distance 0.
    """
    X, left, row, Z, panels, first = place
    limit, near = correction[0], correction[2]
    width = panels.shape[2]
    end = panels.shape[1] - 1
    for j in range(tile):
        if E[r, j] > -cut:
            v = first + j
            pair = -np.float64(left[row, end]) - panels[v // width, end, v % width]
            if pair > limit or E[r, j] > -near * pair:
                distance = 0.0
                for k in range(X.shape[1]):
                    difference = np.float64(X[row, k]) - Z[v, k]
                    distance += difference * difference
                E[r, j] = -gamma * distance


@compiled(allocates=True)
def sum_tiles(
    X: Array,
    left: Array,
    begin: int,
    end: int,
    Z: Array,
    panels: Array,
    coef: Array,
    gamma: float,
    correction: Array,
    F: Array,
) -> None:
    """Add ``2**exponents @ coef.T`` to the rows `begin` to `end` of `F`.

    `coef` has a column for every vector, or more; `correction` holds limit, depth, near, noise
    and the largest size of a vector, or a limit of 0 when no exponent can be wrong.
    """
    m, P = len(Z), len(coef)
    width = panels.shape[2]
    cuts = _cuts(left, begin, end, correction)
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
                    place = (X, left, row + r, Z, panels, first)
                    _correct(E, r, cut, tile, place, gamma, correction)
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
    X: Array,
    left: Array,
    Z: Array,
    panels: Array,
    begin: int,
    end: int,
    gamma: float,
    correction: Array,
    K: Array,
) -> None:
    """``K[:, j] = 2**exponents`` for the vectors from `begin`, a multiple of TILE, to `end`."""
    n = len(left)
    width = panels.shape[2]
    cuts = _cuts(left, 0, n, correction)
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
                    place = (X, left, row + r, Z, panels, first)
                    _correct(E, r, cut, tile, place, gamma, correction)
            powers_of_two(E, count, tile)
            for r in range(count):
                for j in range(tile):
                    K[row + r, first + j] = E[r, j]
            row += count
