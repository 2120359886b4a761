"""Outer loops around `reduction`: non-convex ramp losses, and a bound on the norm.

Both keep all columns together: an outer step is a few passes over the data for every fold and
every penalty at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.blocks.base import Block
from buttress.solvers.blockwise._sample import sample_of
from buttress.solvers.blockwise.certificate import duality_gaps
from buttress.solvers.blockwise.objective import Objective
from buttress.solvers.blockwise.reduction import (
    ColumnSolution,
    ColumnSolver,
    batches,
    joined,
    solve_columns,
)


@dataclass(frozen=True, eq=False)
class RampColumns:
    """Solutions of a non-convex problem.

    Attributes
    ----------
    solution : ColumnSolution
        `objective` is the non-convex one; `gap` is that of the last convex step.
    objective_path : array of shape (steps, columns)
        The objective after every outer step; a finished column repeats its last value.
    n_outer : array of shape (columns,)
    finished : bool array of shape (columns,)
        Whether no outer steps were left to do; `solution.converged` also asks that the last
        convex step reached `inner_tol`.
    """

    solution: ColumnSolution
    objective_path: Array
    n_outer: Array
    finished: BoolArray


def solve_ramp_columns(
    objective: Objective,
    *,
    tol: float = 1e-9,
    inner_tol: float = 1e-12,
    max_outer: int = 100,
    max_passes: int = 500,
    start: Array | None = None,
) -> RampColumns:
    """Minimise columns whose loss is a difference of convex functions.

    Every outer step replaces the concave part by its tangent, a linear term that one pass
    sums up, and solves the convex rest.

    Parameters
    ----------
    objective : Objective
        With a loss that has `convex` and `concave` parts, such as `SmoothedRamp`.
    tol : float
        A column stops when a step lowers its objective by no more than ``tol (1 + |F|)``.
    inner_tol : float
        Accuracy of the convex steps, as in `solve_columns`.
    max_outer, max_passes : int
        Outer steps, and passes per outer step, at most.
    start : array of shape (parameters, columns), optional
        Where the first tangent is taken; zero, where a ramp is its hinge, when not given.
    """
    sample = sample_of(objective, "auto")
    by_batch = []
    for batch, subproblem in batches(objective):
        begin = None if start is None else start[:, batch]
        by_batch.append(
            _ramp_batch(subproblem, tol, inner_tol, max_outer, max_passes, begin, sample)
        )
    paths = [each.objective_path for each in by_batch]
    longest = max(len(path) for path in paths)
    padded = [np.vstack([path, np.repeat(path[-1:], longest - len(path), 0)]) for path in paths]
    return RampColumns(
        joined([each.solution for each in by_batch]),
        np.hstack(padded),
        np.concatenate([each.n_outer for each in by_batch]),
        np.concatenate([each.finished for each in by_batch]),
    )


def _ramp_batch(
    objective: Objective,
    tol: float,
    inner_tol: float,
    max_outer: int,
    max_passes: int,
    start: Array | None,
    sample: Block | None,
) -> RampColumns:
    ramp, n_columns = objective.rows.loss, len(objective.columns)
    convex = replace(objective, rows=replace(objective.rows, loss=ramp.convex))
    free = replace(objective.columns, alpha=np.zeros(n_columns))
    no_slope = tuple(0.0 for _ in objective.rows.slope)
    concave = replace(
        objective,
        rows=replace(objective.rows, loss=ramp.concave, slope=no_slope),
        columns=free,
    )
    everything = np.arange(n_columns)
    theta = np.zeros((objective.n_parameters, n_columns)) if start is None else start.copy()
    linear = np.zeros_like(theta)
    if start is not None:
        linear = concave(theta, everything)[1]
    value = np.full(n_columns, np.inf)
    gap, done = np.full(n_columns, np.inf), np.zeros(n_columns, dtype=bool)
    good = np.ones(n_columns, dtype=bool)
    n_outer = np.zeros(n_columns, dtype=int)
    path: list[Array] = []
    passes, used = 0, ""
    live = everything
    solver: ColumnSolver | None = None
    tolerance = np.full(n_columns, inner_tol)
    for step in range(max_outer):
        if solver is None or len(live) < len(solver.objective.columns):
            # Fewer columns than the metric was made for: a smaller metric pays at once.
            solver = ColumnSolver(convex.only(live), "auto", sample)
        begin = None if step == 0 and start is None else theta[:, live]
        solution = solver.solve(tolerance[live], max_passes, start=begin, linear=linear[:, live])
        concave_value, tangent = concave(solution.theta, live)
        # The next step would be this one again, as where there is no concave part.
        same = (tangent == linear[:, live]).all(axis=0)
        # The convex step's value holds the tangent; the true concave part replaces it.
        flat = (linear[:, live] * solution.theta).sum(axis=0)
        reached = solution.objective - flat + concave_value
        passes += solution.n_iter + 1
        used = used or solution.method
        fall = value[live] - reached
        better = fall > 0
        kept = live[better]
        theta[:, kept] = solution.theta[:, better]
        value[kept] = reached[better]
        linear[:, kept] = tangent[:, better]
        gap[live], good[live] = solution.gap, solution.converged
        n_outer[live] += 1
        path.append(value.copy())
        done[live] = same | (fall <= tol * (1.0 + np.abs(value[live])))
        live = everything[~done]
        if len(live) == 0:
            break
    solution = ColumnSolution(theta, value, gap, done & good, passes, used)
    return RampColumns(solution, np.array(path), n_outer, done)


@dataclass(frozen=True, eq=False)
class RadiusColumns:
    """Solutions of ``min mean loss + slope'o`` with ``||w|| <= radius``.

    Attributes
    ----------
    solution : ColumnSolution
        `objective` has no penalty; `gap` bounds its distance from the minimum.
    penalty : array of shape (columns,)
        The penalty whose solution has (nearly) this norm; the multiplier is twice as large.
    active : bool array of shape (columns,)
        Whether the bound holds the solution back.
    """

    solution: ColumnSolution
    penalty: Array
    active: BoolArray


# The largest gap, relative to the objective, that rounding of the rows explains.
_ROUNDING = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-7}
# The search for the norm aims at this share of the gap that is allowed.
_SEARCHED_SHARE = 0.1
# Penalties below this share of the first are as good as none; so many are tried at most, each to
# this accuracy.
_NO_PENALTY = 1e-10
_MOST_PENALTIES, _PENALTY_TOLERANCE = 60, 1e-18


def solve_radius_columns(
    objective: Objective,
    radius: Array,
    *,
    tol: float = 1e-8,
    max_passes: int = 500,
) -> RadiusColumns:
    """Minimise all columns under a bound on the norm of w.

    The norm falls as the penalty rises, so a safeguarded secant in the logarithms finds the
    penalty for every column, with warm starts; for any penalty mu the solution is within
    ``2 mu ||w|| (radius - ||w||)`` of the constrained minimum.

    Parameters
    ----------
    objective : Objective
        Its penalties are ignored.
    radius : array of shape (columns,)
    tol : float
        A column is converged when its gap, relative to ``1 + |objective|``, is at most this, or
        what rounding explains (1e-7; 1e-4 in single precision). The search ends where that
        bound is a tenth of it.
    max_passes : int
        As in `solve_columns`.
    """
    n_columns, m = len(objective.columns), objective.n_components
    everything = np.arange(n_columns)
    theta = np.zeros((objective.n_parameters, n_columns))
    theta[m:] = _first_offsets(objective)
    _, gradient = _without_penalty(objective)(theta, everything)
    top = np.maximum(np.linalg.norm(gradient[:m], axis=0) / (2.0 * radius), 1e-300)
    search = _PenaltySecant(n_columns)
    logs = np.log(top)
    floor = logs + np.log(_NO_PENALTY)
    value: Array = np.zeros(n_columns)
    lower = np.full(n_columns, -np.inf)  # no solution inside has a smaller objective
    penalty, active = np.exp(logs), np.ones(n_columns, dtype=bool)
    missed = np.zeros(n_columns, dtype=bool)
    passes, used = 0, ""
    live = everything
    for _ in range(_MOST_PENALTIES):
        columns = replace(objective.columns[live], alpha=np.exp(logs[live]))
        subproblem = replace(objective.only(live), columns=columns)
        solution = solve_columns(
            subproblem, tol=_PENALTY_TOLERANCE, max_passes=max_passes, start=theta[:, live]
        )
        passes += solution.n_iter
        used = used or solution.method
        theta[:, live] = solution.theta
        norm, mu = np.linalg.norm(solution.theta[:m], axis=0), columns.alpha
        value[live] = solution.objective - mu * norm**2
        inside = norm <= radius[live]
        free = inside & (logs[live] <= floor[live])
        slack = 2.0 * mu * norm * (radius[live] - norm)
        lower[live] = np.maximum(lower[live], value[live] - slack - solution.gap)
        penalty[live], active[live] = mu, ~free
        goal = _SEARCHED_SHARE * tol * (1.0 + np.abs(value[live]))
        enough = inside & (slack <= goal)
        # Aim inside by a third of what the bound allows: outside is no solution.
        aim = np.log(radius[live]) - np.minimum(goal / (6.0 * mu * radius[live] ** 2), 0.1)
        going = ~(enough | free)
        missed[live] = going
        guess = search.next(live, logs[live], np.log(np.maximum(norm, 1e-300)), aim, inside)
        # A bracket of this width is all rounding of the norms.
        going &= ~search.closed(live)
        live = live[going]
        if len(live) == 0:
            break
        logs[live] = np.maximum(guess[going], floor[live])
    # Inside to the last digit: the point that is returned keeps to the bound. Where rounding of
    # the norms ended the search the objective still falls on the way to the bound.
    share = radius / np.maximum(np.linalg.norm(theta[:m], axis=0), 1e-300)
    theta[:m] *= np.where(missed, share, np.minimum(1.0, share))
    gap, value = duality_gaps(objective, theta, radius)
    # Where the bound holds nothing back the dual point is only as good as a zero gradient
    # times the radius; the penalties' own bound is sharper there.
    gap = np.fmin(gap, np.maximum(value - lower, 0.0))
    accepted = max(tol, _ROUNDING[np.dtype(objective.source.dtype)])
    done = gap <= accepted * (1.0 + np.abs(value))
    return RadiusColumns(ColumnSolution(theta, value, gap, done, passes, used), penalty, active)


class _PenaltySecant:
    """A safeguarded secant for ``log norm(log penalty) = aim`` in every column."""

    def __init__(self, n_columns: int) -> None:
        self.low = np.full(n_columns, -np.inf)  # penalties too small, norm above the aim
        self.high = np.full(n_columns, np.inf)
        self.last = np.full((2, n_columns), np.nan)  # the previous penalty and norm
        self.miss = np.full(n_columns, np.inf)

    def closed(self, columns: IntArray) -> BoolArray:
        """Whether the bracket leaves no room."""
        return np.asarray(self.high[columns] - self.low[columns] <= 1e-9)

    def next(
        self, columns: IntArray, logs: Array, norms: Array, aim: Array, inside: BoolArray
    ) -> Array:
        """Take the norms reached at `logs`; return the penalties to try next."""
        self.high[columns[inside]] = logs[inside]
        self.low[columns[~inside]] = logs[~inside]
        low, high = self.low[columns], self.high[columns]
        before, norm_before = self.last[:, columns]
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = (norms - norm_before) / (logs - before)
        # Under strong penalties the norm is inversely proportional to the penalty.
        slope = np.where(np.isfinite(slope) & (slope < -1e-3), slope, -1.0)
        guess = logs + (aim - norms) / slope
        bracketed = np.isfinite(low) & np.isfinite(high)
        miss = np.abs(aim - norms)
        middle = np.where(bracketed, (low + high) / 2.0, guess)
        # The secant, if it stays inside and came nearer last time; else half the bracket.
        slow = bracketed & (miss > 0.5 * self.miss[columns])
        guess = np.where(slow | (guess <= low) | (guess >= high), middle, guess)
        self.last[0, columns], self.last[1, columns] = logs, norms
        self.miss[columns] = miss
        return np.asarray(guess)


def _without_penalty(objective: Objective) -> Objective:
    columns = replace(objective.columns, alpha=np.zeros(len(objective.columns)))
    return replace(objective, columns=columns)


def _first_offsets(objective: Objective) -> Array:
    """Offsets that are best for w = 0, by a few safeguarded one-dimensional Newton steps."""
    m, n_columns = objective.n_components, len(objective.columns)
    columns = replace(objective.columns, alpha=np.ones(n_columns))
    # A huge penalty keeps w at zero; what is left is a problem in the offsets alone.
    heavy = replace(objective, columns=replace(columns, alpha=np.full(n_columns, 1e12)))
    solution = solve_columns(heavy, tol=1e-10, method="fixed")
    return solution.theta[m:]
