"""Loss, slope and their sums over a tile in one loop, for the loss that rides in most columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import compiled
from buttress.losses import LeakyHockeyStick
from buttress.solvers.blockwise.columns import RowLoss
from buttress.solvers.numerics.logarithm import log32, log64

# No infinities or NaN enter (scores of finite rows), and sums may be regrouped.
_FAST = {"contract", "reassoc", "nsz", "nnan", "ninf"}
# Rows whose sums stay in the precision of the data before they go to float64.
_SHORT = 32


def can_fuse(rows: RowLoss) -> bool:
    """Whether `leaky_tile` computes this loss."""
    return (
        type(rows.loss) is LeakyHockeyStick
        and math.isinf(rows.loss.r)
        and len(rows.terms) == 1
        and rows.terms[0].cost_below == rows.terms[0].cost_above == 1.0
    )


def _fused(logarithm: Any, kind: Any) -> Any:
    """The loop in one precision; its steps are free of branches, so that they vectorise."""

    def fused_leaky(
        scores: Array,
        offsets: Array,
        targets: Array,
        problem: IntArray,
        members: Array,
        fold: IntArray,
        value: Array,
        below: Array,
        above: Array,
    ) -> None:
        n, n_columns = scores.shape
        one, zero = kind(1.0), kind(0.0)
        # Few arrays in each loop: compilers check them pairwise for overlap, or give up.
        values = np.zeros(n_columns, dtype=scores.dtype)
        lower, upper = np.zeros_like(values), np.zeros_like(values)
        margin, weight = np.empty_like(values), np.empty_like(values)
        target = np.empty_like(values)
        for i in range(n):
            row = scores[i]
            for c in range(n_columns):
                weight[c] = members[i, fold[c]]
                target[c] = targets[i, problem[c]]
            for c in range(n_columns):
                margin[c] = target[c] * (row[c] + offsets[c])
            for c in range(n_columns):
                u = margin[c]
                beyond = u if u > one else one
                short = one - u if u < one else zero
                values[c] += weight[c] * (short - logarithm(beyond))
            for c in range(n_columns):
                u = margin[c]
                row[c] = -weight[c] * target[c] / (u if u > one else one)
            for c in range(n_columns):
                slope = row[c]
                upper[c] += slope if slope < zero else zero
                lower[c] += slope if slope > zero else zero
            if i % _SHORT == _SHORT - 1 or i == n - 1:
                for c in range(n_columns):
                    value[c] += values[c]
                    below[c] += lower[c]
                    above[c] += upper[c]
                    values[c] = lower[c] = upper[c] = zero

    return fused_leaky


_fused_32 = compiled(allocates=True, fastmath=_FAST)(_fused(log32, np.float32))
_fused_64 = compiled(allocates=True, fastmath=_FAST)(_fused(log64, np.float64))


def leaky_tile(
    scores: Array,
    offsets: Array,
    targets: Array,
    problem: IntArray,
    members: Array,
    fold: IntArray,
    value: Array,
    by_side: Array,
) -> Array:
    """Overwrite scores by slopes in the score, and add up values and slopes by side.

    Parameters
    ----------
    scores : array of shape (rows, columns)
    offsets : array of shape (n_offsets, columns)
    targets : array of shape (rows, problems)
    problem, fold : arrays of shape (columns,)
    members : array of shape (rows, folds)
        Row weight where the fold trains on the row, else zero.
    value : array of shape (columns,) in float64
    by_side : array of shape (1, 2, columns) in float64
    """
    flat = offsets[0] if len(offsets) else np.zeros(scores.shape[1], dtype=scores.dtype)
    loop = _fused_32 if scores.dtype == np.float32 else _fused_64
    loop(scores, flat, targets, problem, members, fold, value, by_side[0, 0], by_side[0, 1])
    return scores
