"""Hessians of few features: products of rows by tiles, a Cholesky factor, and its solves."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from buttress._arrays import Array, IntArray
from buttress._compile import compiled
from buttress.solvers._lapack import cholesky_in_place, cholesky_solve

# Rows of a panel: its features stay in the cache, sums over it keep their digits in float32.
PANEL = 512
SMALLEST_RIDGE = 1e-12


@compiled(fastmath=True)
def add_products(panel: Array, width: int, size: int, sign: float, H: Array) -> None:
    """Add ``sign * panel @ panel.T`` to the lower triangle of `H`, in tiles of nine sums.

    Nine running sums fit into the registers. `panel` and `H` have two rows more than `size`.
    """
    zero = panel[0, 0] - panel[0, 0]  # of the panel's type
    for a in range(0, size, 3):
        x0, x1, x2 = panel[a], panel[a + 1], panel[a + 2]
        for b in range(0, a + 1, 3):
            y0, y1, y2 = panel[b], panel[b + 1], panel[b + 2]
            s00, s01, s02 = zero, zero, zero
            s10, s11, s12 = zero, zero, zero
            s20, s21, s22 = zero, zero, zero
            for i in range(width):
                s00 += x0[i] * y0[i]
                s01 += x0[i] * y1[i]
                s02 += x0[i] * y2[i]
                s10 += x1[i] * y0[i]
                s11 += x1[i] * y1[i]
                s12 += x1[i] * y2[i]
                s20 += x2[i] * y0[i]
                s21 += x2[i] * y1[i]
                s22 += x2[i] * y2[i]
            H[a, b] += sign * s00
            H[a, b + 1] += sign * s01
            H[a, b + 2] += sign * s02
            H[a + 1, b] += sign * s10
            H[a + 1, b + 1] += sign * s11
            H[a + 1, b + 2] += sign * s12
            H[a + 2, b] += sign * s20
            H[a + 2, b + 1] += sign * s21
            H[a + 2, b + 2] += sign * s22


@compiled(fastmath=True)
def largest_size(v: Array) -> float:
    """The largest absolute value."""
    largest = 0.0
    for i in range(v.size):
        largest = max(largest, abs(v[i]))
    return largest


@compiled()
def set_products(Z: Array, v: Array, panel: Array, H: Array) -> None:
    """The lower triangle of ``Z diag(v) Z'``, computed in the precision of `Z` and `panel`.

    The last two rows of `panel` are zero.
    """
    size, m = Z.shape
    H[:] = 0.0
    root = np.empty(panel.shape[1], dtype=Z.dtype)
    largest = largest_size(v)  # becomes one: float32 has no room for far smaller numbers
    if largest == 0.0:
        return
    for first in range(0, m, panel.shape[1]):
        width = min(panel.shape[1], m - first)
        for i in range(width):
            root[i] = np.sqrt(v[first + i] * (1.0 / largest))
        for k in range(size):
            source = Z[k, first : first + width]
            for i in range(width):
                panel[k, i] = root[i] * source[i]
        add_products(panel, width, size, 1.0, H)
    H *= largest


@compiled()
def change_products(
    Z: Array, omega: Array, kappa: Array, used: Array, changed: IntArray, panel: Array, H: Array
) -> None:
    """Bring ``Z diag(omega used) Z'`` up to date with `kappa` at the rows `changed`."""
    size = len(Z)
    root, rows = np.empty(panel.shape[1]), np.empty(panel.shape[1], dtype=np.int64)
    for sign in (1.0, -1.0):
        width = 0
        for position in range(changed.size):
            i = changed[position]
            difference = sign * omega[i] * (kappa[i] - used[i])
            if difference > 0.0:
                root[width], rows[width] = np.sqrt(difference), i
                width += 1
            if width == rows.size or (width > 0 and position == changed.size - 1):
                for k in range(size):
                    source = Z[k]
                    for j in range(width):
                        panel[k, j] = root[j] * source[rows[j]]
                add_products(panel, width, size, sign, H)
                width = 0
    for i in changed:
        used[i] = kappa[i]


@compiled()
def factorise(H: Array, lam: float, n_penalised: int, factor: Array, scale: Array) -> float:
    """Cholesky factor of ``H + 2 lam D`` scaled to unit diagonal, and the scaling.

    The scaling makes features of very different sizes harmless. An intercept without any
    curvature gets a scale of zero: it stays where it is. Returns the ridge that was needed.
    """
    size = len(factor)
    for k in range(size):
        diagonal = H[k, k] + (2.0 * lam if k < n_penalised else 0.0)
        scale[k] = 1.0 / np.sqrt(diagonal) if diagonal > 0.0 else 0.0
    ridge = SMALLEST_RIDGE
    while True:
        for k in range(size):
            for q in range(k):
                factor[k, q] = H[k, q] * scale[k] * scale[q]
            factor[k, k] = 1.0 + ridge
        if cholesky_in_place(factor) == 0:
            return ridge
        ridge *= 10.0


@register_jitable
def solve(factor: Array, scale: Array, right: Array) -> None:
    """Overwrite the single row of `right` with the solution of the Newton equations."""
    right[0] *= scale
    cholesky_solve(factor, right)
    right[0] *= scale
