"""Linear models on (mapped) rows at any size: everything they need is a sum over rows.

All penalties and folds ride in the same passes over the data, as columns of one matrix. The
solver never sees where the rows are; see `buttress.solvers.blocks` for the sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers._blockwise.descent import Preconditioner, State, descend
from buttress.solvers._blockwise.objective import Objective
from buttress.solvers._blockwise.passes import GramPass
from buttress.solvers._blockwise.preconditioners import (
    DiagonalCurvature,
    ExactCurvature,
    FixedCurvature,
    SampledCurvature,
    curvature_bound,
    fixed_curvature,
    sampled_curvature,
)
from buttress.solvers.blocks import Block, take_rows

METHODS = ("auto", "fixed", "newton", "lbfgs")

# Beyond this many components a square matrix of them costs more than it saves.
_MOST_SQUARE = 6_000
# Rows of the sample that gives start and curvature: this many per component, within limits.
_SAMPLE_PER_COMPONENT, _FEWEST_SAMPLE, _MOST_SAMPLE = 20, 4_000, 40_000
# The sample must be this much smaller than the data to be worth its name.
_SAMPLE_SHARE = 4
# Hessians of the sample per binary problem.
_GROUPS = 24
# Columns solved together at most.
_BATCH = 512
# Passes between two looks at the costs.
_PATIENCE = 8
_NEWTON_STEPS = 4.0
# The sample's own minimum is this far from the data's at best.
_SAMPLE_TOLERANCE = 1e-6
_ROUNDING = {np.dtype(np.float32): 3e-7, np.dtype(np.float64): 1e-15}
_LEAST_TOLERANCE = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-20}


@dataclass(frozen=True)
class ColumnCertificate:
    """One column's result in the form shared by all solvers."""

    objective: float
    gap: float
    n_iter: int
    converged: bool


@dataclass(frozen=True, eq=False)
class ColumnSolution:
    """The solutions of all columns.

    Attributes
    ----------
    theta : array of shape (components + offsets, columns)
        Coordinates w for the features ``raw(x) @ basis`` of the problem as it was given,
        followed by the offsets.
    objective : array of shape (columns,)
    gap : array of shape (columns,)
        Estimate of the distance of the objective from its minimum: half the squared Newton
        decrement in the metric the solver has learned.
    converged : bool array of shape (columns,)
    n_iter : int
        Passes over the data.
    method : str
        What was used, in order, joined by "+".
    """

    theta: Array
    objective: Array
    gap: Array
    converged: BoolArray
    n_iter: int
    method: str

    def certificates(self) -> list[ColumnCertificate]:
        """One small result per column."""
        return [
            ColumnCertificate(float(f), float(g), self.n_iter, bool(c))
            for f, g, c in zip(self.objective, self.gap, self.converged, strict=True)
        ]


def sample_rows(n_rows: int, n_components: int, seed: int) -> IntArray | None:
    """Row numbers of the sample that gives start and curvature, None when all rows are few."""
    size = min(max(_SAMPLE_PER_COMPONENT * n_components, _FEWEST_SAMPLE), _MOST_SAMPLE)
    if _SAMPLE_SHARE * size > n_rows:
        return None
    drawn = np.random.default_rng((seed, 3)).choice(n_rows, size=size, replace=False, shuffle=False)
    return np.sort(drawn)


def solve_columns(
    objective: Objective,
    *,
    tol: float | Array = 1e-12,
    max_passes: int = 500,
    method: str = "auto",
    start: Array | None = None,
    sample: Block | None = None,
) -> ColumnSolution:
    """Minimise all columns of an objective.

    Parameters
    ----------
    objective : Objective
        Made by `make_objective`.
    tol : float or array of shape (columns,)
        A column is finished when the estimated distance to the minimum, relative to
        ``1 + |objective|``, is below this.
    max_passes : int
        Passes over the data at most.
    method : {"auto", "fixed", "newton", "lbfgs"}
        "fixed": curvature bound times one Gram matrix, corrected by a short memory of the
        steps. "newton": the same for a few passes, then the exact Hessian. "lbfgs": memory
        alone, nothing square in the number of components. "auto" starts from a sample's
        solution and curvature when there are many rows, else from the Gram matrix, and lets
        Newton finish when the cost, counted in operations, speaks for it.
    start : array of shape (parameters, columns), optional
    sample : Block, optional
        Rows of `sample_rows`, when the caller has them already.

    Notes
    -----
    With n rows, m components and c columns a pass takes ``n (map + 4 m c)`` operations, a Gram
    matrix ``n m²`` once, an exact Hessian ``n m²`` per column.
    """
    sample = sample_of(objective, method) if sample is None else sample
    tolerance = np.broadcast_to(np.asarray(tol, dtype=float), (len(objective.columns),))
    parts = []
    for batch, part in batches(objective):
        solver = ColumnSolver(part, method, sample)
        begin = None if start is None else start[:, batch]
        parts.append(solver.solve(tolerance[batch], max_passes, start=begin))
    return joined(parts)


