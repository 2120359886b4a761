"""Pair steps inside one block of rows: the inner loop of the box solver.

Variables are signed: ``b_j = s_j a_j``. Those of a block stand in layers, one variable per row
and layer (a row may carry several variables), so that the kernel of the rows serves all layers.
A variable that may still grow has its score in `up`, one that may still fall has minus its score
in `low`; the others hold a sentinel so low that the loops need no branch and compile to vector
instructions. The maxima of stretches of `up` and `low` are kept beside them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import compiled, inner
from buttress.solvers.numerics.rows import NEVER
from buttress.solvers.numerics.vector_maximum import LANES, largest


@inner(fastmath=True)
def _shift(up: Array, low: Array, first: Any, second: Any, t: float) -> None:
    for j in range(first.shape[0]):
        change = t * (first[j] - second[j])
        up[j] -= change
        low[j] += change


@inner(fastmath=True)
def _pair_gains(
    low: Array, diagonal: Array, first: Any, top: float, own: float, floor: float, gain: Array
) -> None:
    for j in range(first.shape[0]):
        difference = top + low[j]
        difference = difference if difference > 0.0 else 0.0
        curvature = own + diagonal[j] - 2.0 * first[j]
        curvature = curvature if curvature > floor else floor
        gain[j] = difference * difference / curvature


@inner(fastmath=True)
def _single_gains(up: Array, low: Array, diagonal: Array, floor: float, gain: Array) -> None:
    for j in range(diagonal.shape[0]):
        difference = up[j] if up[j] > low[j] else low[j]
        difference = difference if difference > 0.0 else 0.0
        curvature = diagonal[j] if diagonal[j] > floor else floor
        gain[j] = difference * difference / curvature


@inner()
def _stretches(x: Array, out: Array) -> None:
    """The maximum of every stretch."""
    for p in range(out.shape[0]):
        out[p] = largest(x, p * LANES)


@inner()
def _where(x: Array, stretch: int, value: float) -> int:
    """The position of `value` in a stretch of x."""
    for j in range(stretch * LANES, (stretch + 1) * LANES):
        if x[j] == value:
            return j
    return stretch * LANES


@inner()
def _top_gain(gain: Array) -> tuple[float, int]:
    best, home = -1.0, 0
    for p in range(gain.shape[0] // LANES):
        here = largest(gain, p * LANES)
        if here > best:
            best, home = here, p
    return best, _where(gain, home, best)


@inner()
def _refresh(
    q: int,
    j: int,
    value: float,
    b: Array,
    lower: Array,
    upper: Array,
    slack: Array,
    up: Array,
    low: Array,
) -> None:
    up[q, j] = value if b[q, j] < upper[q, j] - slack[q, j] else -NEVER
    low[q, j] = -value if b[q, j] > lower[q, j] + slack[q, j] else -NEVER


def workspace(n_layers: int, r: int) -> tuple[tuple[Array, Array], tuple[Array, Array], Array]:
    """What `solve_block` writes to: scores and their maxima, gains, a diagonal, zeros."""
    stretches = (r + LANES - 1) // LANES
    sides = [
        (np.full((n_layers, stretches * LANES), -NEVER), np.empty((n_layers, stretches)))
        for _ in range(2)
    ]
    space = np.zeros((3, stretches * LANES))
    space[0] = -1.0
    return sides[0], sides[1], space


@compiled()
def solve_block(
    K: Any,
    ends: IntArray,
    v: Array,
    b: Array,
    lower: Array,
    upper: Array,
    slack: Array,
    tol: float,
    max_iter: int,
    ups: tuple[Array, Array],
    lows: tuple[Array, Array],
    space: Array,
) -> int:
    """Minimise over the variables of one block; changes `b` in place.

    Parameters
    ----------
    K : array of shape (at least r, at least r)
        Its leading part is the kernel of the block's rows.
    ends : array of shape (n_groups + 1,)
        Layers ``ends[k-1]:ends[k]`` form group k; those after the last group are free of any
        sum constraint.
    v : array of shape (n_layers, r)
        Scores at `b`.
    b, lower, upper, slack : arrays of shape (n_layers, r)
        The point, its box, and how near a bound counts as at the bound. A row without a
        variable in a layer has an empty box there.

    ups, lows, space
        Room to work in, from `workspace`: allocating it here would double the compile time.

    Returns
    -------
    int
        The number of steps taken; each costs O(n_layers r).
    """
    n_layers, r = b.shape
    n_groups = ends.shape[0] - 1
    first = 0 * r  # zero, but not as a constant, for which functions would be compiled again
    (up, tops), (low, deeps) = ups, lows
    gain, diagonal, nothing = space[0], space[1][:r], space[2][:r]
    scale = 0.0
    for j in range(r):
        diagonal[j] = K[j, j]
        scale = max(scale, abs(diagonal[j]))
    floor = 1e-14 * scale if scale > 0.0 else 1e-14
    for q in range(n_layers):
        for j in range(r):
            _refresh(q, j, v[q, j], b, lower, upper, slack, up, low)
        _stretches(up[q], tops[q])
        _stretches(low[q], deeps[q])
    for step in range(max_iter):
        # the group whose conditions are violated most, and its best riser
        widest, chosen, layer, stretch = -1.0, -1, first, first
        begin = 0
        for k in range(n_groups + 1):
            high = deep = -NEVER
            high_layer = high_stretch = first
            for q in range(begin, ends[k]):
                for p in range(tops.shape[1]):
                    if tops[q, p] > high:
                        high, high_layer, high_stretch = tops[q, p], q, p
                    if deeps[q, p] > deep:
                        deep = deeps[q, p]
            if begin < ends[k]:
                gap = high + deep if k < n_groups else max(high, deep)
                if gap > widest:
                    widest, chosen, layer, stretch = gap, k, high_layer, high_stretch
            begin = ends[k]
        if widest <= tol:
            return step
        begin = ends[chosen - 1] if chosen > 0 else first
        second = nothing
        # what may still move is settled before the shift, so that the stretches see it
        if chosen == n_groups:
            best, i = -1.0, first
            for q in range(begin, ends[chosen]):
                _single_gains(up[q], low[q], diagonal, floor, gain)
                here, j = _top_gain(gain)
                if here > best:
                    best, layer, i = here, q, j
            value = max(up[layer, i], low[layer, i])
            value = value if value == up[layer, i] else -value
            t = value / max(diagonal[i], floor)
            if t >= upper[layer, i] - b[layer, i]:
                t = upper[layer, i] - b[layer, i]
                b[layer, i] = upper[layer, i]
            elif t <= lower[layer, i] - b[layer, i]:
                t = lower[layer, i] - b[layer, i]
                b[layer, i] = lower[layer, i]
            else:
                b[layer, i] += t
            _refresh(layer, i, value, b, lower, upper, slack, up, low)
        else:
            i = _where(up[layer], stretch, tops[layer, stretch])
            top, own = up[layer, i], diagonal[i]
            best, other, j = -1.0, begin, first
            for q in range(begin, ends[chosen]):
                _pair_gains(low[q], diagonal, K[i][:r], top, own, floor, gain)
                here, place = _top_gain(gain)
                if here > best:
                    best, other, j = here, q, place
            bottom = -low[other, j]
            t = (top - bottom) / max(own + diagonal[j] - 2.0 * K[i, j], floor)
            room_i = upper[layer, i] - b[layer, i]
            room_j = b[other, j] - lower[other, j]
            t = min(t, room_i, room_j)
            b[layer, i] = upper[layer, i] if t == room_i else b[layer, i] + t
            b[other, j] = lower[other, j] if t == room_j else b[other, j] - t
            _refresh(layer, i, top, b, lower, upper, slack, up, low)
            _refresh(other, j, bottom, b, lower, upper, slack, up, low)
            second = K[j][:r]
        for q in range(n_layers):
            _shift(up[q], low[q], K[i][:r], second, t)
            _stretches(up[q], tops[q])
            _stretches(low[q], deeps[q])
    return max_iter
