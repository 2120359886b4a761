"""Sums over all support vectors, one tile of the kernel matrix at a time, compiled as a whole.

A tile is one matrix product (BLAS), a correction where it is due, and a pass that takes the
exponential and multiplies by the coefficients while the tile is in the cache. No thread holds
the interpreter's lock meanwhile.
"""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array
from buttress._compile import compiled
from buttress.solvers._stream_exp import add_exp_dot_32, add_exp_dot_64
from buttress.solvers._stream_loops import correct_exponents

# Vectors per tile: 64 rows of it stay in the second-level cache.
TILE = 256


@compiled()
def sum_tiles_64(
    left: Array,
    right: Array,
    X: Array,
    Z: Array,
    size_x: Array,
    largest: float,
    coef: Array,
    gamma: float,
    correction: Array,
    begin: int,
    step: int,
    scratch: Array,
    parts: Array,
) -> None:
    """Add ``exp(left @ right.T) @ coef`` of tiles `begin`, `begin + step`, ... to `parts`.

    `parts` has one entry per tile, or a single one that collects all of them.
    """
    n, m = len(left), len(right)
    for first in range(begin * TILE, m, step * TILE):
        last = min(first + TILE, m)
        E = scratch[: n * (last - first)].reshape(n, last - first)
        np.dot(left, right[first:last].T, E)
        if correction[0] > 0.0:
            correct_exponents(
                E,
                X,
                Z[first:last],
                size_x,
                right[first:last],
                largest,
                gamma,
                correction[0],
                correction[1],
                correction[2],
                correction[3],
            )
        add_exp_dot_64(E, coef[first:last], parts[min(first // TILE, len(parts) - 1)])


@compiled()
def sum_tiles_32(
    left: Array,
    right: Array,
    X: Array,
    Z: Array,
    size_x: Array,
    largest: float,
    coef: Array,
    gamma: float,
    correction: Array,
    begin: int,
    step: int,
    scratch: Array,
    parts: Array,
) -> None:
    """The float32 version of `sum_tiles_64`."""
    n, m = len(left), len(right)
    for first in range(begin * TILE, m, step * TILE):
        last = min(first + TILE, m)
        E = scratch[: n * (last - first)].reshape(n, last - first)
        np.dot(left, right[first:last].T, E)
        if correction[0] > 0.0:
            correct_exponents(
                E,
                X,
                Z[first:last],
                size_x,
                right[first:last],
                largest,
                gamma,
                correction[0],
                correction[1],
                correction[2],
                correction[3],
            )
        add_exp_dot_32(E, coef[first:last], parts[min(first // TILE, len(parts) - 1)])
