"""The loss at all margins, the only place where compiled loops meet it.

A loss enters compiled code as its scalars (`buttress.losses.scalar`); the loops over all margins
are made for every kind of loss, in the precision of the margins. A loss that has none, an object
whose methods take arrays, is left to the methods in NumPy.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

from numba.extending import overload

from buttress._arrays import Array
from buttress._compile import FAST, WITHIN, compiled, inner

# Bisections until an intercept is as precise as its numbers, and doublings to bracket it.
_BISECTIONS = 200
_DOUBLINGS = 2000


_told: set[str] = set()


def compiled_loss(loss: Any) -> Any:
    """What compiled loops are given for a loss: its scalars; None where it has none.

    That the loss will be called from Python at every step of a solver is said once.

    Examples
    --------
    >>> from buttress.losses import LeakyHockeyStick
    >>> compiled_loss(LeakyHockeyStick(2.0))
    LeakyScalars(bend=0.5)
    """
    scalars = getattr(loss, "scalars", None)
    kind = type(loss).__qualname__
    # A loss whose functions could not be compiled has said so itself.
    if not hasattr(loss, "scalars") and kind not in _told:
        _told.add(kind)
        warnings.warn(
            f"{kind} is called from Python at every step of the solver, which is slow; "
            "buttress.losses.ScalarLoss makes a compiled loss of three functions of one number",
            stacklevel=2,
        )
    return scalars


def tail_exponent(loss: Any) -> float:
    """Exponent of the scaling tail of a loss, zero where it has none."""
    return float(loss.tail_exponent()) if hasattr(loss, "tail_exponent") else 0.0


def straight_up_to_one(loss: Any) -> bool:
    """Whether a loss is ``1 - u`` for all margins u <= 1."""
    return bool(getattr(loss, "straight_up_to_one", False))


def for_loss(function: Any, loss: Any) -> Any:
    """The compiled `function` that takes the loss (as compiled loops are given it).

    What is compiled for a loss that is not of this package stays in the process: on disk it
    would never be found again.
    """
    kind = type(loss)
    found_again = kind.__module__.startswith("buttress.losses") and "<" not in kind.__qualname__
    return function if found_again else _unkept(function)


@cache
def _unkept(function: Any) -> Any:
    options = {
        key: function.targetoptions[key]
        for key in ("_nrt", "fastmath")
        if key in function.targetoptions
    }
    return compiled(cache=False, **options)(function.py_func)


@cache
def _scalar(kind: type, name: str) -> Any:
    """A method of scalars as compiled code calls it."""
    return inner(allocates=True)(getattr(kind, name))


def add_values(loss: Any, u: Array, weight: Array, total: Array) -> None:
    """Add the weighted loss at every margin to a total of its own; in compiled code only."""
    raise NotImplementedError


@overload(add_values, jit_options={**WITHIN, "fastmath": FAST, "error_model": "numpy"})
def _add_values(loss: Any, u: Any, weight: Any, total: Any) -> Any:  # pragma: no cover (compiling)
    kind = loss.instance_class
    if hasattr(kind, "add_values"):
        at_once = _scalar(kind, "add_values")

        def call(loss: Any, u: Any, weight: Any, total: Any) -> None:
            at_once(loss, u, weight, total)

        return call
    value = _scalar(kind, "value")

    def loop(loss: Any, u: Any, weight: Any, total: Any) -> None:
        for i in range(u.size):
            total[i] += weight[i] * value(loss, u[i])

    return loop


def set_slope(loss: Any, u: Array, t: Array) -> None:
    """Minus the derivative at every margin; in compiled code only."""
    raise NotImplementedError


@overload(set_slope, jit_options={**WITHIN, "fastmath": FAST, "error_model": "numpy"})
def _set_slope(loss: Any, u: Any, t: Any) -> Any:  # pragma: no cover (compiling)
    slopes = _scalar(loss.instance_class, "slopes")

    def loop(loss: Any, u: Any, t: Any) -> None:
        for i in range(u.size):
            t[i] = slopes(loss, u[i])[0]

    return loop


def set_slopes(loss: Any, u: Array, t: Array, kappa: Array) -> None:
    """Minus the derivative, and the curvature, at every margin; in compiled code only."""
    raise NotImplementedError


@overload(set_slopes, jit_options=WITHIN | {"fastmath": FAST})
def _set_slopes(loss: Any, u: Any, t: Any, kappa: Any) -> Any:  # pragma: no cover (compiling)
    slopes = _scalar(loss.instance_class, "slopes")

    def loop(loss: Any, u: Any, t: Any, kappa: Any) -> None:
        for i in range(u.size):
            t[i], kappa[i] = slopes(loss, u[i])

    return loop


@inner(fastmath=FAST)
def imbalance(loss: Any, u: Array, y: Array, omega: Array, shift: float, work: Array) -> float:
    """Difference of the two classes' slopes when `shift` is added to the scores.

    `work` has shape (3, n) and the margins' type.
    """
    moved, t, kappa = work[0], work[1], work[2]
    by = u.dtype.type(shift)
    for i in range(u.size):
        moved[i] = u[i] + y[i] * by
    set_slopes(loss, moved, t, kappa)
    total = 0.0
    for i in range(u.size):
        total += omega[i] * y[i] * t[i]
    return total


@inner()
def balancing_shift(
    loss: Any, u: Array, y: Array, omega: Array, width: float, work: Array
) -> float:
    """What to add to all scores so that the slopes of the two classes balance.

    Begins to look within `width` on both sides.
    """
    low, high = -width, width
    for _ in range(_DOUBLINGS):
        if imbalance(loss, u, y, omega, low, work) >= 0.0 or low < -1e300:
            break
        low *= 2.0
    for _ in range(_DOUBLINGS):
        if imbalance(loss, u, y, omega, high, work) <= 0.0 or high > 1e300:
            break
        high *= 2.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if imbalance(loss, u, y, omega, middle, work) > 0.0:
            low = middle
        else:
            high = middle
        width = high - low
        if width <= 1e-15 * abs(low) or width <= 1e-15 * abs(high):
            break
    return 0.5 * (low + high)
