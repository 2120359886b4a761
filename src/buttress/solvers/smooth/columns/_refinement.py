"""Columns in kernel form brought from single to double precision.

The residuals are computed in double precision, with the Gram matrix as given; the steps are those
of the models in single precision (`_curved_model`). Started near a solution each step removes
most of what is left. Columns that come here are few, so that this is NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers.smooth.columns._curved_model import model_steps, set_rows
from buttress.solvers.smooth.columns._kernel_columns import SLACK, KernelSystem
from buttress.solvers.smooth.columns._sign_certificate import measured_rate, score_error

_STEPS = 80
# Share of the largest score within which scores are near enough when the steps have run out.
_NEAR = 1e-3
# Residual at which scores are as precise as they get.
_PRECISE = 1e-12
# Residual above which what is left to gain cannot be told from what steps promise.
_SANE = 1e-2
# Slope below which errors are no longer seen as a share of it: other losses have slopes of zero.
_FLAT = 1e-9


# Trial points of a search along steps.
_TRIALS = 6


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


@dataclass(frozen=True, eq=False)
class Refinement:
    """Columns (problem, lam) that are brought to double precision together.

    Attributes
    ----------
    system : KernelSystem
    K : array of shape (n, n), float64
    loss : the loss, with methods of arrays
    y, omega : arrays of shape (k, n)
        Labels and weights of every column.
    slot, problem, lam : arrays of shape (k,)
    """

    system: KernelSystem
    K: Array
    loss: Any
    y: Array
    omega: Array
    slot: IntArray
    problem: IntArray
    lam: Array

    def pulls(self, f: Array, at: IntArray) -> Array:
        """``-omega y t`` of the columns `at`, whose scores are `f`."""
        y = self.y[at]
        return np.asarray(self.omega[at] * y * np.asarray(self.loss.derivative(y * f)))

    def steps(self, f: Array, a: Array, z: Array, q: Array, at: IntArray) -> tuple[Array, ...]:
        """Steps by the models in single precision from residuals in double: see `model_steps`."""
        system, place, count = self.system, self.slot[at], len(at)
        low_rank, models = system.low_rank, system.models
        single_q, damped = np.empty((2, count, len(self.K)), np.float32)
        sums = np.empty((6, count))
        set_rows(
            system.loss,
            low_rank,
            models,
            f.astype(np.float32),
            a.astype(np.float32),
            np.arange(count),
            system.y,
            system.omega,
            self.problem[at],
            self.lam[at],
            place,
            np.full(count, SLACK),
            single_q,
            damped,
            sums,
        )
        model = models.source[place]
        exact = (1.0 - low_rank.rest[models.level[model]] * models.weight[model]) * q
        damped[:] = exact
        sums[0], sums[1], sums[3] = z.sum(axis=1), a.sum(axis=1), exact.sum(axis=1)
        return model_steps(
            low_rank, models, place, self.lam[at], system.fit_intercept, damped, sums
        )

    def share(self, f: Array, a: Array, d: Array, along: Array, P: Array, at: IntArray) -> Array:
        """Shares of steps `d` at which the objectives are least.

        Scores change by `along`, with the intercept by `P`.
        """
        y, omega, two_lam = self.y[at], self.omega[at], 2.0 * self.lam[at]
        pull = two_lam * np.einsum("ij,ij->i", a, along)
        growth = two_lam * np.einsum("ij,ij->i", d, along)
        share = np.ones(len(at))
        for _ in range(_TRIALS):
            u = y * (f + share[:, None] * P)
            slope = np.einsum("ij,ij->i", omega * y * np.asarray(self.loss.derivative(u)), P)
            bend = np.einsum("ij,ij->i", omega * np.asarray(self.loss.curvature(u)), P * P)
            slope, bend = slope + pull + share * growth, bend + growth
            share = np.clip(share - slope / np.where(bend > 0, bend, 1.0), 0.0, 4.0)
        return share


def refine_columns(
    task: Refinement, start: tuple[Array, Array], tol: float, signs_only: BoolArray
) -> Refined:
    """Refine columns from coefficients (k, n) and intercepts (k,).

    Costs a product with `K` in double precision a step; a column is left when the slopes of all
    its rows agree with its coefficients to `tol`, or, where nothing else is wanted, when the
    signs of its held-out scores are settled. Returns the best point of every column, which is
    never worse than its start.
    """
    a, a0 = start[0].copy(), start[1].copy()
    k, norm = len(a), task.system.low_rank.norm
    f = a @ task.K + a0[:, None]
    best = a.copy(), a0.copy(), f.copy()
    least, before, earlier = np.full((3, k), np.inf)
    settled, near = np.zeros((2, k), dtype=bool)
    enough = np.where(signs_only, _PRECISE, tol)
    live = np.arange(k)
    for _ in range(_STEPS):
        z = task.pulls(f[live], live)
        q = z + 2.0 * task.lam[live, None] * a[live]
        size = np.maximum(np.abs(z), _FLAT * task.omega[live])
        residual = np.max(np.abs(q) / np.where(size > 0, size, np.inf), axis=1)
        better = (residual < least[live]) | settled[live]
        where = live[better]
        least[where] = residual[better]
        for part, now in zip(best, (a, a0, f), strict=True):
            part[where] = now[where]
        going = (residual > enough[live]) & ~settled[live]
        live, z, q = live[going], z[going], q[going]
        if len(live) == 0:
            break
        step, d0, promise = task.steps(f[live], a[live], z, q, live)
        d = step.astype(np.float64)
        along = d @ task.K
        P = along + d0[:, None]
        share = task.share(f[live], a[live], d, along, P, live)
        decrement = np.maximum(np.abs(np.einsum("ij,ij->i", q, P)), promise)
        a[live] += share[:, None] * d
        a0[live] += share * d0
        f[live] += share[:, None] * P
        past = zip(decrement, before[live], earlier[live], strict=True)
        rate = np.array([measured_rate(*three) for three in past])
        left = decrement * rate / (1.0 - rate)
        pairs = zip(left, task.lam[live], strict=True)
        error = np.array([score_error(*pair, norm) for pair in pairs])
        sizes = np.abs(f[live])
        held_out = np.where(task.omega[live] == 0.0, sizes, np.inf).min(axis=1)
        # A column that stands still far from its solution promises no decrease either.
        sane = least[live] <= _SANE
        settled[live] = sane & signs_only[live] & (held_out > error)
        near[live] = sane & ~signs_only[live] & (error <= _NEAR * sizes.max(axis=1))
        earlier[live], before[live] = before[live], decrement
    # by the last step of all: what was settled is where it led
    for part, now in zip(best, (a, a0, f), strict=True):
        part[settled] = now[settled]
    solved = settled | near | (least <= tol)
    return Refined(best[0], best[1], best[2] - best[1][:, None], least, solved)
