"""Duality gaps of solutions found by `reduction`, recomputed from the model in two passes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from buttress._arrays import Array
from buttress.blocks.base import Block
from buttress.solvers.blockwise.columns import ProblemColumns, RowLoss
from buttress.solvers.blockwise.objective import Objective
from buttress.solvers.blockwise.passes import Reader, each_term


@dataclass(frozen=True, eq=False)
class _DualPass:
    """Sums of the conjugate and of the rows, at slopes scaled by side so as to be feasible."""

    reader: Reader
    rows: RowLoss
    columns: ProblemColumns
    weights: Array
    offsets: Array
    factors: Array  # (terms, 2, columns)

    def __call__(self, block: Block) -> tuple[Array, Array]:
        value = np.zeros(len(self.columns))
        vector = np.zeros(self.weights.shape)
        loss = self.rows.loss
        for tile in self.reader.tiles(block):
            scores = tile.raw @ self.weights
            member = tile.members[:, self.columns.fold].astype(np.float64)
            terms = each_term(self.rows, self.columns, tile, scores, self.offsets)
            for k, (target, margin, cost) in enumerate(terms):
                factor = np.where(target > 0, self.factors[k, 1], self.factors[k, 0])
                slope = factor * loss.derivative(margin.astype(np.float64))
                count = member * cost
                # Slopes of rows that are held out need not be feasible: nothing balances them.
                counted = count > 0
                share = np.zeros(count.shape)
                share[counted] = loss.conjugate(slope[counted]) * count[counted]
                value += share.sum(axis=0)
                vector += tile.raw.T @ (slope * count * target).astype(tile.raw.dtype)
        return value, vector


def duality_gaps(
    objective: Objective, theta: Array, radius: Array | None = None
) -> tuple[Array, Array]:
    """Distance of every column from its minimum, at most, and the objectives.

    The slopes of the loss at the solution, scaled on one side of each offset until they
    balance, are a point of the dual problem; its value bounds the minimum from below.

    Parameters
    ----------
    objective : Objective
        In the coordinates of its feature map.
    theta : array of shape (parameters, columns)
    radius : array of shape (columns,), optional
        Bounds on the norm of w in place of penalties, which are then ignored.

    Returns
    -------
    gaps : array of shape (columns,)
        NaN where the loss has no conjugate, infinite where no feasible scaling was found.
    objectives : array of shape (columns,)
    """
    m, everything = objective.n_components, np.arange(len(objective.columns))
    if radius is not None:
        free = replace(objective.columns, alpha=np.zeros(len(everything)))
        objective = replace(objective, columns=free)
    value, _, by_side = objective.parts(theta, everything)
    loss, rows = objective.rows.loss, objective.rows
    inner = getattr(loss, "loss", loss)
    if not hasattr(inner, "conjugate"):
        return np.full(len(value), np.nan), value
    factors = _balance(objective, by_side)
    columns, weight = objective.columns, objective.total_weight
    task = _DualPass(
        objective.reader,
        rows,
        columns,
        objective.raw_weights(theta),
        theta[m:].astype(objective.source.dtype),
        np.where(np.isfinite(factors), factors, 1.0),
    )
    conjugate, raw = objective.source.sum(task)
    vector = raw if objective.basis is None else objective.basis.T @ raw
    vector = vector / weight
    if objective.linear is not None:
        vector = vector + objective.linear[:m]
    square = (vector**2).sum(axis=0)
    norm_term = square / (4.0 * columns.alpha) if radius is None else radius * np.sqrt(square)
    dual = -conjugate / weight - norm_term
    gaps = np.where(np.isfinite(factors).all(axis=(0, 1)), value - dual, np.inf)
    return np.maximum(gaps, 0.0), value


def _balance(objective: Objective, by_side: Array) -> Array:
    """Factors in (0, 1] (per term and side) that make the slopes of every offset cancel."""
    rows = objective.rows
    factors = np.ones_like(by_side)
    for offset in range(rows.n_offsets):
        below = [k for k, term in enumerate(rows.terms) if term.offset_below == offset]
        above = [k for k, term in enumerate(rows.terms) if term.offset_above == offset]
        rise = by_side[below, 0].sum(axis=0)  # not negative
        fall = by_side[above, 1].sum(axis=0)  # not positive
        fixed = np.full(by_side.shape[2], rows.slope[offset])
        if objective.linear is not None:
            fixed = fixed + objective.linear[objective.n_components + offset]
        with np.errstate(divide="ignore", invalid="ignore"):
            shrink_rise, shrink_fall = -(fall + fixed) / rise, -(rise + fixed) / fall
        heavy = rise + fall + fixed > 0
        if not above:
            heavy[:] = True
        if not below:
            heavy[:] = False
        for k in below:
            factors[k, 0] = np.where(heavy, shrink_rise, 1.0)
        for k in above:
            factors[k, 1] = np.where(heavy, 1.0, shrink_fall)
    return np.where(factors >= 0, factors, np.nan)
