"""Columns in kernel form brought from single to double precision.

The residuals are computed in double precision, with the Gram matrix as given; the steps are those
of the models in single precision (`_curved_model`). Started near a solution each step removes
most of what is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._compile import FAST, compiled
from buttress.solvers.smooth.columns._curved_model import CurvedModels, set_rows, set_steps
from buttress.solvers.smooth.columns._kernel_columns import SLACK, move_columns
from buttress.solvers.smooth.columns._low_rank import LowRank
from buttress.solvers.smooth.columns._sign_certificate import (
    column_sizes,
    measured_rate,
    score_error,
)
from buttress.solvers.smooth.slopes import set_leaky_slopes

_STEPS = 80
# Share of the largest score within which scores are near enough when the steps have run out.
_NEAR = 1e-3
# Residual at which scores are as precise as they get.
_PRECISE = 1e-12
# Residual above which what is left to gain cannot be told from what steps promise.
_SANE = 1e-2


class Refined(NamedTuple):
    """What became of the columns.

    Attributes
    ----------
    coef, intercept, scores : arrays of shapes (k, n), (k,) and (k, n)
        Scores are without the intercepts.
    residual : array of shape (k,)
        The largest error of a row's slope, as a share of the slope: where losses are curved
        this is what the scores are off by, as a share of the margin.
    solved : array of shape (k,)
        Whether the residual is as small as was asked, signs are settled where nothing else was
        wanted, or scores are near enough to the solution's.
    """

    coef: Array
    intercept: Array
    scores: Array
    residual: Array
    solved: BoolArray


@compiled(fastmath=FAST)
def _residuals(
    f: Array, a: Array, y: Array, omega: Array, lam: float, bend: float, z: Array, q: Array
) -> float:
    """``z = -omega y t`` and ``q = z + 2 lam a`` of one column; the largest share of q in z."""
    t, kappa = np.empty_like(f), np.empty_like(f)
    set_leaky_slopes(bend, y * f, t, kappa)
    largest = 0.0
    for i in range(f.size):
        z[i] = -omega[i] * y[i] * t[i]
        q[i] = z[i] + 2.0 * lam * a[i]
        if omega[i] > 0.0:
            largest = max(largest, abs(q[i] / z[i]))
    return largest


@compiled()
def refine_columns(
    K: Array,
    low_rank: LowRank,
    models: CurvedModels,
    slot: IntArray,
    Y: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
    r: float,
    fit_intercept: bool,
    start: tuple[Array, Array],
    tol: float,
    signs_only: BoolArray,
) -> tuple[Array, Array, Array, Array, BoolArray]:
    """Refine columns (problem, lam) from coefficients (k, n) and intercepts (k,); see `Refined`.

    Costs a product with `K` in double precision a step; a column is left when the slopes of all
    its rows agree with its coefficients to `tol`, or, where nothing else is wanted, when the
    signs of its held-out scores are settled. Returns the best point of every column, which is never
    worse than its start.
    """
    a, a0 = start[0].copy(), start[1].copy()
    k, n = a.shape
    single_y, single_omega = Y.astype(np.float32), omega.astype(np.float32)
    f = np.dot(a, K)
    for c in range(k):
        f[c] += a0[c]
    e, Q, e0 = np.zeros_like(a), np.zeros_like(a), np.zeros_like(a0)
    best_a, best_a0, best_f = a.copy(), a0.copy(), f.copy()
    least = np.full(k, np.inf)
    before, earlier = np.full(k, np.inf), np.full(k, np.inf)
    settled, near = np.zeros(k, dtype=np.bool_), np.zeros(k, dtype=np.bool_)
    z, q = np.empty((k, n)), np.empty((k, n))
    live = np.arange(k)
    for _ in range(_STEPS):
        staying = 0
        for j in range(live.size):
            c = live[j]
            y, weight = Y[problem[c]], omega[problem[c]]
            residual = _residuals(f[c], a[c], y, weight, lam[c], 1.0 / r, z[c], q[c])
            if residual < least[c] or settled[c]:
                least[c] = residual
                best_a[c], best_a0[c], best_f[c] = a[c], a0[c], f[c]
            if residual > (_PRECISE if signs_only[c] else tol) and not settled[c]:
                live[staying] = c
                staying += 1
        live = live[:staying]
        if staying == 0:
            break
        mine, penalty, place = problem[live], lam[live], slot[live]
        single_q = np.empty((staying, n), np.float32)
        damped, sums = np.empty_like(single_q), np.empty((6, staying))
        set_rows(
            low_rank,
            models,
            f[live].astype(np.float32),
            a[live].astype(np.float32),
            np.arange(staying),
            single_y,
            single_omega,
            mine,
            penalty,
            r,
            place,
            np.full(staying, SLACK),
            single_q,
            damped,
            sums,
        )
        for j in range(staying):
            # the residuals again, in double precision
            c, model = live[j], models.source[place[j]]
            rest, model_weight = low_rank.rest[models.level[model]], models.weight[model]
            sums[0, j], sums[1, j], sums[3, j] = np.sum(z[c]), np.sum(a[c]), 0.0
            for i in range(n):
                exact = (1.0 - rest[i] * model_weight[i]) * q[c, i]
                damped[j, i] = exact
                sums[3, j] += exact
        step, (d0, promise, decrements, swings) = np.empty_like(single_q), np.empty((4, staying))
        set_steps(low_rank, models, place, penalty, fit_intercept, damped, sums, step, d0, promise)
        d = step.astype(np.float64)
        P = np.dot(d, K)
        move_columns(
            live,
            Y,
            omega,
            mine,
            penalty,
            r,
            a,
            a0,
            f,
            d,
            d0,
            P,
            e,
            e0,
            Q,
            q[live],
            sums[0],
            low_rank.norm,
            decrements,
            swings,
        )
        for j in range(staying):
            c, decrement = live[j], max(decrements[j], promise[j])
            rate = measured_rate(decrement, before[c], earlier[c])
            left = decrement * rate / (1.0 - rate)
            held_out, largest, _ = column_sizes(f[c], a[c], omega[mine[j]])
            error = score_error(left, lam[c], low_rank.norm)
            # A column that stands still far from its solution promises no decrease either.
            sane = least[c] <= _SANE
            settled[c] = sane and signs_only[c] and held_out > error
            near[c] = sane and not signs_only[c] and error <= _NEAR * largest
            before[c], earlier[c] = decrement, before[c]
    for c in range(k):
        if settled[c]:  # by the last step of all: what was settled is where it led
            best_a[c], best_a0[c], best_f[c] = a[c], a0[c], f[c]
        best_f[c] -= best_a0[c]
    return best_a, best_a0, best_f, least, settled | near | (least <= tol)
