"""Cholesky factors of small matrices in single precision, as packed triangles.

For orders below a hundred, which is where LAPACK's calls and its full storage cost more than the
arithmetic. A lower triangle is stored row by row; the diagonal of a factor holds reciprocals.
"""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array
from buttress._compile import compiled
from buttress.solvers._plane_search import FAST

# Share of a diagonal entry that must be left of it; rounding may leave nothing.
_LEAST = np.float32(1e-6)


@compiled(fastmath=FAST)
def _row(packed: Array, i: int) -> Array:
    first = i * (i + 1) // 2
    return packed[first : first + i + 1]


@compiled(fastmath=FAST)
def _eliminate(row: Array, packed: Array, first: int, last: int) -> None:
    """Entries `first` to `last` of a row of the factor, from the rows above."""
    for j in range(first, last):
        above = _row(packed, j)
        total = row[j]
        for k in range(j):
            total -= above[k] * row[k]
        row[j] = total * above[j]


@compiled(fastmath=FAST)
def factorise_packed(packed: Array, size: int) -> None:
    """Overwrite the leading triangle of order `size` with its factor.

    Four rows at a time: every row above is read once for all of them. A matrix that rounding
    has made singular gets the factor of one nearby that is not.
    """
    for i in range(0, size, 4):
        rows = min(4, size - i)
        if rows == 4:
            x0, x1, x2, x3 = (
                _row(packed, i),
                _row(packed, i + 1),
                _row(packed, i + 2),
                _row(packed, i + 3),
            )
            for j in range(i):
                above = _row(packed, j)
                s0, s1, s2, s3 = x0[j], x1[j], x2[j], x3[j]
                for k in range(j):
                    s0 -= above[k] * x0[k]
                    s1 -= above[k] * x1[k]
                    s2 -= above[k] * x2[k]
                    s3 -= above[k] * x3[k]
                scale = above[j]
                x0[j], x1[j], x2[j], x3[j] = s0 * scale, s1 * scale, s2 * scale, s3 * scale
        for i_row in range(i, i + rows):
            row = _row(packed, i_row)
            _eliminate(row, packed, i if rows == 4 else 0, i_row)
            diagonal = row[i_row]
            square = diagonal
            for k in range(i_row):
                square -= row[k] * row[k]
            row[i_row] = np.float32(1.0) / np.sqrt(max(square, _LEAST * diagonal))


@compiled(fastmath=FAST)
def solve_packed(factor: Array, right: Array) -> None:
    """Overwrite `right` with the solution, by forward and back substitution."""
    size = right.size
    for i in range(size):
        row = _row(factor, i)
        total = right[i]
        for j in range(i):
            total -= row[j] * right[j]
        right[i] = total * row[i]
    for i in range(size - 1, -1, -1):
        row = _row(factor, i)
        top = right[i] * row[i]
        right[i] = top
        for j in range(i):
            right[j] -= row[j] * top
