"""A loss at all margins: slopes, curvatures, its mean, and the intercept that balances classes.

Newton's methods run compiled for the leaky hockey stick family, which is passed as its exponent
r, and interpreted for a user's loss object: every function has an implementation for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

from buttress._arrays import Array


def slope_and_curvature(loss: Any, u: Array) -> tuple[Array, Array]:
    """Minus the derivative, and the curvature, at every margin."""
    return -loss.derivative(u), loss.curvature(u)


@overload(slope_and_curvature)
def _slope_and_curvature(loss: Any, u: Any) -> Any:
    if not isinstance(loss, types.Float):
        return None

    def leaky(loss: Any, u: Any) -> Any:
        n = u.size
        t = np.ones(n)
        kappa = np.zeros(n)
        bend = 1.0 / loss
        for i in range(n):
            if u[i] > 1.0:
                t[i] = u[i] ** (bend - 1.0) if bend > 0.0 else 1.0 / u[i]
                kappa[i] = (1.0 - bend) * t[i] / u[i]
        return t, kappa

    return leaky


def mean_value(loss: Any, u: Array, omega: Array) -> float:
    """The weighted mean loss."""
    held = omega > 0
    return float(omega[held] @ loss.value(u[held]))


@overload(mean_value)
def _mean_value(loss: Any, u: Any, omega: Any) -> Any:
    if not isinstance(loss, types.Float):
        return None

    def leaky(loss: Any, u: Any, omega: Any) -> Any:
        total = 0.0
        bend = 1.0 / loss
        for i in range(u.size):
            if omega[i] > 0.0:
                if u[i] <= 1.0:
                    total += omega[i] * (1.0 - u[i])
                elif bend > 0.0:
                    total -= omega[i] * loss * np.expm1(bend * np.log(u[i]))
                else:
                    total -= omega[i] * np.log(u[i])
        return total

    return leaky


@register_jitable
def best_intercept(loss: Any, g: Array, y: Array, omega: Array) -> float:
    """The intercept that balances the slopes of the two classes for fixed scores `g`."""
    low, high = -1.0, 1.0
    for _ in range(2000):
        t, _kappa = slope_and_curvature(loss, y * (g + low))
        if np.sum(omega * y * t) >= 0.0:
            break
        low *= 2.0
    for _ in range(2000):
        t, _kappa = slope_and_curvature(loss, y * (g + high))
        if np.sum(omega * y * t) <= 0.0:
            break
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        t, _kappa = slope_and_curvature(loss, y * (g + middle))
        if np.sum(omega * y * t) > 0.0:
            low = middle
        else:
            high = middle
        if high - low <= 1e-15 * max(abs(low), abs(high)):
            break
    return 0.5 * (low + high)
