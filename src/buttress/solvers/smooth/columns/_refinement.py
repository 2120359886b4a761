"""Columns in kernel form brought from single to double precision.

The residuals are computed in double precision, with the Gram matrix as given; the steps are those
of the models in single precision (`_curved_model`). Started near a solution each step removes
most of what is left. Columns that come here are few, so that this is NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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

    def pulls(self, f: Array) -> Array:
        """``-omega y t`` at the scores `f`."""
        return np.asarray(self.omega * self.y * np.asarray(self.loss.derivative(self.y * f)))

    def steps(self, f: Array, a: Array, z: Array, q: Array) -> tuple[Array, Array, Array]:
        """Steps by the models in single precision from residuals in double: see `model_steps`."""
        system, place, count = self.system, self.slot, len(self.slot)
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
            self.problem,
            self.lam,
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
        return model_steps(low_rank, models, place, self.lam, system.fit_intercept, damped, sums)

    def plane_minimum(
        self, f: Array, a: Array, new: tuple[Array, Array, Array], last: tuple[Array, Array, Array]
    ) -> tuple[Array, Array]:
        """Multiples of two steps of all columns at which the objectives are least.

        A step is its coefficients, their scores, and these with the intercept.
        """
        two_lam = 2.0 * self.lam
        pull = two_lam * _dot(a, new[1]), two_lam * _dot(a, last[1])
        h11, h12 = two_lam * _dot(new[0], new[1]), two_lam * _dot(new[0], last[1])
        h22 = two_lam * _dot(last[0], last[1])
        first, second = np.ones(len(f)), np.zeros(len(f))
        for _ in range(_TRIALS):
            u = self.y * (f + first[:, None] * new[2] + second[:, None] * last[2])
            slope = self.omega * self.y * np.asarray(self.loss.derivative(u))
            bend = self.omega * np.asarray(self.loss.curvature(u))
            bent = bend * new[2]
            g1 = _dot(slope, new[2]) + pull[0] + first * h11 + second * h12
            g2 = _dot(slope, last[2]) + pull[1] + first * h12 + second * h22
            c11, c12 = h11 + _dot(bent, new[2]), h12 + _dot(bent, last[2])
            c22 = h22 + _dot(bend * last[2], last[2])
            determinant = c11 * c22 - c12 * c12
            both = determinant > 1e-10 * c11 * c22
            safe = np.where(both, determinant, 1.0)
            alone = -g1 / np.where(c11 > 0, c11, 1.0)
            step1 = np.where(both, (c12 * g2 - c22 * g1) / safe, alone)
            step2 = np.where(both, (c12 * g1 - c11 * g2) / safe, 0.0)
            first, second = np.clip(first + step1, -4.0, 4.0), np.clip(second + step2, -4.0, 4.0)
            if np.all(np.abs(step1) + np.abs(step2) <= 0.02 * (np.abs(first) + np.abs(second))):
                break
        return first, second

    def of(self, at: IntArray) -> Refinement:
        """Some of the columns."""
        return replace(
            self,
            y=self.y[at],
            omega=self.omega[at],
            slot=self.slot[at],
            problem=self.problem[at],
            lam=self.lam[at],
        )


def _dot(a: Array, b: Array) -> Array:
    """Products of rows with rows."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


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
    last, last0 = (np.zeros_like(a), np.zeros_like(a), np.zeros_like(a)), np.zeros(k)
    least, before, earlier = np.full((3, k), np.inf)
    settled, near = np.zeros((2, k), dtype=bool)
    enough = np.where(signs_only, _PRECISE, tol)
    live, part = np.arange(k), task
    for _ in range(_STEPS):
        z = part.pulls(f[live])
        q = z + 2.0 * part.lam[:, None] * a[live]
        size = np.maximum(np.abs(z), _FLAT * part.omega)
        residual = np.max(np.abs(q) / np.where(size > 0, size, np.inf), axis=1)
        better = (residual < least[live]) | settled[live]
        where = live[better]
        least[where] = residual[better]
        for kept, now in zip(best, (a, a0, f), strict=True):
            kept[where] = now[where]
        going = (residual > enough[live]) & ~settled[live]
        if not going.all():
            live, z, q = live[going], z[going], q[going]
            part = task.of(live)
        if len(live) == 0:
            break
        single, d0, promise = part.steps(f[live], a[live], z, q)
        step = single.astype(np.float64)
        along = step @ task.K
        new = step, along, along + d0[:, None]
        old = last[0][live], last[1][live], last[2][live]
        first, second = part.plane_minimum(f[live], a[live], new, old)
        for steps, one, other in zip(last, new, old, strict=True):
            steps[live] = first[:, None] * one + second[:, None] * other
        last0[live] = first * d0 + second * last0[live]
        a[live] += last[0][live]
        a0[live] += last0[live]
        f[live] += last[2][live]
        decrement = np.maximum(np.abs(_dot(q, new[2])), promise)
        past = zip(decrement, before[live], earlier[live], strict=True)
        rate = np.array([measured_rate(*three) for three in past])
        pairs = zip(decrement * rate / (1.0 - rate), part.lam, strict=True)
        error = np.array([score_error(*pair, norm) for pair in pairs])
        sizes = np.abs(f[live])
        held_out = np.where(part.omega == 0.0, sizes, np.inf).min(axis=1)
        # A column that stands still far from its solution promises no decrease either.
        sane = least[live] <= _SANE
        settled[live] = sane & signs_only[live] & (held_out > error)
        near[live] = sane & ~signs_only[live] & (error <= _NEAR * sizes.max(axis=1))
        earlier[live], before[live] = before[live], decrement
    # by the last step of all: what was settled is where it led
    for kept, now in zip(best, (a, a0, f), strict=True):
        kept[settled] = now[settled]
    solved = settled | near | (least <= tol)
    return Refined(best[0], best[1], best[2] - best[1][:, None], least, solved)
