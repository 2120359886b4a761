"""Newton's method in explicit features: linear kernels and Gram matrices of low rank.

Rows are multiplied by their labels, so that margins are ``u = w'Z`` with one column of `Z` for
every row that counts and one row for every feature; the intercept is the last of them.

A path is followed along its tangent: the solution w(lambda) satisfies ``H dw = -2 D w dlambda``,
D without the intercept, and H is already factorised. With many features H is brought up to date
only at the rows whose curvature changed, and the start at a penalty, which is never the end, is
evaluated in float32.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import FAST, inner
from buttress.solvers.numerics.cholesky import row_length
from buttress.solvers.numerics.cholesky import solve as solve_factor
from buttress.solvers.numerics.rows import add_rows
from buttress.solvers.smooth import _newton_path as path
from buttress.solvers.smooth._feature_hessian import (
    PANEL,
    SMALLEST_RIDGE,
    change_products,
    factorise,
    set_products,
)
from buttress.solvers.smooth._newton_path import Point, Problem, implements
from buttress.solvers.smooth.margins import set_slopes

# From this many features on the products of a Hessian are in float32 (for so many steps).
_SINGLE_FEATURES = 16
_SINGLE_STEPS = 8
# Relative error of a step with such a Hessian, generously.
_ROUNDING = 1e-4
# Many features: only rows of which the curvature changed by this share enter the Hessian anew,
# so many times at most.
_CHANGE = 0.08
_OLDEST = 16
# Rows from which the common change of the curvatures is read.
_SAMPLE = 64
# A Hessian may serve once more after a step that left so small a share of its change.
_CONTRACTION = 0.1
# Signs are settled when all scores are so many times what the last step leaves to go, and
# the step itself, away from zero; a step is the last one only after one that left such a share.
_MARGIN = 100.0
_SMALLEST_MARGIN = 10.0
# Nor is it after one that made rows flat which had so large a share of the curvature.
_LOST = 0.5


class FeatureSpace(NamedTuple):
    """Signed rows of few features, the Hessian and its factor.

    Attributes
    ----------
    Z : array of shape (size, n)
        A row for every feature, and the labels where there is an intercept.
    Z_single : array of shape (size, n), float32
        The same; without rows where features are so few that it is not used.
    out : array of shape (size, rows without weight)
        Features of the rows whose signs are wanted.
    curvature : array of shape (n,)
        Of the Hessian.
    H : array of shape (size + 2, size + 2)
        Products of the features; see `add_products`.
    factor, scale : arrays of shapes (size, row_length) and (size,)
    downhill, right : arrays of shape (size,)
        Minus the gradient, and a solution.
    panel, panel_single : arrays of shape (size, columns) and (2, size, columns)
    every : array of shape (max(n, size),)
        0, 1, 2 and so on.
    single : array of shape (n,), float32
    state : array of shape (2,)
        How often the Hessian was brought up to date since it was computed (zero: there is none),
        and whether its products are in single precision.
    """

    Z: Array
    Z_single: Array
    out: Array
    curvature: Array
    H: Array
    factor: Array
    scale: Array
    downhill: Array
    right: Array
    panel: Array
    panel_single: Array
    every: IntArray
    changed: IntArray
    single: Array
    state: IntArray
    contraction: float


def feature_space(
    features: Array, y: Array, held: IntArray, out: IntArray, fit_intercept: bool
) -> FeatureSpace:
    """The space of the rows `held` (with labels `y`), with signs wanted at the rows `out`."""
    n, p = len(held), features.shape[1]
    size = p + 1 if fit_intercept else p
    Z, outside = np.empty((size, n)), np.ones((size, len(out)))
    np.multiply(features[held].T, y, out=Z[:p])
    Z[p:] = y
    outside[:p] = features[out].T
    single = size >= _SINGLE_FEATURES
    width = min(n, PANEL)
    return FeatureSpace(
        Z,
        Z.astype(np.float32) if single else np.empty((0, n), np.float32),
        outside,
        np.zeros(n),
        np.zeros((size + 2, size + 2)),
        np.zeros((size, row_length(size, 8))),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros((size, width)),
        np.zeros((2, size if single else 0, width), np.float32),
        np.arange(max(n, size)),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.float32),
        np.zeros(2, dtype=np.int64),
        _CONTRACTION,
    )


@inner()
def _set_margins(space: FeatureSpace, point: Point) -> None:
    """Margins from coordinates."""
    weights, u = space.right, point.u
    for k in range(weights.size):
        weights[k] = point.x[k] if k < point.x.size else point.b[0]
    for i in range(u.size):
        u[i] = 0.0
    add_rows(space.Z, space.every[: weights.size], weights, u)


@inner()
def _set_single_margins(space: FeatureSpace, point: Point) -> None:
    """Margins from coordinates in single precision."""
    u, size = space.single, space.right.size
    weights = np.empty(size, dtype=np.float32)
    for k in range(size):
        weights[k] = point.x[k] if k < point.x.size else point.b[0]
    for i in range(u.size):
        u[i] = np.float32(0.0)
    add_rows(space.Z_single, space.every[:size], weights, u)
    for i in range(u.size):
        point.u[i] = u[i]


@inner(fastmath=FAST)
def _set_downhill(Z: Array, v: Array, lam: float, x: Array, downhill: Array) -> None:
    """Minus the gradient of the objective, for the rows' pulls `v`."""
    for k in range(downhill.size):
        row, total = Z[k], Z[0, 0] - Z[0, 0]  # of the array's type
        for i in range(v.size):
            total += row[i] * v[i]
        downhill[k] = total - (2.0 * lam * x[k] if k < x.size else 0.0)


