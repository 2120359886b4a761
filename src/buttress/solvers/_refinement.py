"""Columns in kernel form brought from single to double precision.

The residuals are computed in double precision, with the Gram matrix as given; the steps are those
of the models in single precision (`_curved_model`). Started near a solution each step removes
most of what is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.losses import LeakyHockeyStick
from buttress.solvers._curved_model import CurvedModels, Rows
from buttress.solvers._kernel_columns import move_columns
from buttress.solvers._low_rank import LowRank

_STEPS = 40
# Rows up to which products with a matrix are made one by one.
_FEW_ROWS = 8


class Refined(NamedTuple):
    """What became of the columns.

    Attributes
    ----------
    coef, intercept, scores : arrays of shapes (k, n), (k,) and (k, n)
        Scores are without the intercepts.
    residual : array of shape (k,)
        The largest error of a row's slope.
    decrement : array of shape (k,)
        The decrease of the objective that the last step promised; zero before any step.
    """

    coef: Array
    intercept: Array
    scores: Array
    residual: Array
    decrement: Array


def refine_columns(
    K: Array,
    low_rank: LowRank,
    Y: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
    loss: LeakyHockeyStick,
    fit_intercept: bool,
    start: tuple[Array, Array],
    tol: float,
) -> Refined:
    """Refine columns (problem, lam) from coefficients (k, n) and intercepts (k,).

    Costs a product with `K` in double precision a step; a column is left when the slopes of all
    its rows agree with its coefficients to `tol`. Returns the best point of every column, which
    is never worse than its start.
    """
    a, a0 = np.array(start[0], dtype=np.float64), np.array(start[1], dtype=np.float64)
    single = Y.astype(np.float32), omega.astype(np.float32)
    models = CurvedModels(low_rank, len(lam))
    f = _product(a, K) + a0[:, None]
    e, Q, e0 = np.zeros_like(a), np.zeros_like(a), np.zeros_like(a0)
    best = Refined(
        a.copy(), a0.copy(), f - a0[:, None], np.full(len(lam), np.inf), np.zeros(len(lam))
    )
    live, r = np.arange(len(lam)), float(loss.r)
    for _ in range(_STEPS):
        mine, penalty = problem[live], lam[live]
        y, weight = Y[mine], omega[mine]
        z = weight * y * loss.derivative(y * f)
        q = z + 2.0 * penalty[:, None] * a
        residual = np.max(np.abs(q) / np.where(weight > 0, weight, np.inf), axis=1)
        better = residual < best.residual[live]
        where = live[better]
        best.coef[where], best.intercept[where] = a[better], a0[better]
        best.residual[where], best.scores[where] = residual[better], f[better] - a0[better, None]
        stay = residual > tol
        live = live[stay]
        if len(live) == 0:
            break
        a, a0, f, e, e0, Q, q, z = (part[stay] for part in (a, a0, f, e, e0, Q, q, z))
        mine, penalty = mine[stay], penalty[stay]
        models.keep(stay)
        found = models.rows(f.astype(np.float32), a.astype(np.float32), *single, mine, penalty, r)
        damped = (1.0 - low_rank.rest[models.level] * models.weight) * q
        sums = found.sums
        sums[0], sums[1], sums[3] = z.sum(axis=1), a.sum(axis=1), damped.sum(axis=1)
        rows = Rows(q.astype(np.float32), damped.astype(np.float32), sums)
        step, d0, _ = models.step(rows, penalty, fit_intercept)
        d, decrement = step.astype(np.float64), np.empty(len(live))
        P = _product(d, K)
        move_columns(
            Y, omega, mine, penalty, r, a, a0, f, d, d0, P, e, e0, Q, q, sums[0], decrement
        )
        best.decrement[live] = decrement
    return best


def _product(rows: Array, K: Array) -> Array:
    """``rows @ K`` for a symmetric matrix: row by row while packing it would cost more."""
    return np.array([K @ row for row in rows]) if len(rows) <= _FEW_ROWS else rows @ K
