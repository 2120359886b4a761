"""Columns in kernel form brought from single to double precision.

The steps are those of the models in single precision (`_curved_model`), and so are the products
that tell how they change the scores: they err by a share of the step, which is small already.
Started near a solution each step removes most of what is left. Where a column seems to be solved
its scores are computed in double precision, with the Gram matrix as given, and it goes on if it is
not. Columns that come here are few, so that this is NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers.smooth.columns._kernel_columns import model_steps
from buttress.solvers.smooth.columns._models import Batch, KernelSystem
from buttress.solvers.smooth.columns._moves import SLACK
from buttress.solvers.smooth.columns._sign_certificate import (
    measured_rate,
    score_error,
    score_rounding,
    still_to_come,
)

_STEPS = 80
# Share of the largest score within which scores are near enough when the steps have run out.
_ACCEPTED = 1e-3
# Residual at which scores are as precise as they get.
_PRECISE = 1e-12
# Residual above which what is left to gain cannot be told from what steps promise.
_SANE = 1e-2
# Slope below which errors are no longer seen as a share of it: other losses have slopes of zero.
_FLAT = 1e-9
# Multiples of steps are no larger.
_LARGEST = 4.0


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

    def state(self, f: Array, a: Array) -> tuple[Array, Array, Array]:
        """Pulls and residuals of all columns, and the largest of these as a share of a slope."""
        z = self.pulls(f)
        residuals = 2.0 * self.lam[:, None] * a
        residuals += z
        share = self.largest_share(residuals, z)
        if self.system.fit_intercept:
            # coefficients that agree with the slopes sum to zero only where the intercept is right
            share = np.maximum(share, np.abs(z.sum(axis=1)) / np.abs(z).sum(axis=1))
        return z, residuals, share

    def least_held_out(self, f: Array) -> Array:
        """The smallest held-out score of every column, by size; infinite without any."""
        return np.asarray(np.where(self.omega == 0.0, np.abs(f), np.inf).min(axis=1))

    def largest_share(self, residuals: Array, z: Array) -> Array:
        """The largest residual of every column, as a share of a row's slope."""
        size = np.abs(z)
        np.maximum(size, _FLAT * self.omega, out=size)
        size[size == 0.0] = np.inf
        return np.asarray((np.abs(residuals) / size).max(axis=1))

    def steps(self, f: Array, a: Array, residuals: Array) -> tuple[Array, Array, Array]:
        """Steps by the models in single precision from residuals in double: see `find_steps`."""
        slack, stuck = np.full(len(f), SLACK), np.zeros(len(f), dtype=bool)
        at = f.astype(np.float32), a.astype(np.float32), np.zeros(len(f))
        batch = Batch(self.problem, self.lam, self.slot, self.slot, slack, stuck, *at)
        return model_steps(self.system, batch, (residuals, a.sum(axis=1)))

    def plane_minimum(self, f: Array, a: Array, z: Array, steps: tuple[Any, Any]) -> Array:
        """Multiples (2, k) of two steps at which quadratic models of all objectives are least.

        `z` are the pulls at the scores `f`; `steps`, each of shape (3, k, n), are coefficients,
        their scores, and these with the intercept.
        """
        (d, kd, p), (e, ke, q) = steps
        two_lam = 2.0 * self.lam
        bend = self.omega * np.asarray(self.loss.curvature(self.y * f))
        bent_p = bend * p
        bend *= q
        h11 = _dot(bent_p, p) + two_lam * _dot(d, kd)
        h12 = _dot(bent_p, q) + two_lam * _dot(d, ke)
        h22 = _dot(bend, q) + two_lam * _dot(e, ke)
        g1 = _dot(p, z) + two_lam * _dot(kd, a)
        g2 = _dot(q, z) + two_lam * _dot(ke, a)
        determinant = h11 * h22 - h12 * h12
        both = determinant > 1e-10 * h11 * h22
        safe, alone = np.where(both, determinant, 1.0), -g1 / np.where(h11 > 0, h11, 1.0)
        first = np.where(both, (h12 * g2 - h22 * g1) / safe, alone)
        second = np.where(both, (h12 * g1 - h11 * g2) / safe, 0.0)
        return np.clip([first, second], -_LARGEST, _LARGEST)

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


