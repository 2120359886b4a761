"""Hessians of few features: products of rows by tiles, and their scaling."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import inner

# Rows of a panel: its features stay in the cache, sums over it keep their digits in float32.
PANEL = 512
SMALLEST_RIDGE = 1e-12


@inner(fastmath=True)
def add_products(
    left: Array, right: Array, first: int, width: int, size: int, unit: float, H: Array
) -> None:
    """Add ``unit * left @ right.T`` to the lower triangle of `H`, in tiles of nine sums.

    Of `left` the first `width` columns count, of `right` as many from `first` on. Nine running
    sums fit into the registers. `H` has two rows and columns more than `size`, which take what
    the last tiles have too much.
    """
    last, end = first + width, size - 1
    zero = left[0, 0] - left[0, 0]  # of the arrays' type
    for a in range(0, size, 3):
        x0, x1, x2 = left[a], left[min(a + 1, end)], left[min(a + 2, end)]
        for b in range(0, a + 1, 3):
            y0 = right[b, first:last]
            y1, y2 = right[min(b + 1, end), first:last], right[min(b + 2, end), first:last]
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
            H[a, b] += unit * s00
            H[a, b + 1] += unit * s01
            H[a, b + 2] += unit * s02
            H[a + 1, b] += unit * s10
            H[a + 1, b + 1] += unit * s11
            H[a + 1, b + 2] += unit * s12
            H[a + 2, b] += unit * s20
            H[a + 2, b + 1] += unit * s21
            H[a + 2, b + 2] += unit * s22


@inner(fastmath=True)
def largest_size(v: Array) -> float:
    """The largest absolute value."""
    largest = 0.0
    for i in range(v.size):
        largest = max(largest, abs(v[i]))
    return largest


@inner(allocates=True)
def set_products(Z: Array, v: Array, panel: Array, H: Array) -> None:
    """The lower triangle of ``Z diag(v) Z'``, computed in the precision of `Z` and `panel`.

    `H` is larger (see `add_products`).
    """
    for k in range(len(H)):
        for j in range(len(H)):
            H[k, j] = 0.0
    largest = largest_size(v)  # becomes one: float32 has no room for far smaller numbers
    if largest == 0.0:
        return
    size, m = Z.shape
    share = np.empty(panel.shape[1], dtype=Z.dtype)
    for first in range(0, m, panel.shape[1]):
        width = min(panel.shape[1], m - first)
        for i in range(width):
            share[i] = v[first + i] / largest
        for k in range(size):
            source, target = Z[k, first : first + width], panel[k]
            for i in range(width):
                target[i] = share[i] * source[i]
        add_products(panel, Z, first, width, size, largest, H)


@inner(allocates=True)
def change_products(
    Z: Array,
    omega: Array,
    kappa: Array,
    used: Array,
    changed: IntArray,
    panel: Array,
    rows: Array,
    H: Array,
) -> None:
    """Bring ``Z diag(omega used) Z'`` up to date with `kappa` at the rows `changed`.

    Panels `panel` and `rows` are of the same shape and type.
    """
    largest = 0.0
    for j in range(changed.size):
        i = changed[j]
        largest = max(largest, omega[i] * abs(kappa[i] - used[i]))
    if largest == 0.0:
        return
    size = len(Z)
    share = np.empty(panel.shape[1], dtype=Z.dtype)
    for first in range(0, changed.size, panel.shape[1]):
        some = changed[first : first + panel.shape[1]]
        for j in range(some.size):
            i = some[j]
            share[j] = omega[i] * (kappa[i] - used[i]) / largest
            used[i] = kappa[i]
        for k in range(size):
            source, target, plain = Z[k], panel[k], rows[k]
            for j in range(some.size):
                plain[j] = source[some[j]]
                target[j] = share[j] * plain[j]
        # Zero, but not as a constant, for which the loops would be compiled once more.
        add_products(panel, rows, min(first, 0), some.size, size, largest, H)


@inner()
def scale_hessian(H: Array, lam: float, n_penalised: int, scale: Array) -> None:
    """The scaling of ``H + 2 lam D`` to unit diagonal.

    It makes features of very different sizes harmless. An intercept without any curvature gets a
    scale of zero: it stays where it is.
    """
    for k in range(scale.size):
        diagonal = H[k, k] + (2.0 * lam if k < n_penalised else 0.0)
        scale[k] = 1.0 / np.sqrt(diagonal) if diagonal > 0.0 else 0.0


@inner()
def scaled_hessian(H: Array, scale: Array, ridge: float, factor: Array) -> None:
    """The lower triangle of the scaled Hessian, with a ridge."""
    for k in range(scale.size):
        for j in range(k):
            factor[k, j] = H[k, j] * scale[k] * scale[j]
        factor[k, k] = 1.0 + ridge
