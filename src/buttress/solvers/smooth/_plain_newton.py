"""Newton's method at few penalties, in NumPy: nothing to compile, and any loss that takes arrays.

The method is that of `_newton_path` without what pays along a path only: no prediction, no factor
that serves twice. A fit at one penalty takes a few milliseconds with it and many seconds to
compile the other; losses that cannot be compiled have no other. Steps far from the solution are
rough: their factor is in single precision where rounding leaves it a good one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import get_lapack_funcs

from buttress._arrays import Array
from buttress.solvers.numerics.systems import one_plus_scaled
from buttress.solvers.smooth._safe_share import (
    BISECTIONS,
    UNGUARDED_CHANGE,
    UNGUARDED_STEPS,
    narrowed,
)

# In units of rounding.
_SMALLEST_RIDGE = 4096.0
# Errors of the slopes from which on steps are exact.
_ROUGH = 0.05
# The rows from which on single precision pays, what it may change of a system with no eigenvalue
# below one, and the numbers that it holds with room to spare.
_SINGLE_ROWS = 200
_SINGLE_ROUNDING = 0.1
_SINGLE_LARGEST = 1e30


class NewtonRows(Protocol):
    """The rows that count of one problem, in one of two forms."""

    @property
    def y(self) -> Array: ...

    @property
    def omega(self) -> Array: ...

    def margins(self, x: Array, b: float) -> Array:
        """Margins of the model with coordinates `x` and intercept `b`."""
        ...

    def step(
        self,
        point: PlainPoint,
        t: Array,
        kappa: Array,
        lam: float,
        fit_intercept: bool,
        rough: bool,
    ) -> PlainPoint:
        """The minimum of the quadratic model with slopes `t` and curvatures `kappa`.

        About the minimum where `rough`.
        """
        ...

    def penalty_slopes(self, point: PlainPoint, step: PlainPoint) -> tuple[float, float]:
        """The derivative of half the squared norm along the step, and how much it grows."""
        ...


@dataclass(frozen=True, eq=False)
class PlainPoint:
    """Coordinates, intercept and margins of a model."""

    x: Array
    b: float
    u: Array

    def towards(self, target: PlainPoint, share: float) -> PlainPoint:
        """The point after a share of the way."""
        return PlainPoint(
            self.x + share * (target.x - self.x),
            self.b + share * (target.b - self.b),
            self.u + share * (target.u - self.u),
        )


@dataclass(frozen=True, eq=False)
class KernelRows:
    """Kernel form: coefficients x of the rows, margins ``y (K x + b)``."""

    K: Array
    y: Array
    omega: Array

    def margins(self, x: Array, b: float) -> Array:
        return np.asarray(self.y * (self.K @ x + b))

    def step(
        self,
        point: PlainPoint,
        t: Array,
        kappa: Array,
        lam: float,
        fit_intercept: bool,
        rough: bool,
    ) -> PlainPoint:
        # Rows whose loss is straight keep the coefficients of their slopes; the curved ones
        # solve a system with the matrix I + D K D.
        curved, straight = np.flatnonzero(kappa > 0), np.flatnonzero(kappa <= 0)
        x, b = self.omega * self.y * t / (2.0 * lam), point.b
        if len(curved) == 0:
            return PlainPoint(x, b, self.margins(x, b))
        x[curved] = 0.0
        d = np.sqrt(self.omega[curved] * kappa[curved] / (2.0 * lam))
        target = self.y[curved] * (t[curved] / kappa[curved] + point.u[curved])
        target -= (x[straight] @ self.K[straight])[curved]
        right = np.stack([d * target, d])
        largest = float(d * d @ self.K.diagonal()[curved])  # no eigenvalue of D K D is larger
        single = rough and _single_serves(right, largest)
        system = np.empty((len(d), len(d)), dtype=np.float32 if single else np.float64)
        one_plus_scaled(self.K, curved, d, system)
        right = _solve(system, right)
        if fit_intercept:
            b = float((d @ right[0] + x.sum()) / (d @ right[1]))
            right[0] -= b * right[1]
        x[curved] = d * right[0]
        return PlainPoint(x, b, self.margins(x, b))

    def penalty_slopes(self, point: PlainPoint, step: PlainPoint) -> tuple[float, float]:
        scores, moved = self.y * point.u - point.b, step.x - point.x
        change = self.y * (step.u - point.u) - (step.b - point.b)
        return float(scores @ moved), float(change @ moved)


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Feature form: weights x of the features, margins ``y (F x + b)``."""

    F: Array
    y: Array
    omega: Array

    def margins(self, x: Array, b: float) -> Array:
        return np.asarray(self.y * (self.F @ x + b))

    def step(
        self,
        point: PlainPoint,
        t: Array,
        kappa: Array,
        lam: float,
        fit_intercept: bool,
        rough: bool,
    ) -> PlainPoint:
        F, p = self.F, self.F.shape[1]
        size = p + 1 if fit_intercept else p
        curved = self.omega * kappa
        H, downhill = np.empty((size, size)), np.empty(size)
        weighted = F * curved[:, None]
        pull = self.omega * self.y * t
        H[:p, :p] = weighted.T @ F
        H[np.arange(p), np.arange(p)] += 2.0 * lam
        downhill[:p] = pull @ F - 2.0 * lam * point.x
        if fit_intercept:
            H[p, :p] = H[:p, p] = weighted.sum(axis=0)
            H[p, p], downhill[p] = curved.sum(), pull.sum()
        # Scaled to unit diagonal, features of very different sizes are harmless.
        diagonal = np.diagonal(H)
        scale = np.where(diagonal > 0, 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
        H *= scale * scale[:, None]
        H[np.diag_indices(size)] = 1.0
        change = scale * _solve(H, (scale * downhill)[None])[0]
        x, b = point.x + change[:p], point.b + (float(change[p]) if fit_intercept else 0.0)
        return PlainPoint(x, b, self.margins(x, b))

    def penalty_slopes(self, point: PlainPoint, step: PlainPoint) -> tuple[float, float]:
        moved = step.x - point.x
        return float(point.x @ moved), float(moved @ moved)


def _single_serves(right: Array, largest: float) -> bool:
    """Whether single precision is enough for a rough step, by the system's largest eigenvalue."""
    rounding = largest * float(np.finfo(np.float32).eps)
    fits = right.shape[1] >= _SINGLE_ROWS and float(np.abs(right).max()) < _SINGLE_LARGEST
    return fits and rounding < _SINGLE_ROUNDING


def _solve(matrix: Any, right: Array) -> Array:
    """Solutions (one a row) of a system with unit diagonal at least; ridged where rounding asks.

    Of the matrix its lower triangle is read.
    """
    factorise, solve = get_lapack_funcs(("potrf", "potrs"), (matrix,))
    right = right.astype(matrix.dtype, copy=False)
    ridge = 0.0
    while True:
        # LAPACK reads Fortran order: the transposed matrix, which is the same, needs no copy.
        factor, info = factorise(matrix.T, lower=0, clean=0)
        if info == 0:
            solution, _ = solve(factor, right.T, lower=0)
            return np.ascontiguousarray(solution.T, dtype=np.float64)
        more = max(10.0 * ridge, _SMALLEST_RIDGE * float(np.finfo(matrix.dtype).eps))
        matrix[np.diag_indices(len(matrix))] += more - ridge
        ridge = more


def balanced(rows: NewtonRows, loss: Any, point: PlainPoint) -> PlainPoint:
    """The point with the intercept at which the slopes of the two classes balance."""
    pull = rows.omega * rows.y

    def imbalance(shift: float) -> float:
        return float(-(pull @ np.asarray(loss.derivative(point.u + rows.y * shift))))

    low, high = -1.0, 1.0
    while imbalance(low) < 0.0 and low > -1e300:
        low *= 2.0
    while imbalance(high) > 0.0 and high < 1e300:
        high *= 2.0
    while high - low > 1e-15 * max(abs(low), abs(high)):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if imbalance(middle) > 0.0 else (low, middle)
    shift = 0.5 * (low + high)
    return PlainPoint(point.x, point.b + shift, point.u + rows.y * shift)


def solve_penalty(
    rows: NewtonRows,
    loss: Any,
    lam: float,
    point: PlainPoint,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    near: bool = False,
) -> tuple[PlainPoint, float, int]:
    """Solve one problem at one penalty from `point`: the solution, its residual, and the steps.

    The residual is the largest error of a row's slope against its coefficient, infinite where the
    last step was too rough to tell. No step is rough from a point that is `near` the solution.
    """
    omega, error, residual, exact = rows.omega, np.inf, np.inf, near
    t, kappa = -np.asarray(loss.derivative(point.u)), np.asarray(loss.curvature(point.u))
    for steps in range(1, max_iter + 1):
        if fit_intercept and not kappa.any() and abs((omega * rows.y) @ t) > 1e-13:
            # No curvature to tell how far the intercept must go.
            point = balanced(rows, loss, point)
            t, kappa = -np.asarray(loss.derivative(point.u)), np.asarray(loss.curvature(point.u))
        rough = error > _ROUGH and not exact
        trial = rows.step(point, t, kappa, lam, fit_intercept, rough)
        new_t, du = -np.asarray(loss.derivative(trial.u)), trial.u - point.u
        change = float(np.max(np.abs(new_t - t)))
        error = float(np.max(np.abs(new_t - t + kappa * du)))
        if change > UNGUARDED_CHANGE or steps > UNGUARDED_STEPS:
            pull, growth = (2.0 * lam * slope for slope in rows.penalty_slopes(point, trial))
            slopes = pull - (omega * t) @ du, pull + growth - (omega * new_t) @ du
            share = _safe_share(rows, loss, point, du, slopes, pull, growth)
            if share == 0.0 and change > UNGUARDED_CHANGE:
                if not rough:
                    return point, np.inf, steps
                # Too rough to fall: the same step once more, and from here on exactly.
                error, residual, exact = np.inf, np.inf, True
                continue
            if 0.0 < share < 1.0:
                trial, error = point.towards(trial, share), np.inf
                new_t = -np.asarray(loss.derivative(trial.u))
        point, t = trial, new_t
        residual = np.inf if rough and tol < _ROUGH else error
        if residual <= tol:
            break
        kappa = np.asarray(loss.curvature(point.u))
    return point, residual, steps


def _safe_share(
    rows: NewtonRows,
    loss: Any,
    point: PlainPoint,
    du: Array,
    slopes: tuple[float, float],
    pull: float,
    growth: float,
) -> float:
    """The share of a step to take so that the objective falls; 0 when rounding hides that.

    Along the step the objective's slope goes from the first to the second of `slopes`; the
    penalty's part of it from `pull` to ``pull + growth``.
    """
    if slopes[1] <= 0.0:
        return 1.0  # falling all the way
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        share = 0.5 * (low + high)
        slope = pull + share * growth
        slope += float((rows.omega * np.asarray(loss.derivative(point.u + share * du))) @ du)
        low, high, found_share = narrowed(low, high, slope, slopes)
        if found_share:
            break
    return low
