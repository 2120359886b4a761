"""Newton's method along a regularisation path, for one convex margin loss with curvature.

The same source runs compiled (leaky hockey stick family, passed as its exponent r) and
interpreted (a user's loss object); see `margins`. Names follow the note on the leaky
hockey stick: `t` is minus the derivative of the loss, `kappa` its curvature, `omega` the
normalised row weight (zero for rows that are held out), `A` the rows whose loss is curved. The
Newton equations have the Cholesky-friendly matrix ``I + D K_AA D``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from buttress._arrays import Array, IntArray
from buttress._compile import compiled
from buttress.solvers.numerics.cholesky import factorise, row_length, solve
from buttress.solvers.numerics.rows import add_rows
from buttress.solvers.smooth.margins import best_intercept, mean_value, slope_and_curvature

_HALVINGS = 40
_ARMIJO = 1e-4
# Signs are settled when all scores are so many times what a step leaves to go away from zero; it
# must have left no more than a share of itself.
_MARGIN = 20.0
_SETTLING = 0.5
# For signs a factor serves once more after a step that left so small a share of its change.
_CONTRACTION = 0.2


@register_jitable
def _signs_settled(f: Array, new_f: Array, omega: Array, share: float) -> bool:
    """Whether signs at rows without weight stay when a step has left so small a share to go."""
    moved, smallest = 0.0, np.inf
    for i in range(f.size):
        if omega[i] == 0.0:
            moved = max(moved, abs(new_f[i] - f[i]))
            smallest = min(smallest, abs(new_f[i]))
    return smallest > _MARGIN * share * moved


@register_jitable
def _same_rows_curved(omega: Array, kappa: Array, new_kappa: Array) -> bool:
    """Whether the rows that count are curved where they were."""
    for i in range(omega.size):
        if omega[i] > 0.0 and (kappa[i] > 0.0) != (new_kappa[i] > 0.0):
            return False
    return True


@compiled()
def _active_rows(
    K: Array, omega: Array, kappa: Array, lam: float
) -> tuple[IntArray, Array, Array, Array]:
    """Rows that count and are curved, their roots D, the factor of ``I + D K_AA D``, its lift.

    The lift is what solves the equations for D.
    """
    active = np.flatnonzero((omega > 0.0) & (kappa > 0.0))
    m = active.size
    d, factor = np.empty(m), np.empty((m, row_length(m, 8)))
    for j in range(m):
        i = active[j]
        d[j] = np.sqrt(omega[i] * kappa[i] / (2.0 * lam))
        row = K[i]
        for k in range(j):
            factor[j, k] = d[j] * d[k] * row[active[k]]
        factor[j, j] = 1.0 + d[j] * d[j] * row[i]
    lift = d.copy()
    if m > 0:
        factorise(factor)
        solve(factor, lift)
    return active, d, factor, lift


@compiled()
def _kernel_step(
    K: Array,
    y: Array,
    omega: Array,
    u: Array,
    t: Array,
    kappa: Array,
    lam: float,
    fit_intercept: bool,
    active: IntArray,
    d: Array,
    factor: Array,
    lift: Array,
) -> tuple[Array, float, Array, bool]:
    """Minimise the quadratic model at margins `u`: coefficients, intercept, scores ``K a``.

    The model has slopes `t` and curvatures `kappa`, of which `active`, `d`, `factor` and `lift`
    were made. The last value says whether any row is curved; otherwise the intercept is not
    determined.
    """
    n, m = u.size, active.size
    coef, g = np.zeros(n), np.zeros(n)
    straight = np.flatnonzero((omega > 0.0) & (kappa == 0.0))
    for i in straight:
        coef[i] = omega[i] * y[i] * t[i] / (2.0 * lam)
    add_rows(K, straight, coef[straight], g)
    if m == 0:
        return coef, 0.0, g, False
    right = np.empty(m)
    for j in range(m):
        i = active[j]
        right[j] = d[j] * (y[i] * (t[i] / kappa[i] + u[i]) - g[i])
    solve(factor, right)
    b = 0.0
    if fit_intercept:
        b = (np.dot(d, right) + np.sum(coef)) / np.dot(d, lift)
    moving = d * (right - b * lift)
    coef[active] = moving
    add_rows(K, active, moving, g)
    return coef, b, g, True


def kernel_path(
    K: Array,
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
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Solve for every penalty, from the largest to the smallest, with warm starts.

    Parameters
    ----------
    K : array of shape (n, n)
        Gram matrix.
    y, omega : arrays of shape (n,)
        ±1 labels, and weights that sum to one; zero weight marks rows that are only predicted.
    lambdas : array of shape (L,)
        Decreasing.
    loss : float or loss object
        The exponent r of the leaky family (compiled) or any smooth loss (interpreted).
    tail_exponent : float
        Exponent of the exact scaling tail, 0 when the loss has none or must not use it.
    tol : float
        On the largest error of a row's slope against its coefficient.
    start_coef, start_intercept : array of shape (n,), float
        Where to start; a NaN intercept means from zero.
    signs_only : bool
        Whether a penalty is done as soon as no sign of a score at a row without weight can
        change any more.

    Returns
    -------
    coef (L, n), intercept (L,), scores (L, n) without intercept, interval (L, 2) of the
    intercept, residual (L,), iterations (L,)
    """
    n = y.size
    L = lambdas.size
    coefs = np.zeros((L, n))
    intercepts = np.zeros(L)
    scores = np.zeros((L, n))
    intervals = np.zeros((L, 2))
    residuals = np.zeros(L)
    iterations = np.zeros(L, dtype=np.int64)

    pull = omega * y
    balanced = fit_intercept and abs(np.sum(pull)) < 1e-13 and tail_exponent != 0.0
    flat = np.dot(K, pull)

    coef: Any = np.zeros(n)
    g: Any = np.zeros(n)
    if np.isnan(start_intercept):
        b = best_intercept(loss, g, y, omega) if fit_intercept else 0.0
    else:
        coef = start_coef.copy()
        g = np.dot(K, coef)
        b = start_intercept
    earlier = g + b
    earlier_log = np.log(lambdas[0])
    tail = -1
    factor_lam = 0.0  # the penalty of the factor, which there is not yet
    kappa = omega

    for step in range(L):
        lam = lambdas[step]
        if tail >= 0:
            factor = (lambdas[tail] / lam) ** tail_exponent
            coefs[step] = factor * coefs[tail]
            scores[step] = factor * scores[tail]
            intercepts[step] = factor * intercepts[tail]
            intervals[step] = intercepts[step]
            residuals[step] = residuals[tail]
            continue
        if balanced:
            # All margins at most 1: the loss is linear, f is known and b is an interval.
            low, high = -np.inf, np.inf
            for i in range(n):
                if omega[i] > 0.0:
                    score = flat[i] / (2.0 * lam)
                    if y[i] > 0.0:
                        high = min(high, 1.0 - score)
                    else:
                        low = max(low, -1.0 - score)
            if low <= high:
                coef = pull / (2.0 * lam)
                g = flat / (2.0 * lam)
                b = 0.5 * (low + high)
                coefs[step], scores[step], intercepts[step] = coef, g, b
                intervals[step, 0], intervals[step, 1] = low, high
                iterations[step] = 1
                earlier = g + b
                earlier_log = np.log(lam)
                continue

        f = g + b
        value = mean_value(loss, y * f, omega) + lam * np.dot(coef, g)
        # First linearise where the path is heading; the last solution is the safe fallback.
        ahead = np.log(lam) - np.log(lambdas[step - 1]) if step > 0 else 0.0
        behind = np.log(lambdas[step - 1]) - earlier_log if step > 0 else 0.0
        if behind != 0.0:
            guess = f + (f - earlier) * (ahead / behind)
            predicted = True
        else:
            guess = f
            predicted = False
        if step > 0:
            earlier = f
            earlier_log = np.log(lambdas[step - 1])
        best_residual = np.inf
        # Whether the factor serves once more. Curvatures over the penalty change little along
        # the path, so the last penalty's factor often settles signs.
        steady = signs_only and factor_lam > 0.0
        if steady:
            kappa = kappa * (lam / factor_lam)
            factor_lam = lam
        for iteration in range(max_iter):
            u = y * guess
            t, new_kappa = slope_and_curvature(loss, u)
            if iteration == 0:
                steady = steady and _same_rows_curved(omega, kappa, new_kappa)
            if not steady:
                factor_lam = lam
                kappa = new_kappa
                active, d, lower, lift = _active_rows(K, omega, kappa, lam)
            new_coef, new_b, new_g, curved = _kernel_step(
                K, y, omega, u, t, kappa, lam, fit_intercept, active, d, lower, lift
            )
            if fit_intercept and not curved:
                new_b = best_intercept(loss, new_g, y, omega)
            new_f = new_g + new_b
            new_u = y * new_f
            new_value = mean_value(loss, new_u, omega) + lam * np.dot(new_coef, new_g)
            iterations[step] = iteration + 1
            new_t, _new_kappa = slope_and_curvature(loss, new_u)
            linear_t = t + kappa * (u - new_u)
            residual, change, smallest_margin = 0.0, 0.0, np.inf
            for i in range(n):
                if omega[i] > 0.0:
                    residual = max(residual, abs(new_t[i] - linear_t[i]))
                    change = max(change, abs(new_t[i] - t[i]))
                    smallest_margin = min(smallest_margin, new_u[i])
            rounding = 1e-13 * (1.0 + abs(value))
            if new_value <= value + rounding or residual <= tol:
                coef, b, g, value = new_coef, new_b, new_g, new_value
                best_residual = residual
                # The scaling tail needs precision.
                ahead_of_tail = tail_exponent > 0.0 and smallest_margin >= 1.0
                if residual <= tol or (
                    signs_only
                    and not ahead_of_tail
                    and residual <= _SETTLING * change
                    and _signs_settled(guess, new_f, omega, residual / change)
                ):
                    break
                guess = new_f
                predicted = False
                # A factor serves once more when the step with it should be the last.
                steady = residual * residual <= tol * change or (
                    signs_only and residual <= _CONTRACTION * change
                )
                continue
            steady = False
            if predicted:
                guess = f
                predicted = False
                continue
            # Halve the step from the current point until the objective falls enough.
            f = g + b
            slope = 2.0 * lam * np.dot(g, new_coef - coef) - np.sum(omega * y * t * (new_f - f))
            theta = 0.5
            moved = False
            for _ in range(_HALVINGS):
                try_coef = coef + theta * (new_coef - coef)
                try_g = g + theta * (new_g - g)
                try_b = b + theta * (new_b - b)
                try_value = mean_value(loss, y * (try_g + try_b), omega) + lam * np.dot(
                    try_coef, try_g
                )
                if try_value <= value + _ARMIJO * theta * slope:
                    moved = True
                    break
                theta *= 0.5
            if not moved:
                break
            coef, b, g, value = try_coef, try_b, try_g, try_value
            guess = g + b
        coefs[step], scores[step], intercepts[step] = coef, g, b
        intervals[step, 0], intervals[step, 1] = b, b
        residuals[step] = best_residual
        if tail_exponent > 0.0 and best_residual <= tol:
            beyond = True
            for i in range(n):
                if omega[i] > 0.0 and y[i] * (g[i] + b) < 1.0:
                    beyond = False
                    break
            if beyond:
                tail = step
    return coefs, intercepts, scores, intervals, residuals, iterations


interpreted_kernel_path = kernel_path
kernel_path = compiled()(kernel_path)
