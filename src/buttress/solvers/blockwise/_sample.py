"""Which rows a solution starts from: a sample of them, or all where they are in memory."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.blocks.base import ArrayBlocks, Block, take_rows
from buttress.solvers.blockwise.objective import Objective

# Beyond this many components a square matrix of them costs more than it saves.
MOST_SQUARE = 6_000
# Rows of the sample that gives start and curvature: this many per component, and of all rows.
_PER_COMPONENT, _MOST_PER_COMPONENT, _SHARE = 10, 40, 20
_FEWEST_SAMPLE, _MOST_SAMPLE = 2_000, 40_000
# A sample of more than every other row is no sample: take all, up to so many entries.
_LEAST_SHARE, _MOST_ENTRIES = 2, 80_000_000
# Accuracy that sums in single precision allow with some room.
_SINGLE = 5e-8
# Passes that a column takes, about: more columns than components over this are worth the product
# that brings all rows to other coordinates.
_USUAL_PASSES = 20


def sample_rows(n_rows: int, n_components: int, seed: int) -> IntArray:
    """Row numbers of the sample that gives start and curvature: all, when rows are few."""
    most = min(_MOST_PER_COMPONENT * n_components, _MOST_SAMPLE)
    size = min(max(_PER_COMPONENT * n_components, n_rows // _SHARE, _FEWEST_SAMPLE), most)
    size = max(size, min(_FEWEST_SAMPLE, n_rows))
    size = min(size, _MOST_ENTRIES // n_components)
    if _LEAST_SHARE * size >= n_rows and n_rows * n_components <= _MOST_ENTRIES:
        return np.arange(n_rows)
    size = min(size, n_rows)
    drawn = np.random.default_rng((seed, 3)).choice(n_rows, size=size, replace=False, shuffle=False)
    return np.sort(drawn)


def sample_of(objective: Objective, method: str = "auto") -> Block | None:
    """Fetch the rows that give start and curvature, when there are enough rows to sample."""
    if method != "auto" or objective.n_components > MOST_SQUARE:
        return None
    rows = sample_rows(objective.source.n_rows, objective.n_components, seed=0)
    return take_rows(objective.source, rows)


def in_single_precision(objective: Objective, tolerance: Array) -> bool:
    """Whether to solve on all rows in single precision, on a copy of others.

    That is, whether the rows stay mapped in memory, the accuracy asked for allows it, and the
    columns are many.
    """
    source = objective.source
    return (
        isinstance(source, ArrayBlocks)
        and source.keeps
        and objective.reader.features.flops_per_row == 0
        and objective.n_components <= MOST_SQUARE
        and bool((tolerance >= _SINGLE).all())
        and _USUAL_PASSES * len(objective.columns) >= objective.n_components
    )
