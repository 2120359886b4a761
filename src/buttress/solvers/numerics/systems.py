"""The matrix of Newton's method and of interior points over kernels: one plus a scaled kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray

# Rows that are computed together, so that they stay in the cache.
_TOGETHER = 64


def one_plus_scaled(K: Array, rows: IntArray, scale: Array, out: Any, times: float = 1.0) -> None:
    """The lower triangle of ``I + times * diag(scale) K[rows, rows] diag(scale)``.

    What `out` has above the diagonal is then undefined.

    Parameters
    ----------
    K : array of shape (n, n)
    rows : array of int of shape (m,)
        In increasing order.
    scale : array of shape (m,)
    out : array of shape (m, m)
        In single precision if it is.
    times : float
    """
    m, of_row = len(scale), times * scale
    for low in range(0, m, _TOGETHER):
        high = min(low + _TOGETHER, m)
        if m == len(K):
            picked = K[low:high, :high] * scale[:high]
        else:
            picked = K[rows[low:high]].take(rows[:high], axis=1) * scale[:high]
        np.multiply(picked, of_row[low:high, None], out=out[low:high, :high])
    out[np.diag_indices(m)] += 1.0
