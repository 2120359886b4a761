"""The published majorise-minimise algorithm of the leaky hockey stick paper, corrected.

It is kept because the published timings are of it: fixed curvature, one eigendecomposition
for the whole path, warm starts, and its stopping rule on the squared step. At small penalties
it stops far from the solution; `spectral` is exact and faster.
"""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array
from buttress.losses import LeakyHockeyStick
from buttress.solvers.smooth.geometry import ScaledGeometry
from buttress.solvers.smooth.paths import Paths


def majorise_minimise_path(
    geometry: ScaledGeometry,
    y: Array,
    omega: Array,
    penalties: Array,
    loss: LeakyHockeyStick,
    *,
    weight: Array | None,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
) -> Paths:
    """Run the paper's algorithm down the path of one problem.

    Parameters
    ----------
    geometry : ScaledGeometry
    y, omega : arrays of shape (n,)
        Labels ±1, and weights that sum to one; zero holds a row out.
    weight : array of shape (n,), optional
        Row weights of which `omega` is a multiple or zero.
    penalties : array of shape (L,)
        On the original scale, decreasing.
    tol : float
        A penalty is done when the squared step of coefficients and intercept falls below this;
        the paper's software uses 1e-5.
    max_iter : int
        Iterations over the whole path, as in the paper's software; penalties after that keep
        the last solution and count as not converged.

    Notes
    -----
    One iteration costs 4 n r operations at rank r, after one eigendecomposition.
    """
    n = len(y)
    v = np.ones(n) if weight is None else weight
    lambdas = np.asarray(penalties, dtype=np.float64) / geometry.scale
    basis = geometry.eigenbasis(weight, n * np.finfo(np.float64).eps)
    W, S = basis.features, basis.eigenvalues
    w = W.T @ v
    # The curvature of row i is at most `bound * v_i`.
    bound = loss.curvature_bound * float((omega / v).max())
    b, a0 = np.zeros(W.shape[1]), 0.0
    f = np.zeros(n)
    count = len(lambdas)
    intercepts, scores = np.zeros(count), np.zeros((count, n))
    weights = np.zeros((count, W.shape[1]))
    iterations, converged = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
    left = max_iter
    for index, lam in enumerate(lambdas):
        inverse = 1.0 / (S + 2.0 * lam / bound)
        mass = float(v.sum()) - float(np.sum(w * w * inverse))
        while left > 0:
            left -= 1
            iterations[index] += 1
            z = omega * y * loss.derivative(y * f)
            gradient, step0 = W.T @ z + 2.0 * lam * b, 0.0
            if fit_intercept:
                step0 = (float(z.sum()) - float((w * inverse) @ gradient)) / (bound * mass)
            step = inverse * (gradient / bound - w * step0)
            b -= step
            a0 -= step0
            f = a0 + W @ b
            if step0**2 + float(step @ step) < tol:
                converged[index] = True
                break
        intercepts[index], weights[index] = a0, b
        scores[index] = f - a0
    return Paths(
        intercepts[None],
        np.repeat(intercepts[None, :, None], 2, axis=2),
        [basis.coefficients(weights)],
        iterations[None],
        converged[None],
        "mm",
        geometry.matrix,
        scores[None],
    )
