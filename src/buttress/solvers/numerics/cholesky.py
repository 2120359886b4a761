"""Cholesky factors and their solves: loops for small matrices, LAPACK for larger ones.

Up to an order of two or three hundred LAPACK's calls and copies cost more than the arithmetic.
Here elimination begins at the last row, ``A = L' L`` with L lower triangular, so that every
update runs along rows, and the diagonal of a factor holds reciprocals. A matrix of order `size`
is an array of shape ``(size, row_length(size, itemsize))``; what is right of its diagonal is
scratch. At order 111 a factor with its solve takes 0.6 of LAPACK's time, on which leaky paths of
up to some thousand rows rest (``benchmarks/instructions.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from buttress._arrays import Array
from buttress._compile import FAST, inner
from buttress.solvers.numerics.lapack import cholesky_in_place, cholesky_solve
from buttress.solvers.numerics.lines import LINE

# The largest order for loops (measured against LAPACK in one thread).
_LOOP_ORDER = 256
# Rows eliminated together: two together take a fifth longer at order 111.
_ROWS_TOGETHER = 4
# Share of a diagonal entry that must be left of it, in units of rounding; it may leave nothing.
_LEAST_LEFT = 8.0


@register_jitable
def row_length(size: int, itemsize: int) -> int:
    """Numbers in a row of a matrix of order `size`: an odd number of lines.

    Columns of it are then spread over all of the cache.
    """
    width = LINE // itemsize
    return (-(-size // width) | 1) * width


@inner()
def _at_least(value: Any, least: Any) -> Any:
    """The larger of the two; Numba would compile its own maximum as a function of its own."""
    return value if value > least else least


@inner(fastmath=FAST)
def _factorise_last(a: Array, low: int, size: int, least: Array) -> bool:
    """Factorise the rows from `low` on, from which nothing is subtracted, one by one."""
    definite = True
    for pivot in range(size - 1, low - 1, -1):
        x = a[pivot]
        definite &= x[pivot] > least[pivot]
        scale = a.dtype.type(1.0) / np.sqrt(_at_least(x[pivot], least[pivot]))
        for k in range(pivot):
            x[k] *= scale
        x[pivot] = scale
        for j in range(low, pivot):
            row, share = a[j], x[j]
            for k in range(j + 1):
                row[k] -= share * x[k]
    return definite


@inner(fastmath=FAST)
def _reduce_four(a: Array, low: int, size: int) -> None:
    """Subtract the products of all later rows from the four from `low` on, four at a time.

    The factor of row p for row j is ``a[p, j]``.
    """
    x0, x1, x2, x3 = a[low], a[low + 1], a[low + 2], a[low + 3]
    width = low + _ROWS_TOGETHER
    whole = size - (size - width) % _ROWS_TOGETHER
    for p in range(width, whole, _ROWS_TOGETHER):
        y0, y1, y2, y3 = a[p], a[p + 1], a[p + 2], a[p + 3]
        c00, c01, c02, c03 = y0[low], y1[low], y2[low], y3[low]
        c10, c11, c12, c13 = y0[low + 1], y1[low + 1], y2[low + 1], y3[low + 1]
        c20, c21, c22, c23 = y0[low + 2], y1[low + 2], y2[low + 2], y3[low + 2]
        c30, c31, c32, c33 = y0[low + 3], y1[low + 3], y2[low + 3], y3[low + 3]
        for k in range(width):
            z0, z1, z2, z3 = y0[k], y1[k], y2[k], y3[k]
            x0[k] -= c00 * z0 + c01 * z1 + c02 * z2 + c03 * z3
            x1[k] -= c10 * z0 + c11 * z1 + c12 * z2 + c13 * z3
            x2[k] -= c20 * z0 + c21 * z1 + c22 * z2 + c23 * z3
            x3[k] -= c30 * z0 + c31 * z1 + c32 * z2 + c33 * z3
    for p in range(whole, size):
        y0 = a[p]
        c00, c10, c20, c30 = y0[low], y0[low + 1], y0[low + 2], y0[low + 3]
        for k in range(width):
            x0[k] -= c00 * y0[k]
            x1[k] -= c10 * y0[k]
            x2[k] -= c20 * y0[k]
            x3[k] -= c30 * y0[k]


@inner(fastmath=FAST)
def _factorise_four(a: Array, low: int, least: Array) -> bool:
    """Factorise four rows from `low` on, from which all later ones have been subtracted."""
    one = a.dtype.type(1.0)
    x0, x1, x2, x3 = a[low], a[low + 1], a[low + 2], a[low + 3]
    k0, k1, k2, k3 = low, low + 1, low + 2, low + 3
    left = x3[k3]
    definite: bool = left > least[k3]
    s3 = one / np.sqrt(_at_least(left, least[k3]))
    c32, c31, c30 = x3[k2] * s3, x3[k1] * s3, x3[k0] * s3
    left = x2[k2] - c32 * c32
    definite &= left > least[k2]
    s2 = one / np.sqrt(_at_least(left, least[k2]))
    c21, c20 = (x2[k1] - c32 * c31) * s2, (x2[k0] - c32 * c30) * s2
    left = x1[k1] - c31 * c31 - c21 * c21
    definite &= left > least[k1]
    s1 = one / np.sqrt(_at_least(left, least[k1]))
    c10 = (x1[k0] - c31 * c30 - c21 * c20) * s1
    left = x0[k0] - c30 * c30 - c20 * c20 - c10 * c10
    definite &= left > least[k0]
    s0 = one / np.sqrt(_at_least(left, least[k0]))
    for k in range(low):
        z3 = x3[k] * s3
        z2 = (x2[k] - c32 * z3) * s2
        z1 = (x1[k] - c31 * z3 - c21 * z2) * s1
        x0[k] = (x0[k] - c30 * z3 - c20 * z2 - c10 * z1) * s0
        x1[k], x2[k], x3[k] = z1, z2, z3
    x0[k0] = s0
    x1[k0], x1[k1] = c10, s1
    x2[k0], x2[k1], x2[k2] = c20, c21, s2
    x3[k0], x3[k1], x3[k2], x3[k3] = c30, c31, c32, s3
    return definite


@inner(allocates=True)
def _least_left(a: Array, size: int) -> Array:
    """What must be left of every diagonal entry."""
    least = np.empty(size, dtype=a.dtype)
    for i in range(size):
        least[i] = a[i, i] * (_LEAST_LEFT * np.finfo(a.dtype).eps)
    return least


@inner(fastmath=FAST, allocates=True)
def factorise_few(a: Array) -> bool:
    """As `factorise_small`, row by row: for a few rows, in a fraction of the time to compile."""
    return _factorise_last(a, 0, len(a), _least_left(a, len(a)))


@inner(fastmath=FAST, allocates=True)
def factorise_small(a: Array, size: int) -> bool:
    """Overwrite the lower triangle of order `size` with its factor, four rows at a time.

    Returns whether the matrix is definite; one that rounding has made singular gets the factor
    of one nearby that is not.
    """
    least = _least_left(a, size)
    # The rows that do not fill a group are the last ones.
    top = size - size % _ROWS_TOGETHER
    definite = _factorise_last(a, top, size, least)
    for low in range(top - _ROWS_TOGETHER, -1, -_ROWS_TOGETHER):
        _reduce_four(a, low, size)
        definite &= _factorise_four(a, low, least)
    return definite


@inner(fastmath=FAST)
def _eliminate(a: Array, right: Array, low: int) -> None:
    """The first half of a solution, for the rows from `low` on."""
    for i in range(right.size - 1, low - 1, -1):
        row = a[i]
        right[i] *= row[i]
        for k in range(i):
            right[k] -= row[k] * right[i]


@inner(fastmath=FAST)
def _substitute(a: Array, right: Array, low: int) -> None:
    """The second half of a solution, for the rows from `low` on."""
    for i in range(low, right.size):
        row, total = a[i], right[i]
        for k in range(i):
            total -= row[k] * right[k]
        right[i] = total * row[i]


@inner(fastmath=FAST)
def solve_few(a: Array, right: Array) -> None:
    """As `solve_small` for a factor of `factorise_few`, row by row."""
    _eliminate(a, right, 0)
    _substitute(a, right, 0)


@inner(fastmath=FAST)
def solve_small(a: Array, right: Array) -> None:
    """Overwrite `right` with the solution, four rows at a time."""
    size = right.size
    top = size - size % _ROWS_TOGETHER
    _eliminate(a, right, top)
    for low in range(top - _ROWS_TOGETHER, -1, -_ROWS_TOGETHER):
        x0, x1, x2, x3 = a[low], a[low + 1], a[low + 2], a[low + 3]
        s3 = right[low + 3] * x3[low + 3]
        s2 = (right[low + 2] - x3[low + 2] * s3) * x2[low + 2]
        s1 = (right[low + 1] - x3[low + 1] * s3 - x2[low + 1] * s2) * x1[low + 1]
        s0 = (right[low] - x3[low] * s3 - x2[low] * s2 - x1[low] * s1) * x0[low]
        right[low], right[low + 1], right[low + 2], right[low + 3] = s0, s1, s2, s3
        for k in range(low):
            right[k] -= s0 * x0[k] + s1 * x1[k] + s2 * x2[k] + s3 * x3[k]
    for low in range(0, top, _ROWS_TOGETHER):
        x0, x1, x2, x3 = a[low], a[low + 1], a[low + 2], a[low + 3]
        s0, s1, s2, s3 = right[low], right[low + 1], right[low + 2], right[low + 3]
        for k in range(low):
            value = right[k]
            s0 -= x0[k] * value
            s1 -= x1[k] * value
            s2 -= x2[k] * value
            s3 -= x3[k] * value
        s0 *= x0[low]
        s1 = (s1 - x1[low] * s0) * x1[low + 1]
        s2 = (s2 - x2[low] * s0 - x2[low + 1] * s1) * x2[low + 2]
        s3 = (s3 - x3[low] * s0 - x3[low + 1] * s1 - x3[low + 2] * s2) * x3[low + 3]
        right[low], right[low + 1], right[low + 2], right[low + 3] = s0, s1, s2, s3
    _substitute(a, right, top)


@inner()
def factorise(a: Array) -> bool:
    """Overwrite the lower triangle of a matrix in float64 with its factor.

    Returns whether the matrix is definite; the factor is of no use otherwise.
    """
    if len(a) <= _LOOP_ORDER:
        return factorise_small(a, len(a))
    return cholesky_in_place(a) == 0


@inner()
def solve(factor: Array, right: Array) -> None:
    """Overwrite `right` with the solution for a factor of `factorise`."""
    if len(factor) <= _LOOP_ORDER:
        solve_small(factor, right)
    else:
        cholesky_solve(factor, right.reshape(1, right.size))
