"""All folds and penalties as columns of one matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._threads import in_threads, one_blas_thread
from buttress.solvers.smooth.columns._models import KernelSystem, Shared
from buttress.solvers.smooth.columns._table import Follow, SolutionTable, solved_first
from buttress.solvers.smooth.columns._threads import FeatureColumns, KernelColumns
from buttress.solvers.smooth.margins import straight_up_to_one
from buttress.solvers.smooth.newton import NewtonTask, newton, small_steps
from buttress.solvers.smooth.paths import Paths, Refine, SolveNear
from buttress.solvers.smooth.problems import Problems

# Problems up to which a leading part that was found for others is good enough: finding one takes
# as long as their refit (2130 rows); of 26 classes two do not reach full precision without.
_FEW_PROBLEMS = 8


def batched(problems: Problems, n_threads: int, shared: Shared | None = None) -> Paths:
    """Solve all problems at all penalties as columns of one matrix.

    Every sixth penalty comes first: roughly one after the other, then all of them together;
    the others start by interpolation. Columns that stall are refined in double precision, and
    those that do not converge there either are left to Newton's method.
    """
    solver: KernelColumns | FeatureColumns
    if problems.geometry.kernel_form:
        solver = KernelColumns(problems, solved_first(problems.lambdas), n_threads, shared)
    else:
        solver = FeatureColumns(problems, n_threads)
    table = SolutionTable(problems, solver, _follower(problems))
    # BLAS's threads would meet at every one of many small products.
    with one_blas_thread():
        table.fill(n_threads)
    _finish(problems, table, n_threads)
    weights = [solver.in_geometry(coef) for coef in table.coef]
    for (problem, index), (coef, _) in table.refined.items():
        weights[problem] = weights[problem].astype(np.float64, copy=False)
        weights[problem][index] = coef
    intercept, scores = table.intercept, table.scores_without_intercepts()
    interval = np.repeat(intercept[:, :, None], 2, axis=2)
    if problems.fit_intercept and straight_up_to_one(problems.loss):
        _centre_free_intercepts(problems, scores, intercept, interval)
    paths = Paths(
        intercept,
        interval,
        weights,
        table.iterations,
        table.converged,
        "batched",
        problems.geometry.matrix,
        scores,
    )
    if isinstance(solver, KernelColumns):
        near = _near_solver(problems, n_threads, solver.system)
        return replace(paths, refine=_refiner(solver, paths), solve_near=near)
    return paths


def _finish(problems: Problems, table: SolutionTable, n_threads: int) -> None:
    """Newton's method for the penalties that did not converge, from where they stopped."""
    lambdas = problems.lambdas

    def finish(problem: int) -> None:
        late = np.flatnonzero(~table.converged[problem])
        for run in np.split(late, np.flatnonzero(np.diff(late) > 1) + 1):
            if len(run) == 0:
                continue
            first = int(run[0])
            near = table.solver.in_geometry(table.coef[problem, first : first + 1])[0].astype(
                np.float64
            )
            start = (near, float(table.intercept[problem, first])) if first > 0 else None
            ladder, wanted = (
                (lambdas[run], np.arange(len(run))) if first else small_steps(lambdas[run])
            )
            table.take(problem, run, table.follow(problem, ladder, start).at(wanted))

    with one_blas_thread():
        in_threads(finish, np.flatnonzero(~table.converged.all(axis=1)).tolist(), n_threads)


def _follower(problems: Problems) -> Follow:
    def follow(problem: int, ladder: Array, start: tuple[Array, float] | None) -> Paths:
        return newton(NewtonTask.of(problems, problem, ladder, start=start))

    return follow


def _refiner(solver: KernelColumns, paths: Paths) -> Refine:
    """Refinement of columns; their models are there, a factor of Newton's method is not."""

    def refine(problems: IntArray, index: int, tol: float) -> list[Paths | None]:
        low, high = paths.interval[problems, index].T
        chosen, only = problems[low == high], slice(index, index + 1)
        if len(chosen) == 0:
            return [None] * len(problems)
        start = (
            np.array([paths.coefs[problem][index] for problem in chosen]),
            paths.intercept[chosen, index],
        )
        which, count = chosen * paths.intercept.shape[1] + index, len(chosen)
        signs_only = np.zeros(count, dtype=bool)
        columns = solver.refine(which, start, np.full(count, tol), signs_only)
        refined: dict[int, Paths] = {}
        for k, problem in enumerate(chosen.tolist()):
            if columns.residual[k] <= tol:
                intercept = columns.intercept[k : k + 1]
                refined[problem] = Paths(
                    intercept[None],
                    np.repeat(intercept, 2)[None, None],
                    [columns.coef[k : k + 1]],
                    paths.iterations[problem : problem + 1, only],
                    np.ones((1, 1), dtype=bool),
                    "batched",
                    paths.matrix,
                    columns.scores[None, k : k + 1],
                )
        return [refined.get(problem) for problem in problems.tolist()]

    return refine


def _near_solver(problems: Problems, n_threads: int, system: KernelSystem) -> SolveNear:
    """Other problems with the same Gram matrix."""
    matrix, low_rank = system.matrix, system.low_rank

    def solve_near(Y: Array, omega: Array, index: int, start: tuple[Array, Array]) -> Paths:
        penalty = problems.lambdas[index : index + 1]
        others = replace(
            problems, Y=Y, omega=omega, lambdas=penalty, answers=np.full(len(Y), -1), start=start
        )
        few = len(Y) <= _FEW_PROBLEMS
        return batched(others, n_threads, Shared(matrix, low_rank if few else None))

    return solve_near


def _centre_free_intercepts(
    problems: Problems, scores: Array, intercept: Array, interval: Array
) -> None:
    """Balanced classes with all margins at most one: f is known, the intercept an interval."""
    share = 0.5 / problems.lambdas
    for problem, (y, omega) in enumerate(zip(problems.Y, problems.omega, strict=True)):
        pull = omega * y
        if abs(pull.sum()) >= 1e-13:
            continue
        flat = problems.geometry.similarity_product(pull)
        low = -1.0 - share * np.min(flat[(omega > 0) & (y < 0)])
        high = 1.0 - share * np.max(flat[(omega > 0) & (y > 0)])
        free = low <= high
        scores[problem, free] = np.outer(share[free], flat)
        intercept[problem, free] = 0.5 * (low + high)[free]
        interval[problem, free] = np.stack([low, high], axis=1)[free]
