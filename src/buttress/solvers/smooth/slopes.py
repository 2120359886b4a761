"""Slopes of the losses at all margins, and how they change along a step.

For the leaky hockey stick family, known by its exponent r, in compiled code; for a user's loss
object by what it says of itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from buttress._arrays import Array
from buttress._compile import compiled
from buttress.solvers.smooth.margins import slope_and_curvature


def set_slopes(loss: Any, u: Array, t: Array, kappa: Array) -> None:
    """Minus the derivative, and the curvature, at every margin."""
    t[:], kappa[:] = slope_and_curvature(loss, u)


@overload(set_slopes)
def _set_slopes(loss: Any, u: Any, t: Any, kappa: Any) -> Any:
    if not isinstance(loss, types.Float):
        return None

    def leaky(loss: Any, u: Any, t: Any, kappa: Any) -> None:
        set_leaky_slopes(1.0 / loss, u, t, kappa)

    return leaky


@compiled(fastmath=True)
def set_leaky_slopes(bend: float, u: Array, t: Array, kappa: Array) -> None:
    """As `set_slopes`, for the leaky family; `bend` is one over its exponent."""
    if bend == 0.0:
        for i in range(u.size):
            slope = 1.0 / max(u[i], 1.0)
            t[i] = slope
            kappa[i] = slope * slope if u[i] > 1.0 else 0.0
    else:
        for i in range(u.size):
            t[i], kappa[i] = 1.0, 0.0
            if u[i] > 1.0:
                t[i] = u[i] ** (bend - 1.0)
                kappa[i] = (1.0 - bend) * t[i] / u[i]


def compare_slopes(
    loss: Any,
    omega: Array,
    u: Array,
    t: Array,
    curvature: Array,
    new_u: Array,
    new_t: Array,
    new_kappa: Array,
) -> tuple[float, float, float, float]:
    """Set slopes and curvatures at `new_u`, and compare the slopes with those at `u`.

    Returns the largest change of a slope, the largest deviation from the linear change, and the
    derivative of the mean loss along the step where it starts and where it ends.
    """
    set_slopes(loss, new_u, new_t, new_kappa)
    moved, du = new_t - t, new_u - u
    bent = np.max(np.abs(moved + curvature * du))
    return np.max(np.abs(moved)), bent, -np.dot(omega * t, du), -np.dot(omega * new_t, du)


@overload(compare_slopes)
def _compare_slopes(
    loss: Any, omega: Any, u: Any, t: Any, curvature: Any, new_u: Any, new_t: Any, new_kappa: Any
) -> Any:
    if not isinstance(loss, types.Float):
        return None

    def leaky(
        loss: Any,
        omega: Any,
        u: Any,
        t: Any,
        curvature: Any,
        new_u: Any,
        new_t: Any,
        new_kappa: Any,
    ) -> Any:
        return _compare_leaky_slopes(1.0 / loss, omega, u, t, curvature, new_u, new_t, new_kappa)

    return leaky


@compiled(fastmath=True)
def _compare_leaky_slopes(
    bend: float,
    omega: Array,
    u: Array,
    t: Array,
    curvature: Array,
    new_u: Array,
    new_t: Array,
    new_kappa: Array,
) -> tuple[float, float, float, float]:
    set_leaky_slopes(bend, new_u, new_t, new_kappa)
    change, bent, start, end = 0.0, 0.0, 0.0, 0.0
    for i in range(u.size):
        du = new_u[i] - u[i]
        moved = new_t[i] - t[i]
        change = max(change, abs(moved))
        bent = max(bent, abs(moved + curvature[i] * du))
        start -= omega[i] * t[i] * du
        end -= omega[i] * new_t[i] * du
    return change, bent, start, end
