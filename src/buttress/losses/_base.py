"""What a loss must know about itself.

Two families of losses meet in this package. *Margin losses* are functions of the margin
``u = y f(x)`` and fall as it grows. *Set losses* (the uncertainty-set paper's) are functions
of ``z = rho - y f(x)`` and rise. Both are described by the same methods; the argument is
called `t` here. A solver states which of these methods it needs and checks them before it
runs (`require`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from buttress._arrays import Array
from buttress.losses.margin import OfNegative

# Where losses are asked whether they rise or fall: on both sides of zero and one, near and far.
_ASKED = (-30.0, -10.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 10.0, 30.0)
# Where a bounded slope has reached its bound, and slopes that have none.
_FAR_OUT, _NO_BOUND = 1e300, 1e100
# The slope that a set loss must exceed for two classes, and more for unequal ones.
_LEAST_SLOPE = 2.0
_TURN = ". Pass buttress.losses.OfNegative(loss), which turns one kind into the other."
# Slopes of the wrong sign that are rounding, relative to the steepest one near zero.
_ROUNDING = 1e-9


@runtime_checkable
class Loss(Protocol):
    """A loss with a value and a (sub)derivative, both vectorised."""

    def value(self, t: Array, /) -> Array: ...

    def derivative(self, t: Array, /) -> Array: ...


@runtime_checkable
class SmoothLoss(Loss, Protocol):
    """A convex loss with Lipschitz derivative."""

    @property
    def curvature_bound(self) -> float:
        """The smallest M such that the derivative is M-Lipschitz."""
        ...

    def curvature(self, t: Array, /) -> Array:
        """A generalised second derivative."""
        ...


@runtime_checkable
class ConjugateLoss(Loss, Protocol):
    """A convex loss that knows its Fenchel conjugate ``sup_t s t - value(t)``."""

    def conjugate(self, s: Array, /) -> Array: ...


@runtime_checkable
class SplitLoss(Loss, Protocol):
    """A non-convex loss written as a difference of two convex functions."""

    def convex_part(self, t: Array, /) -> Array: ...

    def concave_part(self, t: Array, /) -> Array:
        """The (concave) rest: ``value = convex_part + concave_part``."""
        ...


class UnboundedSlope:
    """A set loss whose uncertainty sets put no cap on a weight."""

    # The supremum of the derivative.
    slope_bound = math.inf


def steepest_slope(loss: Any) -> float:
    """The supremum of a set loss's derivative: as it says, or far out.

    Examples
    --------
    >>> from buttress.losses import LeakyHockeyStick, Logistic, OfNegative, TruncatedQuadratic
    >>> steepest_slope(Logistic(slope=3.0)), steepest_slope(OfNegative(LeakyHockeyStick()))
    (3.0, 1.0)
    >>> steepest_slope(TruncatedQuadratic())
    inf
    """
    if hasattr(loss, "slope_bound"):
        return float(loss.slope_bound)
    if not hasattr(loss, "derivative"):
        return math.inf
    with np.errstate(all="ignore"):
        slope = float(np.asarray(loss.derivative(np.array([_FAR_OUT])))[0])
    return math.inf if math.isnan(slope) or slope > _NO_BOUND else slope


def require(loss: Any, needed: type, solver: str) -> None:
    """Raise a TypeError that names both sides when `loss` lacks what `solver` needs.

    Examples
    --------
    >>> class Half:
    ...     def value(self, t): return t
    >>> require(Half(), Loss, "solver 'newton'")
    Traceback (most recent call last):
    ...
    TypeError: solver 'newton' needs a loss with derivative, value; Half has no derivative.
    """
    names = sorted(
        name
        for name in dir(needed)
        if not name.startswith("_") and (callable(getattr(needed, name)) or name in _PROPERTIES)
    )
    missing = [name for name in names if not hasattr(loss, name)]
    if missing:
        raise TypeError(
            f"{solver} needs a loss with {', '.join(names)}; "
            f"{type(loss).__name__} has no {', '.join(missing)}."
        )


def require_falling(loss: Any) -> None:
    """Raise a ValueError when a loss that is given as one of the margin does not fall with it.

    Examples
    --------
    >>> from buttress.losses import Logistic, OfNegative
    >>> require_falling(OfNegative(Logistic()))
    >>> require_falling(Logistic())
    Traceback (most recent call last):
    ...
    ValueError: loss=Logistic(slope=1.0) is not accepted: losses here are functions of the ...
    """
    wrong = _what_is_wrong(loss, -1.0, "rises", lambda: _TURN)
    if wrong is not None:
        raise ValueError(
            f"loss={loss!r} is not accepted: losses here are functions of the margin y f(x) and "
            f"must fall with the margin; this one {wrong}"
        )


def require_rising(loss: Any) -> None:
    """Raise a ValueError when a loss that is given as a set loss does not rise.

    Examples
    --------
    >>> from buttress.losses import LeakyHockeyStick
    >>> require_rising(LeakyHockeyStick())
    Traceback (most recent call last):
    ...
    ValueError: loss=LeakyHockeyStick(r=inf) is not accepted: losses here are functions of ...
    """
    wrong = _what_is_wrong(loss, 1.0, "falls", lambda: _turned_to_rise(loss))
    if wrong is not None:
        raise ValueError(
            f"loss={loss!r} is not accepted: losses here are functions of z = rho - y f(x) and "
            f"must rise with z; this one {wrong}"
        )


def _turned_to_rise(loss: Any) -> str:
    """The remedy for a loss that falls, or why there is none."""
    bound = steepest_slope(OfNegative(loss))
    if bound > _LEAST_SLOPE:
        return _TURN
    return (
        f", and the slope of OfNegative(loss) is at most {bound:g}, where two classes need one "
        f"above {_LEAST_SLOPE:g}."
    )


def _what_is_wrong(loss: Any, sign: float, otherwise: str, remedy: Callable[[], str]) -> str | None:
    """What a loss does that should have slopes of this sign only, and the remedy."""
    asked = np.array(_ASKED)
    with np.errstate(all="ignore"):
        slopes = sign * np.asarray(loss.derivative(asked), dtype=np.float64)
    steepest = np.abs(slopes[(np.abs(asked) <= 1.0) & np.isfinite(slopes)]).max(initial=0.0)
    against = asked[slopes < -_ROUNDING * steepest]
    if len(against) == 0:
        flat = not (slopes > 0.0).any()
        return f"is flat from {asked[0]:g} to {asked[-1]:g}." if flat else None
    if (slopes > 0.0).any():
        return f"{otherwise} at {against[0]:g}."
    return f"{otherwise}{remedy()}"


_PROPERTIES = frozenset({"curvature_bound"})
