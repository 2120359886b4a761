"""Newton's method in explicit features: linear kernels and Gram matrices of low rank.

Rows are multiplied by their labels, so that margins are ``u = w'Z`` with one column of `Z` for
every row that counts and one row for every feature; the intercept is the last of them.

A path is followed along its tangent: the solution w(lambda) satisfies ``H dw = -2 D w dlambda``,
D without the intercept, and H is already factorised. With more than a few features a space is
wide (`_wide_space`): H is brought up to date only at the rows whose curvature changed, and the
start at a penalty, which is never the end, is evaluated in float32. Few features need none of it,
and a job compiles only what it needs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import FAST, inner
from buttress.solvers.numerics.cholesky import factorise_few, row_length, solve_few
from buttress.solvers.numerics.rows import add_rows
from buttress.solvers.smooth import _space as path
from buttress.solvers.smooth._feature_hessian import (
    PANEL,
    SMALLEST_RIDGE,
    scale_hessian,
    scaled_hessian,
    set_products,
)
from buttress.solvers.smooth._space import NewtonPoint, Problem, implements
from buttress.solvers.smooth.margins import set_slopes

# Features, with the intercept, from which on a space is wide.
_WIDE = 16
# Relative error of a step with a Hessian in single precision, generously.
_ROUNDING = 1e-4
# A Hessian may serve once more after a step that left so small a share of its change.
_CONTRACTION = 0.1
# Signs are settled when all scores are so many times what the last step leaves to go, and
# the step itself, away from zero; a step is the last one only after one that left such a share.
_MARGIN = 100.0
_SMALLEST_MARGIN = 10.0
# Nor is it after one that made rows flat which had so large a share of the curvature.
_LOST = 0.5


class FeatureSpace(NamedTuple):
    """Signed rows of a few features, the Hessian and its factor.

    Attributes
    ----------
    Z : array of shape (size, n)
        A row for every feature, and the labels where there is an intercept.
    out : array of shape (size, rows without weight)
        Features of the rows whose signs are wanted.
    curvature : array of shape (n,)
        Of the Hessian.
    H : array of shape (size + 2, size + 2)
        Products of the features; see `add_products`.
    factor, scale : arrays of shapes (size, row_length) and (size,)
    downhill, right : arrays of shape (size,)
        Minus the gradient, and a solution.
    panel : array of shape (size, columns)
    every : array of shape (max(n, size),)
        0, 1, 2 and so on.
    state : array of shape (2,)
        How often the Hessian was brought up to date since it was computed (zero: there is none),
        and whether its products are in single precision.
    contraction : float
    """

    Z: Array
    out: Array
    curvature: Array
    H: Array
    factor: Array
    scale: Array
    downhill: Array
    right: Array
    panel: Array
    every: IntArray
    state: IntArray
    contraction: float


class WideSpace(NamedTuple):
    """The same for more features, with their rows in single precision.

    Attributes
    ----------
    Z_single : array of shape (size, n), float32
    panel_single : array of shape (2, size, columns), float32
    changed : array of shape (n,)
    single : array of shape (n,), float32
    """

    Z: Array
    out: Array
    curvature: Array
    H: Array
    factor: Array
    scale: Array
    downhill: Array
    right: Array
    panel: Array
    every: IntArray
    state: IntArray
    contraction: float
    Z_single: Array
    panel_single: Array
    changed: IntArray
    single: Array


AnySpace = FeatureSpace | WideSpace


def feature_space(
    features: Array, y: Array, held: IntArray, out: IntArray, fit_intercept: bool
) -> AnySpace:
    """The space of the rows `held` (with labels `y`), with signs wanted at the rows `out`."""
    n, p = len(held), features.shape[1]
    size = p + 1 if fit_intercept else p
    Z, outside = np.empty((size, n)), np.ones((size, len(out)))
    np.multiply(features[held].T, y, out=Z[:p])
    Z[p:] = y
    outside[:p] = features[out].T
    width = min(n, PANEL)
    space = FeatureSpace(
        Z,
        outside,
        np.zeros(n),
        np.zeros((size + 2, size + 2)),
        np.zeros((size, row_length(size, 8))),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros((size, width)),
        np.arange(max(n, size)),
        np.zeros(2, dtype=np.int64),
        _CONTRACTION,
    )
    if size < _WIDE:
        return space
    return WideSpace(
        *space,
        Z.astype(np.float32),
        np.zeros((2, size, width), np.float32),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.float32),
    )


def factorise(space: Any, lam: float, n_penalised: int) -> float:
    """Factorise the Hessian with the penalty; returns the ridge that was needed."""
    raise NotImplementedError


def solve(space: Any) -> None:
    """Overwrite `right` with the solution of the Newton equations."""
    raise NotImplementedError


@implements(factorise, FeatureSpace)
def _factorise(space: FeatureSpace, lam: float, n_penalised: int) -> float:
    scale_hessian(space.H, lam, n_penalised, space.scale)
    ridge = SMALLEST_RIDGE
    while True:
        scaled_hessian(space.H, space.scale, ridge, space.factor)
        if factorise_few(space.factor):
            return ridge
        ridge *= 10.0


@implements(solve, FeatureSpace)
def _solve(space: FeatureSpace) -> None:
    right, scale = space.right, space.scale
    for k in range(right.size):
        right[k] *= scale[k]
    solve_few(space.factor, right)
    for k in range(right.size):
        right[k] *= scale[k]


@inner()
def set_margins(space: AnySpace, point: NewtonPoint) -> None:
    """Margins from coordinates."""
    weights, u = space.right, point.u
    for k in range(weights.size):
        weights[k] = point.x[k] if k < point.x.size else point.b[0]
    for i in range(u.size):
        u[i] = 0.0
    add_rows(space.Z, space.every[: weights.size], weights, u)


@inner(fastmath=FAST)
def set_downhill(Z: Array, v: Array, lam: float, x: Array, downhill: Array) -> None:
    """Minus the gradient of the objective, for the rows' pulls `v`."""
    for k in range(downhill.size):
        row, total = Z[k], Z[0, 0] - Z[0, 0]  # of the array's type
        for i in range(v.size):
            total += row[i] * v[i]
        downhill[k] = total - (2.0 * lam * x[k] if k < x.size else 0.0)


