"""Smooth convex losses with a squared norm penalty: all penalties and all folds together.

The problem, for every binary problem (a class, a fold) and every penalty alpha, is

    mean_i L(y_i (f(x_i) + b)) + alpha ||f||^2

with weighted mean. Two exact methods serve it. *Newton's method* down the path of penalties
(`_newton`) suits small samples, few features and single penalties. *Conjugate directions* on
all problems and penalties as columns of one matrix (`_columns`) suit everything larger: one
eigendecomposition of the Gram matrix serves all of them, and the work is matrix products in
single precision. For the leaky hockey stick family both stop at the scaling tail: once all
margins are at least one, the solution at smaller penalties is a known multiple.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._threads import one_blas_thread
from buttress.losses import LeakyHockeyStick, SmoothLoss, require
from buttress.solvers._columns import Columns, solve_columns
from buttress.solvers._feature_newton import feature_path, interpreted_feature_path
from buttress.solvers._geometry import Eigenbasis, Geometry
from buttress.solvers._newton import interpreted_kernel_path, kernel_path

# Newton's method alone up to this many rows in kernel form (measured, benchmarks/path_cv.py).
_NEWTON_ROWS = 200
_NEWTON_FEATURES = 150
# Penalties are never taken in larger steps than this: a tiny one from nowhere fails.
_LARGEST_RATIO = 10.0
# Every so many penalties are solved first; the others start between them.
_STRIDE = 6
_COLUMN_TOL = 1e-10
# A column that takes more iterations than this share of n is cheaper by Newton's method.
_COLUMN_SHARE = 1 / 3
_NEWTON_ITERATIONS = 100


@dataclass(frozen=True, eq=False)
class Paths:
    """Solutions of q problems at L penalties.

    Attributes
    ----------
    intercept : array of shape (q, L)
    interval : array of shape (q, L, 2)
        Where the intercept may lie; both ends equal when it is unique.
    scores : array of shape (q, L, n)
        f at all rows, held-out ones included, without the intercept.
    weights : array of shape (q, L, m)
        Coefficients of f: in the geometry's coordinates, or in those of `basis`.
    basis : Eigenbasis or None
    iterations : array of shape (q, L)
        Zero on the scaling tail.
    converged : array of shape (q, L)
    method : str
        "newton" or "batched".
    """

    intercept: Array
    interval: Array
    scores: Array
    weights: Array
    basis: Eigenbasis | None
    iterations: IntArray
    converged: BoolArray
    method: str

    def coefficients(self, q: int) -> Array:
        """Coefficients of problem `q` in the geometry's coordinates, shape (L, m), float64."""
        weights = np.asarray(self.weights[q], dtype=np.float64)
        return weights if self.basis is None else self.basis.coefficients(weights)

    def subset(self, problems: slice) -> Paths:
        """Some of the problems."""
        return Paths(
            self.intercept[problems],
            self.interval[problems],
            self.scores[problems],
            self.weights[problems],
            self.basis,
            self.iterations[problems],
            self.converged[problems],
            self.method,
        )


def solve_problems(
    geometry: Geometry,
    Y: Array,
    omega: Array,
    penalties: Array,
    loss: Any,
    *,
    weight: Array | None = None,
    fit_intercept: bool = True,
    tol: float = 1e-8,
    max_iter: int = _NEWTON_ITERATIONS,
    method: str = "auto",
    n_threads: int = 1,
    advance: Callable[[int], None] = lambda steps: None,
) -> Paths:
    """Solve every problem at every penalty.

    Parameters
    ----------
    geometry : Geometry
        The rows; shared by all problems.
    Y, omega : arrays of shape (q, n)
        Labels ±1, and weights that sum to one in every problem; a weight of zero holds the row
        out of the problem, and it is predicted all the same.
    penalties : array of shape (L,)
        On the original scale, decreasing.
    loss : LeakyHockeyStick or any smooth loss
        Losses other than the leaky family are solved by Newton's method.
    weight : array of shape (n,), optional
        Row weights of which every row of `omega` is a multiple or zero.
    tol : float
        Newton: on the largest error of a row's slope against its coefficient.
    method : {"auto", "newton", "batched"}
    n_threads : int
        Problems (or columns) are divided among so many threads.
    advance : callable
        Told the number of problems finished.

    Returns
    -------
    Paths
    """
    require(loss, SmoothLoss, f"method {method!r}")
    lambdas = np.asarray(penalties, dtype=np.float64) / geometry.scale
    if method == "auto":
        method = _cheaper_method(geometry, loss, len(Y) * len(lambdas))
    if method == "batched":
        return _batched(
            geometry, Y, omega, lambdas, loss, weight, fit_intercept, tol, max_iter, n_threads
        )
    ladder, wanted = _ladder(lambdas)

    def run(q: int) -> tuple[Any, ...]:
        found = _newton(geometry, Y[q], omega[q], ladder, loss, fit_intercept, tol, max_iter)
        advance(1)
        return tuple(part[wanted] for part in found)

    with one_blas_thread() if len(Y) > 1 else nullcontext():
        parts = list(_map(run, range(len(Y)), n_threads))
    coef, intercept, scores, interval, residual, iterations = (
        np.array(part) for part in zip(*parts, strict=True)
    )
    return Paths(intercept, interval, scores, coef, None, iterations, residual <= tol, "newton")


