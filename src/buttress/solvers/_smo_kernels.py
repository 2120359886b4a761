"""Compiled loops of the box solver (`buttress.solvers.smo`).

Variables are signed here: ``b_j = s_j a_j``. A variable that may still grow has its score in
`up`, one that may still fall has it in `low`; the others hold a sentinel so large that the
loops need no branch and compile to vector instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import compiled

NEVER = 1e300


@compiled(fastmath=True)
def add_rows(buffer: Any, slots: IntArray, steps: Array, g: Array) -> None:
    """``g += sum_k steps[k] * buffer[slots[k]]``, four rows at a time."""
    n = g.shape[0]
    m = slots.shape[0]
    k = 0
    while k + 3 < m:
        d0, d1, d2, d3 = steps[k], steps[k + 1], steps[k + 2], steps[k + 3]
        r0, r1 = buffer[slots[k]], buffer[slots[k + 1]]
        r2, r3 = buffer[slots[k + 2]], buffer[slots[k + 3]]
        for i in range(n):
            g[i] += (d0 * r0[i] + d1 * r1[i]) + (d2 * r2[i] + d3 * r3[i])
        k += 4
    while k < m:
        d0 = steps[k]
        r0 = buffer[slots[k]]
        for i in range(n):
            g[i] += d0 * r0[i]
        k += 1


@compiled()
def gather(buffer: Any, slots: IntArray, columns: IntArray, out: Array) -> None:
    """``out[k, l] = buffer[slots[k], columns[l]]``."""
    for k in range(slots.shape[0]):
        row = buffer[slots[k]]
        for l in range(columns.shape[0]):
            out[k, l] = row[columns[l]]


@compiled()
def scores(
    g: Array,
    q: Array,
    row: IntArray,
    group: IntArray,
    b: Array,
    lower: Array,
    upper: Array,
    slack: Array,
    v: Array,
    best: Array,
) -> None:
    """Fill ``v = -(g + q)`` and, per group, the largest up and the smallest low score.

    `best` has one row per group and a last one for the variables without a group.
    """
    last = best.shape[0] - 1
    for k in range(last + 1):
        best[k, 0] = -NEVER
        best[k, 1] = NEVER
    for j in range(v.shape[0]):
        value = -(g[row[j]] + q[j])
        v[j] = value
        k = group[j] if group[j] >= 0 else last
        if b[j] < upper[j] - slack[j] and value > best[k, 0]:
            best[k, 0] = value
        if b[j] > lower[j] + slack[j] and value < best[k, 1]:
            best[k, 1] = value


@compiled(fastmath=True)
def _shift(up: Array, low: Array, first: Array, second: Array, t: float) -> None:
    for j in range(up.shape[0]):
        change = t * (first[j] - second[j])
        up[j] -= change
        low[j] += change


@compiled(fastmath=True)
def _shift_one(up: Array, low: Array, first: Array, t: float) -> None:
    for j in range(up.shape[0]):
        change = t * first[j]
        up[j] -= change
        low[j] += change


@compiled(fastmath=True)
def _largest(x: Any, begin: int, end: int) -> tuple[float, int]:
    """The largest of ``x[begin:end]`` and its position.

    Eight running maxima per chunk: the compiler does not split a maximum by itself.
    """
    top, home = -NEVER, begin
    start = begin
    while start < end:
        stop = min(start + 128, end)
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = -NEVER
        j = start
        while j + 7 < stop:
            a0, a1, a2, a3 = max(a0, x[j]), max(a1, x[j + 1]), max(a2, x[j + 2]), max(a3, x[j + 3])
            j += 4
            a4, a5, a6, a7 = max(a4, x[j]), max(a5, x[j + 1]), max(a6, x[j + 2]), max(a7, x[j + 3])
            j += 4
        while j < stop:
            a0 = max(a0, x[j])
            j += 1
        chunk = max(max(max(a0, a1), max(a2, a3)), max(max(a4, a5), max(a6, a7)))
        if chunk > top:
            top, home = chunk, start
        start = stop
    for j in range(home, min(home + 128, end)):
        if x[j] == top:
            return top, j
    return top, home


@compiled(fastmath=True, error_model="numpy")
def _pair_gains(
    low: Array,
    diagonal: Array,
    first: Array,
    top: float,
    own: float,
    floor: float,
    gain: Array,
    begin: int,
    end: int,
) -> None:
    for j in range(begin, end):
        difference = top + low[j]
        difference = difference if difference > 0.0 else 0.0
        curvature = own + diagonal[j] - 2.0 * first[j]
        curvature = curvature if curvature > floor else floor
        gain[j] = difference * difference / curvature


@compiled(fastmath=True, error_model="numpy")
def _single_gains(
    up: Array, low: Array, diagonal: Array, floor: float, gain: Array, begin: int, end: int
) -> None:
    for j in range(begin, end):
        difference = up[j] if up[j] > low[j] else low[j]
        difference = difference if difference > 0.0 else 0.0
        curvature = diagonal[j] if diagonal[j] > floor else floor
        gain[j] = difference * difference / curvature


@compiled()
def _refresh(
    j: int, value: float, b: Array, lower: Array, upper: Array, slack: Array, up: Array, low: Array
) -> None:
    up[j] = value if b[j] < upper[j] - slack[j] else -NEVER
    low[j] = -value if b[j] > lower[j] + slack[j] else -NEVER


@compiled()
def solve_block(
    K: Array,
    ends: IntArray,
    v: Array,
    b: Array,
    lower: Array,
    upper: Array,
    slack: Array,
    tol: float,
    max_iter: int,
) -> int:
    """Minimise over the variables of one block; changes `b` in place.

    Parameters
    ----------
    K : array of shape (m, m)
        Kernel of the block's variables (not rows: two variables of one row have equal rows).
    ends : array of shape (n_groups + 1,)
        Variables ``ends[k-1]:ends[k]`` form group k; those after the last group are free of
        any sum constraint.
    v : array of shape (m,)
        Scores at `b`.
    b, lower, upper, slack : arrays of shape (m,)
        The point, its box, and how near a bound counts as at the bound.

    Returns
    -------
    int
        The number of steps taken; each costs O(m).
    """
    m = b.shape[0]
    n_groups = ends.shape[0] - 1
    diagonal = np.empty(m)
    up = np.empty(m)
    low = np.empty(m)
    gain = np.empty(m)
    scale = 0.0
    for j in range(m):
        diagonal[j] = K[j, j]
        scale = max(scale, abs(diagonal[j]))
        _refresh(j, v[j], b, lower, upper, slack, up, low)
    floor = 1e-14 * scale if scale > 0.0 else 1e-14
    for step in range(max_iter):
        widest = -1.0
        chosen = -1
        i = -1
        begin = 0
        for k in range(n_groups + 1):
            end = ends[k]
            if end > begin:
                high, best_up = _largest(up, begin, end)
                deep, _ = _largest(low, begin, end)
                gap = high + deep if k < n_groups else max(high, deep)
                if gap > widest:
                    widest = gap
                    chosen = k
                    i = best_up
            begin = end
        if widest <= tol:
            return step
        begin = ends[chosen - 1] if chosen > 0 else 0
        end = ends[chosen]
        if chosen == n_groups:
            _single_gains(up, low, diagonal, floor, gain, begin, end)
            _, i = _largest(gain, begin, end)
            value = up[i] if up[i] > low[i] else -low[i]
            t = value / max(diagonal[i], floor)
            if t >= upper[i] - b[i]:
                t = upper[i] - b[i]
                b[i] = upper[i]
            elif t <= lower[i] - b[i]:
                t = lower[i] - b[i]
                b[i] = lower[i]
            else:
                b[i] += t
            _shift_one(up, low, K[i], t)
            _refresh(i, value - t * K[i, i], b, lower, upper, slack, up, low)
            continue
        top = up[i]
        own = diagonal[i]
        _pair_gains(low, diagonal, K[i], top, own, floor, gain, begin, end)
        _, j = _largest(gain, begin, end)
        bottom = -low[j]
        t = (top - bottom) / max(own + diagonal[j] - 2.0 * K[i, j], floor)
        room_i = upper[i] - b[i]
        room_j = b[j] - lower[j]
        t = min(t, room_i, room_j)
        b[i] = upper[i] if t == room_i else b[i] + t
        b[j] = lower[j] if t == room_j else b[j] - t
        _shift(up, low, K[i], K[j], t)
        _refresh(i, top - t * (K[i, i] - K[j, i]), b, lower, upper, slack, up, low)
        _refresh(j, bottom - t * (K[i, j] - K[j, j]), b, lower, upper, slack, up, low)
    return max_iter


@compiled()
def reduced_system(K: Array, keep: IntArray, pivot: IntArray, A: Array) -> float:
    """Lower triangle of the system without the pivots, whose steps balance their groups.

    ``A[a, b] = (e_i - e_p)' K (e_j - e_q)`` for ``i = keep[a]``, ``j = keep[b]`` and their pivots
    p and q (-1: none). Returns the trace.
    """
    trace = 0.0
    for a in range(keep.shape[0]):
        i, p = keep[a], pivot[a]
        row = K[i]
        if p < 0:
            for b in range(a + 1):
                q = pivot[b]
                A[a, b] = row[keep[b]] - (row[q] if q >= 0 else 0.0)
        else:
            base = K[p]
            for b in range(a + 1):
                j, q = keep[b], pivot[b]
                A[a, b] = row[j] - base[j] - (row[q] - base[q] if q >= 0 else 0.0)
        trace += A[a, a]
    return trace
