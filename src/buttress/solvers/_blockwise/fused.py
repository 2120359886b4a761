"""Loss, slope and their sums over a tile in one loop, for the loss that rides in most columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import compiled
from buttress.losses import LeakyHockeyStick
from buttress.solvers._blockwise.columns import RowLoss


def can_fuse(rows: RowLoss) -> bool:
    """Whether `fused_leaky` computes this loss."""
    return (
        type(rows.loss) is LeakyHockeyStick
        and math.isinf(rows.loss.r)
        and len(rows.terms) == 1
        and rows.terms[0].cost_below == rows.terms[0].cost_above == 1.0
    )


@compiled()
def fused_leaky(
    scores: Array,
    offsets: Array,
    targets: Array,
    problem: IntArray,
    weighted: Array,
    fold: IntArray,
    value: Array,
    below: Array,
    above: Array,
) -> Any:
    """Overwrite scores by slopes; add values and slopes by side to the last three arrays.

    Parameters
    ----------
    scores : array of shape (rows, columns)
    offsets : array of shape (columns,)
    targets : array of shape (rows, problems)
    problem, fold : arrays of shape (columns,)
    weighted : array of shape (rows, folds)
        Row weight where the fold trains on the row, else zero.
    value, below, above : arrays of shape (columns,) in float64
    """
    for i in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            w = weighted[i, fold[c]]
            y = targets[i, problem[c]]
            u = y * (scores[i, c] + offsets[c])
            if u > 1:
                slope = -w / u
                value[c] -= w * math.log(u)
            else:
                slope = -w
                value[c] += w * (1 - u)
            slope *= y
            scores[i, c] = slope
            if y > 0:
                above[c] += slope
            else:
                below[c] += slope


def leaky_tile(
    scores: Array,
    offsets: Array,
    targets: Array,
    problem: IntArray,
    weighted: Array,
    fold: IntArray,
    value: Array,
    by_side: Array,
) -> Array:
    """`fused_leaky` for arrays as `GradientPass` has them; returns the slopes."""
    flat = offsets[0] if len(offsets) else np.zeros(scores.shape[1], dtype=scores.dtype)
    fused_leaky(scores, flat, targets, problem, weighted, fold, value, by_side[0, 0], by_side[0, 1])
    return scores
