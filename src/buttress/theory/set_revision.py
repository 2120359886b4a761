"""From a set to a loss: the revision of uncertainty sets that have no loss of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from buttress._arrays import Array
from buttress.losses import EllipsoidError, TruncatedQuadratic


@dataclass(frozen=True, eq=False)
class QuadraticWeights:
    """The vertex form ``L*(alpha) = alpha' C alpha`` (Example 4 of the paper).

    Parameters
    ----------
    matrix : array-like of shape (m_o, m_o)
        ``C``, positive definite; one row per row of the class.
    """

    matrix: Any

    def __call__(self, alpha: Any) -> float:
        alpha = np.asarray(alpha, dtype=np.float64)
        return float(alpha @ np.asarray(self.matrix) @ alpha)


@dataclass(frozen=True, eq=False)
class EllipsoidLevels:
    """The level-set form ``h*(z) = (sqrt((z - mean)' matrix (z - mean)) + error)^2``.

    Example 5 of the paper with ``error = 0``, Example 6 with an estimation error of the mean.

    Parameters
    ----------
    mean : array-like of shape (p,)
        Mean of the class, known or from other data than the training sample.
    matrix : array-like of shape (p, p)
        Positive definite; the inverse covariance in Example 6.
    error : float
        Radius of the mean's confidence ellipsoid, non-negative.
    """

    mean: Any
    matrix: Any
    error: float = 0.0

    def __call__(self, z: Any) -> float:
        d = np.asarray(z, dtype=np.float64) - np.asarray(self.mean, dtype=np.float64)
        return (float(np.sqrt(d @ np.asarray(self.matrix) @ d)) + self.error) ** 2

    @property
    def size(self) -> float:
        """``sqrt(mean' matrix mean)``."""
        mean = np.asarray(self.mean, dtype=np.float64)
        return float(np.sqrt(mean @ np.asarray(self.matrix) @ mean))


@dataclass(frozen=True, eq=False)
class RevisedLoss:
    """A loss given by its conjugate on ``[0, inf)``, evaluated by numerical maximisation.

    Attributes
    ----------
    on_weights : callable
        ``lbar*(a)`` for a number ``a >= 0``; convex, zero at zero.
    """

    on_weights: Callable[[float], float]
    # The supremum of the derivative.
    slope_bound = np.inf

    def conjugate(self, s: Array) -> Array:
        """``lbar*``, infinite for negative arguments."""
        return _each(lambda a: self.on_weights(a) if a >= 0 else np.inf, s)

    def value(self, t: Array) -> Array:
        """``sup_a a t - lbar*(a)``."""
        return _each(lambda z: z * self._best(z) - self.on_weights(self._best(z)), t)

    def derivative(self, t: Array) -> Array:
        """Where the supremum is reached, to about eight digits."""
        return _each(self._best, t)

    def conjugate_derivative(self, s: Array) -> Array:
        """A central difference of the conjugate; NaN for negative arguments."""

        def slope(a: float) -> float:
            if a < 0:
                return float("nan")
            step = 1e-6 * max(1.0, a)
            low = max(a - step, 0.0)
            return (self.on_weights(a + step) - self.on_weights(low)) / (a + step - low)

        return _each(slope, s)

    def _best(self, z: float) -> float:
        def cost(a: float) -> float:
            return self.on_weights(a) - a * z

        high = 1.0
        while cost(2.0 * high) < cost(high):
            high *= 2.0
            if high > 1e12:
                return float("inf")
        minimum = optimize.minimize_scalar(
            cost, bounds=(0.0, 2.0 * high), method="bounded", options={"xatol": 1e-12 * high}
        )
        return 0.0 if cost(0.0) <= minimum.fun else float(minimum.x)


def _each(function: Callable[[float], float], values: Any) -> Array:
    values = np.asarray(values, dtype=np.float64)
    return np.array([function(float(v)) for v in values.ravel()]).reshape(values.shape)


def revise_uncertainty_set(
    positive: Callable[[Any], float],
    negative: Callable[[Any], float],
    n_positive: int,
    n_negative: int,
    *,
    means: tuple[Any, Any] | None = None,
) -> Any:
    """The loss whose uncertainty sets are nearest to given parametrised ones.

    Parameters
    ----------
    positive, negative : callables
        Vertex form: ``L*`` of the weights of the class's rows, such that the class's set is
        ``{ sum alpha_i x_i : L*(alpha) <= c }``. Level-set form (with `means`): ``h*`` of a
        point. Convex. `QuadraticWeights` and `EllipsoidLevels` give losses in closed form.
    n_positive, n_negative : int
        Rows of the classes.
    means : pair of array-like, optional
        Means of the positive and the negative class; marks the level-set form. They and what
        `positive` and `negative` contain must not come from the training sample, and one of
        them must differ from zero (shift the data if need be).

    Returns
    -------
    TruncatedQuadratic, EllipsoidError or RevisedLoss
        The conjugate of the loss is
        ``lbar*(a) = L_p*(a/m 1) + L_n*(a/m 1) - L_p*(0) - L_n*(0)`` in the vertex form and
        ``sum_o h_o*(a (m_o/m) mean_o) - h_o*(0)`` in the level-set form. If the given sets
        already belong to a loss, it is that loss. `UncertaintySet` goes the other way.

    References
    ----------
    .. [1] T. Kanamori, A. Takeda, T. Suzuki, "Conjugate relation between loss functions and
       uncertainty sets in classification problems", JMLR 14, 2013, section 4.

    Examples
    --------
    >>> ball = QuadraticWeights(np.eye(3))
    >>> revise_uncertainty_set(ball, ball, 3, 3)
    TruncatedQuadratic(b1=0.0, b2=0.16666666666666666)
    """
    if n_positive < 1 or n_negative < 1:
        raise ValueError("n_positive and n_negative must be at least one.")
    total = n_positive + n_negative
    if means is None:
        if isinstance(positive, QuadraticWeights) and isinstance(negative, QuadraticWeights):
            k = float(np.sum(positive.matrix) + np.sum(negative.matrix))
            return TruncatedQuadratic(b1=0.0, b2=k / total**2)
        ones = np.ones(n_positive), np.ones(n_negative)
        return _general((positive, negative), (ones[0] / total, ones[1] / total))
    directions = tuple(
        np.asarray(mean, dtype=np.float64) * (count / total)
        for mean, count in zip(means, (n_positive, n_negative), strict=True)
    )
    if not any(np.any(d) for d in directions):
        raise ValueError("Both means are zero: shift the data so that one is not.")
    closed = _ellipsoids(positive, negative, means, n_positive / total, n_negative / total)
    return _general((positive, negative), directions) if closed is None else closed


def _general(functions: tuple[Any, Any], directions: tuple[Any, ...]) -> RevisedLoss:
    start = sum(f(0.0 * d) for f, d in zip(functions, directions, strict=True))

    def on_weights(a: float) -> float:
        return float(sum(f(a * d) for f, d in zip(functions, directions, strict=True)) - start)

    return RevisedLoss(on_weights)


def _ellipsoids(
    positive: Any, negative: Any, means: tuple[Any, Any], share_p: float, share_n: float
) -> TruncatedQuadratic | EllipsoidError | None:
    """Closed forms of Examples 5 and 6, where they apply."""
    levels = positive, negative
    if not all(isinstance(f, EllipsoidLevels) for f in levels):
        return None
    if not all(np.allclose(f.mean, mean) for f, mean in zip(levels, means, strict=True)):
        return None
    sizes = [f.size for f in levels]
    if positive.error == 0.0 and negative.error == 0.0:
        b1 = -2.0 * (share_p * sizes[0] ** 2 + share_n * sizes[1] ** 2)
        b2 = share_p**2 * sizes[0] ** 2 + share_n**2 * sizes[1] ** 2
        return TruncatedQuadratic(b1=b1, b2=b2)
    used = [k for k in (0, 1) if sizes[k] > 0]
    if len(used) == 2:
        return None
    # one mean is zero: d^2 u(m z / (m_o d^2); r / d)
    d, error, share = sizes[used[0]], levels[used[0]].error, (share_p, share_n)[used[0]]
    return EllipsoidError(h=error / d, omega=share * d**2, scale=d**2)
