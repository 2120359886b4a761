"""Loss, slope and their sums over a tile in one compiled loop, for any loss with scalars."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import compiled, inner
from buttress.solvers.blockwise.columns import RowLoss
from buttress.solvers.smooth.margins import add_values, for_loss, set_slope

# No infinities or NaN enter (scores of finite rows), and sums may be regrouped.
_FAST = {"contract", "reassoc", "nsz", "nnan", "ninf"}
# Scores that a loop goes through at once, of several rows where there are few columns.
_STRIP = 512
# Strips whose sums stay in the precision of the data before they go to float64.
_SHORT = 32


@compiled(allocates=True, fastmath=_FAST)
def _add_tile(
    loss: Any,
    scores: Array,
    offsets: Array,
    costs: Array,
    targets: Array,
    members: Array,
    runs: IntArray,
    value: Array,
    by_side: Array,
) -> None:
    """`TileLoop.add` for the scores of all rows in one line.

    `offsets` (terms, 2, strip) are those of the rows of a strip, `costs` (terms, 2) those below
    and above. Columns of one problem and fold that follow each other are a run (problem, fold,
    end): all of them have the row's target and weight.
    """
    n_rows, n_columns, strip = len(targets), len(value), offsets.shape[2]
    n_terms, zero = len(costs), scores.dtype.type(0.0)
    # Few arrays in each loop: compilers check them pairwise for overlap, or give up.
    margins, counts = np.zeros(strip, dtype=scores.dtype), np.zeros(strip, dtype=scores.dtype)
    sides, slopes = np.zeros_like(margins), np.zeros_like(margins)
    values, totals = np.zeros_like(margins), np.zeros_like(margins)
    by_term = np.zeros((n_terms, 2, strip), dtype=scores.dtype)
    at_once = strip // n_columns
    for first in range(0, n_rows, at_once):
        last = min(first + at_once, n_rows)
        some = scores[first * n_columns : last * n_columns]
        size = len(some)
        side, margin, slope, count = sides[:size], margins[:size], slopes[:size], counts[:size]
        # where each row has one term the slopes in the score are the result
        into, total = some if n_terms == 1 else margin, totals[:size]
        total[:] = zero
        for k in range(n_terms):
            _expand(targets, members, runs, costs[k], first, last, n_columns, side, count)
            low, high = offsets[k, 0], offsets[k, 1]
            for c in range(size):
                # both sides' margins first: of a chosen offset the compiler makes a branch
                if_above, if_below = some[c] + high[c], -(some[c] + low[c])
                margin[c] = if_above if side[c] > zero else if_below
            add_values(loss, margin, count, values)
            # never in place: arrays that overlap are gone through one number at a time
            set_slope(loss, margin, slope)
            for c in range(size):
                into[c] = -count[c] * side[c] * slope[c]
            below, above = by_term[k, 0], by_term[k, 1]
            for c in range(size):
                # sides are -1 and 1, and both sums go through without a branch
                from_above = into[c] * max(side[c], zero)
                above[c] += from_above
                below[c] += into[c] - from_above
            if n_terms > 1:
                for c in range(size):
                    total[c] += into[c]
        if n_terms > 1:
            some[:] = total
        if first // at_once % _SHORT == _SHORT - 1 or last == n_rows:
            _fold_up(values, value)
            for k in range(n_terms):
                _fold_up(by_term[k, 0], by_side[k, 0])
                _fold_up(by_term[k, 1], by_side[k, 1])


@inner()
def _expand(
    targets: Array,
    members: Array,
    runs: IntArray,
    costs: Array,
    first: int,
    last: int,
    n_columns: int,
    side: Array,
    count: Array,
) -> None:
    """The target and the weight that count for every score of some rows."""
    single = targets.shape[1] == 1
    for i in range(first, last):
        start = (i - first) * n_columns
        begin = start
        if single:
            side[start : start + n_columns] = targets[i, 0]
        for run in range(len(runs)):
            end = start + runs[run, 2]
            target = targets[i, runs[run, 0]]
            if not single:
                side[begin:end] = target
            count[begin:end] = members[i, runs[run, 1]] * costs[1 if target > 0 else 0]
            begin = end


@inner(fastmath=_FAST)
def _fold_up(sums: Array, total: Array) -> None:
    """Add the sums of all rows of a strip to the columns' totals, and begin anew."""
    n_columns = len(total)
    for first in range(0, len(sums), n_columns):
        for c in range(n_columns):
            total[c] += sums[first + c]
            sums[first + c] = 0.0


class TileLoop:
    """The loop over tiles of one block.

    Parameters
    ----------
    rows : RowLoss
        With a loss that has scalars.
    problem, fold : arrays of shape (columns,)
    offsets : array of shape (n_offsets, columns)
        In the precision of the data.
    """

    def __init__(self, rows: RowLoss, problem: IntArray, fold: IntArray, offsets: Array) -> None:
        n_columns, kind = len(fold), offsets.dtype
        costs = [[term.cost_below, term.cost_above] for term in rows.terms]
        of_terms = np.zeros((len(rows.terms), 2, n_columns), dtype=kind)
        if rows.n_offsets:
            of_terms = offsets[[[term.offset_below, term.offset_above] for term in rows.terms]]
        changes = (np.diff(problem) != 0) | (np.diff(fold) != 0)
        ends = np.append(np.flatnonzero(changes) + 1, n_columns)
        self.loss = rows.scalars
        self.loop = for_loss(_add_tile, self.loss)
        self.costs = np.array(costs, dtype=kind)
        self.offsets = np.tile(of_terms, max(1, _STRIP // n_columns))
        self.runs = np.column_stack([problem[ends - 1], fold[ends - 1], ends])

    def add(
        self, scores: Array, targets: Array, members: Array, value: Array, by_side: Array
    ) -> None:
        """Overwrite scores by slopes in the score, and add up values and slopes by side.

        Parameters
        ----------
        scores : array of shape (rows, columns)
        targets : array of shape (rows, problems)
        members : array of shape (rows, folds)
            Row weight where the fold trains on the row, else zero.
        value : array of shape (columns,) in float64
        by_side : array of shape (terms, 2, columns) in float64
        """
        self.loop(
            self.loss,
            scores.reshape(-1),
            self.offsets,
            self.costs,
            targets,
            members,
            self.runs,
            value,
            by_side,
        )
