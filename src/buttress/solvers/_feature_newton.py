"""Newton's method along a regularisation path in explicit features.

As `_newton`, for problems with few features: linear kernels and Gram matrices of low rank. A
Hessian costs n p² operations, a gradient 4 n p, so one Hessian (in float32) serves several
steps (gradients in float64) as long as these contract, across penalties too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from buttress._arrays import Array
from buttress._compile import compiled
from buttress.solvers._lapack import cholesky_in_place, cholesky_solve
from buttress.solvers._newton import best_intercept, mean_value, slope_and_curvature

_HALVINGS = 40
# A step with an old Hessian must shrink the change of the slopes to this share of the last.
_CONTRACTION = 0.35
# Relative error of a step with a Hessian in float32, generously.
_ROUNDING = 1e-4
# With so few features a new Hessian costs no more than a step with an old one.
_CHEAP_FEATURES = 12


@compiled()
def _factorised_hessian(
    Phi: Array, omega: Array, kappa: Array, lam: float, fit_intercept: bool
) -> tuple[Array, Array]:
    """Cholesky factor of the Hessian scaled to unit diagonal, and the scaling.

    The scaling makes features of very different sizes harmless.
    """
    n, p = Phi.shape
    m = 0
    v = np.zeros(n)
    for i in range(n):
        if omega[i] > 0.0 and kappa[i] > 0.0:
            v[i] = omega[i] * kappa[i]
            m += 1
    rows = np.empty((m, p), dtype=np.float32)
    m = 0
    for i in range(n):
        if v[i] > 0.0:
            root = np.sqrt(v[i])
            for k in range(p):
                rows[m, k] = root * Phi[i, k]
            m += 1
    size = p + 1 if fit_intercept else p
    H = np.zeros((size, size))
    H[:p, :p] = np.dot(rows.T, rows)
    if fit_intercept:
        H[p, :p] = np.dot(Phi.T, v)
        H[p, p] = np.sum(v)
    for k in range(p):
        H[k, k] += 2.0 * lam
    scale = np.empty(size)
    for k in range(size):
        scale[k] = 1.0 / np.sqrt(max(H[k, k], 1e-300))
    ridge = 1e-12
    while True:
        factor = np.empty((size, size))
        for k in range(size):
            for q in range(k + 1):
                factor[k, q] = H[k, q] * scale[k] * scale[q]
            factor[k, k] += ridge
        if cholesky_in_place(factor) == 0:
            return factor, scale
        ridge *= 10.0


@register_jitable
def _objective(loss: Any, y: Array, f: Array, omega: Array, lam: float, beta: Array) -> Any:
    return mean_value(loss, y * f, omega) + lam * np.dot(beta, beta)


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
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Solve for every penalty, from the largest to the smallest; see `_newton.kernel_path`.

    `Phi` has one row of features per row of data, and the coefficients are their weights.
    """
    n, p = Phi.shape
    L = lambdas.size
    coefs = np.zeros((L, p))
    intercepts = np.zeros(L)
    scores = np.zeros((L, n))
    intervals = np.zeros((L, 2))
    residuals = np.zeros(L)
    iterations = np.zeros(L, dtype=np.int64)

    pull = omega * y
    balanced = fit_intercept and abs(np.sum(pull)) < 1e-13 and tail_exponent != 0.0
    flat_coef = np.dot(Phi.T, pull)
    flat = np.dot(Phi, flat_coef)

    beta: Any = np.zeros(p)
    g: Any = np.zeros(n)
    if np.isnan(start_intercept):
        b = best_intercept(loss, g, y, omega) if fit_intercept else 0.0
    else:
        beta = start_coef.copy()
        g = np.dot(Phi, beta)
        b = start_intercept
    size = p + 1 if fit_intercept else p
    gradient = np.zeros((1, size))
    factor: Any = np.zeros((size, size))
    scale: Any = np.zeros(size)
    fresh = False  # whether `factor` may be used at all
    cheap = p <= _CHEAP_FEATURES
    earlier_beta: Any = beta
    earlier_b = b
    earlier_log = np.log(lambdas[0])
    tail = -1

    for step in range(L):
        lam = lambdas[step]
        if tail >= 0:
            multiple = (lambdas[tail] / lam) ** tail_exponent
            coefs[step] = multiple * coefs[tail]
            scores[step] = multiple * scores[tail]
            intercepts[step] = multiple * intercepts[tail]
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
                beta = flat_coef / (2.0 * lam)
                g = flat / (2.0 * lam)
                b = 0.5 * (low + high)
                coefs[step], scores[step], intercepts[step] = beta, g, b
                intervals[step, 0], intervals[step, 1] = low, high
                iterations[step] = 1
                earlier_beta, earlier_b, earlier_log = beta, b, np.log(lam)
                continue

        value = _objective(loss, y, g + b, omega, lam, beta)
        if step > 0:
            # Start where the path is heading, unless that is worse than the last solution.
            behind = np.log(lambdas[step - 1]) - earlier_log
            if behind != 0.0:
                ahead = (np.log(lam) - np.log(lambdas[step - 1])) / behind
                try_beta = beta + (beta - earlier_beta) * ahead
                try_b = b + (b - earlier_b) * ahead
                try_g = np.dot(Phi, try_beta)
                try_value = _objective(loss, y, try_g + try_b, omega, lam, try_beta)
                earlier_beta, earlier_b = beta, b
                if try_value <= value:
                    beta, b, g, value = try_beta, try_b, try_g, try_value
            else:
                earlier_beta, earlier_b = beta, b
            earlier_log = np.log(lambdas[step - 1])
        change, last, error = np.inf, np.inf, np.inf
        t, kappa = slope_and_curvature(loss, y * (g + b))
        for iteration in range(max_iter):
            iterations[step] = iteration + 1
            curved = np.sum(omega * kappa) > 0.0
            if fit_intercept and not curved:
                # No curvature at all: the minimiser over f is known, and b follows.
                new_beta = np.dot(Phi.T, omega * y * t) / (2.0 * lam)
                new_g = np.dot(Phi, new_beta)
                new_b = best_intercept(loss, new_g, y, omega)
                fresh = False
                renewed = True
            else:
                # An old Hessian serves while its steps contract.
                renewed = cheap or not fresh or change > _CONTRACTION * last or change > 0.1
                if renewed:
                    factor, scale = _factorised_hessian(Phi, omega, kappa, lam, fit_intercept)
                    fresh = True
                z = omega * y * t
                gradient[0, :p] = (2.0 * lam * beta - np.dot(Phi.T, z)) * scale[:p]
                if fit_intercept:
                    gradient[0, p] = -np.sum(z) * scale[p]
                cholesky_solve(factor, gradient)
                new_beta = beta - gradient[0, :p] * scale[:p]
                new_b = b - gradient[0, p] * scale[p] if fit_intercept else 0.0
                new_g = np.dot(Phi, new_beta)
            new_t, new_kappa = slope_and_curvature(loss, y * (new_g + new_b))
            new_change, bend = 0.0, 0.0
            for i in range(n):
                if omega[i] > 0.0:
                    difference = new_t[i] - t[i]
                    new_change = max(new_change, abs(difference))
                    moved = y[i] * (new_g[i] + new_b - g[i] - b)
                    bend = max(bend, abs(difference + kappa[i] * moved))
            if new_change > 1e-3:
                # Far from the solution the objective must fall; halve the step until it does.
                new_value = _objective(loss, y, new_g + new_b, omega, lam, new_beta)
                theta = 1.0
                halved = 0
                while new_value > value + 1e-13 * (1.0 + abs(value)) and halved < _HALVINGS:
                    theta *= 0.5
                    halved += 1
                    try_beta = beta + theta * (new_beta - beta)
                    try_b = b + theta * (new_b - b)
                    try_g = g + theta * (new_g - g)
                    new_value = _objective(loss, y, try_g + try_b, omega, lam, try_beta)
                if halved == _HALVINGS and renewed:
                    break
                if halved > 0:
                    new_beta, new_b, new_g = try_beta, try_b, try_g
                    new_t, new_kappa = slope_and_curvature(loss, y * (new_g + new_b))
                    new_change = np.inf
                value = new_value
            # What is left: after a new Hessian the change beyond the linear one (and the
            # rounding of float32), after an old one no more than a share of the change.
            error = bend + _ROUNDING * new_change if renewed else new_change / _CONTRACTION
            beta, b, g = new_beta, new_b, new_g
            t, kappa = new_t, new_kappa
            last, change = change, new_change
            if error <= tol:
                break
        coefs[step], scores[step], intercepts[step] = beta, g, b
        intervals[step, 0], intervals[step, 1] = b, b
        residuals[step] = error
        if tail_exponent > 0.0 and error <= tol:
            beyond = True
            for i in range(n):
                if omega[i] > 0.0 and y[i] * (g[i] + b) < 1.0:
                    beyond = False
                    break
            if beyond:
                tail = step
    return coefs, intercepts, scores, intervals, residuals, iterations


interpreted_feature_path = feature_path
feature_path = compiled()(feature_path)
