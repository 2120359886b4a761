"""The two scalars ``r = rho -+ b`` that belong to given scores, one per class.

For a class with values ``s_i = y_i f(x_i)`` and weights ``w_i`` the threshold solves
``sum_i w_i l'(r - s_i) = M``; the left side never falls as ``r`` grows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from buttress._arrays import Array
from buttress._compile import compiled
from buttress.losses import EllipsoidError, Logistic

_THRESHOLD_STEPS = 200
# After so many steps the bracket is narrowed to neighbouring rows.
_BEFORE_SORTING = 8


def class_threshold(loss: Any, s: Array, w: Array, target: float, guess: float) -> float:
    """A root of ``sum w l'(r - s) = target`` by safeguarded Newton steps from `guess`.

    A loss with a method ``threshold`` of its own knows it in closed form.
    """
    if hasattr(loss, "threshold"):
        return float(loss.threshold(s, w, target))
    if isinstance(loss, EllipsoidError):
        away = max(1.0, abs(guess), float(np.ptp(s)))
        h, omega, scale = loss.h, loss.omega, loss.scale
        return float(
            _ellipsoid_threshold(s, w, target, guess, away, h, omega, scale, _THRESHOLD_STEPS)
        )
    if isinstance(loss, Logistic):
        return float(_logistic_threshold(s, w, target, guess, loss.slope, _THRESHOLD_STEPS))
    low, high = -np.inf, np.inf
    r, away = guess, max(1.0, abs(guess), float(np.ptp(s)))
    # Neither the sum nor the differences r - s are known better than this.
    summed = 4e-16 * target * max(1.0, 0.25 * np.sqrt(len(s)))
    resolved = 2.0 * np.finfo(np.float64).eps
    largest = float(np.abs(s).max())
    for tried in range(_THRESHOLD_STEPS):
        if tried == _BEFORE_SORTING:
            low, high = _between_rows(loss, s, w, target, low, high)
            r = high if np.isfinite(high) else low if np.isfinite(low) else r
        t = r - s
        excess = float(w @ loss.derivative(t)) - target
        if abs(excess) <= summed:
            return r
        curvature = float(w @ loss.curvature(t)) if np.isfinite(excess) else 0.0
        least = resolved * max(abs(r), largest)
        r, low, high, away, done = _nearer(r, excess, curvature, (low, high), away, least)
        if done:
            break
    return float(r)


@register_jitable
def _nearer(
    r: float,
    excess: float,
    curvature: float,
    bracket: tuple[float, float],
    away: float,
    least: float,
) -> tuple[float, float, float, float, bool]:
    """The next guess of a root after `r`, where the sum exceeds its target by `excess`.

    It is Newton's step where that stays inside the bracket, a step `away` (twice as far the next
    time) while there is none, else the middle.

    Returns
    -------
    r, low, high, away : float
    done : bool
        Whether it is no further than `least` from the last one.
    """
    low, high = bracket
    if excess > 0:
        high = r
    else:
        low = r
    new = r - excess / curvature if 0 < curvature < np.inf else np.nan
    if low < new < high:
        return new, low, high, away, abs(new - r) <= least
    if np.isinf(low) or np.isinf(high):
        return (r - away if excess > 0 else r + away), low, high, 2.0 * away, False
    new = 0.5 * (low + high)
    if high - low <= least or new in (low, high):
        return r, low, high, away, True
    return new, low, high, away, False


def _between_rows(
    loss: Any, s: Array, w: Array, target: float, low: float, high: float
) -> tuple[float, float]:
    """The bracket narrowed to two neighbouring values: spread out, the sum is a staircase."""
    inside = np.sort(s[(s > low) & (s < high)])
    first, last = 0, len(inside)
    while first < last:
        k = (first + last) // 2
        if float(w @ loss.derivative(inside[k] - s)) > target:
            high, last = float(inside[k]), k
        else:
            low, first = float(inside[k]), k + 1
    return low, high


@compiled()
def _ellipsoid_threshold(
    s: Array,
    w: Array,
    target: float,
    r: float,
    away: float,
    h: float,
    omega: float,
    scale: float,
    steps: int,
) -> float:
    """`class_threshold` of the ellipsoid loss: a piecewise linear equation, solved exactly once
    a step stays within a piece."""
    low, high = -np.inf, np.inf
    slope, bend = scale / omega, scale / (2.0 * omega**2)
    for _ in range(steps):
        total, curvature = 0.0, 0.0
        for i in range(len(s)):
            half = (r - s[i]) / (2.0 * omega)
            if half >= -1.0 - h:
                left = min(half + 1.0 + h, 1.0)
                if half < -h or half >= h:
                    curvature += w[i]
                total += w[i] * (left + max(half - h, 0.0))
        excess = slope * total - target
        curvature *= bend
        if abs(excess) <= 4e-16 * target:
            return r
        least = 1e-16 * abs(r)
        r, low, high, away, done = _nearer(r, excess, curvature, (low, high), away, least)
        if done:
            return r
    return r


@compiled(allocates=True)
def _logistic_threshold(
    s: Array, w: Array, target: float, r: float, slope: float, steps: int
) -> float:
    """`class_threshold` of the logistic loss; a search calls it some hundred times."""
    low, high = -np.inf, np.inf
    largest, smallest = s.max(), s.min()
    away = max(1.0, abs(r), largest - smallest)
    largest = max(abs(largest), abs(smallest))
    summed = 4e-16 * target * max(1.0, 0.25 * np.sqrt(len(s)))
    resolved = 4.4e-16
    for tried in range(steps):
        if tried == _BEFORE_SORTING:
            inside = np.sort(s[(s > low) & (s < high)])
            first, last = 0, len(inside)
            while first < last:
                k = (first + last) // 2
                if _logistic_sums(s, w, inside[k], slope)[0] > target:
                    high, last = inside[k], k
                else:
                    low, first = inside[k], k + 1
            r = high if np.isfinite(high) else low if np.isfinite(low) else r
        total, curvature = _logistic_sums(s, w, r, slope)
        excess = total - target
        if abs(excess) <= summed:
            return r
        least = resolved * max(abs(r), largest)
        r, low, high, away, done = _nearer(r, excess, curvature, (low, high), away, least)
        if done:
            return r
    return r


@compiled()
def _logistic_sums(s: Array, w: Array, r: float, slope: float) -> tuple[float, float]:
    """The sums of ``w l'(r - s)`` and ``w l''(r - s)``."""
    total, curvature = 0.0, 0.0
    for i in range(len(s)):
        t = r - s[i]
        tail = np.exp(-abs(t))
        smaller = tail / (1.0 + tail)
        share = 1.0 - smaller if t > 0 else smaller
        total += w[i] * share
        curvature += w[i] * smaller * (1.0 - smaller)
    return slope * total, slope * curvature


