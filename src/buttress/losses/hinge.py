"""Hinge-shaped convex margin losses: sums of terms ``w [m - u]_+`` of the margin ``u = y f(x)``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array
from buttress.losses._base import UnboundedSlope


def _check_rejection_cost(d: float) -> None:
    if not 0.0 < d <= 0.5:
        raise ValueError(f"d={d!r} is out of range: expected a rejection cost in (0, 0.5].")


class _StackedHinge:
    """``w1 [m - u]_+ + w2 [-u]_+``, the shape shared by the losses of this file."""

    @property
    def terms(self) -> tuple[tuple[float, float], ...]:
        """The pairs (weight, margin) of ``sum_k weight_k [margin_k - u]_+``."""
        raise AssertionError(f"{type(self).__name__} does not define terms")

    def value(self, u: Array) -> Array:
        """The loss at the margins `u`."""
        u = np.asarray(u, dtype=float)
        return np.asarray(sum(w * np.maximum(m - u, 0.0) for w, m in self.terms))

    def derivative(self, u: Array) -> Array:
        """A subgradient; at a kink the one of the right side (the smallest in size)."""
        u = np.asarray(u, dtype=float)
        return np.asarray(sum(-w * (u < m) for w, m in self.terms))

    def conjugate(self, s: Array) -> Array:
        """``sup_u s u - value(u)``: piecewise linear on ``[-sum of weights, 0]``, else inf."""
        s = np.asarray(s, dtype=float)
        total = sum(w for w, _ in self.terms)
        # The supremum is reached at a kink, and the conjugate is the largest over the kinks.
        kinks = [m * s - self.value(np.asarray(m)) for _, m in self.terms]
        return np.where((s >= -total) & (s <= 0.0), np.max(kinks, axis=0), np.inf)


@dataclass(frozen=True)
class Hinge(_StackedHinge):
    """The support vector machine's loss ``[1 - u]_+``.

    Examples
    --------
    >>> Hinge().value([-1.0, 0.5, 2.0])
    array([2. , 0.5, 0. ])
    """

    @property
    def terms(self) -> tuple[tuple[float, float], ...]:
        """The one pair (weight, margin)."""
        return ((1.0, 1.0),)


@dataclass(frozen=True)
class GeneralizedHinge(_StackedHinge):
    """Bartlett and Wegkamp's loss ``[1 - u]_+ + (1 - 2d)/d [-u]_+`` for a rejection cost d.

    Parameters
    ----------
    d : float in (0, 0.5]
        The cost of a rejection; 0.5 gives the hinge.

    References
    ----------
    P. L. Bartlett and M. H. Wegkamp, "Classification with a reject option using a hinge
    loss", Journal of Machine Learning Research 9, 2008.

    Examples
    --------
    >>> GeneralizedHinge(d=0.25).value([-1.0, 0.0, 1.0])
    array([4., 1., 0.])
    """

    d: float

    def __post_init__(self) -> None:
        _check_rejection_cost(self.d)

    @property
    def terms(self) -> tuple[tuple[float, float], ...]:
        """The pairs (weight, margin)."""
        return ((1.0, 1.0), ((1.0 - 2.0 * self.d) / self.d, 0.0))


@dataclass(frozen=True)
class DoubleHinge(_StackedHinge):
    """Grandvalet and others' loss ``max(H - (1-d) u, H - d u, 0)``, ``H`` the entropy of d.

    It is the generalised hinge in other units: ``H * GeneralizedHinge(d).value(u d / H)``.

    Parameters
    ----------
    d : float in (0, 0.5]
        The cost of a rejection; 0.5 gives a scaled hinge.

    References
    ----------
    Y. Grandvalet, A. Rakotomamonjy, J. Keshet and S. Canu, "Support vector machines with a
    reject option", Advances in Neural Information Processing Systems 21, 2008.

    Examples
    --------
    >>> loss = DoubleHinge(d=0.5)
    >>> bool(np.isclose(loss.value(0.0), np.log(2)))
    True
    """

    d: float

    def __post_init__(self) -> None:
        _check_rejection_cost(self.d)

    @property
    def entropy(self) -> float:
        """``H(d) = -d log d - (1-d) log(1-d)``, in nats."""
        return -self.d * math.log(self.d) - (1.0 - self.d) * math.log1p(-self.d)

    @property
    def terms(self) -> tuple[tuple[float, float], ...]:
        """The pairs (weight, margin)."""
        return ((self.d, self.entropy / self.d), (1.0 - 2.0 * self.d, 0.0))


@dataclass(frozen=True)
class NuHinge:
    """The set loss ``l(z) = max(2 z / nu, 0)`` of ``z = rho - y f(x)``: the nu-SVM's.

    Its uncertainty sets are reduced convex hulls: no weight exceeds ``2 / (m nu)``.

    Parameters
    ----------
    nu : float in (0, 1]
        A classifier needs ``nu <= 2 min(m_+, m_-) / m``.

    Examples
    --------
    >>> NuHinge(nu=0.5).value([-1.0, 0.5])
    array([0., 2.])
    """

    nu: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.nu <= 1.0:
            raise ValueError(f"nu={self.nu!r} is out of range: expected a number in (0, 1].")

    @property
    def slope_bound(self) -> float:
        """The supremum of the derivative."""
        return 2.0 / self.nu

    def value(self, z: Array) -> Array:
        """The loss at `z`."""
        return np.asarray(np.maximum(self.slope_bound * np.asarray(z, dtype=float), 0.0))

    def derivative(self, z: Array) -> Array:
        """A subgradient; at the kink the smaller one."""
        return np.where(np.asarray(z, dtype=float) > 0, self.slope_bound, 0.0)

    def conjugate(self, s: Array) -> Array:
        """``sup_z s z - value(z)``: zero on ``[0, 2 / nu]``, infinite outside."""
        s = np.asarray(s, dtype=float)
        return np.where((s >= 0) & (s <= self.slope_bound), 0.0, np.inf)

    def conjugate_derivative(self, s: Array) -> Array:
        """Zero where the conjugate is finite, else NaN."""
        return np.where(np.isfinite(self.conjugate(s)), 0.0, np.nan)


@dataclass(frozen=True)
class HardMargin(UnboundedSlope):
    """The set loss that is zero for ``z <= 0`` and infinite beyond: the hard-margin SVM's.

    Its uncertainty set is the whole convex hull, whatever the level.

    Examples
    --------
    >>> HardMargin().value([-1.0, 0.5])
    array([ 0., inf])
    """

    def value(self, z: Array) -> Array:
        """The loss at `z`."""
        return np.where(np.asarray(z, dtype=float) <= 0, 0.0, np.inf)

    def derivative(self, z: Array) -> Array:
        """Zero, and infinite where the loss is."""
        return self.value(z)

    def conjugate(self, s: Array) -> Array:
        """``sup_z s z - value(z)``: zero for ``s >= 0``, infinite below."""
        return np.where(np.asarray(s, dtype=float) >= 0, 0.0, np.inf)

    def conjugate_derivative(self, s: Array) -> Array:
        """Zero where the conjugate is finite, else NaN."""
        return np.where(np.isfinite(self.conjugate(s)), 0.0, np.nan)