@inner()
def set_pulls(omega: Array, t: Array, v: Array) -> None:
    for i in range(omega.size):
        v[i] = omega[i] * t[i]


@inner(allocates=True)
def set_gradient(space: AnySpace, omega: Array, point: NewtonPoint, lam: float) -> None:
    pulls = np.empty(omega.size)
    set_pulls(omega, point.t, pulls)
    set_downhill(space.Z, pulls, lam, point.x, space.downhill)


@implements(path.refresh, FeatureSpace, WideSpace)
def _refresh(space: AnySpace, problem: Problem, point: NewtonPoint) -> None:
    set_margins(space, point)


@implements(path.arrive, FeatureSpace, WideSpace)
def _arrive(space: AnySpace, problem: Problem, point: NewtonPoint, lam: float) -> None:
    set_gradient(space, problem.omega, point, lam)


@implements(path.set_flat_point, FeatureSpace, WideSpace)
def _set_flat_point(space: AnySpace, problem: Problem, lam: float, point: NewtonPoint) -> None:
    for k in range(point.x.size):
        total = 0.0
        for i in range(point.u.size):
            total += space.Z[k, i] * problem.omega[i]
        point.x[k] = total / (2.0 * lam)
    point.b[0] = 0.0
    set_margins(space, point)


@inner()
def follow_tangent(space: AnySpace, problem: Problem, point: NewtonPoint, index: int) -> None:
    """Move coordinates along the tangent of the path in log lambda."""
    x, right = point.x, space.right
    before, lam = problem.lambdas[index - 1], problem.lambdas[index]
    for k in range(right.size):
        right[k] = 2.0 * before * x[k] if k < x.size else 0.0
    solve(space)
    ahead = np.log(before / lam)
    for k in range(x.size):
        x[k] += ahead * right[k]
    if problem.fit_intercept:
        point.b[0] += ahead * right[x.size]


