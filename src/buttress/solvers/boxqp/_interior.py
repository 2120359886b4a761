"""Interior point for the box-constrained quadratic program: large factorisations, few steps."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from buttress._arrays import Array

_MOST_STEPS = 60


def interior_point(
    K: Array, root: Array, b: Array, lower: Array, upper: Array, x: Array, tol: float, ridge: float
) -> int:
    """Overwrite `x` with a near-minimiser of ``x'Kx/2 - b'x`` strictly inside the box.

    `root` is a matrix with ``root root' = K`` nearly, used when it has columns; without any
    the full matrix is factorised. About 15 factorisations of n³/3 (or n r²) operations.
    Returns their number.
    """
    keep = np.flatnonzero(upper > lower)
    if len(keep) == len(x):
        return _interior(K, root, b, lower, upper, x, tol, ridge)
    fixed = lower.copy()
    fixed[keep] = 0.0
    inner = x[keep]
    steps = _interior(
        K[np.ix_(keep, keep)],
        root[keep],
        (b - K @ fixed)[keep],
        lower[keep],
        upper[keep],
        inner,
        tol,
        ridge,
    )
    x[keep] = inner
    return steps


def _interior(
    K: Array, root: Array, b: Array, lower: Array, upper: Array, x: Array, tol: float, ridge: float
) -> int:
    """Mehrotra's predictor and corrector when every box has an inside."""
    n = len(x)
    width = upper - lower
    s = 0.5 * width
    w = width - s
    middle = lower + s
    g = (root @ (root.T @ middle) if root.shape[1] else K @ middle) - b
    # z - v = g makes the start dual feasible, and every step keeps it so
    shift = np.mean(np.abs(g)) + 1e-300
    z = np.maximum(g, 0.0) + shift
    v = np.maximum(-g, 0.0) + shift
    for iteration in range(_MOST_STEPS):
        gap = s @ z + w @ v
        if gap <= tol:
            return iteration
        mu = gap / (2 * n)
        theta = z / s + v / w
        L = _factor(K, root, theta, ridge)
        # predictor: aim at zero complementarity
        dx = _solve(L, root, theta, v - z)
        dz = -z - z / s * dx
        dv = -v + v / w * dx
        step = min(1.0, _longest(s, dx), _longest(w, -dx), _longest(z, dz), _longest(v, dv))
        after = (s + step * dx) @ (z + step * dz) + (w - step * dx) @ (v + step * dv)
        centre = mu * (after / gap) ** 3
        cz = centre - dx * dz
        cv = centre + dx * dv
        dx = _solve(L, root, theta, v - z + cz / s - cv / w)
        dz = cz / s - z - z / s * dx
        dv = cv / w - v + v / w * dx
        farthest = min(_longest(s, dx), _longest(w, -dx), _longest(z, dz), _longest(v, dv))
        step = min(1.0, 0.995 * farthest)
        if not step > 1e-10:
            return iteration
        s += step * dx
        w -= step * dx
        z += step * dz
        v += step * dv
        x[:] = np.where(s < w, lower + s, upper - w)
    return _MOST_STEPS


def _factor(K: Array, root: Array, theta: Array, ridge: float) -> Array:
    """Cholesky factor of ``K + diag(theta)``, or of the small system when `root` has columns."""
    if root.shape[1]:
        scaled = root / np.sqrt(theta)[:, None]
        S = np.asarray(scaled.T @ scaled + np.eye(root.shape[1]), dtype=np.float64)
    else:
        S = np.asarray(K + np.diag(theta + ridge), dtype=np.float64)
    L, failed = lapack.dpotrf(S, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("Matrix is not positive definite.")
    return np.asarray(L)


def _solve(L: Array, root: Array, theta: Array, r: Array) -> Array:
    if not root.shape[1]:
        return np.asarray(lapack.dpotrs(L, r, lower=1)[0])
    s = lapack.dpotrs(L, root.T @ (r / theta), lower=1)[0]
    return np.asarray((r - root @ s) / theta)


def _longest(s: Array, ds: Array) -> float:
    """How far `s` may move along `ds` and stay positive."""
    falling = ds < 0.0
    return float(np.min(-s[falling] / ds[falling])) if falling.any() else np.inf
