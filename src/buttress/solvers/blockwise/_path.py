"""The order in which the columns of a path are solved, each from its neighbours' solutions.

A binary problem on the rows of one fold has a column for every penalty. A few of these, far apart,
are solved one after the other from the largest down; all others begin between two solved ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.interpolate import CubicSpline

from buttress._arrays import Array, IntArray
from buttress.solvers.blockwise._descent import DescentState, OffsetSearch, Preconditioner, descend
from buttress.solvers.blockwise._offsets import SampleOffsets
from buttress.solvers.blockwise._preconditioners import (
    FixedCurvature,
    SampledCurvature,
    sampled_curvature,
)
from buttress.solvers.blockwise.objective import Objective

# Penalties at most this far apart are solved first. Nyström features of 48 842 rows, 100 penalties
# and 5 folds: 34 processor seconds with 2.5, 29 with 4, 26 with 7, which fails more columns.
_APART = 4.0
# Passes in one metric before it is renewed, and metrics at most.
_PASSES, _METRICS = 12, 4
# Passes of the columns in between.
_LAST_PASSES = 16
# Steps beyond the last two solutions, in units of their distance, at most.
_FARTHEST = 2.0
_ROUNDING = {np.dtype(np.float32): 3e-7, np.dtype(np.float64): 1e-15}
LEAST_TOLERANCE = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-23}


@dataclass(eq=False)
class _Solved:
    """What is known of the columns of a path so far."""

    objective: Objective
    state: DescentState
    line: IntArray  # (columns,): problem and fold as one number
    rank: IntArray  # (columns,): place among the line's penalties, the largest first
    factors: list[Array] = field(default_factory=list)
    group: IntArray = field(default_factory=lambda: np.empty(0, dtype=int))

    def keep(self, columns: IntArray, reached: DescentState) -> None:
        state = self.state
        state.passes += reached.passes
        state.theta[:, columns], state.gradient[:, columns] = reached.theta, reached.gradient
        state.value[columns], state.decrement[columns] = reached.value, reached.decrement
        state.done[columns] = reached.done

    def keep_metric(self, columns: IntArray, metric: Preconditioner) -> None:
        if isinstance(metric, SampledCurvature):
            self.group[columns] = metric.group + len(self.factors)
            self.factors.extend(metric.factors)


def follow_path(
    objective: Objective,
    fixed: FixedCurvature,
    tolerance: Array,
    max_passes: int,
    offsets: SampleOffsets | None = None,
    bound: Array | None = None,
) -> tuple[DescentState, SampledCurvature | None]:
    """Solve all columns of a path.

    From a cold start a small penalty meets points without curvature; from its neighbours'
    solutions, with a neighbour's Hessian, a few steps suffice.

    Parameters
    ----------
    objective : Objective
        In coordinates that make its Gram matrix diagonal.
    fixed : FixedCurvature
    tolerance : array of shape (columns,)
    max_passes : int
        Per penalty.
    offsets : SampleOffsets, optional
    bound : array of shape (parameters,), optional
        For a sample: the diagonal of the curvature bound, see `sampled_curvature`.

    Returns
    -------
    state : DescentState
        `passes` are those of all penalties together.
    metric : SampledCurvature or None
        The Hessians that were used; None for a single penalty.
    """
    solved = _nothing_solved(objective)
    tolerance = np.maximum(tolerance, LEAST_TOLERANCE[objective.source.dtype])
    first = _far_apart(objective.columns.alpha, solved.rank)
    for level, rank in enumerate(first):
        columns = np.flatnonzero(solved.rank == rank)
        begin = _beyond(solved, columns, first[:level])
        extra = objective.only(columns)
        metric: Preconditioner = fixed.only(columns)
        if level:
            metric = _curvature(extra, begin, bound)
        search = None if offsets is None else offsets.only(columns)
        state: DescentState | None = None
        for _ in range(_METRICS):
            most = min(max_passes, _PASSES)
            state = run(extra, begin, metric, tolerance[columns], most, state=state, offsets=search)
            live = np.flatnonzero(~state.done)
            if len(live) == 0:
                break
            new = _curvature(extra.only(live), state.theta[:, live], bound)
            if isinstance(metric, SampledCurvature):
                metric = metric.renewed(new, live)
            else:
                metric = _curvature(extra, state.theta, bound)
        assert state is not None
        solved.keep(columns, state)
        solved.keep_metric(columns, metric)
    columns = np.flatnonzero(~np.isin(solved.rank, first))
    if len(columns):
        begin = _between(solved, columns, first)
        between = SampledCurvature(solved.factors, solved.group[columns])
        search = None if offsets is None else offsets.only(columns)
        most = min(max_passes, _LAST_PASSES)
        extra = objective.only(columns)
        solved.keep(columns, run(extra, begin, between, tolerance[columns], most, offsets=search))
    if (solved.group < 0).any():
        return solved.state, None
    return solved.state, SampledCurvature(solved.factors, solved.group)


def _nothing_solved(objective: Objective) -> _Solved:
    columns = objective.columns
    shape = (objective.n_parameters, len(columns))
    line = columns.problem * (columns.fold.max() + 1) + columns.fold
    order = np.lexsort((-columns.alpha, line))
    begins = np.append(True, np.diff(line[order]) != 0)
    positions: IntArray = np.arange(shape[1])
    rank = np.empty(shape[1], dtype=int)
    rank[order] = positions - np.maximum.accumulate(np.where(begins, positions, 0))
    endless = np.full(shape[1], np.inf)
    none = np.zeros(shape[1], dtype=bool)
    state = DescentState(np.zeros(shape), endless.copy(), np.zeros(shape), endless, 0, none)
    return _Solved(objective, state, line, rank, group=np.full(shape[1], -1))


def _far_apart(alpha: Array, rank: IntArray) -> list[int]:
    """Places of penalties that are solved first: the ends, and as few as allowed in between."""
    logs = np.array([np.log(alpha[rank == r]).mean() for r in range(rank.max() + 1)])
    chosen = [0]
    for r in range(1, len(logs)):
        if r == len(logs) - 1 or logs[chosen[-1]] - logs[r + 1] > np.log(_APART) + 1e-9:
            chosen.append(r)
    return chosen


def _curvature(objective: Objective, theta: Array, bound: Array | None) -> SampledCurvature:
    """One Hessian for each binary problem, unless its folds' penalties are far apart."""
    alpha = objective.columns.alpha
    near = alpha.max() <= _APART * alpha.min()
    return sampled_curvature(objective, theta, np.inf if near else _APART, bound)


