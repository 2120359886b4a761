"""All folds and penalties as columns: the order in which they are solved, and their starts."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._threads import one_blas_thread
from buttress.losses import LeakyHockeyStick
from buttress.solvers._columns import Columns, solve_columns
from buttress.solvers._geometry import Eigenbasis, Geometry
from buttress.solvers._newton_driver import newton, small_steps
from buttress.solvers._paths import Paths, in_threads

# Every so many penalties are solved first; the others start between them.
_STRIDE = 6
_COLUMN_TOL = 1e-10
# A column that takes more iterations than this share of n is cheaper by Newton's method.
_COLUMN_SHARE = 1 / 4


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
    # Dropping an eigenvalue s moves f by at most s / (2 lambda sqrt(n)).
    basis = geometry.eigenbasis(weight, 1e-4 * 2.0 * float(lambdas[-1]) * np.sqrt(n))
    solver = _ColumnSolver(basis, Y, omega, weight, loss, fit_intercept, n_threads)
    scores = np.empty((n_problems, n_penalties, n), dtype=np.float32)
    intercept = np.empty((n_problems, n_penalties))
    coef = np.empty((n_problems, n_penalties, len(basis.eigenvalues)), dtype=np.float32)
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

    def solve(pairs: list[tuple[int, int]], known: list[int]) -> None:
        pairs = [(q, index) for q, index in pairs if index < min(tail[q], slow[q])]
        if not pairs:
            return
        problem, index = (np.array(part) for part in zip(*pairs, strict=True))
        start = _interpolated(np.log(lambdas), known, problem, index, coef, intercept)
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
            left = [i for i in wave if not converged[q, i] and i < tail[q]]
            slow[q] = left[0] if left else n_penalties
        for q in np.flatnonzero(slow < wave[-1]).tolist():
            # Not solved here: a stand-in from which the penalties before can interpolate.
            missed = [i for i in wave if i > slow[q]]
            coef[q, missed], intercept[q, missed] = coef[q, slow[q]], intercept[q, slow[q]]
        for q in np.flatnonzero((tail == n_penalties) & (slow == n_penalties)).tolist():
            beyond = solver.margins_beyond_one(q, scores[q, wave], intercept[q, wave])
            if beyond.any():
                tail[q] = wave[int(np.argmax(beyond))] + 1
                fill_tail(q)
    fine = [i for i in range(n_penalties) if i not in set(coarse)]
    solve([(q, i) for i in fine for q in range(n_problems)], known)

    def finish(q: int) -> None:
        """Newton's method for the penalties from the first that did not converge."""
        late = np.flatnonzero(~converged[q])
        if len(late) == 0:
            return
        first = int(late[0])
        start = None
        if first > 0:
            known_weights = coef[q, first - 1].astype(np.float64)
            start = (basis.coefficients(known_weights[None])[0], float(intercept[q, first - 1]))
        ladder, wanted = (
            (lambdas[first:], np.arange(n_penalties - first)) if first else small_steps(lambdas)
        )
        found = newton(geometry, Y[q], omega[q], ladder, loss, fit_intercept, tol, max_iter, start)
        coefs, intercept[q, first:], scores[q, first:], _, residual, steps = (
            part[wanted] for part in found
        )
        coef[q, first:] = basis.weights(coefs)
        converged[q, first:] = residual <= tol
        iterations[q, first:] += steps

    with one_blas_thread():
        in_threads(finish, range(n_problems), n_threads)
    interval = np.repeat(intercept[:, :, None], 2, axis=2)
    if fit_intercept:
        _centre_free_intercepts(geometry, Y, omega, lambdas, scores, intercept, interval)
    return Paths(intercept, interval, scores, coef, basis, iterations, converged, "batched")


class _ColumnSolver:
    """The eigenbasis in single precision, and what every call of `solve_columns` shares."""

    def __init__(
        self,
        basis: Eigenbasis,
        Y: Array,
        omega: Array,
        weight: Array | None,
        loss: LeakyHockeyStick,
        fit_intercept: bool,
        n_threads: int,
    ) -> None:
        n = Y.shape[1]
        v = np.ones(n) if weight is None else weight
        self.W = np.ascontiguousarray(basis.features, dtype=np.float32)
        self.S = basis.eigenvalues
        self.w = basis.features.T @ v
        self.mass = float(v.sum())
        self.Y, self.omega = Y, omega
        self.bound = (omega / v).max(axis=1)
        self.r = float(loss.r)
        self.fit_intercept = fit_intercept
        self.n_threads = n_threads

    def solve(self, problem: IntArray, lam: Array, start: tuple[Array, Array]) -> Columns:
        def run(part: int) -> Columns:
            mine = slice(part, None, self.n_threads)
            return solve_columns(
                self.W,
                self.S,
                self.w,
                self.mass,
                self.Y,
                self.omega,
                problem[mine],
                lam[mine],
                self.bound[problem[mine]],
                r=self.r,
                fit_intercept=self.fit_intercept,
                start=(start[0][mine], start[1][mine]),
                tol=_COLUMN_TOL,
                max_iter=max(40, int(_COLUMN_SHARE * len(self.W))),
            )

        with one_blas_thread():
            parts = in_threads(run, range(min(self.n_threads, len(lam))), self.n_threads)
        merged = []
        for pieces in zip(*parts, strict=True):
            whole = np.empty((len(lam), *pieces[0].shape[1:]), dtype=pieces[0].dtype)
            for part, piece in enumerate(pieces):
                whole[part :: self.n_threads] = piece
            merged.append(whole)
        return Columns(*merged)

    def margins_beyond_one(self, q: int, scores: Array, intercept: Array) -> BoolArray:
        u = self.Y[q] * (scores + intercept[:, None])
        return np.asarray(np.all((u >= 1.0) | (self.omega[q] == 0.0), axis=1))


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