def sample_of(objective: Objective, method: str = "auto") -> Block | None:
    """Fetch the rows that give start and curvature, when there are enough rows to sample."""
    if method != "auto" or objective.n_components > _MOST_SQUARE:
        return None
    rows = sample_rows(objective.source.n_rows, objective.n_components, seed=0)
    return None if rows is None else take_rows(objective.source, rows)


def batches(objective: Objective) -> Iterator[tuple[slice, Objective]]:
    """The columns in groups that are solved together."""
    for first in range(0, len(objective.columns), _BATCH):
        part = slice(first, min(first + _BATCH, len(objective.columns)))
        yield part, objective.only(part)


def joined(parts: list[ColumnSolution]) -> ColumnSolution:
    """Solutions of several batches as one."""
    if len(parts) == 1:
        return parts[0]
    return ColumnSolution(
        np.hstack([part.theta for part in parts]),
        np.concatenate([part.objective for part in parts]),
        np.concatenate([part.gap for part in parts]),
        np.concatenate([part.converged for part in parts]),
        sum(part.n_iter for part in parts),
        parts[0].method,
    )


class ColumnSolver:
    """Solves one objective, or several that differ in their linear term.

    The metric (Gram matrix, or Hessians of a sample) is made once and serves them all.

    Parameters
    ----------
    objective : Objective
    method : str
        As in `solve_columns`.
    sample : Block, optional
    """

    def __init__(
        self, objective: Objective, method: str = "auto", sample: Block | None = None
    ) -> None:
        if method not in METHODS:
            raise ValueError(f"method={method!r}: expected one of {', '.join(METHODS)}.")
        if method in ("auto", "fixed") and objective.n_components > _MOST_SQUARE:
            method = "lbfgs"
        self.objective, self.method, self.sample = objective, method, sample
        self.metric: Preconditioner | None = None
        self.used = [method]

    def solve(
        self,
        tolerance: Array,
        max_passes: int,
        *,
        start: Array | None = None,
        linear: Array | None = None,
    ) -> ColumnSolution:
        """Minimise every column; `linear` (given coordinates) replaces its linear term."""
        tolerance = np.maximum(tolerance, _LEAST_TOLERANCE[self.objective.source.dtype])
        cold = start is None
        begin = np.zeros((self.objective.n_parameters, len(tolerance))) if cold else start
        assert begin is not None
        if self.metric is None:
            begin = self._prepare(begin, cold)
        else:
            begin = self.objective.from_given(begin)
        objective = self.objective if linear is None else self.objective.with_linear(linear)
        assert self.metric is not None
        if self.method == "lbfgs":
            state = _run(objective, begin, self.metric, tolerance, max_passes, memory=20)
        else:
            state = self._alternate(objective, begin, tolerance, max_passes)
        return ColumnSolution(
            objective.to_given(state.theta),
            state.value,
            state.decrement / 2.0,
            state.done,
            state.passes,
            "+".join(self.used),
        )

    def _prepare(self, start: Array, cold: bool) -> Array:
        """Make the metric; return the start in the metric's coordinates."""
        if self.method == "lbfgs":
            self.metric = _diagonal(self.objective)
            return start
        small = None
        if self.sample is not None and self.method == "auto":
            small = self.objective.on_sample(self.sample)
        if small is None:
            self.objective, begin, self.metric = _from_gram(self.objective, start)
            self.used = ["fixed"]
            return begin
        self.objective, begin, self.metric = _from_sample(self.objective, small, start)
        self.used = ["sample"]
        return begin if cold else self.objective.from_given(start)

    def _alternate(
        self, objective: Objective, start: Array, tolerance: Array, max_passes: int
    ) -> State:
        """Descend in the metric at hand; let Newton finish when that is cheaper."""
        assert self.metric is not None
        if self.method == "fixed":
            return _run(objective, start, self.metric, tolerance, max_passes)
        state = None
        before = np.full(len(tolerance), np.inf)
        while True:
            left = max_passes if state is None else max_passes - state.passes
            patience = min(left, _PATIENCE)
            state = _run(objective, start, self.metric, tolerance, patience, state=state)
            if state.done.all() or state.passes >= max_passes:
                return state
            # Newton far from the minimum meets points without curvature: it comes second.
            if self.method == "newton" or _newton_is_cheaper(objective, state, before, tolerance):
                if "newton" not in self.used:
                    self.used.append("newton")
                exact = ExactCurvature(objective)
                left = max_passes - state.passes
                return _run(objective, start, exact, tolerance, left, memory=0, state=state)
            before = state.decrement.copy()


