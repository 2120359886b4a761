"""Set losses of ``z = rho - y f(x)``: convex, non-decreasing, differentiable where finite.

Each of them describes an uncertainty set by its conjugate: the weights ``alpha`` of the rows
of a class are admitted at level ``c`` when ``(1/m) sum_i l*(m alpha_i) <= c``. The conjugate
is ``+inf`` for a negative argument, and its derivative is NaN where the conjugate is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.losses._base import UnboundedSlope
from buttress.losses.margin import LogisticScalars, TruncatedQuadraticScalars

# exp overflows beyond this; no solution lies there, only trial steps do
_EXPONENT_CAP = 700.0


def _positive(owner: Any, **values: float) -> None:
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise ValueError(
                f"{type(owner).__name__}: {name}={value!r} is out of range: "
                "expected a number in (0, inf)."
            )


@dataclass(frozen=True)
class TruncatedQuadratic(UnboundedSlope):
    """``l(z) = max(z - b1, 0)^2 / (4 b2)``; by default ``max(1 + z, 0)^2``.

    Parameters
    ----------
    b1 : float
        Where the loss begins to rise.
    b2 : float
        The coefficient of ``a^2`` in the conjugate, positive.

    Notes
    -----
    The conjugate is ``b1 a + b2 a^2`` for ``a >= 0``. The default is Example 2 of [1]_ and
    equals ``EllipsoidError(h=0, omega=0.5)``; other parameters are what the revision of an
    ellipsoid gives (Examples 4 and 5).

    References
    ----------
    .. [1] T. Kanamori, A. Takeda, T. Suzuki, "Conjugate relation between loss functions and
       uncertainty sets in classification problems", JMLR 14, 2013.

    Examples
    --------
    >>> float(TruncatedQuadratic().value(1.0))
    4.0
    """

    b1: float = -1.0
    b2: float = 0.25

    def __post_init__(self) -> None:
        _positive(self, b2=self.b2)
        if not np.isfinite(self.b1):
            raise ValueError(f"TruncatedQuadratic: b1={self.b1!r} must be a finite number.")

    @property
    def curvature_bound(self) -> float:
        """Lipschitz constant of the derivative."""
        return 0.5 / self.b2

    @property
    def margin_scalars(self) -> TruncatedQuadraticScalars:
        """The loss at one margin (`OfNegative`), for compiled loops."""
        return TruncatedQuadraticScalars(float(self.b1), float(self.b2))

    def value(self, t: Array) -> Array:
        """The loss at `t`."""
        return np.asarray(np.maximum(np.asarray(t) - self.b1, 0.0) ** 2 / (4.0 * self.b2))

    def derivative(self, t: Array) -> Array:
        """Its derivative."""
        return np.asarray(np.maximum(np.asarray(t) - self.b1, 0.0) / (2.0 * self.b2))

    def curvature(self, t: Array) -> Array:
        """Its second derivative, from the right at the kink."""
        return np.where(np.asarray(t) >= self.b1, 0.5 / self.b2, 0.0)

    def threshold(self, s: Array, w: Array, target: float) -> float:
        """The root ``r`` of ``sum_i w_i l'(r - s_i) = target``, for a positive target.

        The sum is piecewise linear in r with kinks at ``s_i + b1``; one sort finds the piece.
        """
        order = np.argsort(s)
        ahead = s[order] - s[order[0]]
        reached = np.cumsum(w[order])
        due = 2.0 * self.b2 * target
        # the sum at the kink of every row, over the rows before it
        before = ahead * reached - np.cumsum(w[order] * ahead)
        k = max(int(np.searchsorted(before, due, side="right")) - 1, 0)
        kinks, weight = ahead[: k + 1], w[order[: k + 1]]
        root = (due + float(weight @ kinks)) / float(reached[k])
        # what the sums have rounded
        root += (due - float(weight @ np.maximum(root - kinks, 0.0))) / float(reached[k])
        return float(root + s[order[0]] + self.b1)

    def conjugate(self, s: Array) -> Array:
        """``sup_t s t - value(t)``."""
        s = np.asarray(s)
        return np.where(s >= 0, s * (self.b1 + self.b2 * s), np.inf)

    def conjugate_derivative(self, s: Array) -> Array:
        """The derivative of `conjugate`: the point where the supremum is reached."""
        s = np.asarray(s)
        return np.where(s >= 0, self.b1 + 2.0 * self.b2 * s, np.nan)


@dataclass(frozen=True)
class EllipsoidError(UnboundedSlope):
    """``l(z) = scale * u(z / omega; h)``: an ellipsoid whose centre is known up to an error.

    Parameters
    ----------
    h : float
        Size of the centre's estimation error relative to its distance from the origin,
        non-negative. The loss is linear on ``[-2 h omega, 2 h omega]``.
    omega : float
        Scale of the argument, positive; consistency is proved for
        ``omega > (1 + 2 h) / (4 (1 + h))``.
    scale : float
        Factor of the loss, positive.

    Notes
    -----
    ``u(z; h) = H((z/2 + 1 + h)_+) + ((z/2 - h)_+)^2`` with ``H(t) = t^2`` for ``t <= 1`` and
    ``2 t - 1`` beyond, which is equation (23) of [1]_; its conjugate is
    ``(|a - 1| + h)^2 - (1 + h)^2`` for ``a >= 0``.

    References
    ----------
    .. [1] T. Kanamori, A. Takeda, T. Suzuki, "Conjugate relation between loss functions and
       uncertainty sets in classification problems", JMLR 14, 2013.

    Examples
    --------
    >>> float(EllipsoidError(h=1.0).value(0.0))
    3.0
    """

    h: float = 0.0
    omega: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        _positive(self, omega=self.omega, scale=self.scale)
        if not (np.isfinite(self.h) and self.h >= 0):
            raise ValueError(
                f"EllipsoidError: h={self.h!r} is out of range: expected a number in [0, inf)."
            )

    @property
    def curvature_bound(self) -> float:
        """Lipschitz constant of the derivative."""
        return self.scale / (2.0 * self.omega**2)

    def value(self, t: Array) -> Array:
        """The loss at `t`."""
        half = np.asarray(t) / (2.0 * self.omega)
        left = np.maximum(half + 1.0 + self.h, 0.0)
        right = np.maximum(half - self.h, 0.0)
        bent = np.minimum(left, 1.0)
        # H(t) = t^2 up to one and its tangent beyond
        return np.asarray(self.scale * (bent**2 + 2.0 * (left - bent) + right**2))

    def derivative(self, t: Array) -> Array:
        """Its derivative."""
        half = np.asarray(t) / (2.0 * self.omega)
        slope = np.clip(half + 1.0 + self.h, 0.0, 1.0) + np.maximum(half - self.h, 0.0)
        return np.asarray(slope * (self.scale / self.omega))

    def curvature(self, t: Array) -> Array:
        """Its second derivative, from the right at the kinks."""
        half = np.asarray(t) / (2.0 * self.omega)
        left = (half >= -1.0 - self.h) & (half < -self.h)
        return np.where(left | (half >= self.h), self.curvature_bound, 0.0)

    def conjugate(self, s: Array) -> Array:
        """``sup_t s t - value(t)``."""
        s = np.asarray(s)
        a = s * (self.omega / self.scale)
        # (|a - 1| + h)^2 - (1 + h)^2 without the cancellation near a = 0
        below = a * (a - 2.0 * (1.0 + self.h))
        above = a * (a - 2.0 * (1.0 - self.h)) - 4.0 * self.h
        return np.where(s >= 0, self.scale * np.where(a <= 1.0, below, above), np.inf)

    def conjugate_derivative(self, s: Array) -> Array:
        """A derivative of `conjugate`; at its kink ``s = scale / omega`` the middle one."""
        s = np.asarray(s)
        a = s * (self.omega / self.scale) - 1.0
        return np.where(s >= 0, 2.0 * self.omega * (a + self.h * np.sign(a)), np.nan)


@dataclass(frozen=True)
class Exponential(UnboundedSlope):
    """``l(z) = exp(z)``: the weights of a class stay near uniform in Kullback-Leibler divergence.

    Notes
    -----
    The conjugate is ``a log a - a`` for ``a >= 0`` (zero at zero).

    Examples
    --------
    >>> float(Exponential().conjugate(1.0))
    -1.0
    """

    # Lipschitz constant of the derivative: there is none.
    curvature_bound = np.inf

    def value(self, t: Array) -> Array:
        """The loss at `t`."""
        return np.asarray(np.exp(np.minimum(t, _EXPONENT_CAP)))

    def derivative(self, t: Array) -> Array:
        """Its derivative."""
        return self.value(t)

    def curvature(self, t: Array) -> Array:
        """Its second derivative."""
        return self.value(t)

    def threshold(self, s: Array, w: Array, target: float) -> float:
        """The root ``r`` of ``sum_i w_i l'(r - s_i) = target``, in closed form."""
        lowest = float(np.min(s))
        return float(np.log(target / (w @ np.exp(lowest - s))) + lowest)

    def conjugate(self, s: Array) -> Array:
        """``sup_t s t - value(t)``."""
        s = np.asarray(s)
        return np.where(s >= 0, _entropy(s) - s, np.inf)

    def conjugate_derivative(self, s: Array) -> Array:
        """The derivative of `conjugate`: ``log s``, minus infinity at zero."""
        return _log(np.asarray(s))