@inner()
def _set_pulls(omega: Array, t: Array, v: Array) -> None:
    for i in range(omega.size):
        v[i] = omega[i] * t[i]


@inner()
def _set_gradient(space: FeatureSpace, omega: Array, point: Point, lam: float) -> None:
    pulls = np.empty(omega.size)
    _set_pulls(omega, point.t, pulls)
    _set_downhill(space.Z, pulls, lam, point.x, space.downhill)


@inner()
def _solve(space: FeatureSpace) -> None:
    """Overwrite `right` with the solution of the Newton equations."""
    right, scale = space.right, space.scale
    for k in range(right.size):
        right[k] *= scale[k]
    solve_factor(space.factor, right)
    for k in range(right.size):
        right[k] *= scale[k]


@implements(path.refresh, FeatureSpace)
def _refresh(space: FeatureSpace, problem: Problem, point: Point) -> None:
    _set_margins(space, point)


@implements(path.arrive, FeatureSpace)
def _arrive(space: FeatureSpace, problem: Problem, point: Point, lam: float) -> None:
    _set_gradient(space, problem.omega, point, lam)


@implements(path.set_flat_point, FeatureSpace)
def _set_flat_point(space: FeatureSpace, problem: Problem, lam: float, point: Point) -> None:
    for k in range(point.x.size):
        total = 0.0
        for i in range(point.u.size):
            total += space.Z[k, i] * problem.omega[i]
        point.x[k] = total / (2.0 * lam)
    point.b[0] = 0.0
    _set_margins(space, point)


