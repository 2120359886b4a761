"""All folds and penalties as columns: the order in which they are solved, and their starts."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._threads import one_blas_thread
from buttress.losses import LeakyHockeyStick
from buttress.solvers._column_solvers import FeatureColumns, KernelColumns
from buttress.solvers._columns import Columns
from buttress.solvers._geometry import Geometry
from buttress.solvers._newton_driver import newton, small_steps
from buttress.solvers._paths import Paths, in_threads

# Every so many penalties are solved first; the others start between them.
_STRIDE = 6


def batched(
    geometry: Geometry,
    Y: Array,
    omega: Array,
    lambdas: Array,
    loss: LeakyHockeyStick,
    weight: Array | None,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    n_threads: int,
) -> Paths:
    """Solve all problems at all (scaled, decreasing) penalties as columns of one matrix.

    Every sixth penalty comes first, from the largest down; the others start by interpolation.
    Columns that converge slowly are left to Newton's method.
    """
    n_problems, n = Y.shape
    n_penalties = len(lambdas)
    solver: KernelColumns | FeatureColumns
    if geometry.kernel_form:
        solver = KernelColumns(geometry, Y, omega, loss, fit_intercept, n_threads)
    else:
        # Dropping an eigenvalue s moves f by at most s / (2 lambda sqrt(n)).
        smallest = 1e-4 * 2.0 * float(lambdas[-1]) * np.sqrt(n)
        solver = FeatureColumns(
            geometry, smallest, Y, omega, weight, loss, fit_intercept, n_threads
        )
    scores = np.empty((n_problems, n_penalties, n), dtype=np.float32)
    intercept = np.empty((n_problems, n_penalties))
    coef = np.empty((n_problems, n_penalties, solver.size), dtype=np.float32)
    iterations = np.zeros((n_problems, n_penalties), dtype=np.int64)
    converged = np.zeros((n_problems, n_penalties), dtype=bool)
    tail = np.full(n_problems, n_penalties)  # index of the first penalty on the scaling tail
    slow = np.full(n_problems, n_penalties)  # of the first that is left to Newton's method

    def store(problem: IntArray, index: IntArray, found: Columns) -> None:
        coef[problem, index] = found.coef
        intercept[problem, index] = found.intercept
        scores[problem, index] = found.scores - found.intercept[:, None].astype(np.float32)
        iterations[problem, index] = found.iterations
        converged[problem, index] = found.converged

    def solve(pairs: list[tuple[int, int]], known: list[int], between: bool = False) -> None:
        pairs = [(q, index) for q, index in pairs if index < min(tail[q], slow[q])]
        if not pairs:
            return
        problem, index = (np.array(part) for part in zip(*pairs, strict=True))
        start = _interpolated(np.log(lambdas), known, problem, index, coef, intercept)
        if between and isinstance(solver, KernelColumns):
            q, i = np.argwhere(converged & (iterations > 0)).T
            f = scores[q, i] + intercept[q, i].astype(np.float32)[:, None]
            away = np.abs(i - index[:, None]) + n_penalties * (q != problem[:, None])
            near = solver.models(q, lambdas[i], f), np.argmin(away, axis=1)
            found = solver.solve(problem, lambdas[index], start, near)
        else:
            found = solver.solve(problem, lambdas[index], start)
        store(problem, index, found)

    exponent = loss.tail_exponent()

    def fill_tail(q: int) -> None:
        last = tail[q] - 1
        factor = (lambdas[last] / lambdas[tail[q] :]) ** exponent
        coef[q, tail[q] :] = factor[:, None] * coef[q, last]
        scores[q, tail[q] :] = factor[:, None] * scores[q, last]
        intercept[q, tail[q] :] = factor * intercept[q, last]
        converged[q, tail[q] :] = converged[q, last]

    coarse = sorted({*range(0, n_penalties, _STRIDE), n_penalties - 1})
    known: list[int] = []
    # Large penalties start from zero; then a few at a time from where the path was heading.
    waves = [[i for i in coarse if lambdas[i] >= 1e-3 * min(1.0, lambdas[0])] or coarse[:1]]
    rest = coarse[len(waves[0]) :]
    waves += [rest[i : i + 2] for i in range(0, len(rest), 2)]
    for wave in waves:
        solve([(q, i) for i in wave for q in range(n_problems)], known)
        known += wave
        for q in np.flatnonzero(slow == n_penalties).tolist():
            # One that stops short is near enough to go on from; not so the last of a wave.
            if not converged[q, wave[-1]] and wave[-1] < tail[q]:
                slow[q] = next(i for i in wave if not converged[q, i])
        for q in np.flatnonzero(slow < wave[-1]).tolist():
            # Not solved here: a stand-in from which the penalties before can interpolate.
            missed = [i for i in wave if i > slow[q] and not converged[q, i]]
            coef[q, missed], intercept[q, missed] = coef[q, slow[q]], intercept[q, slow[q]]
        for q in np.flatnonzero((tail == n_penalties) & (slow == n_penalties)).tolist():
            beyond = _beyond_one(Y[q], omega[q], scores[q, wave], intercept[q, wave])
            if beyond.any():
                tail[q] = wave[int(np.argmax(beyond))] + 1
                fill_tail(q)
    fine = [i for i in range(n_penalties) if i not in set(coarse)]
    solve([(q, i) for i in fine for q in range(n_problems)], known, between=True)

    weights = [solver.in_geometry(found) for found in coef]

    def finish(q: int) -> None:
        """Newton's method for the penalties that did not converge, from where they stopped."""
        late = np.flatnonzero(~converged[q])
        for run in np.split(late, np.flatnonzero(np.diff(late) > 1) + 1):
            if len(run) == 0:
                continue
            first = int(run[0])
            near = solver.in_geometry(coef[q, first : first + 1])[0].astype(np.float64)
            start = (near, float(intercept[q, first])) if first > 0 else None
            ladder, wanted = (
                (lambdas[run], np.arange(len(run))) if first else small_steps(lambdas[run])
            )
            found = newton(
                geometry, Y[q], omega[q], ladder, loss, fit_intercept, tol, max_iter, start
            )
            weights[q][run], intercept[q, run], scores[q, run], _, residual, steps = (
                part[wanted] for part in found
            )
            converged[q, run] = residual <= tol
            iterations[q, run] += steps

    with one_blas_thread():
        in_threads(finish, range(n_problems), n_threads)
    interval = np.repeat(intercept[:, :, None], 2, axis=2)
    if fit_intercept:
        _centre_free_intercepts(geometry, Y, omega, lambdas, scores, intercept, interval)
    return Paths(
        intercept, interval, scores, np.array(weights), None, iterations, converged, "batched"
    )


