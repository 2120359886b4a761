"""Intercepts of columns: at their minimum by bisection, and how far from it they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import FAST, compiled, inner
from buttress.solvers.smooth.margins import balancing_shift, for_loss, set_slopes

# Where the search begins: columns are near their solutions.
_WIDTH = 0.125


@inner()
def balance_column(loss: Any, scores: Array, label: Array, omega: Array, work: Array) -> float:
    """Move one column's scores by the change of its intercept to the minimum; the change.

    `work` has shape (4, n) and the scores' type.
    """
    u = work[3]
    for i in range(scores.size):
        u[i] = label[i] * scores[i]
    shift = balancing_shift(loss, u, label, omega, _WIDTH, work)
    for i in range(scores.size):
        scores[i] += shift
    return shift


@compiled()
def _balance(
    loss: Any,
    f: Array,
    y: Array,
    omega: Array,
    problem: IntArray,
    columns: IntArray,
    a0: Array,
    work: Array,
) -> None:
    for k in columns:
        a0[k] += balance_column(loss, f[k], y[problem[k]], omega[problem[k]], work)


def balance_intercepts(
    loss: Any,
    f: Array,
    y: Array,
    omega: Array,
    problem: IntArray,
    columns: IntArray,
    a0: Array,
) -> None:
    """Move the intercepts of some columns, and their scores `f`, to the minimum."""
    work = np.empty((4, f.shape[1]), dtype=f.dtype)
    for_loss(_balance, loss)(loss, f, y, omega, problem, columns, a0, work)


@compiled(fastmath=FAST)
def _off_balance(
    loss: Any,
    f: Array,
    y: Array,
    omega: Array,
    problem: IntArray,
    columns: IntArray,
    work: Array,
    off: Array,
) -> None:
    u, t, kappa = work[0], work[1], work[2]
    for k in range(columns.size):
        which, scores = problem[k], f[columns[k]]
        label, weight = y[which], omega[which]
        for i in range(u.size):
            u[i] = label[i] * scores[i]
        set_slopes(loss, u, t, kappa)
        pull, curvature = 0.0, 0.0
        for i in range(u.size):
            pull += weight[i] * label[i] * t[i]
            curvature += weight[i] * kappa[i]
        off[k] = abs(pull) / curvature if curvature > 0.0 else 0.0


def off_balance(
    loss: Any, f: Array, y: Array, omega: Array, problem: IntArray, columns: IntArray
) -> Array:
    """How far the intercepts of some columns are from their minimum, by Newton's step for each.

    Where hardly any curvature holds an intercept it may be far off with nothing left to gain, and
    all the scores of its column with it. Zero where no row is curved.
    """
    work, off = np.empty((3, f.shape[1]), dtype=f.dtype), np.empty(len(columns))
    for_loss(_off_balance, loss)(loss, f, y, omega, problem, columns, work, off)
    return off
