"""All folds and penalties as columns of one matrix."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._threads import in_threads, one_blas_thread
from buttress.solvers.smooth.columns._table import Follow, Table
from buttress.solvers.smooth.columns._threads import FeatureColumns, KernelColumns
from buttress.solvers.smooth.geometry import Geometry
from buttress.solvers.smooth.margins import straight_up_to_one, tail_exponent
from buttress.solvers.smooth.newton import NewtonTask, newton, small_steps
from buttress.solvers.smooth.paths import Paths, Refine


def batched(
    geometry: Geometry,
    Y: Array,
    omega: Array,
    lambdas: Array,
    loss: Any,
    weight: Array | None,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    n_threads: int,
    answers: IntArray | None,
) -> Paths:
    """Solve all problems at all (scaled, decreasing) penalties as columns of one matrix.

    Every sixth penalty comes first: roughly one after the other, then all of them together;
    the others start by interpolation. Columns that stall are refined in double precision, and
    those that do not converge there either are left to Newton's method.
    """
    n_problems, n = Y.shape
    if answers is None:
        answers = np.full(n_problems, -1)
    solver: KernelColumns | FeatureColumns
    with ThreadPoolExecutor(n_threads) as pool:
        common = (Y, omega, lambdas, loss, fit_intercept, n_threads, pool)
        if geometry.kernel_form:
            solver = KernelColumns(geometry, *common)
        else:
            # Dropping an eigenvalue s moves f by at most s / (2 lambda sqrt(n)).
            smallest = 1e-4 * 2.0 * float(lambdas[-1]) * np.sqrt(n)
            solver = FeatureColumns(geometry, smallest, weight, *common)
        follow = _follower(geometry, Y, omega, loss, fit_intercept, tol, max_iter)
        table = Table(solver, Y, omega, lambdas, tail_exponent(loss), answers, follow)
        table.fill(n_threads)
    weights = [solver.in_geometry(found) for found in table.coef]
    for (q, index), row in table.refined.items():
        weights[q] = weights[q].astype(np.float64, copy=False)
        weights[q][index] = row
    intercept, scores = table.intercept, table.scores
    converged, iterations = table.converged, table.iterations

    def finish(q: int) -> None:
        """Newton's method for the penalties that did not converge, from where they stopped."""
        late = np.flatnonzero(~converged[q])
        for run in np.split(late, np.flatnonzero(np.diff(late) > 1) + 1):
            if len(run) == 0:
                continue
            first = int(run[0])
            near = solver.in_geometry(table.coef[q, first : first + 1])[0].astype(np.float64)
            start = (near, float(intercept[q, first])) if first > 0 else None
            ladder, wanted = (
                (lambdas[run], np.arange(len(run))) if first else small_steps(lambdas[run])
            )
            found = follow(q, ladder, start).at(wanted)
            weights[q][run], intercept[q, run] = found.coefs[0], found.intercept[0]
            scores[q, run] = found.scores_at(0)
            converged[q, run] = found.converged[0]
            iterations[q, run] += found.iterations[0]

    with one_blas_thread():
        in_threads(finish, range(n_problems), n_threads)
    interval = np.repeat(intercept[:, :, None], 2, axis=2)
    if fit_intercept and straight_up_to_one(loss):
        _centre_free_intercepts(geometry, Y, omega, lambdas, scores, intercept, interval)
    common_results = (np.array(weights), iterations, converged, "batched", geometry.matrix)
    paths = Paths(intercept, interval, *common_results, scores)
    if isinstance(solver, KernelColumns):
        return replace(paths, refine=_refiner(solver, paths))
    return paths


def _follower(
    geometry: Geometry,
    Y: Array,
    omega: Array,
    loss: Any,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
) -> Follow:
    def follow(q: int, ladder: Array, start: tuple[Array, float] | None) -> Paths:
        problem = (geometry, Y[q], omega[q], ladder, loss, fit_intercept, tol, max_iter, start)
        return newton(NewtonTask(*problem))

    return follow


def _refiner(solver: KernelColumns, paths: Paths) -> Refine:
    """Refinement of columns; their models are there, a factor of Newton's method is not."""

    def refine(problems: IntArray, index: int, tol: float) -> list[Paths | None]:
        low, high = paths.interval[problems, index].T
        chosen, one = problems[low == high], slice(index, index + 1)
        if len(chosen) == 0:
            return [None] * len(problems)
        start = paths.coefs[chosen, index], paths.intercept[chosen, index]
        here, count = np.full(len(chosen), index), len(chosen)
        signs_only = np.zeros(count, dtype=bool)
        with ThreadPoolExecutor(solver.n_threads) as pool:
            found = solver.refine(chosen, here, start, np.full(count, tol), signs_only, pool)
        refined: dict[int, Paths] = {}
        for k, q in enumerate(chosen.tolist()):
            if found.residual[k] <= tol:
                intercept = found.intercept[k : k + 1]
                refined[q] = Paths(
                    intercept[None],
                    np.repeat(intercept, 2)[None, None],
                    found.coef[None, k : k + 1],
                    paths.iterations[q : q + 1, one],
                    np.ones((1, 1), dtype=bool),
                    "batched",
                    paths.matrix,
                    found.scores[None, k : k + 1],
                )
        return [refined.get(q) for q in problems.tolist()]

    return refine


def _centre_free_intercepts(
    geometry: Geometry,
    Y: Array,
    omega: Array,
    lambdas: Array,
    scores: Array,
    intercept: Array,
    interval: Array,
) -> None:
    """Balanced classes with all margins at most one: f is known, the intercept an interval."""
    for q in range(len(Y)):
        pull = omega[q] * Y[q]
        if abs(pull.sum()) >= 1e-13:
            continue
        flat = geometry.similarity_product(pull)
        held = omega[q] > 0
        share = 0.5 / lambdas
        low = -1.0 - share * np.min(flat[held & (Y[q] < 0)])
        high = 1.0 - share * np.max(flat[held & (Y[q] > 0)])
        free = low <= high
        scores[q, free] = np.outer(share[free], flat)
        intercept[q, free] = 0.5 * (low + high)[free]
        interval[q, free] = np.stack([low, high], axis=1)[free]