@inner()
def _common_change(kappa: Array, used: Array) -> float:
    """The median ratio of the curvatures to those of the Hessian, from some of the rows."""
    ratios = np.empty(_SAMPLE)
    count = 0
    for i in range(0, kappa.size, kappa.size // _SAMPLE + 1):
        if kappa[i] > 0.0 and used[i] > 0.0:
            # kept in order
            ratio, k = kappa[i] / used[i], count
            while k > 0 and ratios[k - 1] > ratio:
                ratios[k] = ratios[k - 1]
                k -= 1
            ratios[k] = ratio
            count += 1
    if count == 0:
        return 1.0
    return float(0.5 * (ratios[(count - 1) // 2] + ratios[count // 2]))


@implements(path.predict, FeatureSpace)
def _predict(
    space: FeatureSpace, loss: object, problem: Problem, point: Point, index: int
) -> tuple[bool, bool]:
    """Start along the tangent of the path in log lambda."""
    lam = problem.lambdas[index]
    if space.state[0] == 0:
        _set_gradient(space, problem.omega, point, lam)
        return False, False
    x, right, before = point.x, space.right, problem.lambdas[index - 1]
    for k in range(right.size):
        right[k] = 2.0 * before * x[k] if k < x.size else 0.0
    _solve(space)
    ahead = np.log(before / lam)
    for k in range(x.size):
        x[k] += ahead * right[k]
    if problem.fit_intercept:
        point.b[0] += ahead * right[x.size]
    single = len(space.Z_single) > 0
    if single:
        _set_single_margins(space, point)
    else:
        _set_margins(space, point)
    set_slopes(loss, point.u, point.t, point.kappa)
    # Margins grow as lambda falls, and curvatures fall with it, most of them in step.
    common = _common_change(point.kappa, space.curvature)
    for k in range(len(space.H)):
        for q in range(k + 1):
            space.H[k, q] *= common
    for i in range(point.u.size):
        space.curvature[i] *= common
    if single:
        _set_pulls(problem.omega, point.t, space.single)
        _set_downhill(space.Z_single, space.single, lam, x, space.downhill)
    else:
        _set_gradient(space, problem.omega, point, lam)
    return single, False


@inner()
def _changed_rows(kappa: Array, used: Array, rows: IntArray) -> int:
    """Rows of which the curvature is no longer what the Hessian takes it for; their number."""
    count = 0
    for i in range(kappa.size):
        rows[count] = i
        count += abs(kappa[i] - used[i]) > _CHANGE * max(kappa[i], used[i])
    return count


@implements(path.renew, FeatureSpace)
def _renew(space: FeatureSpace, problem: Problem, point: Point, lam: float, steps: int) -> None:
    n, state, H = point.u.size, space.state, space.H
    rough = len(space.Z_single) > 0 and steps <= _SINGLE_STEPS
    state[1] = 1 if rough else 0
    few = n
    if rough and 0 < state[0] < _OLDEST:
        few = _changed_rows(point.kappa, space.curvature, space.changed)
    if few < n // 3:
        panels = space.panel_single[0], space.panel_single[1]
        changed = space.changed[:few]
        change_products(
            space.Z_single, problem.omega, point.kappa, space.curvature, changed, *panels, H
        )
        state[0] += 1
        if factorise(H, lam, point.x.size, space.factor, space.scale) <= SMALLEST_RIDGE:
            return
    for i in range(n):
        space.curvature[i] = problem.omega[i] * point.kappa[i]
    if rough:
        set_products(space.Z_single, space.curvature, space.panel_single[0], H)
    else:
        set_products(space.Z, space.curvature, space.panel, H)
    for i in range(n):
        space.curvature[i] = point.kappa[i]
    factorise(H, lam, point.x.size, space.factor, space.scale)
    state[0] = 1


@implements(path.propose, FeatureSpace)
def _propose(
    space: FeatureSpace, problem: Problem, point: Point, lam: float, trial: Point
) -> float:
    right = space.right
    for k in range(right.size):
        right[k] = space.downhill[k]
    _solve(space)
    for k in range(point.x.size):
        trial.x[k] = point.x[k] + right[k]
    trial.b[0] = point.b[0] + (right[point.x.size] if problem.fit_intercept else 0.0)
    _set_margins(space, trial)
    return _ROUNDING if space.state[1] == 1 else 0.0


@implements(path.penalty_slopes, FeatureSpace)
def _penalty_slopes(
    space: FeatureSpace, problem: Problem, point: Point, trial: Point
) -> tuple[float, float]:
    pull, growth = 0.0, 0.0
    for k in range(point.x.size):
        dx = trial.x[k] - point.x[k]
        pull += point.x[k] * dx
        growth += dx * dx
    return pull, growth


@inner()
def _lost_curvature(space: FeatureSpace, omega: Array, kappa: Array) -> float:
    """The share of the Hessian along their own rows that rows had which are flat now, in total.

    A step with that Hessian is too short by up to as much. Overwrites `right`.
    """
    total, Z, right = 0.0, space.Z, space.right
    for i in range(kappa.size):
        if kappa[i] == 0.0 and space.curvature[i] > 0.0:
            for k in range(len(Z)):
                right[k] = Z[k, i]
            _solve(space)
            share = 0.0
            for k in range(len(Z)):
                share += Z[k, i] * right[k]
            total += omega[i] * space.curvature[i] * share
    return total


@implements(path.settled, FeatureSpace)
def _settled(
    space: FeatureSpace, problem: Problem, before: Point, point: Point, lam: float, left: float
) -> bool:
    """The next step leaves no more than a share of itself: it is taken without judgement."""
    x, right, downhill, out = point.x, space.right, space.downhill, space.out
    for k in range(right.size):
        right[k] = downhill[k]
    _solve(space)
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
        _set_gradient(space, problem.omega, point, lam)
        return False
    for k in range(x.size):
        x[k] += downhill[k]
    if problem.fit_intercept:
        point.b[0] += downhill[x.size]
    return True
