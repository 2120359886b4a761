"""Offsets of columns whose margins are hardly curved, found on a sample.

Under strong penalties few margins reach the curved part of a loss, and the objective is almost
piecewise linear in the offset: steps by curvature creep from kink to kink. A sample of the rows
knows where the kinks are. Corrected by the difference between the true slope and its own (the
correction of DANE: Shamir, Srebro and Zhang, "Communication-efficient distributed optimization
using an approximate Newton-type method", ICML 2014) it tells where the slope vanishes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._compile import FAST, compiled, inner
from buttress.blocks.base import Block
from buttress.solvers.blockwise.objective import Objective
from buttress.solvers.blockwise.passes import Reader, RowTile, each_term
from buttress.solvers.smooth.margins import for_loss, set_slope

# Mean curvature, relative to its bound, and the part of the rows that have it, below which a
# column's offset is searched for.
_FEW_CURVED = 0.05
# Rows that are enough to tell.
_LOOK_ROWS = 2_000
# Rows that a search goes through: its steps are corrected, and need not be exact.
_MOST_ROWS = 4_000
_FIRST_WIDTH, _BISECTIONS = 1e-3, 32
_WIDEST = 1e12


@inner(fastmath=FAST)
def _slope(loss: Any, margin: Array, side: Array, weight: Array, move: float, work: Array) -> float:
    """Sum of the derivatives in the offset when it moves by `move`."""
    by = margin.dtype.type(move)
    for i in range(margin.size):
        work[i] = margin[i] + side[i] * by
    set_slope(loss, work, work)
    total = 0.0
    for i in range(margin.size):
        total -= weight[i] * side[i] * work[i]
    return total


@compiled(allocates=True)
def _moves(
    loss: Any, margins: Array, sides: Array, weights: Array, correction: Array, moves: Array
) -> None:
    """`SampleOffsets._bisect` for a loss with scalars; rows of the matrices are columns."""
    work = np.empty_like(margins[0])
    for c in range(len(moves)):
        margin, side, weight, more = margins[c], sides[c], weights[c], correction[c]
        low, high = -_FIRST_WIDTH, _FIRST_WIDTH
        while _slope(loss, margin, side, weight, low, work) + more > 0 and low > -_WIDEST:
            low *= 8.0
        while _slope(loss, margin, side, weight, high, work) + more < 0 and high < _WIDEST:
            high *= 8.0
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            if _slope(loss, margin, side, weight, middle, work) + more < 0:
                low = middle
            else:
                high = middle
        moves[c] = 0.5 * (low + high)


class SampleOffsets:
    """The offsets of some columns by bisection on a sample.

    Parameters
    ----------
    sample : Objective
        The problem on a few rows; one offset and one loss term per row.
    rows : RowTile
        Those rows, mapped.
    """

    def __init__(self, sample: Objective, rows: RowTile) -> None:
        self.sample, self.rows = sample, rows
        self.held: BoolArray = np.zeros(len(sample.columns), dtype=bool)

    def only(self, columns: IntArray) -> SampleOffsets:
        """The search in some columns."""
        return SampleOffsets(self.sample.only(columns), self.rows)

    def look(self, theta: Array) -> None:
        """Decide by the curvature at the points `theta` which columns need the search."""
        loss = self.sample.rows.loss
        bound = float(getattr(loss, "curvature_bound", 1.0))
        for batch in np.array_split(np.arange(theta.shape[1]), max(1, theta.shape[1] // 32)):
            margin, member = self._margins(theta[:, batch], batch, _LOOK_ROWS)
            bend, weight = loss.curvature(margin) * member, member.sum(axis=0)
            total, squares = bend.sum(axis=0), (bend * bend).sum(axis=0)
            # Rows that share the curvature evenly would be this part of all: beyond the bend of a
            # loss all margins are hardly curved, and no kink is in the way.
            few = total * total <= _FEW_CURVED * weight * squares
            self.held[batch] = few & (total < _FEW_CURVED * bound * weight)

    def moves(self, theta: Array, slope: Array, step: Array, columns: IntArray) -> Array:
        """How far to move the offsets when the weights move by `step`.

        Parameters
        ----------
        theta : array of shape (parameters, k)
            Where the columns are.
        slope : array of shape (k,)
            Derivatives of their objectives in the offset.
        step : array of shape (parameters, k)
            The moves of the weights; the last row is ignored.
        columns : array of shape (k,)
        """
        there = theta + step
        there[-1] = theta[-1]
        margin, member = self._margins(theta, columns)
        target = self._targets(columns)
        total = member.sum(axis=0)
        correction = slope - self._slope(margin, 0.0, target, member, total)
        margin, _ = self._margins(there, columns)

        scalars = self.sample.rows.scalars
        if scalars is not None:
            move: Array = np.empty(len(columns))
            sides = np.broadcast_to(target.T, margin.T.shape)
            for_loss(_moves, scalars)(
                scalars,
                np.ascontiguousarray(margin.T),
                np.ascontiguousarray(sides),
                np.ascontiguousarray(member.T),
                correction * total,
                move,
            )
        else:
            move = self._bisect(margin, target, member, total, correction)
        # A slope that never turns comes from the correction: the sample has no answer.
        return np.where(np.abs(move) < _WIDEST / 10.0, move, 0.0)

    def _bisect(
        self, margin: Array, target: Array, member: Array, total: Array, correction: Array
    ) -> Array:
        def slope_at(move: Array) -> Array:
            return self._slope(margin, move, target, member, total) + correction

        width = np.full(margin.shape[1], _FIRST_WIDTH)
        low, high = -width, width
        while (wide := (slope_at(low) > 0) & (-low < _WIDEST)).any():
            low = np.where(wide, 8.0 * low, low)
        while (wide := (slope_at(high) < 0) & (high < _WIDEST)).any():
            high = np.where(wide, 8.0 * high, high)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            falling = slope_at(middle) < 0
            low, high = np.where(falling, middle, low), np.where(falling, high, middle)
        return np.asarray((low + high) / 2.0)

    def _targets(self, columns: IntArray) -> Array:
        targets = self.rows.targets
        if targets.shape[1] == 1:
            return targets
        return np.asarray(targets[:, self.sample.columns.problem[columns]])

    def _margins(
        self, theta: Array, columns: IntArray, most: int | None = None
    ) -> tuple[Array, Array]:
        """Margins and weights of the rows, or of the first few of them."""
        rows, sample = self.rows, self.sample.columns[columns]
        if most is not None:
            rows = replace(
                rows, raw=rows.raw[:most], targets=rows.targets[:most], members=rows.members[:most]
            )
        offsets = theta[-1:].astype(rows.raw.dtype)
        scores = rows.raw @ self.sample.raw_weights(theta)
        margin = next(each_term(self.sample.rows, sample, rows, scores, offsets))[1]
        return margin, rows.members[:, sample.fold]

    def _slope(
        self, margin: Array, move: Array | float, target: Array, member: Array, total: Array
    ) -> Array:
        shifted = margin + target * np.asarray(move, dtype=margin.dtype)
        slope = self.sample.rows.loss.derivative(shifted)
        return np.asarray((slope * target * member).sum(axis=0, dtype=np.float64) / total)


def sample_offsets(sample: Objective | None) -> SampleOffsets | None:
    """The search, for problems with one offset and one loss term per row."""
    if sample is None or sample.rows.n_offsets != 1 or len(sample.rows.terms) != 1:
        return None
    n_rows = sample.source.n_rows
    rows: IntArray = np.arange(n_rows)
    if n_rows > _MOST_ROWS:
        rows = np.sort(np.random.default_rng(4).permutation(n_rows)[:_MOST_ROWS])
    tiles = [
        tile
        for of_block in sample.source.map(partial(_tiles, sample.reader, rows))
        for tile in of_block
    ]
    fields = ("raw", "targets", "weight", "numbers", "codes", "members")
    whole = (np.concatenate([getattr(tile, name) for tile in tiles]) for name in fields)
    return SampleOffsets(sample, RowTile(*whole))


def _tiles(reader: Reader, rows: IntArray, block: Block) -> list[RowTile]:
    """The rows of a block with these places, tile by tile."""
    chosen = []
    start = block.start
    for tile in reader.tiles(block):
        inside = rows[(rows >= start) & (rows < start + len(tile.raw))] - start
        start += len(tile.raw)
        chosen.append(
            RowTile(
                tile.raw[inside],
                tile.targets[inside],
                tile.weight[inside],
                tile.numbers[inside],
                tile.codes[inside],
                tile.members[inside],
            )
        )
    return chosen