def polish(
    geometry: Geometry,
    y: Array,
    omega: Array,
    penalty: float,
    loss: Any,
    start: tuple[Array, float],
    *,
    fit_intercept: bool,
    tol: float,
    max_iter: int = _NEWTON_ITERATIONS,
) -> Paths:
    """Newton's method for one problem and penalty from a point near the solution.

    Parameters
    ----------
    start : tuple of array of shape (m,) and float
        Coefficients in the geometry's coordinates, and the intercept.
    """
    lam = penalty / geometry.scale
    found = _newton(geometry, y, omega, np.array([lam]), loss, fit_intercept, tol, max_iter, start)
    coefs, intercepts, g, interval, residual, iterations = (part[None] for part in found)
    return Paths(intercepts, interval, g, coefs, None, iterations, residual <= tol, "newton")


def _cheaper_method(geometry: Geometry, loss: Any, n_columns: int) -> str:
    if not isinstance(loss, LeakyHockeyStick) or n_columns < 20:
        return "newton"
    size = geometry.matrix.shape[1]
    return (
        "newton"
        if size <= (_NEWTON_ROWS if geometry.kernel_form else _NEWTON_FEATURES)
        else ("batched")
    )


def _map(function: Callable[[int], Any], items: Any, n_threads: int) -> Any:
    if n_threads == 1 or len(items) == 1:
        return map(function, items)
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, items))


def _ladder(lambdas: Array) -> tuple[Array, IntArray]:
    """Decreasing penalties in small steps that include all of `lambdas`, and where they are."""
    rungs: list[float] = []
    wanted = np.empty(len(lambdas), dtype=np.int64)
    last = max(1.0, float(lambdas[0]))
    for index, lam in enumerate(lambdas):
        steps = int(np.ceil(np.log(last / lam) / np.log(_LARGEST_RATIO) - 1e-9))
        if steps > 1 or (not rungs and steps == 1):
            between = last * (lam / last) ** (np.arange(0 if not rungs else 1, steps) / steps)
            rungs.extend(between.tolist())
        rungs.append(float(lam))
        wanted[index] = len(rungs) - 1
        last = float(lam)
    return np.array(rungs), wanted


def _newton(
    geometry: Geometry,
    y: Array,
    omega: Array,
    lambdas: Array,
    loss: Any,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    start: tuple[Array, float] | None = None,
) -> tuple[Any, ...]:
    leaky = isinstance(loss, LeakyHockeyStick)
    if geometry.kernel_form:
        function = kernel_path if leaky else interpreted_kernel_path
    else:
        function = feature_path if leaky else interpreted_feature_path
    coef, intercept = (np.zeros(geometry.matrix.shape[1]), np.nan) if start is None else start
    return tuple(
        function(
            geometry.matrix,
            np.ascontiguousarray(y, dtype=np.float64),
            np.ascontiguousarray(omega, dtype=np.float64),
            lambdas,
            float(loss.r) if leaky else loss,
            loss.tail_exponent() if leaky else 0.0,
            fit_intercept,
            tol,
            max_iter,
            np.ascontiguousarray(coef, dtype=np.float64),
            float(intercept),
        )
    )


# -- all problems and penalties as columns ------------------------------------------------------


def _batched(
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

    def store(problem: IntArray, index: IntArray, found: Columns) -> None:
        coef[problem, index] = found.coef
        intercept[problem, index] = found.intercept
        scores[problem, index] = found.scores - found.intercept[:, None].astype(np.float32)
        iterations[problem, index] = found.iterations
        converged[problem, index] = found.converged

    def solve(pairs: list[tuple[int, int]], known: list[int]) -> None:
        pairs = [(q, index) for q, index in pairs if index < tail[q]]
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
        for q in np.flatnonzero(tail == n_penalties).tolist():
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
            (lambdas[first:], np.arange(n_penalties - first)) if first else _ladder(lambdas)
        )
        found = _newton(geometry, Y[q], omega[q], ladder, loss, fit_intercept, tol, max_iter, start)
        coefs, intercept[q, first:], scores[q, first:], _, residual, steps = (
            part[wanted] for part in found
        )
        coef[q, first:] = basis.weights(coefs)
        converged[q, first:] = residual <= tol
        iterations[q, first:] += steps

    with one_blas_thread():
        list(_map(finish, range(n_problems), n_threads))
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
            parts = list(_map(run, range(min(self.n_threads, len(lam))), self.n_threads))
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
