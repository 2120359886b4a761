"""Smooth convex losses with a squared norm penalty: all penalties and all folds together.

The problem, for every binary problem (a class, a fold) and every penalty alpha, is

    mean_i L(y_i (f(x_i) + b)) + alpha ||f||^2

with weighted mean. Two exact methods serve it. *Newton's method* down the path of penalties
(`newton`) suits small samples, few features and single penalties. *Conjugate directions* on
all problems and penalties as columns of one matrix suit everything larger, and their work is
matrix products in single precision (`columns`): in kernel form with the Gram matrix and a model
of its leading part, in feature form with one eigenbasis for all of them. For the leaky hockey
stick family both stop at the scaling tail: once all margins are at least one, the solution at
smaller penalties is a known multiple.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray
from buttress._threads import one_blas_thread
from buttress.losses import LeakyHockeyStick, SmoothLoss, require
from buttress.solvers.smooth.columns.driver import batched
from buttress.solvers.smooth.geometry import Geometry
from buttress.solvers.smooth.newton import newton, small_steps
from buttress.solvers.smooth.paths import Paths, in_threads

__all__ = ["Paths", "polish", "solve_problems"]

# Newton's method alone up to this many rows in kernel form (measured, benchmarks/path_cv.py).
_NEWTON_ROWS = 260
_NEWTON_FEATURES = 200
_NEWTON_ITERATIONS = 100


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
    signs_only: BoolArray | None = None,
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
    signs_only : array of shape (q,), optional
        Problems of which only the signs of the scores at the rows without weight are needed;
        Newton's method and columns in kernel form stop when they are settled.
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
        return batched(
            geometry,
            Y,
            omega,
            lambdas,
            loss,
            weight,
            fit_intercept,
            tol,
            max_iter,
            n_threads,
            signs_only,
        )
    ladder, wanted = small_steps(lambdas)
    q, n, L = len(Y), Y.shape[1], len(lambdas)
    coef = np.empty((q, L, geometry.matrix.shape[1]))
    scores = np.empty((q, L, n)) if geometry.kernel_form else None
    intercept, residual, interval = np.empty((q, L)), np.empty((q, L)), np.empty((q, L, 2))
    iterations = np.empty((q, L), dtype=np.int64)

    def run(one: int) -> None:
        coef[one], intercept[one], own, interval[one], residual[one], iterations[one] = newton(
            geometry,
            Y[one],
            omega[one],
            ladder,
            loss,
            fit_intercept,
            tol,
            max_iter,
            wanted=wanted,
            with_scores=geometry.kernel_form,
            signs_only=bool(loose[one]),
        )
        if scores is not None:
            scores[one] = own
        advance(1)

    loose = np.zeros(q, dtype=bool) if signs_only is None else signs_only
    longest_first = np.argsort(loose, kind="stable")
    with one_blas_thread() if len(Y) > 1 else nullcontext():
        in_threads(run, longest_first.tolist(), n_threads)
    return Paths(
        intercept,
        interval,
        scores,
        coef,
        None,
        iterations,
        residual <= tol,
        "newton",
        None if geometry.kernel_form else geometry.matrix,
    )


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
    found = newton(geometry, y, omega, np.array([lam]), loss, fit_intercept, tol, max_iter, start)
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
