"""A margin loss of one's own, written as three functions of one number.

Compiled solvers read a loss through its *scalars*: a named tuple of its parameters with the
methods ``value(u)`` and ``slopes(u)`` of one margin (minus the derivative, and the curvature),
written so that Numba compiles them. The type of the tuple says which loss it is, so that a solver
is compiled for every kind of loss once, whatever its parameters.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array

Function = Callable[[float], float]

_numbers = itertools.count()


@dataclass(frozen=True)
class ScalarLoss:
    """A smooth convex margin loss from three plain functions of one margin.

    The functions are compiled, so that a fit takes as long as with a loss of this package. Where
    Numba cannot compile them they are called from Python, which a warning says once.

    Parameters
    ----------
    value_at, derivative_at, curvature_at : callables
        From a margin ``u = y f(x)`` (a float) to the loss, its derivative and its second
        derivative. The loss is convex and does not rise.
    curvature_bound : float
        An upper bound of the second derivative.
    conjugate_at : callable, optional
        From a slope s to ``sup_u s u - value(u)``; with it certificates are duality gaps.
    tail : float, default=0.0
        Exponent e of a scaling tail, if the loss has one: once all margins are at least one, the
        solution at a smaller penalty is the last one times a power e of the penalties' ratio.

    Examples
    --------
    >>> def value(u): return max(0.0, 1.0 - u) ** 2
    >>> def derivative(u): return -2.0 * max(0.0, 1.0 - u)
    >>> def curvature(u): return 2.0 if u < 1.0 else 0.0
    >>> squared_hinge = ScalarLoss(value, derivative, curvature, curvature_bound=2.0)
    >>> squared_hinge.value(np.array([0.0, 0.5, 3.0])).tolist()
    [1.0, 0.25, 0.0]
    """

    value_at: Function
    derivative_at: Function
    curvature_at: Function
    curvature_bound: float
    conjugate_at: Function | None = None
    tail: float = 0.0

    def __post_init__(self) -> None:
        if not self.curvature_bound > 0:
            raise ValueError(
                f"curvature_bound={self.curvature_bound!r} is out of range: expected a number in "
                "(0, inf]."
            )
        if not 0.0 <= self.tail < 1.0:
            raise ValueError(f"tail={self.tail!r} is out of range: expected a number in [0, 1).")

    def value(self, u: Array) -> Array:
        """The loss at the margins `u`."""
        return _everywhere(self.value_at, u)

    def derivative(self, u: Array) -> Array:
        """Its derivative."""
        return _everywhere(self.derivative_at, u)

    def curvature(self, u: Array) -> Array:
        """Its second derivative."""
        return _everywhere(self.curvature_at, u)

    def __getattr__(self, name: str) -> Any:
        # A loss without conjugate has no such method; solvers ask for it by name.
        if name == "conjugate" and self.conjugate_at is not None:
            return lambda s: _everywhere(self.conjugate_at, s)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def tail_exponent(self) -> float:
        """Exponent of the scaling tail, zero where there is none."""
        return self.tail

    @cached_property
    def scalars(self) -> Any:
        """The functions as compiled loops read them; None where they cannot be compiled."""
        functions = (self.value_at, self.derivative_at, self.curvature_at)
        return _scalars(*(_jitted(function) for function in functions))


@cache
def _jitted(function: Function) -> Any:
    """The function compiled for one float64; None where that fails, which is said once."""
    from numba import float64, njit
    from numba.core.errors import NumbaError
    from numba.extending import is_jitted

    dispatcher: Any = function if is_jitted(function) else njit(error_model="numpy")(function)
    try:
        dispatcher.compile((float64,))
    except NumbaError as error:
        reason = str(error).strip().splitlines()[0]
        warnings.warn(
            f"{function.__name__} cannot be compiled and runs interpreted, which is slow: {reason}",
            stacklevel=2,
        )
        return None
    return dispatcher


@cache
def _scalars(value_at: Any, derivative_at: Any, curvature_at: Any) -> Any:
    """An object of a type of its own, one for every three functions."""
    if value_at is None or derivative_at is None or curvature_at is None:
        return None

    class Scalars(NamedTuple):
        unused: float = 0.0

        def value(self, u: Any) -> Any:
            return float(value_at(float(u)))

        def slopes(self, u: Any) -> Any:
            return -float(derivative_at(float(u))), float(curvature_at(float(u)))

    # Numba tells named tuples apart by their names: two losses of one name would share code.
    Scalars.__name__ = f"Scalars{next(_numbers)}"
    return Scalars()


def _everywhere(function: Any, x: Any) -> Array:
    """The function of every number of an array."""
    loop = _loop(function)
    return np.asarray(loop(np.asarray(x, dtype=np.float64)), dtype=np.float64)


@cache
def _loop(function: Function) -> Any:
    from numba import vectorize

    dispatcher = _jitted(function)
    if dispatcher is None:
        return np.vectorize(function, otypes=[np.float64])
    return vectorize(["float64(float64)"], nopython=True)(_called(dispatcher))


def _called(dispatcher: Any) -> Any:
    def call(x: Any) -> Any:
        return dispatcher(x)

    return call
