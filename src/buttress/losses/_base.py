"""What a loss must know about itself.

Two families of losses meet in this package. *Margin losses* are functions of the margin
``u = y f(x)`` and fall as it grows. *Set losses* (the uncertainty-set paper's) are functions
of ``z = rho - y f(x)`` and rise. Both are described by the same methods; the argument is
called `t` here. A solver states which of these methods it needs and checks them before it
runs (`require`).
"""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

from buttress._arrays import Array


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


_PROPERTIES = frozenset({"curvature_bound"})
