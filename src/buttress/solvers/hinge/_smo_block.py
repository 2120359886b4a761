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
from buttress.solvers.hinge._loops import NEVER
from buttress.solvers.numerics.vector_maximum import LANES, largest


@inner(fastmath=True)
def _shift(up: Array, low: Array, first: Any, second: Any, t: float) -> None:
    for j in range(first.shape[0]):
        change = t * (first[j] - second[j])
        up[j] -= change
        low[j] += change


@inner(fastmath=True)
def _pair_gains(
    low: Array, diagonal: Array, first: Any, top: float, curved: float, floor: float, gain: Array
) -> None:
    for j in range(first.shape[0]):
        difference = top + low[j]
        difference = difference if difference > 0.0 else 0.0
        curvature = curved + diagonal[j] - 2.0 * first[j]
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
        top = largest(gain, p * LANES)
        if top > best:
            best, home = top, p
    return best, _where(gain, home, best)


@inner()
def _refresh(inside: Array, q: int, j: int, value: float, up: Array, low: Array) -> None:
    """Which way a variable may go; `value` is its score."""
    b, slack = inside[POINT, q, j], inside[SLACK, q, j]
    up[q, j] = value if b < inside[UPPER, q, j] - slack else -NEVER
    low[q, j] = -value if b > inside[LOWER, q, j] + slack else -NEVER


# What `inside` holds of every variable of a block.
SCORE, POINT, LOWER, UPPER, SLACK = 0, 1, 2, 3, 4

Sides = tuple[Array, Array]


def workspace(n_layers: int, r: int) -> tuple[Sides, Sides, Array]:
    """What `solve_block` writes to: scores and their maxima, gains, a diagonal, zeros."""
    stretches = (r + LANES - 1) // LANES
    sides = [
        (np.full((n_layers, stretches * LANES), -NEVER), np.empty((n_layers, stretches)))
        for _ in range(2)
    ]
    space = np.zeros((3, stretches * LANES))
    space[0] = -1.0
    return sides[0], sides[1], space


@inner()
def _most_violated(ends: IntArray, tops: Array, deeps: Array) -> tuple[float, int, int, int]:
    """The largest violation, its group, and the layer and stretch of the group's best riser."""
    n_groups = ends.shape[0] - 1
    widest, chosen, layer, stretch, begin = -1.0, -1, 0, 0, 0
    for k in range(n_groups + 1):
        high = deep = -NEVER
        high_layer = high_stretch = 0
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
    return widest, chosen, layer, stretch


@inner()
def _single_step(
    inside: Array, layers: tuple[int, int], up: Array, low: Array, gain: Array, diagonal: Array,
    floor: float,
) -> tuple[float, int]:  # fmt: skip
    """Move the variable without a group that gains most; its step and row."""
    best, layer, i = -1.0, layers[0], 0
    for q in range(layers[0], layers[1]):
        _single_gains(up[q], low[q], diagonal, floor, gain)
        top, j = _top_gain(gain)
        if top > best:
            best, layer, i = top, q, j
    value = max(up[layer, i], low[layer, i])
    value = value if value == up[layer, i] else -value
    t = value / max(diagonal[i], floor)
    b, lower, upper = inside[POINT, layer, i], inside[LOWER, layer, i], inside[UPPER, layer, i]
    if t >= upper - b:
        t = upper - b
        inside[POINT, layer, i] = upper
    elif t <= lower - b:
        t = lower - b
        inside[POINT, layer, i] = lower
    else:
        inside[POINT, layer, i] += t
    _refresh(inside, layer, i, value, up, low)
    return t, i


@inner()
def _pair_step(
    inside: Array, riser: tuple[int, int], layers: tuple[int, int], K: Any, up: Array, low: Array,
    gain: Array, diagonal: Array, floor: float,
) -> tuple[float, int]:  # fmt: skip
    """Move the riser against the faller that gains most with it; the step and the faller's row."""
    layer, i = riser
    top, curved = up[layer, i], diagonal[i]
    best, faller_layer, j = -1.0, layers[0], 0
    for q in range(layers[0], layers[1]):
        _pair_gains(low[q], diagonal, K[i][: diagonal.shape[0]], top, curved, floor, gain)
        most, row = _top_gain(gain)
        if most > best:
            best, faller_layer, j = most, q, row
    bottom = -low[faller_layer, j]
    t = (top - bottom) / max(curved + diagonal[j] - 2.0 * K[i, j], floor)
    room_i = inside[UPPER, layer, i] - inside[POINT, layer, i]
    room_j = inside[POINT, faller_layer, j] - inside[LOWER, faller_layer, j]
    t = min(t, room_i, room_j)
    rises, falls = t == room_i, t == room_j
    inside[POINT, layer, i] = inside[UPPER, layer, i] if rises else inside[POINT, layer, i] + t
    inside[POINT, faller_layer, j] = (
        inside[LOWER, faller_layer, j] if falls else inside[POINT, faller_layer, j] - t
    )
    _refresh(inside, layer, i, top, up, low)
    _refresh(inside, faller_layer, j, bottom, up, low)
    return t, j


@compiled()
def solve_block(
    K: Any,
    ends: IntArray,
    inside: Array,
    tol: float,
    max_iter: int,
    room: tuple[Sides, Sides, Array],
) -> int:
    """Minimise over the variables of one block; changes their point in place.

    Parameters
    ----------
    K : array of shape (at least r, at least r)
        Its leading part is the kernel of the block's rows.
    ends : array of shape (n_groups + 1,)
        Layers ``ends[k-1]:ends[k]`` form group k; those after the last group are free of any
        sum constraint.
    inside : array of shape (5, n_layers, r)
        Scores at the point, the point, its box (lower and upper), and how near a bound counts as
        at the bound. A row without a variable in a layer has an empty box there.
    room : tuple
        Arrays to work in, from `workspace`: allocating them here would double the compile time.

    Returns
    -------
    int
        The number of steps taken; each costs O(n_layers r).
    """
    _, n_layers, r = inside.shape
    n_groups = ends.shape[0] - 1
    (up, tops), (low, deeps), space = room
    gain, diagonal, nothing = space[0], space[1][:r], space[2][:r]
    scale = 0.0
    for j in range(r):
        diagonal[j] = K[j, j]
        scale = max(scale, abs(diagonal[j]))
    floor = 1e-14 * scale if scale > 0.0 else 1e-14
    for q in range(n_layers):
        for j in range(r):
            _refresh(inside, q, j, inside[SCORE, q, j], up, low)
        _stretches(up[q], tops[q])
        _stretches(low[q], deeps[q])
    for step in range(max_iter):
        widest, chosen, layer, stretch = _most_violated(ends, tops, deeps)
        if widest <= tol:
            return step
        layers = (ends[chosen - 1] if chosen > 0 else 0, ends[chosen])
        second = nothing
        # what may still move is settled before the shift, so that the stretches see it
        if chosen == n_groups:
            t, i = _single_step(inside, layers, up, low, gain, diagonal, floor)
        else:
            i = _where(up[layer], stretch, tops[layer, stretch])
            t, j = _pair_step(inside, (layer, i), layers, K, up, low, gain, diagonal, floor)
            second = K[j][:r]
        for q in range(n_layers):
            _shift(up[q], low[q], K[i][:r], second, t)
            _stretches(up[q], tops[q])
            _stretches(low[q], deeps[q])
    return max_iter
