"""Linear models on (mapped) rows at any size: everything they need is a sum over rows.

All penalties and folds ride in the same passes over the data, as columns of one matrix. The
solver never sees where the rows are; see `buttress.blocks.base` for the sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from buttress._arrays import Array, BoolArray, IntArray
from buttress._threads import one_blas_thread
from buttress.blocks.base import Block
from buttress.solvers.blockwise._descent import DescentState, Preconditioner
from buttress.solvers.blockwise._offsets import SampleOffsets, sample_offsets
from buttress.solvers.blockwise._path import LEAST_TOLERANCE, follow_path, run
from buttress.solvers.blockwise._preconditioners import (
    ExactCurvature,
    FixedCurvature,
    SampledCurvature,
    curvature_bound,
    diagonal_curvature,
    fixed_curvature,
    sampled_curvature,
)
from buttress.solvers.blockwise._sample import MOST_SQUARE, in_single_precision, sample_of
from buttress.solvers.blockwise.objective import Objective

METHODS = ("auto", "fixed", "newton", "lbfgs")

# Columns whose penalties are within this factor share a Hessian of the sample.
_SHARED = 2.5
# Columns up to which each gets a Hessian of its own.
_FEW = 8
# Columns solved together, about.
_BATCH = 1024
# Passes between two looks at the costs.
_PATIENCE = 8
_NEWTON_STEPS = 4.0
# The sample's own minimum is this far from the data's at best.
_SAMPLE_TOLERANCE = 1e-6


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


def solve_columns(
    objective: Objective,
    *,
    tol: float | Array = 1e-12,
    max_passes: int = 500,
    method: str = "auto",
    start: Array | None = None,
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
        Newton finish when the cost, counted in operations, speaks for it; many columns on rows
        that stay mapped in memory are solved on a copy of those in single precision, where `tol`
        allows that.
    start : array of shape (parameters, columns), optional

    Notes
    -----
    With n rows, m components and c columns a pass takes ``n (map + 4 m c)`` operations, a Gram
    matrix ``n m²`` once, an exact Hessian ``n m²`` per column.
    """
    tolerance = np.broadcast_to(np.asarray(tol, dtype=float), (len(objective.columns),))
    single = in_single_precision(objective, tolerance)
    sample = None if single else sample_of(objective, method)
    solutions = []
    for batch, subproblem in batches(objective):
        solver = ColumnSolver(subproblem, method, sample)
        begin = None if start is None else start[:, batch]
        solutions.append(solver.solve(tolerance[batch], max_passes, start=begin))
    return joined(solutions)


