"""Ramp-shaped losses: hinges that stop rising, written as a difference of convex functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress._compile import inner


class _SplitRamp:
    def value(self, u: Array) -> Array:
        """The loss at the margins `u`."""
        return self.convex_part(u) + self.concave_part(u)

    def convex_part(self, u: Array) -> Array:
        raise AssertionError(f"{type(self).__name__} does not define convex_part")

    def concave_part(self, u: Array) -> Array:
        raise AssertionError(f"{type(self).__name__} does not define concave_part")


@dataclass(frozen=True)
class Ramp(_SplitRamp):
    """The hinge clipped at margin s: ``min([1 - u]_+, 1 - s) = [1 - u]_+ - [s - u]_+``.

    Parameters
    ----------
    s : float in [-inf, 0]
        Where the loss becomes flat; -inf gives the hinge.

    References
    ----------
    R. Collobert, F. Sinz, J. Weston and L. Bottou, "Trading convexity for scalability",
    International Conference on Machine Learning, 2006.

    Examples
    --------
    >>> Ramp(s=-1.0).value([-3.0, -1.0, 0.0, 1.0])
    array([2., 2., 1., 0.])
    """

    s: float = -1.0

    def __post_init__(self) -> None:
        if not self.s <= 0.0:
            raise ValueError(f"s={self.s!r} is out of range: expected a number in [-inf, 0].")

    def value(self, u: Array) -> Array:
        """The loss at the margins `u`."""
        # The difference of the two parts would lose digits far to the left.
        return np.minimum(self.convex_part(u), 1.0 - self.s)

    def convex_part(self, u: Array) -> Array:
        """``[1 - u]_+``."""
        return np.maximum(1.0 - np.asarray(u, dtype=float), 0.0)

    def concave_part(self, u: Array) -> Array:
        """``-[s - u]_+``."""
        return -np.maximum(self.s - np.asarray(u, dtype=float), 0.0)

    def derivative(self, u: Array) -> Array:
        """-1 on [s, 1), else 0."""
        u = np.asarray(u, dtype=float)
        return np.where((u >= self.s) & (u < 1.0), -1.0, 0.0)


@inner()
def generalized_ramp_at(u: Any, gamma: Any) -> Any:  # pragma: no cover (compiled)
    """`GeneralizedRamp` at one margin, for compiled loops."""
    return 1.0 - gamma * u if u < 0.0 else max(1.0 - u, 0.0)


@dataclass(frozen=True)
class GeneralizedRamp(_SplitRamp):
    """``[1 - u]_+ - [-(1 - gamma) u]_+``: slope -1 on (0, 1) and -gamma below 0.

    Parameters
    ----------
    gamma : float in [0, 1]
        The slope on the left (the paper's name; no kernel width). 1 gives the hinge, 0 the
        ramp that is flat below zero.

    References
    ----------
    C. P. Diehl, "Rademacher penalty optimization with the generalized ramp loss", 2009.

    Examples
    --------
    >>> GeneralizedRamp(gamma=0.5).value([-2.0, 0.0, 0.5])
    array([2. , 1. , 0.5])
    """

    gamma: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.gamma <= 1.0:
            raise ValueError(f"gamma={self.gamma!r} is out of range: expected a number in [0, 1].")

    def convex_part(self, u: Array) -> Array:
        """``[1 - u]_+``."""
        return np.maximum(1.0 - np.asarray(u, dtype=float), 0.0)

    def concave_part(self, u: Array) -> Array:
        """``-(1 - gamma) [-u]_+``."""
        return np.asarray((self.gamma - 1.0) * np.maximum(-np.asarray(u, dtype=float), 0.0))

    def derivative(self, u: Array) -> Array:
        """-gamma below 0, -1 on [0, 1), else 0."""
        u = np.asarray(u, dtype=float)
        return np.where(u < 0.0, -self.gamma, np.where(u < 1.0, -1.0, 0.0))


def zero_d_one(u: Array, d: float, rho: float) -> Array:
    """The loss that is meant: 1 for a wrong answer, d for none, which is given where |u| <= rho.

    Examples
    --------
    >>> zero_d_one(np.array([-2.0, 0.0, 2.0]), d=0.2, rho=1.0)
    array([1. , 0.2, 0. ])
    """
    return np.where(u < -rho, 1.0, np.where(u <= rho, d, 0.0))


@dataclass(frozen=True)
class DoubleRamp(_SplitRamp):
    """``d R(u - rho) + (1 - d) R(u + rho)`` with ``R(t) = ([mu - t]_+ - [-mu^2 - t]_+) / mu``.

    It lies above the 0-d-1 loss of rejecting when ``|f| <= rho``, and below ``1 + mu``.

    Parameters
    ----------
    d : float in (0, 0.5]
        The cost of a rejection.
    mu : float in (0, 1]
        Width of the slope; smaller is closer to the 0-d-1 loss.
    rho : float >= 0
        Half width of the rejection band.

    References
    ----------
    N. Manwani, K. Desai, S. Sasidharan and R. Sundararajan, "Double ramp loss based reject
    option classifier", Pacific-Asia Conference on Knowledge Discovery and Data Mining, 2015.

    Examples
    --------
    >>> DoubleRamp(d=0.2, mu=1.0, rho=2.0).value([-10.0, 0.0, 10.0])
    array([2. , 0.4, 0. ])
    """

    d: float = 0.2
    mu: float = 1.0
    rho: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.d <= 0.5:
            raise ValueError(f"d={self.d!r} is out of range: expected a number in (0, 0.5].")
        if not 0.0 < self.mu <= 1.0:
            raise ValueError(f"mu={self.mu!r} is out of range: expected a number in (0, 1].")
        if not 0.0 <= self.rho < math.inf:
            raise ValueError(f"rho={self.rho!r} is out of range: expected a number in [0, inf).")

    def value(self, u: Array) -> Array:
        """The loss at the margins `u`."""
        u = np.asarray(u, dtype=float)
        top = 1.0 + self.mu
        near = np.clip((self.mu - u + self.rho) / self.mu, 0.0, top)
        far = np.clip((self.mu - u - self.rho) / self.mu, 0.0, top)
        return np.asarray(self.d * near + (1.0 - self.d) * far)

    def convex_part(self, u: Array) -> Array:
        """``d/mu [mu - u + rho]_+ + (1-d)/mu [mu - u - rho]_+``."""
        return self._two_hinges(u, self.mu)

    def concave_part(self, u: Array) -> Array:
        """``-d/mu [-mu^2 - u + rho]_+ - (1-d)/mu [-mu^2 - u - rho]_+``."""
        return -self._two_hinges(u, -self.mu * self.mu)

    def derivative(self, u: Array) -> Array:
        """A subgradient; at a kink the one of the right side."""
        u = np.asarray(u, dtype=float)
        slope = np.zeros_like(u)
        for weight, t in ((self.d, u - self.rho), (1.0 - self.d, u + self.rho)):
            slope -= weight / self.mu * ((t >= -self.mu * self.mu) & (t < self.mu))
        return slope

    def _two_hinges(self, u: Array, kink: float) -> Array:
        u = np.asarray(u, dtype=float)
        near = self.d * np.maximum(kink - u + self.rho, 0.0)
        far = (1.0 - self.d) * np.maximum(kink - u - self.rho, 0.0)
        return np.asarray((near + far) / self.mu)
