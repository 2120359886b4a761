"""Minimax probability machines: the hyperplane that two means and covariances bound best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize

from buttress._arrays import Array
from buttress.solvers.sets._minimax_root import COINCIDE, MinimaxFunction, minimax_path

__all__ = [
    "MinimaxFunction",
    "MinimaxResult",
    "Moments",
    "class_moments",
    "minimax_path",
    "solve_maximum_margin",
    "solve_minimax",
]

_SINGULAR = (
    "The class covariances are singular to working precision: use a larger covariance_ridge, or "
    "standardise the features."
)


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and covariance (divisor: the weight) of one class, the ridge included."""

    mean: Array
    covariance: Array

    def deviation(self, w: Array) -> float:
        """``sqrt(w' S w)``."""
        return float(np.sqrt(max(float(w @ self.covariance @ w), 0.0)))


def class_moments(points: Array, weight: Array, ridge: float) -> Moments:
    """Weighted moments of the rows of a class, ``ridge`` added to the variances."""
    share = weight / weight.sum()
    mean = share @ points
    centred = (points - mean) * np.sqrt(share)[:, None]
    covariance = centred.T @ centred
    covariance[np.diag_indices_from(covariance)] += ridge
    return Moments(mean, covariance)


@dataclass(frozen=True, eq=False)
class MinimaxResult:
    """A minimax hyperplane ``w.x + intercept``.

    Attributes
    ----------
    weight_vector : array of shape (p,)
        Scaled to ``w.(mean_p - mean_n) = 1`` (plain), or to margins of one (maximum margin).
    intercept : float
    kappa : float
        Deviations between each mean and the hyperplane (the robust distance used, for the
        maximum-margin machine).
    mixture : float
        The ``t`` of ``(t S_p + (1 - t) S_n) w ~ mean difference``; NaN for maximum margin.
    objective : float
        ``s_p(w) + s_n(w) = 1 / kappa``, or ``||w||^2 / 2`` for maximum margin.
    gap : float
        An upper bound of the error of `objective`.
    n_iter : int
        One for the plain machine, a closed form up to a scalar root; else Newton steps.
    converged : bool
    """

    weight_vector: Array
    intercept: float
    kappa: float
    mixture: float
    objective: float
    gap: float
    n_iter: int
    converged: bool


def solve_minimax(positive: Moments, negative: Moments, *, tol: float = 1e-9) -> MinimaxResult:
    """``min s_p(w) + s_n(w)`` subject to ``w.(mean_p - mean_n) = 1``, without a conic solver.

    With ``w(t)`` proportional to ``(t S_p + (1-t) S_n)^-1 (mean_p - mean_n)`` the solution has
    ``t s_p = (1 - t) s_n``. Simultaneous diagonalisation of ``S_p`` and ``S_p + S_n`` (about
    10 p^3 operations) makes every ``t`` cost O(p).

    Raises
    ------
    ValueError
        When the means coincide, or the covariances are singular.

    Examples
    --------
    >>> one = Moments(np.array([1.0, 0.0]), np.eye(2))
    >>> other = Moments(np.array([-1.0, 0.0]), np.eye(2))
    >>> result = solve_minimax(one, other)
    >>> round(result.kappa, 6), abs(round(result.intercept, 6))
    (1.0, 0.0)
    """
    delta = positive.mean - negative.mean
    total = positive.covariance + negative.covariance
    _check_means(delta, total)
    sizes = np.linalg.eigvalsh(total)
    if not sizes[0] > 1e-15 * len(sizes) * sizes[-1]:
        raise ValueError(_SINGULAR)
    try:
        theta, W = linalg.eigh(positive.covariance, total)
    except linalg.LinAlgError:
        raise ValueError(_SINGULAR) from None
    theta = np.clip(theta, 0.0, 1.0)
    d = W.T @ delta

    def deviations(t: float) -> tuple[Array, float, float]:
        u = d / (t * theta + (1.0 - t) * (1.0 - theta))
        return u, float(np.sqrt(theta @ u**2)), float(np.sqrt((1.0 - theta) @ u**2))

    def imbalance(t: float) -> float:
        _, s_p, s_n = deviations(t)
        return t * s_p - (1.0 - t) * s_n

    edge = 1e-12
    t = float(optimize.brentq(imbalance, edge, 1.0 - edge, xtol=1e-16, rtol=8.9e-16))
    u, s_p, s_n = deviations(t)
    if not min(s_p, s_n) > 0.0:
        raise ValueError(_SINGULAR)
    # t S_p w + (1-t) S_n w = difference: its two parts bound kappa from above, w from below
    upper = max(t * s_p, (1.0 - t) * s_n)
    kappa = float(u @ d) / (s_p + s_n)
    w = (W @ u) / float(u @ d)
    s_p, s_n = s_p / float(u @ d), s_n / float(u @ d)
    gap = max(s_p + s_n - 1.0 / upper, 0.0)
    intercept = 0.5 * (
        kappa * s_p - float(w @ positive.mean) - kappa * s_n - float(w @ negative.mean)
    )
    objective = s_p + s_n
    return MinimaxResult(
        w, intercept, kappa, t, objective, gap, 1, gap <= tol * max(1.0, objective)
    )