@dataclass(frozen=True)
class Logistic:
    """``l(z) = slope * log(1 + exp(z))``.

    Parameters
    ----------
    slope : float
        The supremum of the derivative, positive. The mean weight of a class's rows is
        ``m / m_class``, so a classifier needs a slope above ``m / min(m_+, m_-)``; the plain
        logistic function (``slope=1``) never is.

    Notes
    -----
    With ``p = a / slope`` the conjugate is ``slope (p log p + (1 - p) log(1 - p))`` on
    ``[0, slope]``. With ``slope = 2 / nu`` it is the smooth relative of `NuHinge`.

    Examples
    --------
    >>> round(float(Logistic().value(0.0)), 6)
    0.693147
    """

    slope: float = 1.0

    def __post_init__(self) -> None:
        _positive(self, slope=self.slope)

    @property
    def curvature_bound(self) -> float:
        """Lipschitz constant of the derivative."""
        return 0.25 * self.slope

    @property
    def slope_bound(self) -> float:
        """The supremum of the derivative."""
        return self.slope

    @property
    def margin_scalars(self) -> LogisticScalars:
        """The loss at one margin (`OfNegative`), for compiled loops."""
        return LogisticScalars(float(self.slope))

    def value(self, t: Array) -> Array:
        """The loss at `t`."""
        return np.asarray(self.slope * np.logaddexp(0.0, t))

    def derivative(self, t: Array) -> Array:
        """Its derivative."""
        return np.asarray(self.slope * _sigmoid(np.asarray(t, dtype=np.float64)))

    def curvature(self, t: Array) -> Array:
        """Its second derivative."""
        t = np.asarray(t, dtype=np.float64)
        return np.asarray(self.slope * _sigmoid(t) * _sigmoid(-t))

    def conjugate(self, s: Array) -> Array:
        """``sup_t s t - value(t)``."""
        p = np.asarray(s) / self.slope
        inside = (p >= 0) & (p <= 1)
        return np.where(inside, self.slope * (_entropy(p) + _entropy(1.0 - p)), np.inf)

    def conjugate_derivative(self, s: Array) -> Array:
        """The derivative of `conjugate`: the logit of ``s / slope``."""
        p = np.asarray(s) / self.slope
        return np.where((p >= 0) & (p <= 1), _log(p) - _log(1.0 - p), np.nan)


