"""Hinge and ramp with the corner at the margin rounded off, for solvers that need a derivative."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array


class SmoothedHingeScalars(NamedTuple):
    """`SmoothedHinge` at one margin, for compiled loops (`buttress.losses.scalar`)."""

    top: float
    scale: float
    width: float

    def value(self, u: Any) -> Any:
        """The loss."""
        zero, width, scale = type(u)(0.0), type(u)(self.width), type(u)(self.scale)
        t = type(u)(self.top) - u
        inside = min(max(t + width, zero), width + width)
        return scale * (inside * inside / (type(u)(4.0) * width) + max(t - width, zero))

    def slopes(self, u: Any) -> Any:
        """Minus the derivative, and the curvature."""
        zero, one, scale = type(u)(0.0), type(u)(1.0), type(u)(self.scale)
        t, width = type(u)(self.top) - u, type(u)(self.width)
        share = min(max((t + width) / (width + width), zero), one)
        return scale * share, (scale / (width + width) if abs(t) < width else zero)


class ClippingHingeScalars(NamedTuple):
    """`ClippingHinge` at one margin, for compiled loops."""

    floor: float
    scale: float

    def value(self, u: Any) -> Any:
        """The (negative) value."""
        return min(type(u)(self.scale) * (u - type(u)(self.floor)), type(u)(0.0))

    def slopes(self, u: Any) -> Any:
        """Minus the derivative; no curvature."""
        zero = type(u)(0.0)
        return (-type(u)(self.scale) if u < type(u)(self.floor) else zero), zero


@dataclass(frozen=True)
class SmoothedHinge:
    """``scale [top - u]_+`` with a parabola for ``|top - u| <= width``.

    It lies above the hinge by at most ``scale * width / 4`` (at the corner) and equals it
    outside the rounded part.

    Parameters
    ----------
    top : float
        The margin where the loss becomes zero.
    scale : float > 0
        Its slope to the left.
    width : float > 0
        Half width of the rounded part.

    Examples
    --------
    >>> SmoothedHinge(width=0.5).value(np.array([0.0, 1.0, 2.0])).tolist()
    [1.0, 0.125, 0.0]
    """

    top: float = 1.0
    scale: float = 1.0
    width: float = 0.02

    def __post_init__(self) -> None:
        for name in ("scale", "width"):
            number = getattr(self, name)
            if not 0.0 < number < math.inf:
                raise ValueError(
                    f"{name}={number!r} is out of range: expected a number in (0, inf)."
                )

    @property
    def curvature_bound(self) -> float:
        """``scale / (2 width)``, the curvature of the parabola."""
        return self.scale / (2.0 * self.width)

    @property
    def scalars(self) -> SmoothedHingeScalars:
        """The loss at one margin, for compiled loops."""
        return SmoothedHingeScalars(float(self.top), float(self.scale), float(self.width))

    def value(self, u: Array) -> Array:
        """The loss at the margins `u`."""
        t = self.top - np.asarray(u)
        # max(t, 0) outside; inside, the rounded part stands (t + width)^2 / (4 width).
        inside = np.clip(t + self.width, 0.0, 2.0 * self.width)
        beyond = np.maximum(t - self.width, 0.0)
        return np.asarray(self.scale * (inside * inside / (4.0 * self.width) + beyond))

    def derivative(self, u: Array) -> Array:
        """The derivative, in [-scale, 0]."""
        t = self.top - np.asarray(u)
        share = np.clip((t + self.width) / (2.0 * self.width), 0.0, 1.0)
        return np.asarray(-self.scale * share)

    def curvature(self, u: Array) -> Array:
        """The second derivative: constant on the rounded part, zero elsewhere."""
        t = np.abs(self.top - np.asarray(u))
        return np.asarray(
            np.where(t < self.width, self.curvature_bound, 0.0), dtype=np.asarray(u).dtype
        )

    def conjugate(self, s: Array) -> Array:
        """``sup_u s u - value(u)``: a parabola on [-scale, 0], infinite elsewhere."""
        s = np.asarray(s)
        slope = s / self.scale
        finite = s * (self.top + self.width) + self.scale * self.width * slope * slope
        return np.asarray(np.where((slope >= -1.0) & (slope <= 0.0), finite, np.inf))


@dataclass(frozen=True)
class ClippingHinge:
    """``-scale [floor - u]_+``: the concave part that stops a hinge from rising.

    Parameters
    ----------
    floor : float
        The margin below which the sum no longer rises.
    scale : float > 0

    Examples
    --------
    >>> ClippingHinge(floor=-1.0).value(np.array([-3.0, 0.0])).tolist()
    [-2.0, 0.0]
    """

    floor: float = -1.0
    scale: float = 1.0

    @property
    def scalars(self) -> ClippingHingeScalars:
        """The value at one margin, for compiled loops."""
        return ClippingHingeScalars(float(self.floor), float(self.scale))

    def value(self, u: Array) -> Array:
        """The (negative) value at the margins `u`."""
        return np.asarray(np.minimum(self.scale * (np.asarray(u) - self.floor), 0.0))

    def derivative(self, u: Array) -> Array:
        """`scale` below the floor, else 0."""
        u = np.asarray(u)
        return np.asarray(np.where(u < self.floor, self.scale, 0.0), dtype=u.dtype)


@dataclass(frozen=True)
class SmoothedRamp:
    """A ramp, ``scale ([top - u]_+ - [floor - u]_+)``, with a rounded corner at `top`.

    Parameters
    ----------
    top, floor : float
        Where the ramp reaches zero, and below which it is flat; ``floor <= top - width``.
    scale : float > 0
    width : float > 0
        Half width of the rounded corner. The ramp's own value is exceeded by at most
        ``scale * width / 4``.

    Examples
    --------
    >>> SmoothedRamp(width=0.5).value(np.array([-9.0, 0.0, 2.0])).tolist()
    [2.0, 1.0, 0.0]
    """

    top: float = 1.0
    floor: float = -1.0
    scale: float = 1.0
    width: float = 0.02

    def __post_init__(self) -> None:
        if not self.floor <= self.top - self.width:
            raise ValueError(
                f"floor={self.floor!r} is out of range: expected at most top - width "
                f"({self.top - self.width:g})."
            )

    @property
    def convex(self) -> SmoothedHinge:
        """The convex part, a loss of its own."""
        return SmoothedHinge(self.top, self.scale, self.width)

    @property
    def concave(self) -> ClippingHinge:
        """The concave part, a loss of its own."""
        return ClippingHinge(self.floor, self.scale)

    def value(self, u: Array) -> Array:
        """The loss at the margins `u`."""
        highest = self.scale * (self.top - self.floor)
        # The difference of the two parts would lose digits far to the left.
        return np.asarray(np.minimum(self.convex.value(u), highest))

    def convex_part(self, u: Array) -> Array:
        """The smoothed hinge."""
        return self.convex.value(u)

    def concave_part(self, u: Array) -> Array:
        """The clipping hinge."""
        return self.concave.value(u)

    def derivative(self, u: Array) -> Array:
        """A subgradient."""
        return np.asarray(self.convex.derivative(u) + self.concave.derivative(u))
