"""Exponentials and weighted sums of them, for the blocks of the online learners."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array
from buttress._compile import compiled
from buttress.kernels._exponential import FAST, exp32, exp64, exp_in_place_32, exp_in_place_64

__all__ = ["FAST", "add_exp_dot_32", "add_exp_dot_64", "exp_in_place_32", "exp_in_place_64"]


@compiled(fastmath=FAST)
def add_exp_dot_64(E: Array, a: Array, total: Array) -> None:
    """``total += exp(E) @ a`` without storing the exponentials; `a` has P columns."""
    n, m = E.shape
    if a.shape[1] == 1:
        for i in range(n):
            s = 0.0
            for j in range(m):
                s += exp64(E[i, j]) * a[j, 0]
            total[i, 0] += s
    else:
        exp_in_place_64(E)
        total += np.dot(E, a)


@compiled(fastmath=FAST)
def add_exp_dot_32(E: Array, a: Array, total: Array) -> None:
    """The float32 version of `add_exp_dot_64`; `total` stays in float64."""
    n, m = E.shape
    if a.shape[1] == 1:
        for i in range(n):
            s = np.float32(0.0)
            for j in range(m):
                s += exp32(E[i, j]) * a[j, 0]
            total[i, 0] += s
    else:
        exp_in_place_32(E)
        total += np.dot(E, a)
