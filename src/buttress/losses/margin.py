"""A set loss as a loss of the margin, and set losses at one margin for compiled loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array


class TruncatedQuadraticScalars(NamedTuple):
    """`TruncatedQuadratic` at one margin ``u = -z``, for compiled loops."""

    b1: float
    b2: float

    def value(self, u: Any) -> Any:
        """The loss."""
        beyond = max(-u - self.b1, 0.0)
        return beyond * beyond / (4.0 * self.b2)

    def slopes(self, u: Any) -> Any:
        """Minus the derivative, and the curvature."""
        zero, steep = type(u)(0.0), type(u)(0.5 / self.b2)
        beyond = -u - type(u)(self.b1)
        return (steep * beyond, steep) if beyond >= zero else (zero, zero)


class LogisticScalars(NamedTuple):
    """`Logistic` at one margin ``u = -z``, for compiled loops."""

    slope: float

    def value(self, u: Any) -> Any:
        """The loss."""
        return self.slope * (max(-u, 0.0) + np.log1p(np.exp(-abs(u))))

    def slopes(self, u: Any) -> Any:
        """Minus the derivative, and the curvature."""
        one, steep = type(u)(1.0), type(u)(self.slope)
        small = type(u)(np.exp(-abs(u)))
        share = one / (one + small)
        return steep * share * (small if u > type(u)(0.0) else one), steep * share * share * small


@dataclass(frozen=True)
class OfNegative:
    """A set loss, a function of ``z = rho - y f``, as a function of the margin ``u = -z``.

    With it `Logistic` and `TruncatedQuadratic` (the squared hinge) serve where a loss of the
    margin is wanted, and take the compiled solvers as the leaky hockey stick does.

    Parameters
    ----------
    loss : object
        With methods value, derivative and curvature, and conjugate if a certificate is wanted.

    Examples
    --------
    >>> from buttress import LeakyHockeyStickClassifierCV
    >>> from buttress.losses import Logistic, OfNegative
    >>> logistic = OfNegative(Logistic())
    >>> logistic.derivative(np.array([0.0])).tolist()
    [-0.5]
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    >>> model = LeakyHockeyStickClassifierCV(loss=logistic, kernel="linear", alphas=[0.1], cv=2)
    >>> model.fit(X, y).predict([[-1.0], [4.0]]).tolist()
    [0, 1]
    """

    loss: Any

    @property
    def curvature_bound(self) -> float:
        """Largest second derivative."""
        return float(self.loss.curvature_bound)

    @property
    def scalars(self) -> Any:
        """The loss at one margin, for compiled loops; only where the set loss knows it."""
        return self.loss.margin_scalars

    def value(self, u: Array) -> Array:
        """The loss at the margins `u`."""
        return np.asarray(self.loss.value(-np.asarray(u)))

    def derivative(self, u: Array) -> Array:
        """Its derivative."""
        return -np.asarray(self.loss.derivative(-np.asarray(u)))

    def curvature(self, u: Array) -> Array:
        """Its second derivative."""
        return np.asarray(self.loss.curvature(-np.asarray(u)))

    def __getattr__(self, name: str) -> Any:
        # With a conjugate, ``sup_u s u - value(u)``, where the loss within has one.
        inner: Any = self.__dict__.get("loss")
        if name == "conjugate" and hasattr(inner, "conjugate"):
            return lambda s: np.asarray(inner.conjugate(-np.asarray(s)))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
