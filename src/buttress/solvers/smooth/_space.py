"""What Newton's method asks of the space that a model lives in.

The functions here are names: `_kernel_space` and `_feature_space` say with `implements` what each
of them does for their kind of space, and the loop of `_newton_path` calls them, in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numba.extending import overload

from buttress._arrays import Array
from buttress._compile import WITHIN


class NewtonPoint(NamedTuple):
    """A model: its coordinates, intercept and margins, and the loss's slopes at these.

    Attributes
    ----------
    x : array of shape (size,)
    b : array of shape (1,)
    u, t, kappa : arrays of shape (n,)
        Of the rows that count.
    """

    x: Array
    b: Array
    u: Array
    t: Array
    kappa: Array


class Problem(NamedTuple):
    """The rows that count of one binary problem, its penalties, and when they are solved.

    Attributes
    ----------
    y, omega : arrays of shape (n,)
    lambdas : array of shape (L,)
        Decreasing.
    flat : array of shape (2,)
        Largest margins of the two classes (+1 first) per unit of ``1 / (2 lambda)`` while the
        loss is linear at all rows; NaN where that never happens, or the intercept is unique.
    tail_exponent : float
        Of the exact scaling tail, 0 when the loss has none.
    fit_intercept : bool
    tol : float
        On the largest error of a row's slope against its coefficient.
    max_iter : int
        Steps a penalty.
    signs_only : bool
        Whether a penalty is done as soon as no sign of a score at a row without weight can
        change any more.
    """

    y: Array
    omega: Array
    lambdas: Array
    flat: Array
    tail_exponent: float
    fit_intercept: bool
    tol: float
    max_iter: int
    signs_only: bool


def predict(
    space: Any, loss: Any, problem: Problem, point: NewtonPoint, index: int
) -> tuple[bool, bool]:
    """Move `point` to where the path is heading at the penalty `index`.

    Returns whether it is a guess that is not precise enough to end at, and whether the factor
    may serve once more.
    """
    raise NotImplementedError


def set_flat_point(space: Any, problem: Problem, lam: float, point: NewtonPoint) -> None:
    """Set coordinates and margins (without intercept) of a loss that is linear at all rows."""
    raise NotImplementedError


def renew(space: Any, problem: Problem, point: NewtonPoint, lam: float, iteration: int) -> None:
    """Factorise the Newton equations at `point`."""
    raise NotImplementedError


def propose(
    space: Any, problem: Problem, point: NewtonPoint, lam: float, trial: NewtonPoint
) -> float:
    """Set coordinates and margins of `trial`, a Newton step away from `point`.

    Returns the relative error of the step.
    """
    raise NotImplementedError


def penalty_slopes(
    space: Any, problem: Problem, point: NewtonPoint, trial: NewtonPoint
) -> tuple[float, float]:
    """The derivative of half the squared norm along the step, and how much it grows."""
    raise NotImplementedError


def refresh(space: Any, problem: Problem, point: NewtonPoint) -> None:
    """Margins from coordinates, where they may be less precise."""
    raise NotImplementedError


def arrive(space: Any, problem: Problem, point: NewtonPoint, lam: float) -> None:
    """Prepare for a step from `point`, whose slopes are set."""
    raise NotImplementedError


def settled(
    space: Any, problem: Problem, before: NewtonPoint, point: NewtonPoint, lam: float, left: float
) -> bool:
    """Whether no sign at the rows without weight can change; may move `point` to be sure.

    `left` is the share of the last change of the slopes that is left.
    """
    raise NotImplementedError


def implements(generic: Callable[..., Any], *kinds: type) -> Callable[[Any], Any]:
    """Make the decorated function what `generic` does for some kinds of space."""

    def register(function: Any) -> Any:
        def choose(space: Any, *arguments: Any) -> Any:  # pragma: no cover (runs while compiling)
            return function if space.instance_class in kinds else None

        overload(generic, strict=False, jit_options=WITHIN)(choose)
        return function

    return register
