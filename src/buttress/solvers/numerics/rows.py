"""Compiled loops over rows of a matrix: sums of them, entries picked from them."""

from __future__ import annotations

from typing import Any

from buttress._arrays import Array, IntArray
from buttress._compile import compiled

# Stands for minus infinity, which fast arithmetic may not assume to exist.
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


@compiled()
def mirror(K: Array, rows: IntArray, size: int) -> None:
    """Make the columns `rows` of ``K[:size, :size]`` equal to the rows `rows`."""
    for i in range(size):
        for k in range(rows.shape[0]):
            K[i, rows[k]] = K[rows[k], i]


@compiled()
def fill_scaled(K: Array, rows: Any, root: Array, scale: float, whole: bool, out: Array) -> None:
    """Lower triangle of ``I + scale * diag(root) K[rows, rows] diag(root)``."""
    for i in range(len(rows)):
        a = scale * root[i]
        if whole:
            for j in range(i + 1):
                out[i, j] = a * root[j] * K[i, j]
        else:
            k = rows[i]
            for j in range(i + 1):
                out[i, j] = a * root[j] * K[k, rows[j]]
        out[i, i] += 1.0
