"""A margin loss of one's own, written as three functions of one number.

Compiled solvers read a loss through its *scalars*: a named tuple of its parameters with the
methods ``value(u)`` and ``slopes(u)`` of one margin (minus the derivative, and the curvature),
written so that Numba compiles them. The type of the tuple says which loss it is, so that a solver
is compiled for every kind of loss once, whatever its parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array
from buttress.losses.compiling import compiled_function, numbered, say_interpreted

Function = Callable[[float], float]

_FUNCTIONS = ("value_at", "derivative_at", "curvature_at", "conjugate_at")


@dataclass(frozen=True)
class ScalarLoss:
    """A smooth convex margin loss from three plain functions of one margin.

    The functions, and plain functions that they call, are compiled, so that a fit takes as long as
    with a loss of this package. Where Numba cannot compile them they are called from Python, which
    a warning says once.

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
        return self._everywhere("value_at", u)

    def derivative(self, u: Array) -> Array:
        """Its derivative."""
        return self._everywhere("derivative_at", u)

    def curvature(self, u: Array) -> Array:
        """Its second derivative."""
        return self._everywhere("curvature_at", u)

    def __getattr__(self, name: str) -> Any:
        # A loss without conjugate has no such method; solvers ask for it by name.
        if name == "conjugate" and self.conjugate_at is not None:
            return lambda s: self._everywhere("conjugate_at", s)
        if hasattr(type(self), name):  # there is one, but reading it failed: with its own error
            return object.__getattribute__(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        # What is compiled stays in its process.
        return {field.name: vars(self)[field.name] for field in fields(self)}

    def tail_exponent(self) -> float:
        """Exponent of the scaling tail, zero where there is none."""
        return self.tail

    @property
    def scalars(self) -> Any:
        """The functions as compiled loops read them; None where they cannot be compiled."""
        ready = self._compiled
        return _scalars(*(ready[name] for name in _FUNCTIONS[:3]))

    @property
    def _compiled(self) -> dict[str, Any]:
        """The functions compiled as they are now, None for those that cannot be (said once)."""
        given = {name: getattr(self, name) for name in _FUNCTIONS}
        tried = {
            name: compiled_function(function)
            for name, function in given.items()
            if function is not None
        }
        failed = {name: why for name, (_, why) in tried.items() if why is not None}
        if failed:
            names = [_name(given[name]) for name in failed]
            run = "runs" if len(failed) == 1 else "run"
            first = next(iter(failed))
            say_interpreted(
                f"{', '.join(dict.fromkeys(names))} cannot be compiled and {run} interpreted, "
                f"which is slow: {failed[first]}",
                given[first],
            )
        return {name: dispatcher for name, (dispatcher, _) in tried.items()}

    def _everywhere(self, name: str, x: Any) -> Array:
        """One of the functions at every number of an array."""
        function = getattr(self, name)
        dispatcher, why = compiled_function(function)
        if why is not None:
            dispatcher = self._compiled[name]  # which says so
        loop = (
            np.vectorize(function, otypes=[np.float64]) if dispatcher is None else _loop(dispatcher)
        )
        return np.asarray(loop(np.asarray(x, dtype=np.float64)), dtype=np.float64)


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


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

    return numbered(Scalars)()


@cache
def _loop(dispatcher: Any) -> Any:
    """A compiled function at every number of an array."""
    from numba import vectorize

    def call(x: Any) -> Any:
        return dispatcher(x)

    return vectorize(["float64(float64)"], nopython=True)(call)