def _beyond_one(y: Array, omega: Array, scores: Array, intercept: Array) -> BoolArray:
    """Whether all margins of the rows that count are at least one, for every penalty."""
    u = y * (scores + intercept[:, None])
    return np.asarray(np.all((u >= 1.0) | (omega == 0.0), axis=1))


def _interpolated(
    log_lambda: Array,
    known: list[int],
    problem: IntArray,
    index: IntArray,
    coef: Array,
    intercept: Array,
) -> tuple[Array, Array]:
    """Start columns from the solved penalties around them (or before them)."""
    if not known:
        return np.zeros((len(index), coef.shape[2])), np.zeros(len(index))
    nodes = np.array(known)
    b = np.empty((len(index), coef.shape[2]), dtype=coef.dtype)
    a0 = np.empty(len(index))
    for i in np.unique(index):
        columns = np.flatnonzero(index == i)
        here = np.searchsorted(nodes, i)
        low = int(np.clip(here - 2, 0, max(len(nodes) - 4, 0)))
        near = nodes[low : low + 4] if here < len(nodes) else nodes[-2:]
        x = log_lambda[near]
        # Lagrange's polynomial through the solved penalties nearby
        away = log_lambda[i] - x
        shares = np.array(
            [np.prod(np.delete(away / (x[k] - x + (x == x[k])), k)) for k in range(len(x))]
        )
        chosen = coef[problem[columns][:, None], near]
        b[columns] = np.einsum("k,qkm->qm", shares.astype(coef.dtype), chosen)
        a0[columns] = intercept[problem[columns][:, None], near] @ shares
    return b, a0


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
        for index, lam in enumerate(lambdas):
            g = flat / (2.0 * lam)
            low = float(np.max(-1.0 - g[held & (Y[q] < 0)]))
            high = float(np.min(1.0 - g[held & (Y[q] > 0)]))
            if low > high:
                break
            scores[q, index] = g
            intercept[q, index] = 0.5 * (low + high)
            interval[q, index] = low, high