@implements(path.predict, FeatureSpace)
def _predict(
    space: FeatureSpace, loss: object, problem: Problem, point: NewtonPoint, index: int
) -> tuple[bool, bool]:
    """Start along the tangent."""
    if space.state[0] > 0:
        follow_tangent(space, problem, point, index)
        set_margins(space, point)
        set_slopes(loss, point.u, point.t, point.kappa)
    set_gradient(space, problem.omega, point, problem.lambdas[index])
    return False, False


@inner()
def renew_wholly(space: AnySpace, problem: Problem, point: NewtonPoint) -> None:
    """The Hessian at `point`, in double precision."""
    curvature, omega, kappa = space.curvature, problem.omega, point.kappa
    for i in range(kappa.size):
        curvature[i] = omega[i] * kappa[i]
    set_products(space.Z, curvature, space.panel, space.H)
    for i in range(kappa.size):
        curvature[i] = kappa[i]
    space.state[0], space.state[1] = 1, 0


@implements(path.renew, FeatureSpace)
def _renew(
    space: FeatureSpace, problem: Problem, point: NewtonPoint, lam: float, steps: int
) -> None:
    renew_wholly(space, problem, point)
    factorise(space, lam, point.x.size)


@implements(path.propose, FeatureSpace, WideSpace)
def _propose(
    space: AnySpace, problem: Problem, point: NewtonPoint, lam: float, trial: NewtonPoint
) -> float:
    right = space.right
    for k in range(right.size):
        right[k] = space.downhill[k]
    solve(space)
    for k in range(point.x.size):
        trial.x[k] = point.x[k] + right[k]
    trial.b[0] = point.b[0] + (right[point.x.size] if problem.fit_intercept else 0.0)
    set_margins(space, trial)
    return _ROUNDING if space.state[1] == 1 else 0.0


@implements(path.penalty_slopes, FeatureSpace, WideSpace)
def _penalty_slopes(
    space: AnySpace, problem: Problem, point: NewtonPoint, trial: NewtonPoint
) -> tuple[float, float]:
    pull, growth = 0.0, 0.0
    for k in range(point.x.size):
        dx = trial.x[k] - point.x[k]
        pull += point.x[k] * dx
        growth += dx * dx
    return pull, growth


@inner()
def _lost_curvature(space: AnySpace, omega: Array, kappa: Array) -> float:
    """The share of the Hessian along their own rows that rows had which are flat now, in total.

    A step with that Hessian is too short by up to as much. Overwrites `right`.
    """
    total, Z, right = 0.0, space.Z, space.right
    for i in range(kappa.size):
        if kappa[i] == 0.0 and space.curvature[i] > 0.0:
            for k in range(len(Z)):
                right[k] = Z[k, i]
            solve(space)
            share = 0.0
            for k in range(len(Z)):
                share += Z[k, i] * right[k]
            total += omega[i] * space.curvature[i] * share
    return total


@implements(path.settled, FeatureSpace, WideSpace)
def _settled(
    space: AnySpace,
    problem: Problem,
    before: NewtonPoint,
    point: NewtonPoint,
    lam: float,
    left: float,
) -> bool:
    """The next step leaves no more than a share of itself: it is taken without judgement."""
    x, right, downhill, out = point.x, space.right, space.downhill, space.out
    for k in range(right.size):
        right[k] = downhill[k]
    solve(space)
    moved, smallest = 0.0, np.inf
    for i in range(out.shape[1]):
        score, step = 0.0, 0.0
        for k in range(right.size):
            score += (x[k] if k < x.size else point.b[0]) * out[k, i]
            step += right[k] * out[k, i]
        moved, smallest = max(moved, abs(step)), min(smallest, abs(score + step))
    if not smallest > max(_SMALLEST_MARGIN, _MARGIN * left) * moved:
        return False
    for k in range(right.size):
        downhill[k] = right[k]  # the gradient is that of a point that is left, or asked for anew
    if _lost_curvature(space, problem.omega, point.kappa) > _LOST:
        set_gradient(space, problem.omega, point, lam)
        return False
    for k in range(x.size):
        x[k] += downhill[k]
    if problem.fit_intercept:
        point.b[0] += downhill[x.size]
    return True
