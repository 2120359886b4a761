"""Newton's method along a regularisation path in explicit features.

As `_kernel_newton`, for few features: linear kernels and Gram matrices of low rank. Rows are
multiplied by their labels, so that margins are ``u = w'Z`` with one column of `Z` for every
row that counts and one row for every feature; the intercept is the last of them.

A path is followed along its tangent: the solution w(lambda) satisfies ``H dw = -2 D w dlambda``,
D without the intercept, and H is already factorised. With many features H is brought up to date
only at the rows whose curvature changed, and the start at a penalty, which is never the end, is
evaluated in float32. Steps are judged by slopes alone: along a step the
objective is convex, so ``phi(1) - phi(0) <= (phi'(1/2) + phi'(1)) / 2``; no loss is evaluated,
and with it no logarithm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from buttress._arrays import Array, IntArray
from buttress._compile import compiled
from buttress.solvers.numerics.cholesky import row_length
from buttress.solvers.smooth._feature_hessian import (
    PANEL,
    SMALLEST_RIDGE,
    change_products,
    factorise,
    largest_size,
    set_products,
    solve,
)
from buttress.solvers.smooth.margins import best_intercept
from buttress.solvers.smooth.slopes import compare_slopes, set_slopes

_BISECTIONS = 60
# Below this change of the slopes the first few Newton steps need no safeguard.
_CLOSE = 1e-3
_TRUSTED_STEPS = 4
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
_SETTLING = 0.5


@compiled()
def _signed_features(Phi: Array, y: Array, held: IntArray, size: int) -> Array:
    """The rows `held` times their labels, a feature a row; the labels are the last of them."""
    p = Phi.shape[1]
    Z = np.empty((size, held.size))
    for i in range(held.size):
        for k in range(p):
            Z[k, i] = y[i] * Phi[held[i], k]
    if size > p:
        Z[p] = y
    return Z


@compiled()
def _changed_rows(kappa: Array, used: Array) -> IntArray:
    """Rows of which the curvature is no longer what the Hessian takes it for."""
    rows = np.empty(kappa.size, dtype=np.int64)
    count = 0
    for i in range(kappa.size):
        rows[count] = i
        count += abs(kappa[i] - used[i]) > _CHANGE * max(kappa[i], used[i])
    return rows[:count]


@compiled()
def _common_change(kappa: Array, used: Array) -> float:
    """The median ratio of the curvatures to those of the Hessian, from some of the rows."""
    ratios = np.empty(_SAMPLE)
    count = 0
    for i in range(0, kappa.size, kappa.size // _SAMPLE + 1):
        if kappa[i] > 0.0 and used[i] > 0.0:
            ratios[count] = kappa[i] / used[i]
            count += 1
    return float(np.median(ratios[:count])) if count > 0 else 1.0


@compiled(fastmath=True)
def _smallest_size(v: Array) -> float:
    """The smallest absolute value."""
    smallest = np.inf
    for i in range(v.size):
        smallest = min(smallest, abs(v[i]))
    return smallest


@register_jitable
def _set_downhill(
    Z: Array, omega: Array, t: Array, lam: float, w: Array, p: int, downhill: Array
) -> None:
    """Minus the gradient of the objective."""
    downhill[:] = np.dot(Z, omega * t)
    downhill[:p] -= 2.0 * lam * w[:p]


@register_jitable
def _safe_share(
    loss: Any,
    omega: Array,
    u: Array,
    du: Array,
    start: float,
    end: float,
    pull: float,
    growth: float,
) -> Any:
    """The share of a step to take so that the objective falls; 0 when rounding hides that.

    Along the step the objective's slope goes from `start` to `end`; the penalty's part of it
    from `pull` to ``pull + growth``.
    """
    if end <= 0.0:
        return 1.0  # falling all the way
    low, high = 0.0, 1.0
    t, kappa = np.empty_like(u), np.empty_like(u)
    for attempt in range(_BISECTIONS):
        share = 0.5 * (low + high)
        set_slopes(loss, u + share * du, t, kappa)
        slope = pull + share * growth - np.dot(omega * t, du)
        if attempt == 0 and slope + end <= 0.1 * start:
            return 1.0
        if slope > 0.05 * start:
            high = share
        elif slope < 0.5 * start:
            low = share
        else:
            return share
    return low


@register_jitable
def _lost_curvature(
    Z: Array, omega: Array, used: Array, kappa: Array, factor: Array, scale: Array, right: Array
) -> float:
    """The share of the Hessian along their own rows that rows had which are flat now, in total.

    A step with that Hessian is too short by up to as much. Overwrites `right`.
    """
    total = 0.0
    for i in range(kappa.size):
        if kappa[i] == 0.0 and used[i] > 0.0:
            right[0] = Z[:, i]
            solve(factor, scale, right)
            share = 0.0
            for k in range(len(Z)):
                share += Z[k, i] * right[0, k]
            total += omega[i] * used[i] * share
    return total


def feature_path(
    Phi: Array,
    y: Array,
    omega: Array,
    lambdas: Array,
    loss: Any,
    tail_exponent: float,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    start_coef: Array,
    start_intercept: float,
    signs_only: bool,
) -> tuple[Any, Any, Any, Any, Any]:
    """Solve for every penalty, from the largest to the smallest; see `_newton.kernel_path`.

    `Phi` has one row of features per row of data, and the coefficients are their weights. There are
    no scores among the results. With `signs_only` a penalty is done as soon as no sign of a
    score at a row without weight can change any more.
    """
    p = Phi.shape[1]
    L = lambdas.size
    solutions = np.zeros((L, p + 1))
    intervals = np.zeros((L, 2))
    residuals = np.zeros(L)
    iterations = np.zeros(L, dtype=np.int64)

    held = np.flatnonzero(omega > 0.0)
    size = p + 1 if fit_intercept else p
    Z = _signed_features(Phi, y[held], held, size)
    out = np.flatnonzero(omega == 0.0) if signs_only else held[:0]
    Z_out = _signed_features(Phi, y[out], out, size)
    y, omega = y[held], omega[held]
    single = size >= _SINGLE_FEATURES
    panel = np.zeros((size, min(held.size, PANEL)))
    panel_single = panel.astype(np.float32)
    rows_single = np.zeros_like(panel_single)
    Z_single = Z.astype(np.float32) if single else panel_single

    balanced = fit_intercept and abs(np.dot(omega, y)) < 1e-13 and tail_exponent != 0.0
    flat_coef = np.dot(Z[:p], omega)
    flat = np.dot(flat_coef, Z[:p])

    w: Any = np.zeros(size)
    if not np.isnan(start_intercept):
        w[:p] = start_coef
        if fit_intercept:
            w[p] = start_intercept
    elif fit_intercept:
        # Without f all rows of a class are one.
        up = np.sum(omega[y > 0.0])
        both = np.array([1.0, -1.0])
        w[p] = best_intercept(loss, np.zeros(2), both, np.array([up, np.sum(omega) - up]))
    u: Any = np.dot(w, Z)
    t, kappa, new_t, new_kappa, curvature = np.empty((5, held.size))
    set_slopes(loss, u, t, kappa)
    factor = np.zeros((size, row_length(size, 8)))
    scale = np.zeros(size)
    right = np.zeros((1, size))
    downhill = np.zeros(size)  # minus the gradient
    tail = -1
    H = np.zeros((size + 2, size + 2))
    all_rows = np.arange(held.size)
    age = 0  # how often the Hessian was brought up to date since it was computed

    for step in range(L):
        lam = lambdas[step]
        if tail >= 0:
            solutions[step] = (lambdas[tail] / lam) ** tail_exponent * solutions[tail]
            intervals[step] = solutions[step, p]
            residuals[step] = residuals[tail]
            continue
        if balanced:
            # All margins at most 1: the loss is linear, f is known and b is an interval.
            low, high = -np.inf, np.inf
            for i in range(y.size):
                score = y[i] * flat[i] / (2.0 * lam)
                if y[i] > 0.0:
                    high = min(high, 1.0 - score)
                else:
                    low = max(low, -1.0 - score)
            if low <= high:
                w[:p] = flat_coef / (2.0 * lam)
                w[p] = 0.5 * (low + high)
                u = np.dot(w, Z)
                set_slopes(loss, u, t, kappa)
                solutions[step, :size] = w
                intervals[step, 0], intervals[step, 1] = low, high
                iterations[step] = 1
                continue
            balanced = False

        if age > 0:
            # Start along the tangent of the path in log lambda.
            before = lambdas[step - 1]
            right[0] = 2.0 * before * w
            right[0, p:] = 0.0
            solve(factor, scale, right)
            w = w + np.log(before / lam) * right[0]
            if single:
                u[:] = np.dot(w.astype(np.float32), Z_single)
            else:
                u = np.dot(w, Z)
            set_slopes(loss, u, t, kappa)
            # Margins grow as lambda falls, and curvatures fall with it, most of them in step.
            common = _common_change(kappa, curvature)
            H *= common
            curvature *= common
        # A guess that is judged anew after its first step.
        guess = single and age > 0
        if guess:
            downhill[:] = np.dot(Z_single, (omega * t).astype(np.float32))
            downhill[:p] -= 2.0 * lam * w[:p]
        else:
            _set_downhill(Z, omega, t, lam, w, p, downhill)
        error, steady, rough = np.inf, False, False
        for iteration in range(max_iter):
            iterations[step] = iteration + 1
            if fit_intercept and abs(downhill[p]) > 1e-13 and not np.any(kappa):
                # No curvature to tell how far the intercept must go.
                w[p] = best_intercept(loss, y * u - w[p], y, omega)
                u = np.dot(w, Z)
                set_slopes(loss, u, t, kappa)
                _set_downhill(Z, omega, t, lam, w, p, downhill)
            if not steady:
                rough = single and iteration < _SINGLE_STEPS
                changed: Any = all_rows
                if rough and 0 < age < _OLDEST:
                    changed = _changed_rows(kappa, curvature)
                if changed.size < held.size // 3:
                    panels = panel_single, rows_single
                    change_products(Z_single, omega, kappa, curvature, changed, *panels, H)
                    age += 1
                    if factorise(H, lam, p, factor, scale) > SMALLEST_RIDGE:
                        changed = all_rows
                if changed.size >= held.size // 3:
                    if rough:
                        set_products(Z_single, omega * kappa, panel_single, H)
                    else:
                        set_products(Z, omega * kappa, panel, H)
                    factorise(H, lam, p, factor, scale)
                    curvature[:] = kappa
                    age = 1
            right[0] = downhill
            solve(factor, scale, right)
            new_w = w + right[0]
            new_u = np.dot(new_w, Z)
            change, bent, start, end = compare_slopes(
                loss, omega, u, t, curvature, new_u, new_t, new_kappa
            )
            error = bent + _ROUNDING * change if rough else bent
            if change > _CLOSE or iteration >= _TRUSTED_STEPS:
                pull = 2.0 * lam * np.dot(w[:p], right[0, :p])
                growth = 2.0 * lam * np.dot(right[0, :p], right[0, :p])
                start, end = start + pull, end + pull + growth
                share = _safe_share(loss, omega, u, new_u - u, start, end, pull, growth)
                if share == 0.0 and change > _CLOSE and not steady:
                    error = np.inf
                    if not guess:
                        break
                    # Rounding of the guess may hide the way.
                    guess = False
                    u = np.dot(w, Z)
                    set_slopes(loss, u, t, kappa)
                    _set_downhill(Z, omega, t, lam, w, p, downhill)
                    continue
                if 0.0 < share < 1.0:
                    new_w = w + share * right[0]
                    new_u = np.dot(new_w, Z)
                    set_slopes(loss, new_u, new_t, new_kappa)
                    error = np.inf
            w, u = new_w, new_u
            t, new_t = new_t, t
            kappa, new_kappa = new_kappa, kappa
            if error <= tol and not guess:
                break
            guess = False
            # As good a step again may use the Hessian again: for signs, or if it is the last one.
            steady = error <= _CONTRACTION * change
            steady = steady and (signs_only or error * error <= _CONTRACTION * tol * change)
            _set_downhill(Z, omega, t, lam, w, p, downhill)
            if signs_only and 0.0 < error <= _SETTLING * change:
                # The next step leaves no more than a share of itself: it needs no judgement.
                right[0] = downhill
                solve(factor, scale, right)
                moved = largest_size(np.dot(right[0], Z_out))
                margin = max(_SMALLEST_MARGIN, _MARGIN * error / change)
                settled = _smallest_size(np.dot(w + right[0], Z_out)) > margin * moved
                # The scaling tail needs precision.
                if settled and not (tail_exponent > 0.0 and np.min(u) >= 1.0):
                    last = w + right[0]
                    if _lost_curvature(Z, omega, curvature, kappa, factor, scale, right) <= _LOST:
                        w = last
                        break
        solutions[step, :size] = w
        intervals[step] = solutions[step, p]
        residuals[step] = error
        if tail_exponent > 0.0 and error <= tol and np.min(u) >= 1.0:
            tail = step
    return solutions[:, :p].copy(), solutions[:, p].copy(), intervals, residuals, iterations


interpreted_feature_path = feature_path
feature_path = compiled()(feature_path)
