"""The leaky hockey stick loss and the family L_r that ends in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from buttress._arrays import Array
from buttress._compile import inner
from buttress.losses.logarithm import log_from_one

# exp() of anything above overflows float64.
_LARGEST_EXPONENT = 709.0


@inner(fastmath={"contract", "nsz", "nnan", "ninf"})
def _endless(u: Any) -> Any:  # pragma: no cover (compiled)
    """``1 - u`` up to margin one, ``-log u`` beyond, free of branches."""
    one, zero = type(u)(1.0), type(u)(0.0)
    beyond = u if u > one else one
    return (one - u if u < one else zero) - log_from_one(beyond)


@inner()
def _power(u: Any, bend: float) -> Any:  # pragma: no cover (compiled)
    """``1 - u`` up to margin one, ``(1 - u^bend) / bend`` beyond."""
    one, kind = type(u)(1.0), type(u)
    return one - u if u <= one else -np.expm1(kind(bend) * np.log(u)) / kind(bend)


class LeakyScalars(NamedTuple):
    """The loss at one margin, for compiled loops (`buttress.losses.scalar`).

    `bend` is one over the exponent r. Numbers keep their precision: constants have the type of
    the margin.
    """

    bend: float

    def value(self, u: Any) -> Any:
        """The loss."""
        return _endless(u) if self.bend == 0.0 else _power(u, self.bend)

    def add_values(self, u: Any, weight: Any, total: Any) -> None:
        """Add the weighted loss at every margin to a total of its own.

        Optional in the scalars of a loss: here the two kinds part before the loop and not in it,
        so that it is vectorised.
        """
        if self.bend == 0.0:
            for i in range(u.size):
                total[i] += weight[i] * _endless(u[i])
        else:
            for i in range(u.size):
                total[i] += weight[i] * _power(u[i], self.bend)

    def slopes(self, u: Any) -> Any:
        """Minus the derivative, and the curvature."""
        one, zero = type(u)(1.0), type(u)(0.0)
        beyond = u if u > one else one
        if self.bend == 0.0:
            slope = one / beyond
            curvature = slope * slope
        else:
            slope = beyond ** type(u)(self.bend - 1.0)
            curvature = type(u)(1.0 - self.bend) * slope / beyond
        return slope, (curvature if u > one else zero)


@dataclass(frozen=True)
class LeakyHockeyStick:
    """The loss ``1 - u`` for margins u <= 1 that goes on falling beyond, ever more slowly.

    For a margin ``u > 1`` its value is ``-log u`` (``r = inf``, the leaky hockey stick) or
    ``r (1 - u^(1/r))`` (the family L_r, 1 < r < inf). It is convex, once continuously
    differentiable, strictly decreasing, 1-Lipschitz and unbounded below.

    Parameters
    ----------
    r : float in (1, inf], default=inf
        How fast the loss falls beyond margin 1; smaller values fall faster.

    References
    ----------
    .. [1] O. Kwon and H. Zou, "Leaky hockey stick loss: the first negatively divergent
       margin-based loss function for classification", JMLR 24, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> loss = LeakyHockeyStick()
    >>> loss.value(np.array([-1.0, 1.0, np.e])).tolist()
    [2.0, 0.0, -1.0]
    >>> loss.derivative(np.array([0.0, 2.0])).tolist()
    [-1.0, -0.5]
    """

    r: float = math.inf
    # It is 1 - u for all margins u <= 1: with balanced classes intercepts may be intervals.
    straight_up_to_one: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.r > 1:
            raise ValueError(f"r={self.r!r} is out of range: expected a number in (1, inf].")

    @property
    def curvature_bound(self) -> float:
        """Largest second derivative, reached at u = 1 from above: (r - 1) / r."""
        return 1.0 - 1.0 / self.r

    @property
    def scalars(self) -> LeakyScalars:
        """The loss at one margin, for compiled loops."""
        return LeakyScalars(1.0 / self.r)

    def value(self, u: Array) -> Array:
        """L_r at the margins `u`."""
        u = np.asarray(u)
        beyond = _log_beyond_one(u)
        leak = -beyond if math.isinf(self.r) else -self.r * np.expm1(beyond / self.r)
        return np.asarray(np.where(u <= 1, 1 - u, leak))

    def derivative(self, u: Array) -> Array:
        """The derivative, in [-1, 0)."""
        if math.isinf(self.r):
            return np.asarray(-1.0 / np.maximum(u, 1))
        return np.asarray(-np.exp((1.0 / self.r - 1.0) * _log_beyond_one(u)))

    def curvature(self, u: Array) -> Array:
        """The second derivative; zero up to and including u = 1."""
        if math.isinf(self.r):
            bent = np.asarray(self.derivative(u)) ** 2
        else:
            bent = self.curvature_bound * np.exp((1.0 / self.r - 2.0) * _log_beyond_one(u))
        return np.asarray(np.where(np.asarray(u) > 1, bent, np.zeros_like(bent)))

    def conjugate(self, s: Array) -> Array:
        """Fenchel conjugate ``sup_u s u - L(u)``: finite for s in [-1, 0), infinite elsewhere."""
        slope = -np.asarray(s)
        inside = (slope > 0) & (slope <= 1)
        log_slope = np.log(np.where(inside, slope, 1.0))
        if math.isinf(self.r):
            finite = -1.0 - log_slope
        else:
            # -r + (r - 1) slope^(-1/(r-1)), in logs: near r = 1 the power itself overflows.
            exponent = -log_slope / (self.r - 1.0)
            finite = (self.r - 1.0) * np.expm1(np.minimum(exponent, _LARGEST_EXPONENT)) - 1.0
            inside &= exponent <= _LARGEST_EXPONENT
        return np.asarray(np.where(inside, finite, np.inf))

    def tail_exponent(self) -> float:
        """Exponent e of the scaling tail of the regularisation path.

        Once all margins are at least 1 at penalty alpha_0, the solution at a smaller alpha
        is that one times ``(alpha_0 / alpha)^e``, intercept included.
        """
        return 0.5 if math.isinf(self.r) else self.r / (2.0 * self.r - 1.0)


def _log_beyond_one(u: Array) -> Array:
    """log(max(u, 1)): the branch not taken is evaluated at 1 and cannot overflow."""
    return np.asarray(np.log(np.maximum(u, 1)))