def solve_maximum_margin(
    positive: Moments,
    negative: Moments,
    kappa: float,
    *,
    tol: float = 1e-9,
    max_iter: int = 200,
) -> MinimaxResult:
    """``min ||w||^2 / 2`` with both means at least ``1 + kappa s(w)`` from the hyperplane.

    It is the distance between the ellipsoids ``mean + kappa S^½ v``, ``||v|| <= 1``. With
    ``J(w) = w.(mean_p - mean_n) - kappa (s_p(w) + s_n(w))``, positively homogeneous, the
    maximiser of ``J(w) - ||w||^2 / 2`` is the difference of the nearest points: Newton's method,
    p^3/3 operations a step, `max_iter` steps at most.

    Raises
    ------
    ValueError
        When `kappa` is not below that of the minimax machine; the message names it.
    """
    plain = solve_minimax(positive, negative)
    if not kappa < plain.kappa:
        raise ValueError(
            f"kappa={kappa:g} is infeasible: the ellipsoids meet. It must be below "
            f"{plain.kappa:.6g} for these classes."
        )
    delta = positive.mean - negative.mean
    w = plain.weight_vector

    def deviations(w: Array) -> tuple[float, float]:
        return positive.deviation(w), negative.deviation(w)

    def value(w: Array) -> float:
        return 0.5 * float(w @ w) - float(w @ delta) + kappa * sum(deviations(w))

    # the best multiple of the starting direction
    w = w * max(float(w @ delta) - kappa * sum(deviations(w)), 1e-300) / float(w @ w)
    n_iter, last = 0, np.inf
    while True:
        s = deviations(w)
        images = [m.covariance @ w for m in (positive, negative)]
        points = [
            positive.mean - kappa * images[0] / s[0],
            negative.mean + kappa * images[1] / s[1],
        ]
        distance = float(np.linalg.norm(points[0] - points[1]))
        margin = (float(w @ delta) - kappa * sum(s)) / float(np.linalg.norm(w))
        gap = 2.0 / margin**2 - 2.0 / distance**2 if margin > 0 else np.inf
        gradient = w - (points[0] - points[1])
        size = float(np.linalg.norm(gradient))
        # near the end rounding decides; stop when the gradient falls no further
        if size <= 1e-14 * distance or (size <= 1e-9 * distance and size >= 0.5 * last):
            break
        # margin and gap are those of `w`, so that the certificate holds wherever the steps end
        if n_iter == max_iter:
            break
        last = size
        n_iter += 1
        hessian = np.eye(len(w))
        for m, image, d in zip((positive, negative), images, s, strict=True):
            hessian += (kappa / d) * (m.covariance - np.outer(image, image) / d**2)
        step = -linalg.solve(hessian, gradient, assume_a="pos")
        slope, before, length = float(gradient @ step), value(w), 1.0
        # close to the solution the values differ by rounding only and full steps are safe
        while size > 1e-5 * distance and (
            value(w + length * step) > before + 1e-4 * length * slope
        ):
            length *= 0.5
        w = w + length * step
    scaled = (2.0 / margin) * w / float(np.linalg.norm(w))
    objective = 2.0 / margin**2
    gap = max(gap, 0.0)
    # both constraints hold with equality
    s = deviations(scaled)
    intercept = 0.5 * (
        kappa * s[0] - float(scaled @ positive.mean) - kappa * s[1] - float(scaled @ negative.mean)
    )
    return MinimaxResult(
        scaled,
        intercept,
        float(kappa),
        float("nan"),
        objective,
        gap,
        max(1, n_iter),
        gap <= tol * max(1.0, objective),
    )


def _check_means(delta: Array, total: Array) -> None:
    scale = float(np.sqrt(max(float(np.trace(total)), 0.0)))
    if not float(np.linalg.norm(delta)) > 1e-12 * scale:
        raise ValueError(COINCIDE)