def _run(
    objective: Objective,
    start: Array,
    preconditioner: Preconditioner,
    tolerance: Array,
    max_passes: int,
    *,
    memory: int = 8,
    state: State | None = None,
) -> State:
    return descend(
        objective,
        start,
        preconditioner,
        2.0 * tolerance,
        max_passes,
        memory=memory,
        rounding=_ROUNDING[objective.source.dtype],
        state=state,
    )


def _newton_is_cheaper(objective: Objective, state: State, before: Array, tolerance: Array) -> bool:
    """Compare the operations that both methods still need, from the rate seen so far."""
    live = ~state.done
    now, then = state.decrement[live], before[live]
    if not np.isfinite(then).all():
        return False
    goal = 2.0 * tolerance[live] * (1.0 + np.abs(state.value[live]))
    rate = np.clip(np.log(np.maximum(then, 1e-300) / now) / _PATIENCE, 1e-3, None)
    passes = float((np.log(now / goal) / rate).max())
    m, n_live = objective.n_components, int(live.sum())
    mapping = objective.reader.features.flops_per_row + 20.0 * m
    one_pass = mapping + 4.0 * m * n_live + 60.0 * n_live
    one_hessian = mapping + float(m) ** 2 * n_live
    return _NEWTON_STEPS * (one_hessian + one_pass) < passes * one_pass


def _from_gram(objective: Objective, start: Array) -> tuple[Objective, Array, FixedCurvature]:
    """Coordinates that make the Gram matrix diagonal, and the curvature bound in them."""
    gram, sums = objective.gram()
    eigenvalues, vectors = linalg.eigh(gram)
    objective = objective.rotated(vectors)
    metric = fixed_curvature(objective, np.maximum(eigenvalues, 0.0), sums @ vectors)
    return objective, objective.from_given(start), metric


def _from_sample(
    objective: Objective, small: Objective, start: Array
) -> tuple[Objective, Array, SampledCurvature]:
    """Solve the sample's problems, and take over their solutions and Hessians."""
    small, start, metric = _from_gram(small, start)
    assert small.rotation is not None
    objective = objective.rotated(small.rotation)
    few = np.full(len(small.columns), _SAMPLE_TOLERANCE)
    state = _run(small, start, metric, few, 100)
    offsets = np.full(small.rows.n_offsets, curvature_bound(small.rows.loss))
    bound = np.concatenate([metric.diagonal.mean(axis=1), offsets])
    return objective, state.theta, sampled_curvature(small, state.theta, _GROUPS, bound)


def _diagonal(objective: Objective) -> DiagonalCurvature:
    task = GramPass(objective.reader, diagonal_only=True)
    squares, _ = objective.source.sum(task)
    if objective.basis is not None:
        # The diagonal in other coordinates is not known from this one; its mean serves.
        squares = np.full(objective.n_components, squares.mean())
    bound, weight = curvature_bound(objective.rows.loss), objective.total_weight
    inner = bound * squares[:, None] / weight + 2.0 * objective.columns.alpha
    offsets = np.full((objective.rows.n_offsets, len(weight)), bound)
    return DiagonalCurvature(np.vstack([inner, offsets]))