def refine_columns(
    task: Refinement, start: tuple[Array, Array], tol: Array, signs_only: BoolArray
) -> Refined:
    """Refine columns from coefficients (k, n) and intercepts (k,), each to its own tolerance.

    Costs a product in single precision a step, and two or three in double; a column is left when
    the slopes of all its rows agree with its coefficients to `tol`, or, where nothing else is
    wanted, when the signs of its held-out scores are settled. Returns the best point of every
    column, which is never worse than its start.
    """
    a, a0 = start[0].copy(), start[1].copy()
    k, norm = len(a), task.system.low_rank.norm
    f = a @ task.K + a0[:, None]
    # how far scores are from those in double precision, at most
    rounding = np.zeros(k)
    best = a.copy(), a0.copy(), f.copy()
    last, last0 = np.zeros((3, *a.shape)), np.zeros(k)
    least, lowest, before, earlier, bound = np.full((5, k), np.inf)
    settled, near = np.zeros((2, k), dtype=bool)
    enough = np.where(signs_only, _PRECISE, tol)
    # Of the columns that go on: what follows has rows for these only.
    live, alive = np.arange(k), task
    for step_number in range(_STEPS + 1):
        z, residuals, worst = alive.state(f, a)
        last_one, held_out = step_number == _STEPS, alive.least_held_out(f)
        # what seems to be solved, or would be but for the rounding of its scores
        seems = last_one | (worst <= enough[live])
        seems |= signs_only[live] & (held_out > bound[live]) & (held_out <= bound[live] + rounding)
        seems &= rounding > 0.0
        if seems.any():
            f[seems] = a[seems] @ task.K + a0[seems, None]
            rounding[seems] = 0.0
            z, residuals, worst = alive.state(f, a)
            held_out = alive.least_held_out(f)
        lowest[live] = np.minimum(lowest[live], worst)
        # A column that stands still far from its solution promises no decrease either.
        sane = lowest[live] <= _SANE
        settled[live] = sane & signs_only[live] & (held_out > bound[live] + rounding)
        near[live] = sane & ~signs_only[live] & (bound[live] <= _ACCEPTED * np.abs(f).max(axis=1))
        better = ((worst < least[live]) & (rounding == 0.0)) | settled[live]
        where = live[better]
        least[where] = worst[better]
        for kept, now in zip(best, (a, a0, f), strict=True):
            kept[where] = now[better]
        going = (worst > enough[live]) & ~settled[live]
        if not going.all():
            live, z, residuals = live[going], z[going], residuals[going]
            a, a0, f = a[going], a0[going], f[going]
            last, last0, alive = last[:, going], last0[going], task.of(live)
            rounding = rounding[going]
        if len(live) == 0 or last_one:
            break
        single, d0, promise = alive.steps(f, a, residuals)
        step = single.astype(np.float64)
        along = (single @ task.system.matrix).astype(np.float64)
        new = along + d0[:, None]
        shares = alive.plane_minimum(f, a, z, ((step, along, new), tuple(last)))
        last *= shares[1, :, None]
        for moved, change in zip(last, (step, along, new), strict=True):
            moved += shares[0, :, None] * change
        last0 = shares[0] * d0 + shares[1] * last0
        a, a0, f = a + last[0], a0 + last0, f + last[2]
        rounding = rounding + score_rounding(norm, 1.0) * np.sqrt(_dot(last[0], last[0]))
        decrement = np.maximum(np.abs(_dot(residuals, new)), promise)
        # of Python's numbers: one by one they are much faster than NumPy's
        past = (size.tolist() for size in (decrement, before[live], earlier[live]))
        rate = np.array([measured_rate(*three) for three in zip(*past, strict=True)])
        left = (decrement * rate / (1.0 - rate)).tolist()
        outside = alive.omega == 0.0
        # without held-out rows by all the others, whose scores are wanted then
        changes = np.where(outside | ~signs_only[live, None], np.abs(last[2]), 0.0).max(axis=1)
        known = zip(left, alive.lam.tolist(), changes.tolist(), rate.tolist(), strict=True)
        bound[live] = [min(score_error(*by[:2], norm), still_to_come(*by[2:])) for by in known]
        earlier[live], before[live] = before[live], decrement
    solved = settled | near | (least <= tol)
    return Refined(best[0], best[1], best[2] - best[1][:, None], least, solved)


def _dot(a: Array, b: Array) -> Array:
    """Products of rows with rows."""
    return np.asarray(np.einsum("ij,ij->i", a, b))
