"""The order in which the columns of a path are solved, each from its neighbour's solution."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.solvers.blockwise._descent import OffsetSearch, Preconditioner, State, descend
from buttress.solvers.blockwise._offsets import SampleOffsets
from buttress.solvers.blockwise._preconditioners import (
    FixedCurvature,
    curvature_bound,
    sampled_curvature,
)
from buttress.solvers.blockwise.objective import Objective

# Penalties within this factor are solved as one group of a path.
_NEAR = 2.5
# Passes of a group in one metric.
_PASSES = 24
_ROUNDING = {np.dtype(np.float32): 3e-7, np.dtype(np.float64): 1e-15}
LEAST_TOLERANCE = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-23}


def follow_path(
    objective: Objective,
    fixed: FixedCurvature,
    tolerance: Array,
    max_passes: int,
    offsets: SampleOffsets | None = None,
) -> tuple[Array, int]:
    """Solve columns from the largest penalty down, each group from the one before.

    From a cold start a small penalty meets points without curvature; from a neighbour's
    solution, with the neighbour's Hessian, a few steps suffice.

    Parameters
    ----------
    objective : Objective
        In coordinates that make its Gram matrix diagonal.
    fixed : FixedCurvature
    tolerance : array of shape (columns,)
    max_passes : int
        Per group.
    offsets : SampleOffsets, optional

    Returns
    -------
    theta : array of shape (parameters, columns)
    passes : int
        Over the data of `objective`, all groups together.
    """
    columns = objective.columns
    theta = np.zeros((objective.n_parameters, len(columns)))
    problem_fold = columns.problem * (columns.fold.max() + 1) + columns.fold
    latest: dict[int, Array] = {}
    passes = 0
    bound = np.concatenate(
        [
            fixed.diagonal.mean(axis=1),
            np.full(objective.rows.n_offsets, curvature_bound(objective.rows.loss)),
        ]
    )
    for group in _penalty_groups(columns.alpha):
        extra = objective.only(group)
        begin = np.column_stack(
            [latest.get(int(key), theta[:, 0] * 0.0) for key in problem_fold[group]]
        )
        metric: Preconditioner = fixed.only(group)
        if latest:
            metric = sampled_curvature(extra, begin, np.inf, bound)
        limit = np.maximum(tolerance[group], LEAST_TOLERANCE[objective.source.dtype])
        search = None if offsets is None else offsets.only(group)
        most = min(max_passes, _PASSES)
        state = run(extra, begin, metric, limit, most, offsets=search)
        if not state.done.all():
            again = (
                fixed.only(group)
                if latest
                else sampled_curvature(extra, state.theta, np.inf, bound)
            )
            state = run(extra, begin, again, limit, most, state=state, offsets=search)
        passes += state.passes
        theta[:, group] = state.theta
        # The smallest penalty of the group comes last and is the next one's neighbour.
        latest.update(zip(problem_fold[group].tolist(), state.theta.T, strict=True))
    return theta, passes


def _penalty_groups(alpha: Array) -> list[IntArray]:
    """Columns in groups of nearly equal penalty, largest first, decreasing within."""
    order = np.argsort(-alpha, kind="stable")
    groups: list[list[int]] = []
    first = np.inf
    for column in order:
        if not groups or alpha[column] < first / _NEAR:
            groups.append([])
            first = float(alpha[column])
        groups[-1].append(int(column))
    return [np.array(group) for group in groups]


def run(
    objective: Objective,
    start: Array,
    preconditioner: Preconditioner,
    tolerance: Array,
    max_passes: int,
    *,
    memory: int = 8,
    state: State | None = None,
    offsets: OffsetSearch | None = None,
) -> State:
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