@dataclass(frozen=True)
class LogBarrier(UnboundedSlope):
    """``l(z) = -1 - log(-z)`` for ``z < 0``, infinite beyond: the loss with conjugate ``-log``.

    Its set bounds the geometric mean of a class's weights from below. The dual of the leaky
    hockey stick loss is the distance of two such sets [1]_.

    References
    ----------
    .. [1] O. Kwon, H. Zou, "Leaky hockey stick loss: the first negatively divergent
       margin-based loss function for classification", JMLR 24, 2023, Appendix B.

    Examples
    --------
    >>> float(LogBarrier().conjugate(1.0))
    -0.0
    """

    # Lipschitz constant of the derivative: there is none.
    curvature_bound = np.inf

    def value(self, t: Array) -> Array:
        """The loss at `t`."""
        t = np.asarray(t, dtype=np.float64)
        return np.where(t < 0, -1.0 - _log(-t), np.inf)

    def derivative(self, t: Array) -> Array:
        """Its derivative, infinite where the loss is."""
        t = np.asarray(t, dtype=np.float64)
        return np.where(t < 0, -1.0 / np.where(t < 0, t, -1.0), np.inf)

    def curvature(self, t: Array) -> Array:
        """Its second derivative, infinite where the loss is."""
        t = np.asarray(t, dtype=np.float64)
        return np.where(t < 0, 1.0 / np.where(t < 0, t, -1.0) ** 2, np.inf)

    def conjugate(self, s: Array) -> Array:
        """``sup_t s t - value(t)``."""
        s = np.asarray(s, dtype=np.float64)
        return np.where(s > 0, -_log(s), np.inf)

    def conjugate_derivative(self, s: Array) -> Array:
        """The derivative of `conjugate`."""
        s = np.asarray(s, dtype=np.float64)
        return np.where(s > 0, -1.0 / np.where(s > 0, s, 1.0), np.nan)


def _entropy(p: Array) -> Array:
    """``p log p`` with its limit at zero; zero for negative `p`."""
    return np.asarray(p * np.log(np.where(p > 0, p, 1.0)))


def _log(s: Array) -> Array:
    """The logarithm, minus infinity at zero and NaN below, without warnings."""
    return np.where(s > 0, np.log(np.where(s > 0, s, 1.0)), np.where(s == 0, -np.inf, np.nan))


def _sigmoid(t: Array) -> Array:
    e = np.exp(-np.abs(t))
    return np.where(t >= 0, 1.0, e) / (1.0 + e)
