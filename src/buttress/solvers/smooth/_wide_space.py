"""Newton's method in more than a few explicit features: single precision where it does no harm.

Products of a Hessian, and the start at a penalty, are in float32; the Hessian is brought up to date
only at the rows whose curvature changed. See `_feature_space`, which has the rest.
"""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import inner
from buttress.solvers.numerics import cholesky
from buttress.solvers.numerics.rows import add_rows
from buttress.solvers.smooth import _feature_space as features
from buttress.solvers.smooth import _space as path
from buttress.solvers.smooth._feature_hessian import (
    SMALLEST_RIDGE,
    change_products,
    scale_hessian,
    scaled_hessian,
    set_products,
)
from buttress.solvers.smooth._feature_space import (
    WideSpace,
    follow_tangent,
    renew_wholly,
    set_downhill,
    set_gradient,
    set_pulls,
)
from buttress.solvers.smooth._space import NewtonPoint, Problem, implements
from buttress.solvers.smooth.margins import set_slopes

# Steps at a penalty for which the products of a Hessian are in float32.
_SINGLE_STEPS = 8
# Only rows of which the curvature changed by this share enter the Hessian anew, so many times at
# most.
_CHANGE = 0.08
_OLDEST = 16
# Rows from which the common change of the curvatures is read.
_SAMPLE = 64


@implements(features.factorise, WideSpace)
def _factorise(space: WideSpace, lam: float, n_penalised: int) -> float:
    scale_hessian(space.H, lam, n_penalised, space.scale)
    ridge = SMALLEST_RIDGE
    while True:
        scaled_hessian(space.H, space.scale, ridge, space.factor)
        if cholesky.factorise(space.factor):
            return ridge
        ridge *= 10.0


@implements(features.solve, WideSpace)
def _solve(space: WideSpace) -> None:
    right, scale = space.right, space.scale
    for k in range(right.size):
        right[k] *= scale[k]
    cholesky.solve(space.factor, right)
    for k in range(right.size):
        right[k] *= scale[k]


@inner(allocates=True)
def _set_single_margins(space: WideSpace, point: NewtonPoint) -> None:
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


@inner(allocates=True)
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


@implements(path.predict, WideSpace)
def _predict(
    space: WideSpace, loss: object, problem: Problem, point: NewtonPoint, index: int
) -> tuple[bool, bool]:
    """Start along the tangent, in single precision."""
    lam = problem.lambdas[index]
    if space.state[0] == 0:
        set_gradient(space, problem.omega, point, lam)
        return False, False
    follow_tangent(space, problem, point, index)
    _set_single_margins(space, point)
    set_slopes(loss, point.u, point.t, point.kappa)
    # Margins grow as lambda falls, and curvatures fall with it, most of them in step.
    common = _common_change(point.kappa, space.curvature)
    for k in range(len(space.H)):
        for j in range(k + 1):
            space.H[k, j] *= common
    for i in range(point.u.size):
        space.curvature[i] *= common
    set_pulls(problem.omega, point.t, space.single)
    set_downhill(space.Z_single, space.single, lam, point.x, space.downhill)
    return True, False


@inner()
def _changed_rows(kappa: Array, used: Array, rows: IntArray) -> int:
    """Rows of which the curvature is no longer what the Hessian takes it for; their number."""
    count = 0
    for i in range(kappa.size):
        rows[count] = i
        count += abs(kappa[i] - used[i]) > _CHANGE * max(kappa[i], used[i])
    return count


@inner()
def _renew_singly(space: WideSpace, problem: Problem, point: NewtonPoint, lam: float) -> bool:
    """Bring the Hessian up to date in single precision; whether it is factorised."""
    n, state, H, curvature = point.u.size, space.state, space.H, space.curvature
    few = n
    if 0 < state[0] < _OLDEST:
        few = _changed_rows(point.kappa, curvature, space.changed)
    state[1] = 1
    if few < n // 3:
        panels = space.panel_single[0], space.panel_single[1]
        changed = space.changed[:few]
        change_products(space.Z_single, problem.omega, point.kappa, curvature, changed, *panels, H)
        state[0] += 1
        return features.factorise(space, lam, point.x.size) <= SMALLEST_RIDGE
    return False


@implements(path.renew, WideSpace)
def _renew(space: WideSpace, problem: Problem, point: NewtonPoint, lam: float, steps: int) -> None:
    curvature, omega, kappa = space.curvature, problem.omega, point.kappa
    if steps > _SINGLE_STEPS:
        renew_wholly(space, problem, point)
    elif _renew_singly(space, problem, point, lam):
        return
    else:
        for i in range(kappa.size):
            curvature[i] = omega[i] * kappa[i]
        set_products(space.Z_single, curvature, space.panel_single[0], space.H)
        for i in range(kappa.size):
            curvature[i] = kappa[i]
        space.state[0] = 1
    features.factorise(space, lam, point.x.size)
