"""Small compiled loops that the steps of several hinge solvers share."""

from __future__ import annotations

from buttress._arrays import Array, IntArray
from buttress._compile import compiled

# Stands for minus infinity, which fast arithmetic may not assume to exist.
NEVER = 1e300


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
