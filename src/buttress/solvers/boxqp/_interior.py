"""Compiled interior point for the box-constrained quadratic program."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array
from buttress._compile import compiled
from buttress.solvers.boxqp._active_set import solve_cholesky

_MAX_STEPS = 60


@compiled()
def _factor(K: Array, root: Array, theta: Array, ridge: float) -> Array:
    """Cholesky factor of ``K + diag(theta)``, or of the small system when `root` has columns."""
    r = root.shape[1]
    if r == 0:
        S = K.copy()
        for i in range(len(theta)):
            S[i, i] += theta[i] + ridge
        return np.linalg.cholesky(S)
    scaled = np.empty_like(root)
    for i in range(len(theta)):
        scaled[i] = root[i] / np.sqrt(theta[i])
    S = np.dot(scaled.T, scaled)
    for i in range(r):
        S[i, i] += 1.0
    return np.linalg.cholesky(S)


@compiled()
def _solve(L: Array, root: Array, theta: Array, r: Array) -> Array:
    if root.shape[1] == 0:
        d = r.copy()
        solve_cholesky(L, d)
        return d
    s = np.dot(root.T, r / theta)
    solve_cholesky(L, s)
    step: Array = (r - np.dot(root, s)) / theta
    return step


@compiled()
def _longest(s: Array, ds: Array, limit: float) -> float:
    for i in range(len(s)):
        if ds[i] < 0.0:
            limit = min(limit, -s[i] / ds[i])
    return limit


@compiled()
def _interior(
    K: Array, root: Array, b: Array, lower: Array, upper: Array, x: Array, tol: float, ridge: float
) -> int:
    """Mehrotra's predictor and corrector when every box has an inside."""
    n = len(x)
    width = upper - lower
    s = 0.5 * width
    w = width - s
    low_rank = root.shape[1] > 0
    middle = lower + s
    g = (np.dot(root, np.dot(root.T, middle)) if low_rank else np.dot(K, middle)) - b
    # z - v = g makes the start dual feasible, and every step keeps it so
    shift = np.mean(np.abs(g)) + 1e-300
    z = np.maximum(g, 0.0) + shift
    v = np.maximum(-g, 0.0) + shift
    for iteration in range(_MAX_STEPS):
        gap = np.dot(s, z) + np.dot(w, v)
        if gap <= tol:
            return iteration
        mu = gap / (2 * n)
        theta = z / s + v / w
        L = _factor(K, root, theta, ridge)
        # predictor: aim at zero complementarity
        dx = _solve(L, root, theta, v - z)
        dz = -z - z / s * dx
        dv = -v + v / w * dx
        primal = _longest(w, -dx, _longest(s, dx, 1.0))
        dual = _longest(v, dv, _longest(z, dz, 1.0))
        step = min(primal, dual)
        after = np.dot(s + step * dx, z + step * dz) + np.dot(w - step * dx, v + step * dv)
        centre = mu * (after / gap) ** 3
        cz = centre - dx * dz
        cv = centre + dx * dv
        dx = _solve(L, root, theta, v - z + cz / s - cv / w)
        dz = cz / s - z - z / s * dx
        dv = cv / w - v + v / w * dx
        primal = _longest(w, -dx, _longest(s, dx, np.inf))
        dual = _longest(v, dv, _longest(z, dz, np.inf))
        step = min(1.0, 0.995 * min(primal, dual))
        if not step > 1e-10:
            return iteration
        for i in range(n):
            s[i] += step * dx[i]
            w[i] -= step * dx[i]
            z[i] += step * dz[i]
            v[i] += step * dv[i]
            x[i] = lower[i] + s[i] if s[i] < w[i] else upper[i] - w[i]
    return _MAX_STEPS


@compiled()
def interior_point(
    K: Array, root: Array, b: Array, lower: Array, upper: Array, x: Array, tol: float, ridge: float
) -> int:
    """Overwrite `x` with a near-minimiser of ``x'Kx/2 - b'x`` strictly inside the box.

    `root` is a matrix with ``root root' = K`` nearly, used when it has columns; without any
    the full matrix is factorised. About 15 factorisations of n³/3 (or n r²) operations.
    Returns their number.
    """
    n = len(x)
    keep = np.flatnonzero(upper > lower)
    m = len(keep)
    if m == n:
        return _interior(K, root, b, lower, upper, x, tol, ridge)
    fixed = lower.copy()
    fixed[keep] = 0.0
    rest = (b - np.dot(K, fixed))[keep]
    inner = x[keep]
    small = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            small[i, j] = K[keep[i], keep[j]]
    steps = _interior(small, root[keep], rest, lower[keep], upper[keep], inner, tol, ridge)
    x[keep] = inner
    return steps
