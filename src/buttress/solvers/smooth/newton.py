"""Newton's method along any list of penalties, in kernel or feature form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.solvers.smooth import _wide_space  # noqa: F401  what it implements
from buttress.solvers.smooth._feature_space import feature_space
from buttress.solvers.smooth._kernel_space import kernel_space
from buttress.solvers.smooth._newton_path import PathSolutions, follow_path
from buttress.solvers.smooth._plain_newton import (
    FeatureRows,
    KernelRows,
    PlainPoint,
    balanced,
    solve_penalty,
)
from buttress.solvers.smooth._space import NewtonPoint, Problem
from buttress.solvers.smooth.geometry import ScaledGeometry
from buttress.solvers.smooth.margins import (
    compiled_loss,
    for_loss,
    straight_up_to_one,
    tail_exponent,
)
from buttress.solvers.smooth.paths import Paths
from buttress.solvers.smooth.problems import Problems

# Penalties are never taken in larger steps than this: a tiny one from nowhere fails.
_LARGEST_RATIO = 10.0
# Error of the slopes at which a penalty that only leads to the next one is left.
_UNDER_WAY = 0.5
# Penalties from which on compiling the path pays.
_MANY = 20


def small_steps(lambdas: Array, ratio: float = _LARGEST_RATIO) -> tuple[Array, IntArray]:
    """Decreasing penalties in small steps that include all of `lambdas`, and where they are.

    `ratio` is the largest step.
    """
    rungs: list[float] = []
    wanted = np.empty(len(lambdas), dtype=np.int64)
    last = max(1.0, float(lambdas[0]))
    for index, lam in enumerate(lambdas):
        steps = int(np.ceil(np.log(last / lam) / np.log(ratio) - 1e-9))
        if steps > 1 or (not rungs and steps == 1):
            between = last * (lam / last) ** (np.arange(0 if not rungs else 1, steps) / steps)
            rungs.extend(between.tolist())
        rungs.append(float(lam))
        wanted[index] = len(rungs) - 1
        last = float(lam)
    return np.array(rungs), wanted


@dataclass(frozen=True, eq=False)
class NewtonTask:
    """One problem at decreasing (scaled) penalties, and when it is solved.

    Attributes
    ----------
    y, omega : arrays of shape (n,)
        Labels ±1, and weights that sum to one; rows of weight zero are only predicted.
    lambdas : array of shape (L,)
    tol : float
        On the largest error of a row's slope against its coefficient.
    start : tuple of array of shape (m,) and float, optional
        Coefficients and intercept to start from.
    signs_only : bool
        Whether only the signs of the scores at rows without weight are needed.
    wanted : array of int, optional
        Which of `lambdas` are asked for, all if not given; the others lead there, and may be
        left unsolved.
    """

    geometry: ScaledGeometry
    y: Array
    omega: Array
    lambdas: Array
    loss: Any
    fit_intercept: bool
    tol: float
    max_iter: int
    start: tuple[Array, float] | None = None
    signs_only: bool = False
    wanted: IntArray | None = None

    @classmethod
    def of(
        cls,
        problems: Problems,
        problem: int,
        lambdas: Array,
        *,
        start: tuple[Array, float] | None = None,
        wanted: IntArray | None = None,
        signs_only: bool = False,
    ) -> NewtonTask:
        """One problem of several, at some penalties."""
        return cls(
            problems.geometry,
            problems.Y[problem],
            problems.omega[problem],
            lambdas,
            problems.loss,
            problems.fit_intercept,
            problems.tol,
            problems.max_iter,
            start,
            signs_only,
            wanted,
        )

    @cached_property
    def held(self) -> IntArray:
        """The rows that count."""
        return np.flatnonzero(self.omega > 0.0)

    @property
    def flat_margins(self) -> Array:
        """See `Problem`: classes of equal weight, and a loss that is linear up to margin one."""
        pull = self.omega * self.y
        straight = straight_up_to_one(self.loss) and self.fit_intercept
        if not straight or abs(pull.sum()) >= 1e-13:
            return np.full(2, np.nan)
        margins = self.y * self.geometry.similarity_product(pull)
        return np.array([margins[pull > 0].max(), margins[pull < 0].max()])


def newton(task: NewtonTask) -> Paths:
    """Solve one problem at every penalty, from the largest to the smallest.

    Many penalties are solved by a compiled loop; few of them, and a loss that cannot be compiled,
    in NumPy.

    Returns
    -------
    Paths
        Of this one problem.
    """
    scalars = compiled_loss(task.loss) if len(task.lambdas) >= _MANY else None
    solutions = _plainly(task) if scalars is None else _compiled(task, scalars)
    coefs = solutions.coefs
    if task.geometry.kernel_form and len(task.held) < len(task.y):
        coefs = np.zeros((len(task.lambdas), len(task.y)))
        coefs[:, task.held] = solutions.coefs
    return Paths(
        solutions.intercepts[None],
        solutions.intervals[None],
        [coefs],
        solutions.iterations[None],
        solutions.residuals[None] <= task.tol,
        "newton",
        task.geometry.matrix,
    )


def _compiled(task: NewtonTask, scalars: Any) -> PathSolutions:
    """As `newton`, compiled; coefficients of the rows that count."""
    matrix, held = task.geometry.matrix, task.held
    out = np.flatnonzero(task.omega == 0.0) if task.signs_only else held[:0]
    y, omega = np.ascontiguousarray(task.y[held], np.float64), task.omega[held].astype(np.float64)
    n, size = len(held), len(held) if task.geometry.kernel_form else matrix.shape[1]
    point, trial = (
        NewtonPoint(np.zeros(size), np.zeros(1), np.zeros(n), np.zeros(n), np.zeros(n))
        for _ in range(2)
    )
    space: Any
    if task.geometry.kernel_form:
        space = kernel_space(matrix, held, out)
    else:
        space = feature_space(matrix, y, held, out, task.fit_intercept)
    if task.start is not None:
        coef, point.b[0] = task.start
        point.x[:] = coef[held] if task.geometry.kernel_form else coef
        rows = space.K if task.geometry.kernel_form else matrix[held]
        point.u[:] = y * (rows @ point.x + point.b[0])
    problem = Problem(
        y,
        omega,
        np.ascontiguousarray(task.lambdas, np.float64),
        task.flat_margins,
        tail_exponent(task.loss),
        task.fit_intercept,
        task.tol,
        task.max_iter,
        task.signs_only,
    )
    solutions = PathSolutions.of(len(task.lambdas), size)
    for_loss(follow_path, scalars)(
        space, scalars, problem, point, trial, np.empty((3, n)), solutions
    )
    return solutions


def _plainly(task: NewtonTask) -> PathSolutions:
    """As `newton`, in NumPy; coefficients of the rows that count."""
    matrix, held, loss = task.geometry.matrix, task.held, task.loss
    y, omega = np.asarray(task.y[held], np.float64), np.asarray(task.omega[held], np.float64)
    rows: KernelRows | FeatureRows
    if task.geometry.kernel_form:
        K = matrix if len(held) == len(matrix) else matrix[held[:, None], held]
        rows, size = KernelRows(K, y, omega), len(held)
    else:
        rows, size = FeatureRows(matrix[held], y, omega), matrix.shape[1]
    x: Array = np.zeros(size)
    b = 0.0
    if task.start is not None:
        x = task.start[0][held] if task.geometry.kernel_form else task.start[0]
        b = float(task.start[1])
    point = PlainPoint(np.asarray(x, np.float64), b, rows.margins(x, b))
    if task.start is None and task.fit_intercept:
        point = balanced(rows, loss, point)
    solutions, flat, tail = (
        PathSolutions.of(len(task.lambdas), size),
        task.flat_margins,
        tail_exponent(loss),
    )
    tols = np.full(len(task.lambdas), task.tol)
    if task.wanted is not None:
        tols[np.setdiff1d(np.arange(len(tols)), task.wanted)] = max(_UNDER_WAY, task.tol)
    for index, lam in enumerate(task.lambdas):
        low, high = flat[1] / (2.0 * lam) - 1.0, 1.0 - flat[0] / (2.0 * lam)
        if low <= high:
            # All margins at most one: the loss is linear, f is known and b is an interval.
            pull = omega * y / (2.0 * lam)
            x, b = pull if task.geometry.kernel_form else pull @ matrix[held], 0.5 * (low + high)
            point, residual, steps = PlainPoint(x, b, rows.margins(x, b)), 0.0, 1
        else:
            point, residual, steps = solve_penalty(
                rows,
                loss,
                lam,
                point,
                task.fit_intercept,
                tols[index],
                task.max_iter,
                near=task.start is not None,
            )
            low = high = point.b
        solutions.coefs[index], solutions.intercepts[index] = point.x, point.b
        solutions.intervals[index], solutions.residuals[index] = (low, high), residual
        solutions.iterations[index] = steps
        if tail > 0.0 and residual <= task.tol and point.u.min() >= 1.0:
            factor = (lam / task.lambdas[index + 1 :]) ** tail
            solutions.coefs[index + 1 :] = factor[:, None] * point.x
            solutions.intercepts[index + 1 :] = factor * point.b
            solutions.intervals[index + 1 :] = (factor * point.b)[:, None]
            solutions.residuals[index + 1 :] = residual
            break
    return solutions