def batches(objective: Objective) -> Iterator[tuple[slice, Objective]]:
    """The columns in groups that are solved together."""
    n_columns = len(objective.columns)
    # Whole binary problems where possible: their columns share starts and curvature.
    each = -(-n_columns // len(np.unique(objective.columns.problem)))
    size = max(1, _BATCH // each) * each if each <= _BATCH else _BATCH
    for first in range(0, n_columns, size):
        batch = slice(first, min(first + size, n_columns))
        yield batch, objective.only(batch)


def joined(solutions: list[ColumnSolution]) -> ColumnSolution:
    """Solutions of several batches as one."""
    if len(solutions) == 1:
        return solutions[0]
    return ColumnSolution(
        np.hstack([solution.theta for solution in solutions]),
        np.concatenate([solution.objective for solution in solutions]),
        np.concatenate([solution.gap for solution in solutions]),
        np.concatenate([solution.converged for solution in solutions]),
        sum(solution.n_iter for solution in solutions),
        solutions[0].method,
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
        if method in ("auto", "fixed") and objective.n_components > MOST_SQUARE:
            method = "lbfgs"
        self.objective, self.method, self.sample = objective, method, sample
        self.metric: Preconditioner | None = None
        self.small: Objective | None = None
        self.n_rows = objective.source.n_rows
        self.reached: DescentState | None = None
        self.offsets: SampleOffsets | None = None
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
        # The passes have threads of their own; what is between them is small dense work.
        with one_blas_thread():
            return self._solve(tolerance, max_passes, start, linear)

    def _solve(
        self, tolerance: Array, max_passes: int, start: Array | None, linear: Array | None
    ) -> ColumnSolution:
        tolerance = np.maximum(tolerance, LEAST_TOLERANCE[self.objective.source.dtype])
        cold = start is None
        begin = np.zeros((self.objective.n_parameters, len(tolerance))) if cold else start
        assert begin is not None
        passes = 0
        if self.metric is None:
            begin, passes = self._prepare(begin, cold, tolerance, max_passes)
        else:
            begin = self.objective.from_given(begin)
        objective = self.objective
        if linear is not None:
            if linear.any() or objective.linear is not None:
                self.reached = None  # another problem's minimum: a start, no more
            objective = objective.with_linear(linear)
        assert self.metric is not None
        left = max(max_passes - passes, 1)
        if self.method == "lbfgs":
            state = run(objective, begin, self.metric, tolerance, left, memory=20)
        elif self.method == "fixed":
            state = run(objective, begin, self.metric, tolerance, left)
        else:
            state = self._finish(objective, begin, tolerance, left)
        return ColumnSolution(
            objective.to_given(state.theta),
            state.value,
            state.decrement / 2.0,
            state.done,
            passes + state.passes,
            "+".join(self.used),
        )

    def _prepare(
        self, start: Array, cold: bool, tolerance: Array, max_passes: int
    ) -> tuple[Array, int]:
        """Make the metric; return the start in its coordinates and the passes it took."""
        if self.method == "lbfgs":
            self.metric = diagonal_curvature(self.objective)
            return start, 0
        if self.method == "auto" and in_single_precision(self.objective, tolerance):
            return self._prepare_all(start, cold, tolerance, max_passes), 0
        small = None
        if self.sample is not None and self.method == "auto":
            small = self.objective.on_sample(self.sample)
        sampled = small is not None
        whole = small is not None and small.source.n_rows == self.objective.source.n_rows
        self.used = ["sample" if sampled and not whole else "fixed"]
        small, begin, self.fixed = _from_gram(small or self.objective, start)
        assert small.rotation is not None
        self.objective = self.objective.rotated(small.rotation)
        self.metric = self.fixed
        if self.method == "fixed":
            return begin, 0
        passes = 0
        if sampled:
            self.small = small = small.in_coordinates(small.source.dtype, for_a_start=not whole)
        self.offsets = sample_offsets(self.small)
        if cold:
            aim = tolerance if whole or not sampled else np.maximum(tolerance, _SAMPLE_TOLERANCE)
            bound = self._bound(small) if sampled and not whole else None
            state, metric = follow_path(small, self.fixed, aim, max_passes, self.offsets, bound)
            if whole:
                self.reached, self.metric = state, metric or self.fixed
                return state.theta, 0
            begin, passes = state.theta, state.passes
        if sampled or not cold:
            self._renew(small, begin, np.arange(begin.shape[1]))
        return begin, 0 if sampled else passes

    def _prepare_all(self, start: Array, cold: bool, tolerance: Array, max_passes: int) -> Array:
        """`_prepare` on all rows in single precision; others are copied, in their coordinates."""
        self.used = ["single"]
        self.objective, begin, self.fixed = _from_gram(self.objective, start)
        if self.objective.source.dtype != np.float32:
            self.objective = self.objective.in_coordinates(np.dtype(np.float32))
        self.metric = self.fixed
        self.offsets = sample_offsets(self.objective)
        if cold:
            path = follow_path(self.objective, self.fixed, tolerance, max_passes, self.offsets)
            self.reached, metric = path
            self.metric = metric or self.fixed
            return self.reached.theta
        self._renew(self.objective, begin, np.arange(begin.shape[1]))
        return begin

    def _finish(
        self, objective: Objective, start: Array, tolerance: Array, max_passes: int
    ) -> DescentState:
        """Descend in the metric at hand; let Newton finish when that is cheaper."""
        assert self.metric is not None
        state, self.reached = self.reached, None
        metrics: list[Preconditioner] = [self.metric, self.fixed]
        turn = 0
        while True:
            left = max_passes if state is None else max_passes - state.passes
            before = None if state is None else state.decrement.copy()
            if state is not None and state.done.all():
                return state
            state = run(
                objective,
                start,
                metrics[turn],
                tolerance,
                min(left, _PATIENCE),
                state=state,
                offsets=self.offsets,
            )
            if state.done.all() or state.passes >= max_passes:
                return state
            few = int((~state.done).sum()) <= _FEW or self.method == "newton"
            if few and _newton_is_cheaper(objective, state, before, tolerance):
                self._note("newton")
                exact = ExactCurvature(objective)
                left = max_passes - state.passes
                return run(objective, start, exact, tolerance, left, memory=0, state=state)
            stuck = before is not None and (state.decrement >= 0.5 * before)[~state.done].any()
            if stuck:
                # Whoever is stuck in one metric may move in the other.
                turn = 1 - turn
            if turn == 0:
                # The curvature has changed since. The sample knows how at little cost; all rows
                # know better, and are asked when many passes are to be saved.
                stale = np.flatnonzero(~state.done)
                if not isinstance(self.metric, SampledCurvature):
                    stale = np.arange(len(state.done))
                everyone = self.small is None or _newton_is_cheaper(
                    objective, state, before, tolerance
                )
                if everyone:
                    self._note("newton")
                self._renew(objective if everyone else self.small or objective, state.theta, stale)
                metrics[0] = self.metric

    def _note(self, method: str) -> None:
        if method not in self.used:
            self.used.append(method)

    def _bound(self, objective: Objective) -> Array:
        """The diagonal of the curvature bound, offsets last."""
        offsets = np.full(objective.rows.n_offsets, curvature_bound(objective.rows.loss))
        return np.concatenate([self.fixed.diagonal.mean(axis=1), offsets])

    def _renew(self, objective: Objective, theta: Array, columns: IntArray) -> None:
        """Take the curvature of some columns at their present points."""
        bound = self._bound(objective) if objective.source.n_rows < self.n_rows else None
        new = sampled_curvature(objective.only(columns), theta[:, columns], _SHARED, bound)
        if isinstance(self.metric, SampledCurvature):
            new = self.metric.renewed(new, columns)
        else:
            assert len(columns) == theta.shape[1]
        self.metric = new


def _newton_is_cheaper(
    objective: Objective, state: DescentState, before: Array | None, tolerance: Array
) -> bool:
    """Compare the operations that both methods still need, from the rate seen so far."""
    live = ~state.done
    if before is None or not np.isfinite(before[live]).all():
        return False
    now, then = state.decrement[live], before[live]
    goal = 2.0 * tolerance[live] * (1.0 + np.abs(state.value[live]))
    rate = np.clip(np.log(np.maximum(then, 1e-300) / now) / _PATIENCE, 1e-3, None)
    passes = float((np.log(now / goal) / rate).max())
    m, n_live = objective.n_components, int(live.sum())
    mapping = objective.reader.features.flops_per_row + 20.0 * m
    one_pass = mapping + 4.0 * m * n_live + 60.0 * n_live
    formed = n_live
    if n_live > _FEW:
        alpha = objective.columns.alpha[live]
        groups = np.ceil(np.log(alpha.max() / alpha.min()) / np.log(_SHARED)) + 1
        formed = min(n_live, int(groups) * len(np.unique(objective.columns.problem[live])))
    one_hessian = mapping + float(m) ** 2 * formed
    return _NEWTON_STEPS * (one_hessian + one_pass) < passes * one_pass


def _from_gram(objective: Objective, start: Array) -> tuple[Objective, Array, FixedCurvature]:
    """Coordinates that make the Gram matrix diagonal, and the curvature bound in them."""
    gram, sums = objective.gram()
    eigenvalues, vectors = linalg.eigh(gram)
    objective = objective.rotated(vectors)
    metric = fixed_curvature(objective, np.maximum(eigenvalues, 0.0), sums @ vectors)
    return objective, objective.from_given(start), metric