def central_threshold(loss: Any, s: Array, w: Array, target: float, guess: float) -> float:
    """The root of `class_threshold`, or the midpoint of the roots when they fill an interval.

    Roots fill an interval when every row of the class lies on a linear piece of the loss.
    """
    r = class_threshold(loss, s, w, target, guess)
    if float(w @ loss.curvature(r - s)) > 0 and float(w @ loss.curvature(r - s - _nudge(r))) > 0:
        return r
    return 0.5 * (_end(loss, s, w, target, r, -1.0) + _end(loss, s, w, target, r, 1.0))


def _nudge(r: float) -> float:
    return 1e-9 * max(1.0, abs(r))


def _end(loss: Any, s: Array, w: Array, target: float, r: float, side: float) -> float:
    """How far from `r` the roots reach to one side, by doubling and bisection."""

    def still(offset: float) -> bool:
        return abs(float(w @ loss.derivative(r + side * offset - s)) - target) <= 1e-13 * target

    reach = _nudge(r)
    if not still(reach):
        return r
    while still(2.0 * reach):
        reach *= 2.0
    inside, outside = reach, 2.0 * reach
    while outside - inside > 1e-15 * max(abs(r), outside):
        middle = 0.5 * (inside + outside)
        if not inside < middle < outside:
            break
        if still(middle):
            inside = middle
        else:
            outside = middle
    return r + side * inside


def quantile_threshold(s: Array, w: Array, target: float) -> float:
    """Where the weights of the smallest `s` reach `target`; a midpoint when exactly reached.

    This is the threshold of a hinge: ``target`` is ``nu M / 2``.
    """
    order = np.argsort(s, kind="stable")
    reached = np.cumsum(w[order])
    slack = 1e-10 * reached[-1]
    k = int(np.searchsorted(reached, target - slack))
    k = min(k, len(s) - 1)
    if abs(reached[k] - target) <= slack and k + 1 < len(s):
        return float(0.5 * (s[order[k]] + s[order[k + 1]]))
    return float(s[order[k]])
