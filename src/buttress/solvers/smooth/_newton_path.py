"""Newton's method along a regularisation path: one loop over two spaces.

A *space* is where the model lives: coefficients of the rows (`_kernel_space`) or weights of few
features (`_feature_space`). It knows how margins follow from a point, what the Newton equations
are and how to solve them; the loop knows the loss, judges the steps and follows the path. Names
are those of the page on methods: u margins, t minus the derivative of the loss, kappa its
curvature, omega row weights that sum to one.

Steps are judged by slopes alone (`_safe_share`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import FAST, compiled, inner
from buttress.solvers.smooth._safe_share import (
    BISECTIONS,
    UNGUARDED_CHANGE,
    UNGUARDED_STEPS,
    narrowed,
)
from buttress.solvers.smooth._space import (
    NewtonPoint,
    Problem,
    arrive,
    penalty_slopes,
    predict,
    propose,
    refresh,
    renew,
    set_flat_point,
    settled,
)
from buttress.solvers.smooth.margins import balancing_shift, imbalance, set_slopes

# For signs the next step may be the last after one that left no more than this share of itself.
_SETTLING = 0.5


class PathSolutions(NamedTuple):
    """Where the loop writes what it finds at L penalties.

    Attributes
    ----------
    coefs, intercepts, intervals : arrays of shapes (L, size), (L,) and (L, 2)
    residuals, iterations : arrays of shape (L,)
    """

    coefs: Array
    intercepts: Array
    intervals: Array
    residuals: Array
    iterations: IntArray

    @classmethod
    def of(cls, count: int, size: int) -> PathSolutions:
        """Zeros for `count` penalties and coefficients of `size` numbers."""
        numbers = np.zeros(count), np.zeros((count, 2)), np.zeros(count)
        return cls(np.zeros((count, size)), *numbers, np.zeros(count, dtype=np.int64))


@inner(fastmath=True)
def _compare(
    omega: Array, curvature: Array, point: NewtonPoint, trial: NewtonPoint
) -> tuple[float, float, float, float]:
    """Compare the slopes at `trial` with those at `point`.

    Returns the largest change of a slope, the largest deviation from the linear change, and the
    derivative of the mean loss along the step where it starts and where it ends.
    """
    u, t, new_u, new_t = point.u, point.t, trial.u, trial.t
    change, bent, start, end = 0.0, 0.0, 0.0, 0.0
    for i in range(u.size):
        du = new_u[i] - u[i]
        moved = new_t[i] - t[i]
        change = max(change, abs(moved))
        bent = max(bent, abs(moved + curvature[i] * du))
        start -= omega[i] * t[i] * du
        end -= omega[i] * new_t[i] * du
    return change, bent, start, end


@inner(fastmath=FAST)
def _slope_along(
    loss: Any, omega: Array, u: Array, new_u: Array, share: float, work: Array
) -> float:
    """The derivative of the mean loss after a share of the step from `u` to `new_u`."""
    moved, t, kappa = work[0], work[1], work[2]
    for i in range(u.size):
        moved[i] = u[i] + share * (new_u[i] - u[i])
    set_slopes(loss, moved, t, kappa)
    slope = 0.0
    for i in range(u.size):
        slope -= omega[i] * t[i] * (new_u[i] - u[i])
    return slope


@inner()
def _safe_share(
    loss: Any,
    omega: Array,
    point: NewtonPoint,
    trial: NewtonPoint,
    slopes: tuple[float, float],
    penalty: tuple[float, float],
    work: Array,
) -> float:
    """The share of a step to take so that the objective falls; 0 when rounding hides that.

    Along the step the objective's slope goes from the first to the second of `slopes`; the
    penalty's part of it from the first of `penalty` to the sum of both.
    """
    if slopes[1] <= 0.0:
        return 1.0  # falling all the way
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        share = 0.5 * (low + high)
        slope = penalty[0] + share * penalty[1]
        slope += _slope_along(loss, omega, point.u, trial.u, share, work)
        low, high, found_share = narrowed(low, high, slope, slopes)
        if found_share:
            break
    return low


@inner()
def _shorten(point: NewtonPoint, trial: NewtonPoint, share: float) -> None:
    x, u, b, new_x, new_u, new_b = point.x, point.u, point.b, trial.x, trial.u, trial.b
    for k in range(x.size):
        new_x[k] = x[k] + share * (new_x[k] - x[k])
    for i in range(u.size):
        new_u[i] = u[i] + share * (new_u[i] - u[i])
    new_b[0] = b[0] + share * (new_b[0] - b[0])


@inner(fastmath=True)
def _smallest(v: Array) -> float:
    smallest = float(v[0])
    for i in range(v.size):
        smallest = min(smallest, v[i])
    return smallest


@inner()
def _balance(loss: Any, problem: Problem, point: NewtonPoint, work: Array) -> bool:
    """Move an intercept that no curvature holds to where the classes balance."""
    y, omega, u, kappa = problem.y, problem.omega, point.u, point.kappa
    for i in range(u.size):
        if kappa[i] > 0.0:
            return False
    if abs(imbalance(loss, u, y, omega, 0.0, work)) <= 1e-13:
        return False
    shift = balancing_shift(loss, u, y, omega, 1.0, work)
    point.b[0] += shift
    for i in range(u.size):
        u[i] += y[i] * shift
    set_slopes(loss, u, point.t, kappa)
    return True


@inner()
def _solve_one(
    space: Any,
    loss: Any,
    problem: Problem,
    index: int,
    point: NewtonPoint,
    trial: NewtonPoint,
    work: Array,
) -> tuple[bool, float, int]:
    """Solve the penalty `index` from `point`.

    Returns whether the solution is `trial` and `point` is free, the residual and the steps.
    """
    lam, tol, omega = problem.lambdas[index], problem.tol, problem.omega
    guess, steady = predict(space, loss, problem, point, index)
    error, steps, swapped = np.inf, 0, False
    while steps < problem.max_iter:
        steps += 1
        if problem.fit_intercept and _balance(loss, problem, point, work):
            arrive(space, problem, point, lam)
        if not steady:
            renew(space, problem, point, lam, steps)
        rounding = propose(space, problem, point, lam, trial)
        set_slopes(loss, trial.u, trial.t, trial.kappa)
        change, bent, start, end = _compare(omega, space.curvature, point, trial)
        error = bent + rounding * change
        if change > UNGUARDED_CHANGE or steps > UNGUARDED_STEPS:
            pull, growth = penalty_slopes(space, problem, point, trial)
            penalty = 2.0 * lam * pull, 2.0 * lam * growth
            slopes = start + penalty[0], end + penalty[0] + penalty[1]
            share = _safe_share(loss, omega, point, trial, slopes, penalty, work)
            if share < 1.0 and steady:
                steady = False  # the factor is too old
                continue
            if share == 0.0 and change > UNGUARDED_CHANGE:
                error = np.inf
                if not guess:
                    break
                # Rounding of the guess may hide the way.
                guess = False
                refresh(space, problem, point)
                set_slopes(loss, point.u, point.t, point.kappa)
                arrive(space, problem, point, lam)
                continue
            if 0.0 < share < 1.0:
                _shorten(point, trial, share)
                refresh(space, problem, trial)
                set_slopes(loss, trial.u, trial.t, trial.kappa)
                error = np.inf
        point, trial, swapped = trial, point, not swapped
        if error <= tol and not guess:
            break
        guess = False
        # As good a step again may use the factor again: for signs, or if it is the last one.
        steady = error <= space.contraction * change
        last = error * error <= space.contraction * tol * change
        steady = steady and (problem.signs_only or last)
        arrive(space, problem, point, lam)
        if problem.signs_only and 0.0 < error <= _SETTLING * change:
            # The scaling tail needs precision.
            ahead = problem.tail_exponent > 0.0 and _smallest(point.u) >= 1.0
            if not ahead and settled(space, problem, trial, point, lam, error / change):
                break
    return swapped, error, steps


@inner()
def _set_flat(space: Any, loss: Any, problem: Problem, lam: float, point: NewtonPoint) -> float:
    """Where the loss is linear at all rows f is known and b an interval; half its length.

    Negative when there is no such solution at this penalty.
    """
    low = problem.flat[1] / (2.0 * lam) - 1.0
    high = 1.0 - problem.flat[0] / (2.0 * lam)
    if not low <= high:
        return -1.0
    set_flat_point(space, problem, lam, point)
    u, y, b = point.u, problem.y, 0.5 * (low + high)
    point.b[0] = b
    for i in range(u.size):
        u[i] += y[i] * b
    set_slopes(loss, u, point.t, point.kappa)
    return float(0.5 * (high - low))


@inner()
def _store(
    point: NewtonPoint, half: float, residual: float, steps: int, index: int, room: PathSolutions
) -> None:
    x, b, row, interval = point.x, point.b[0], room.coefs[index], room.intervals[index]
    for k in range(x.size):
        row[k] = x[k]
    room.intercepts[index], interval[0], interval[1] = b, b - half, b + half
    room.residuals[index], room.iterations[index] = residual, steps


@inner()
def _fill_tail(problem: Problem, last: int, room: PathSolutions) -> None:
    """Beyond the penalty `last` solutions are known multiples of its own."""
    lambdas, coefs, intercepts = problem.lambdas, room.coefs, room.intercepts
    intervals, residuals, iterations = room.intervals, room.residuals, room.iterations
    for index in range(last + 1, lambdas.size):
        factor = (lambdas[last] / lambdas[index]) ** problem.tail_exponent
        for k in range(coefs.shape[1]):
            coefs[index, k] = factor * coefs[last, k]
        b = factor * intercepts[last]
        intercepts[index], intervals[index, 0], intervals[index, 1] = b, b, b
        residuals[index], iterations[index] = residuals[last], 0


@compiled()
def follow_path(
    space: Any,
    loss: Any,
    problem: Problem,
    point: NewtonPoint,
    trial: NewtonPoint,
    work: Array,
    room: PathSolutions,
) -> None:
    """Solve for every penalty, from the largest to the smallest, with warm starts.

    Parameters
    ----------
    space : KernelSpace or FeatureSpace
    loss : scalars of a loss
    point : NewtonPoint
        Where to start: coordinates, intercept and margins.
    trial : NewtonPoint
        Room for another.
    work : array of shape (3, n)
    """
    set_slopes(loss, point.u, point.t, point.kappa)
    for index in range(problem.lambdas.size):
        half = _set_flat(space, loss, problem, problem.lambdas[index], point)
        residual, steps, flat = 0.0, 1, half >= 0.0
        if not flat:
            solved = _solve_one(space, loss, problem, index, point, trial, work)
            swapped, residual, steps = solved
            if swapped:
                point, trial = trial, point
        _store(point, max(half, 0.0), residual, steps, index, room)
        precise = not flat and problem.tail_exponent > 0.0 and residual <= problem.tol
        if precise and _smallest(point.u) >= 1.0:
            _fill_tail(problem, index, room)
            return
