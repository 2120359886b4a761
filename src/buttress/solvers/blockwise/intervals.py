"""Offsets that are not unique: with balanced classes and no margin beyond one, an interval.

The leaky hockey sticks are a straight line there, the slopes of the two classes cancel whatever the
offset is, and the midpoint of the interval is taken, as the exact solvers do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.blocks.base import Block
from buttress.solvers.blockwise.columns import ProblemColumns
from buttress.solvers.blockwise.objective import Objective
from buttress.solvers.blockwise.passes import Reader
from buttress.solvers.smooth.margins import straight_up_to_one

# Class weights that differ by less, relative to their sum, are equal.
_EQUAL = 1e-13


@dataclass(frozen=True, eq=False)
class _EndsPass:
    """Ends of the interval of offsets that keep every margin of a block at or below one."""

    reader: Reader
    columns: ProblemColumns
    weights: Array

    def __call__(self, block: Block) -> tuple[Array, Array]:
        low, high = np.full(len(self.columns), -np.inf), np.full(len(self.columns), np.inf)
        for tile in self.reader.tiles(block):
            scores = (tile.raw @ self.weights).astype(np.float64)
            single = tile.targets.shape[1] == 1
            target = tile.targets if single else tile.targets[:, self.columns.problem]
            counts = tile.members[:, self.columns.fold] > 0
            above, below = counts & (target > 0), counts & (target < 0)
            high = np.minimum(high, np.where(above, 1.0 - scores, np.inf).min(axis=0))
            low = np.maximum(low, np.where(below, -1.0 - scores, -np.inf).max(axis=0))
        return low, high


def centre_free_offsets(objective: Objective, theta: Array) -> tuple[Array, Array]:
    """Move every offset that is not unique to the middle of its interval.

    Parameters
    ----------
    objective : Objective
        In the coordinates of its feature map.
    theta : array of shape (parameters, columns)
        Solutions.

    Returns
    -------
    theta : array of shape (parameters, columns)
    intervals : array of shape (columns, 2)
        Both ends are the offset where it is unique; zero without offsets.
    """
    rows = objective.rows
    if rows.n_offsets != 1:
        return theta, np.zeros((theta.shape[1], 2))
    intervals = np.column_stack([theta[-1], theta[-1]])
    columns: IntArray = np.flatnonzero(_balanced(objective))
    if not straight_up_to_one(rows.loss) or len(columns) == 0:
        return theta, intervals
    task = _EndsPass(
        objective.reader, objective.columns[columns], objective.raw_weights(theta[:, columns])
    )
    ends = list(objective.source.map(task))
    low = np.max([interval[0] for interval in ends], axis=0)
    high = np.min([interval[1] for interval in ends], axis=0)
    free = columns[low <= high]
    intervals[free] = np.column_stack([low, high])[low <= high]
    theta = theta.copy()
    theta[-1, free] = intervals[free].mean(axis=1)
    return theta, intervals


def _balanced(objective: Objective) -> BoolArray:
    """Columns whose two classes have equal weight."""
    weight, columns = objective.class_folds, objective.columns
    positive = columns.problem if len(weight) > 2 else np.ones(len(columns), dtype=int)
    above, total = weight[positive, columns.fold], weight.sum(axis=0)[columns.fold]
    return np.asarray(np.abs(2.0 * above - total) <= _EQUAL * total)
