"""Uncertainty sets of a class: weighted means of its rows whose weights a loss admits."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy import optimize, stats

from buttress._arrays import Array
from buttress.losses import ConjugateLoss, HardMargin, NuHinge, require
from buttress.solvers.sets.thresholds import class_threshold

# Of the search for the least level that reaches a point.
_MOST_STEPS, _LARGEST_RIDGE = 500, 1e20


class UncertaintySet:
    """The set ``U[c]`` of one class.

    ``U[c] = { sum_i alpha_i x_i : alpha >= 0, sum alpha_i = 1, (1/m) sum_i l*(m alpha_i) <= c }``
    over the rows of the class, with ``m`` the number of rows of both classes.

    Parameters
    ----------
    points : array-like of shape (m_o, p)
        The rows of the class.
    loss : object
        A set loss with value, derivative and conjugate (`buttress.losses`).
    level : float
        The level ``c``; at least `minimum_level`.
    n_samples : float, optional
        ``m``, the (weighted) number of rows of all classes; default those of this class.
    sample_weight : array-like of shape (m_o,), optional
        Positive; an integer weight equals that many copies of the row.

    Raises
    ------
    ValueError
        When the set is empty.

    Notes
    -----
    In general the set of a quadratic conjugate is contained in, but not equal to, the
    ellipsoid ``q(z) <= m_o L - 1`` cut by the hull, with ``q`` the squared Mahalanobis distance
    and ``L`` the bound on the squared weights; equality needs affinely independent rows.

    References
    ----------
    .. [1] T. Kanamori, A. Takeda, T. Suzuki, "Conjugate relation between loss functions and
       uncertainty sets in classification problems", JMLR 14, 2013.

    Examples
    --------
    >>> from buttress.losses import TruncatedQuadratic
    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> cloud = UncertaintySet(square, TruncatedQuadratic(), level=-0.6)
    >>> value, point = cloud.support([1.0, 0.0])
    >>> round(value, 6), cloud.contains([0.5, 0.5]), cloud.contains([1.0, 1.0])
    (0.887298, True, False)
    """

    def __init__(
        self,
        points: Any,
        loss: Any,
        level: float,
        *,
        n_samples: float | None = None,
        sample_weight: Any = None,
    ) -> None:
        require(loss, ConjugateLoss, "UncertaintySet")
        self.points = np.asarray(points, dtype=np.float64)
        if self.points.ndim != 2 or len(self.points) == 0:
            raise ValueError("points must be a matrix with at least one row.")
        if not np.isfinite(self.points).all():
            raise ValueError("points must be finite: they contain NaN or infinity.")
        n = len(self.points)
        weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
        self.loss, self.level, self.weight = loss, float(level), weight
        self.total = float(weight.sum() if n_samples is None else n_samples)
        if self.total < weight.sum() * (1.0 - 1e-12):
            raise ValueError(
                f"n_samples={n_samples!r} is less than the weight of the points, {weight.sum():g}."
            )
        if not self.level >= self.minimum_level() - 1e-12 * max(1.0, abs(self.minimum_level())):
            raise ValueError(
                f"level={level!r} gives an empty set: the least level is "
                f"{self.minimum_level():.6g}."
            )

    def __repr__(self) -> str:
        return (
            f"UncertaintySet({len(self.points)} points, {self.loss!r}, level={self.level:.6g}, "
            f"n_samples={self.total:g})"
        )

    @property
    def center(self) -> Array:
        """The (weighted) mean of the points, which every set contains."""
        return np.asarray(self.weight @ self.points / self.weight.sum())

    def level_of(self, alpha: Any) -> float:
        """The level of given weights of the rows: ``(1/m) sum_i l*(m alpha_i)``."""
        w = self.weight
        return float(w @ self.loss.conjugate(self.total * np.asarray(alpha) / w)) / self.total

    def minimum_level(self) -> float:
        """The level below which the set is empty: that of uniform weights."""
        return self.level_of(self.weight / self.weight.sum())

    def full_hull_level(self) -> float:
        """The level from which the set is the whole convex hull of the points."""
        none = self.loss.conjugate(np.zeros(1))[0]
        single = self.weight * self.loss.conjugate(self.total / self.weight)
        others = (self.weight.sum() - self.weight) * none if none else 0.0
        return float(np.max(single + others)) / self.total

    def weights(self, direction: Any) -> Array:
        """Weights of the rows whose mean is furthest in `direction`.

        Notes
        -----
        ``alpha_i = l'((s_i - tau) / eta) / m`` with ``s_i`` the row's component: a root search
        for ``tau`` inside one for ``log eta``. A hinge fills its caps greedily.
        """
        s = self.points @ _vector("direction", direction, self.points.shape[1])
        w, total = self.weight, self.total
        if isinstance(self.loss, NuHinge):
            return self._greedy(s)
        width = float(np.ptp(s))
        top = s >= s.max() - 1e-12 * max(width, 1e-300)
        face: Array = np.where(top, w, 0.0) / w[top].sum()
        uniform: Array = w / w.sum()
        if isinstance(self.loss, HardMargin) or self._admits(face):
            return face
        if self.level <= self.minimum_level() + 1e-12 * max(1.0, abs(self.level)):
            return uniform

        def at(log_eta: float) -> Array:
            eta = width * float(np.exp(log_eta))
            r = class_threshold(self.loss, -s / eta, w, total, float(-s.max() / eta))
            alpha = w * self.loss.derivative(r + s / eta) / total
            return np.asarray(alpha / alpha.sum())

        def excess(log_eta: float) -> float:
            return min(self.level_of(at(log_eta)), 1e300) - self.level

        low, high = -1.0, 1.0
        while excess(low) < 0 and low > -30.0:
            low -= 2.0
        while excess(high) > 0 and high < 40.0:
            high += 2.0
        if excess(low) <= 0 or excess(high) >= 0:
            return at(low) if excess(low) <= 0 else uniform
        root = optimize.brentq(excess, low, high, xtol=1e-15, rtol=8.9e-16, maxiter=300)
        return at(float(root))

    def support(self, direction: Any) -> tuple[float, Array]:
        """The support function: the largest ``direction . z`` over the set, and such a point.

        Returns
        -------
        value : float
        point : ndarray of shape (p,)
        """
        point = self.weights(direction) @ self.points
        return float(np.dot(direction, point)), np.asarray(point)

    def boundary(self, n: int = 180) -> Array:
        """`n` boundary points of a set in the plane, in order around it.

        Returns
        -------
        ndarray of shape (n, 2)
        """
        return _planar_boundary(self, self.points.shape[1], n)

    def contains(self, z: Any, *, tol: float = 1e-9) -> bool:
        """Whether `z` is in the set, up to `tol` in the level (and in `z` for hulls).

        Notes
        -----
        The least level that reaches ``z`` is
        ``max_{q, t} q.z + t - (1/m) sum_i l(q.x_i + t)``, a concave problem in p + 1 variables
        solved by Newton's method; the search ends as soon as the level is exceeded.
        """
        z = _vector("z", z, self.points.shape[1])
        if isinstance(self.loss, (NuHinge, HardMargin)):
            return self._hull_contains(z, tol)
        scale = max(float(np.max(np.abs(self.points - self.center))), 1e-300)
        rows = np.column_stack([(self.points - self.center) / scale, np.ones(len(self.points))])
        target = np.append((z - self.center) / scale, 1.0)
        bound = self.level + tol * max(1.0, abs(self.level))
        return _least_level(self.loss, rows, self.weight, self.total, target, bound) <= bound

    # -- pieces ----------------------------------------------------------------------------

    def _admits(self, alpha: Array) -> bool:
        return self.level_of(alpha) <= self.level + 1e-14 * max(1.0, abs(self.level))

    def _caps(self) -> Array:
        return np.asarray(np.minimum(self.loss.slope_bound * self.weight / self.total, 1.0))

    def _greedy(self, s: Array) -> Array:
        order = np.argsort(-s, kind="stable")
        filled = np.minimum(np.cumsum(self._caps()[order]), 1.0)
        alpha = np.zeros(len(s))
        alpha[order] = np.diff(np.r_[0.0, filled])
        return alpha

    def _hull_contains(self, z: Array, tol: float) -> bool:
        n, p = self.points.shape
        scale = max(float(np.max(np.abs(self.points))), 1e-300)
        # least sum of deviations from z
        A = np.hstack([self.points.T / scale, np.eye(p), -np.eye(p)])
        A = np.vstack([A, np.r_[np.ones(n), np.zeros(2 * p)]])
        caps = [(0.0, float(c)) for c in self._caps()] + [(0.0, None)] * (2 * p)
        cost = np.r_[np.zeros(n), np.ones(2 * p)]
        result = optimize.linprog(cost, A_eq=A, b_eq=np.r_[z / scale, 1.0], bounds=caps)
        return bool(result.status == 0 and result.fun <= tol)


def _least_level(
    loss: Any, rows: Array, w: Array, total: float, target: Array, bound: float
) -> float:
    """Maximise ``q . target - (1/m) sum_i w_i l(rows_i . q)``; stop above `bound`.

    Newton's method with a ridge that grows until a step ascends: losses that are straight
    somewhere leave the Hessian without rank.
    """
    q = np.zeros(rows.shape[1])
    q[-1] = class_threshold(loss, np.zeros(len(w)), w, total, 0.0)

    def level(q: Array) -> float:
        with np.errstate(over="ignore"):
            return float(q @ target) - float(w @ loss.value(rows @ q)) / total

    value, ridge = level(q), 0.0
    for _ in range(_MOST_STEPS):
        t = rows @ q
        gradient = target - rows.T @ (w * loss.derivative(t)) / total
        if value > bound or np.abs(gradient).max() <= 1e-13:
            break
        hessian = (rows * (w * loss.curvature(t))[:, None]).T @ rows / total
        least = 1e-12 * max(float(np.trace(hessian)), 1e-12)
        ridge = max(0.1 * ridge, least)
        while True:
            step = np.linalg.solve(hessian + ridge * np.eye(len(q)), gradient)
            trial = q + step
            new = level(trial)
            if new >= value + 0.1 * float(gradient @ step):
                break
            ridge *= 10.0
            if ridge > _LARGEST_RIDGE:
                return value
        gained, q, value = new - value, trial, new
        if gained <= 1e-15 * max(1.0, abs(value)) and ridge <= least:
            break
    return value


def _vector(name: str, given: Any, p: int) -> Array:
    """A point or direction with as many finite coordinates as the set has."""
    vector = np.asarray(given, dtype=np.float64)
    if vector.shape != (p,) or not np.isfinite(vector).all():
        raise ValueError(f"{name}={given!r} is not accepted: expected {p} finite coordinates.")
    return vector


def _planar_boundary(shape: Any, p: int, n: int) -> Array:
    if p != 2:
        raise ValueError(f"boundary needs points in the plane; these have {p} coordinates.")
    if not (isinstance(n, Integral) and n >= 1):
        raise ValueError(f"n={n!r} is out of range: expected a whole number >= 1.")
    angles = np.arange(n) * (2.0 * np.pi / n)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.array([shape.support(d)[1] for d in directions])


class Ellipsoid:
    """``{ z : (z - center)' covariance^-1 (z - center) <= radius^2 }``, a set fixed beforehand.

    Parameters
    ----------
    center : array-like of shape (p,)
    covariance : array-like of shape (p, p)
        Symmetric, positive definite.
    radius : float
        Non-negative.

    Examples
    --------
    >>> ball = Ellipsoid([0.0, 0.0], np.eye(2), 2.0)
    >>> ball.support([0.0, 1.0])[0], ball.contains([1.5, 1.5])
    (2.0, False)
    """

    def __init__(self, center: Any, covariance: Any, radius: float) -> None:
        self.center = np.asarray(center, dtype=np.float64)
        self.covariance = np.asarray(covariance, dtype=np.float64)
        if not radius >= 0:
            raise ValueError(f"radius={radius!r} is out of range: expected a number in [0, inf).")
        self.radius = float(radius)
        try:
            np.linalg.cholesky(self.covariance)
        except np.linalg.LinAlgError:
            raise ValueError("covariance must be symmetric and positive definite.") from None

    def contains(self, z: Any, *, tol: float = 1e-9) -> bool:
        """Whether `z` is in the ellipsoid, up to a relative error `tol` of the radius."""
        d = _vector("z", z, len(self.center)) - self.center
        distance = np.sqrt(float(d @ np.linalg.solve(self.covariance, d)))
        return bool(distance <= self.radius * (1.0 + tol))

    def support(self, direction: Any) -> tuple[float, Array]:
        """The largest ``direction . z``, and the point where it is reached."""
        d = _vector("direction", direction, len(self.center))
        image = self.covariance @ d
        length = np.sqrt(float(d @ image))
        # every point is furthest in no direction
        point = self.center + (self.radius / length if length > 0.0 else 0.0) * image
        return float(d @ point), np.asarray(point)

    def boundary(self, n: int = 180) -> Array:
        """`n` boundary points in the plane, in order."""
        return _planar_boundary(self, len(self.center), n)


def convex_hull(points: Any) -> UncertaintySet:
    """The convex hull of a class: the set of the hard-margin support vector machine.

    Parameters
    ----------
    points : array-like of shape (m, p)
    """
    return UncertaintySet(points, HardMargin(), 0.0)


def reduced_hull(points: Any, nu: float, *, n_samples: float | None = None) -> UncertaintySet:
    """The reduced hull of a class, no weight above ``2 / (m nu)``: the set of the nu-SVM.

    Parameters
    ----------
    points : array-like of shape (m, p)
    nu : float in (0, 1]
    n_samples : float, optional
        Rows in place of the number of points.
    """
    return UncertaintySet(points, NuHinge(nu), 0.0, n_samples=n_samples)


def confidence_region(points: Any, probability: float = 0.95) -> Ellipsoid:
    """The ellipsoid that holds `probability` of a normal class with the points' moments.

    Parameters
    ----------
    points : array-like of shape (m, p)
    probability : float in (0, 1), default=0.95

    Examples
    --------
    >>> region = confidence_region(np.random.default_rng(0).normal(size=(500, 2)))
    >>> round(region.radius, 3)
    2.448
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"probability={probability!r} is out of range: expected (0, 1).")
    points = np.asarray(points, dtype=np.float64)
    radius = float(np.sqrt(stats.chi2.ppf(probability, points.shape[1])))
    covariance = np.atleast_2d(np.cov(points.T, bias=True))
    return Ellipsoid(points.mean(axis=0), covariance, radius)
