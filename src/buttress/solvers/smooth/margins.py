"""The loss at all margins, the only place where compiled loops meet it.

A loss enters compiled code as its scalars (`buttress.losses.scalar`); the loops over all margins
are made for every kind of loss, in the precision of the margins. A loss that has none, an object
whose methods take arrays, is left to the methods in NumPy.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import typeof, types
from numba.extending import overload

from buttress._arrays import Array
from buttress._compile import FAST, WITHIN, compiled, inner
from buttress.losses.compiling import (
    numbered,
    reason,
    references,
    say_interpreted,
    why_not,
    with_helpers,
)

# Bisections until an intercept is as precise as its numbers, and doublings to bracket it.
_BISECTIONS = 200
_DOUBLINGS = 2000
_SLOW = "is called from Python at every step of the solver, which is slow"


def compiled_loss(loss: Any) -> Any:
    """What compiled loops are given for a loss: its scalars; None where it has none.

    That the loss will be called from Python at every step of a solver is said once.

    Examples
    --------
    >>> from buttress.losses import LeakyHockeyStick
    >>> compiled_loss(LeakyHockeyStick(2.0))
    LeakyScalars(bend=0.5)
    """
    if not hasattr(loss, "scalars"):
        say_interpreted(
            f"{type(loss).__qualname__} {_SLOW}; buttress.losses.ScalarLoss makes a compiled loss "
            "of three functions of one number",
            loss,
        )
    return loss_scalars(loss)


def loss_scalars(loss: Any) -> Any:
    """As `compiled_loss`, without a word about losses that have no scalars.

    Scalars of a user's are compiled once to see whether they can be; if not, that is said once.
    """
    scalars = getattr(loss, "scalars", None)
    # None: a loss whose functions could not be compiled has said so itself
    if scalars is None or _is_found_again(type(scalars)):
        return scalars
    kind: Any = type(scalars)
    why = "Numba reads named tuples (typing.NamedTuple)"
    if isinstance(scalars, tuple) and hasattr(scalars, "_fields"):
        methods = (getattr(kind, name, None) for name in ("value", "slopes", "add_values"))
        alone = numbered(kind, tuple(map(references, methods)))
        scalars = tuple.__new__(alone, scalars)
        try:
            fails = _what_fails(alone, typeof(scalars))
        except ValueError as error:  # a parameter of a type that Numba does not know
            fails = reason(error)
        if fails is None:
            return scalars
        why = fails
    say_interpreted(
        f"{kind.__qualname__} cannot be compiled, and {type(loss).__qualname__} {_SLOW}: {why}",
        getattr(kind, "slopes", loss),
    )
    return None


@cache
def _what_fails(kind: Any, typed: Any) -> str | None:
    """Which method of scalars cannot be compiled, and why; None if all can.

    What is compiled here is what solvers call.
    """
    tries: list[tuple[str, tuple[Any, ...], int]] = []
    for number in (types.float64, types.float32):
        tries += [("value", (number,), 1), ("slopes", (number,), 2)]
        if hasattr(kind, "add_values"):
            tries.append(("add_values", (types.Array(number, 1, "C"),) * 3, 0))
    for name, arguments, count in tries:
        if not hasattr(kind, name):
            return f"it has no method {name}"
        why = why_not(_scalar(kind, name), (typed, *arguments), count)
        if why is not None:
            return f"{name}: {why}"
    return None


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
    return function if _is_found_again(type(loss)) else _unkept(function)


def _is_found_again(kind: type) -> bool:
    """Whether scalars are those of a loss of this package, by which other processes know them."""
    return kind.__module__.startswith("buttress.losses.") and "<" not in kind.__qualname__


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
    method = getattr(kind, name)
    return inner(allocates=True)(method if _is_found_again(kind) else with_helpers(method))


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