def _beyond(solved: _Solved, columns: IntArray, earlier: list[int]) -> Array:
    """Where `columns` begin: in line with the last two solutions, or at the last."""
    if not earlier:
        return np.zeros((len(solved.state.theta), len(columns)))
    theta, logs = solved.state.theta, np.log(solved.objective.columns.alpha)
    last = _of_rank(solved, columns, earlier[-1])
    begin = theta[:, last]
    if len(earlier) > 1:
        before = _of_rank(solved, columns, earlier[-2])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (logs[columns] - logs[last]) / (logs[last] - logs[before])
        ratio = np.clip(np.nan_to_num(ratio), 0.0, _FARTHEST)
        begin = begin + ratio * (begin - theta[:, before])
    else:
        # the first metric is no Hessian: those nearest to it take this one
        solved.group[last] = len(solved.factors)
    return np.asarray(begin)


def _of_rank(solved: _Solved, columns: IntArray, rank: int) -> IntArray:
    """The column of rank `rank` in the line of each column of `columns`."""
    there = np.flatnonzero(solved.rank == rank)
    of_line = dict(zip(solved.line[there].tolist(), there.tolist(), strict=True))
    return np.array([of_line[line] for line in solved.line[columns].tolist()])


def _between(solved: _Solved, columns: IntArray, first: list[int]) -> Array:
    """Starts of the columns between solved ones, on a curve through their line's solutions."""
    logs = np.log(solved.objective.columns.alpha)
    begin = np.empty((len(solved.state.theta), len(columns)))
    known = np.flatnonzero(np.isin(solved.rank, first))
    for line in np.unique(solved.line[columns]):
        in_line = np.flatnonzero(solved.line[columns] == line)
        of_line = known[solved.line[known] == line]
        x, one_each = np.unique(logs[of_line], return_index=True)
        nearest = np.abs(logs[columns[in_line]][:, None] - logs[of_line]).argmin(axis=1)
        solved.group[columns[in_line]] = solved.group[of_line[nearest]]
        if len(x) == 1:
            begin[:, in_line] = solved.state.theta[:, of_line[:1]]
            continue
        through = solved.state.theta[:, of_line[one_each]]
        curve = CubicSpline(x, through, axis=1, bc_type="natural")
        begin[:, in_line] = curve(np.clip(logs[columns[in_line]], x[0], x[-1]))
    return begin


def run(
    objective: Objective,
    start: Array,
    preconditioner: Preconditioner,
    tolerance: Array,
    max_passes: int,
    *,
    memory: int = 8,
    state: DescentState | None = None,
    offsets: OffsetSearch | None = None,
) -> DescentState:
    """`descend` with tolerances on the distance to the minimum, and the data's rounding."""
    return descend(
        objective,
        start,
        preconditioner,
        2.0 * tolerance,
        max_passes,
        memory=memory,
        rounding=_ROUNDING[objective.source.dtype],
        state=state,
        offsets=offsets,
    )
