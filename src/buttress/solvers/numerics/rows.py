"""Compiled loops over rows of a matrix: sums of them, entries picked from them."""

from __future__ import annotations

from typing import Any

from buttress._arrays import Array, IntArray
from buttress._compile import compiled


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
