"""The tasks that run on one block of rows. Their results are added up over all blocks.

A task is an object with a few arrays, so that it can travel to a worker process. It goes
through its block in tiles that stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, IntArray
from buttress.blocks.base import Block
from buttress.kernels.approximate import FeatureMap
from buttress.solvers.blockwise._tile_loop import TileLoop
from buttress.solvers.blockwise.columns import Folds, ProblemColumns, RowLoss
from buttress.solvers.numerics.workspace import workspace

# Bytes of one tile of mapped rows: it is made and used within the processor's cache. Rows that
# are mapped already need no such care, only few calls.
_TILE_BYTES, _MAPPED_TILE_BYTES = 2_000_000, 8_000_000


@dataclass(frozen=True, eq=False)
class RowTile:
    """A tile: mapped rows, ±1 targets (one column per problem), row weights, fold membership.

    `members`, of shape (rows, n_folds + 1), is the row weight where a fold trains on the row,
    else zero. `raw` may be overwritten when the next tile is asked for.
    """

    raw: Array
    targets: Array
    weight: Array
    numbers: IntArray
    codes: IntArray
    members: Array


@dataclass(frozen=True, eq=False)
class Reader:
    """How blocks are read: the feature map, the labels, and the folds.

    `balance`, of shape (n_classes, n_folds + 1), multiplies the weights of a sample's rows so
    that every fold has the classes in the proportions of all rows.
    """

    features: FeatureMap
    classes: NDArray[Any]
    folds: Folds
    balance: Array | None = None

    def tiles(self, block: Block) -> Iterable[RowTile]:
        """Go through a block. Tiles of rows that stay mapped in memory are made once."""
        if block.kept is None or self.features.flops_per_row > 0:
            return self._tiles(block, _TILE_BYTES)
        if block.kept.get("reader") is not self:
            block.kept.update(reader=self, tiles=list(self._tiles(block, _MAPPED_TILE_BYTES)))
        tiles: list[RowTile] = block.kept["tiles"]
        return tiles

    def _tiles(self, block: Block, size: int) -> Iterator[RowTile]:
        codes, numbers, n_raw = self.codes(block), block.numbers, self.features.n_raw
        step = max(64, size // max(1, n_raw * block.X.dtype.itemsize))
        for start in range(0, len(block), step):
            span = slice(start, start + step)
            X = block.X[span]
            raw = self.features.raw(X, workspace("raw", (X.shape[0], n_raw), X.dtype))
            weight = np.ones(len(raw)) if block.weight is None else block.weight[span]
            targets = signs(codes[span], len(self.classes)).astype(raw.dtype)
            members = self.folds.train(numbers[span]) * weight[:, None]
            if self.balance is not None:
                members *= self.balance[codes[span]]
            yield RowTile(
                raw,
                targets,
                weight.astype(raw.dtype),
                numbers[span],
                codes[span],
                members.astype(raw.dtype),
            )

    def codes(self, block: Block) -> IntArray:
        """Index of every row's label among the classes."""
        return block.codes(self.classes)


def signs(codes: IntArray, n_classes: int) -> Array:
    """±1 targets, one column per binary problem."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class GradientPass:
    """Sums of the loss and of its gradient for every column.

    The result is ``(value, gradient, by_side)`` of shapes (columns,), (n_raw, columns) and
    (terms, 2, columns): `by_side` are the sums of the loss's derivative in the score over
    rows below (-1) and above (+1).
    """

    reader: Reader
    rows: RowLoss
    columns: ProblemColumns
    weights: Array  # (n_raw, columns), in the data's precision
    offsets: Array  # (n_offsets, columns)

    def __call__(self, block: Block) -> tuple[Array, Array, Array]:
        n_columns, n_terms = len(self.columns), len(self.rows.terms)
        value = np.zeros(n_columns)
        gradient = np.zeros(self.weights.shape)
        by_side = np.zeros((n_terms, 2, n_columns))
        compiled = self.rows.scalars is not None
        problem = self.columns.problem if len(self.reader.classes) > 2 else 0 * self.columns.fold
        dtype = self.weights.dtype
        summand = workspace("gradient", self.weights.shape, dtype)
        loop = TileLoop(self.rows, problem, self.columns.fold, self.offsets) if compiled else None
        for tile in self.reader.tiles(block):
            scores = workspace("scores", (len(tile.raw), n_columns), dtype)
            np.matmul(tile.raw, self.weights, out=scores)
            if loop is not None:
                loop.add(scores, tile.targets, tile.members, value, by_side)
                gradient += np.matmul(tile.raw.T, scores, out=summand)
                continue
            member = tile.members[:, self.columns.fold]
            slope = None
            for k, (target, margin, cost) in enumerate(
                each_term(self.rows, self.columns, tile, scores, self.offsets)
            ):
                count = member * cost
                value += (self.rows.loss.value(margin) * count).sum(axis=0, dtype=np.float64)
                count *= self.rows.loss.derivative(margin)
                # The slope in the margin has the sign of the loss; in the score, times y.
                both, signed = count.sum(axis=0, dtype=np.float64), count
                signed *= target
                score_sum = signed.sum(axis=0, dtype=np.float64)
                by_side[k, 0] += (score_sum - both) / 2.0
                by_side[k, 1] += (score_sum + both) / 2.0
                slope = signed if slope is None else slope + signed
            slopes = np.asarray(slope, dtype=dtype)
            gradient += np.matmul(tile.raw.T, slopes, out=summand)
        return value, gradient, by_side


def each_term(
    rows: RowLoss, columns: ProblemColumns, tile: RowTile, scores: Array, offsets: Array
) -> Iterator[tuple[Array, Array, Any]]:
    """Targets, margins and costs of each loss term, for all rows and columns of a tile."""
    single = tile.targets.shape[1] == 1
    target = tile.targets if single else tile.targets[:, columns.problem]
    for term in rows.terms:
        shifted = scores
        if rows.n_offsets:
            below, above = offsets[term.offset_below], offsets[term.offset_above]
            if term.offset_below == term.offset_above:
                shifted = scores + above
            else:
                shifted = scores + np.where(target > 0, above, below)
        cost: Any = term.cost_above
        if term.cost_above != term.cost_below:
            cost = np.where(target > 0, term.cost_above, term.cost_below).astype(scores.dtype)
        yield target, np.asarray(target * shifted), cost


@dataclass(frozen=True, eq=False)
class CurvaturePass:
    """Hessians of the loss, one for every column: raw part, cross part, offset part.

    The result is ``(H, B, E)`` of shapes (columns, n_raw, n_raw), (columns, n_raw, n_offsets)
    and (columns, n_offsets). Rows without curvature are left out of the products.
    """

    reader: Reader
    rows: RowLoss
    columns: ProblemColumns
    weights: Array
    offsets: Array

    def __call__(self, block: Block) -> tuple[Array, Array, Array]:
        n_columns, n_raw, q = len(self.columns), self.weights.shape[0], self.rows.n_offsets
        hessian = np.zeros((n_columns, n_raw, n_raw))
        cross = np.zeros((n_columns, n_raw, q))
        corner = np.zeros((n_columns, q))
        for tile in self.reader.tiles(block):
            scores = tile.raw @ self.weights
            member = tile.members[:, self.columns.fold]
            by_offset = np.zeros((max(q, 1), *scores.shape), dtype=tile.raw.dtype)
            for term, (target, margin, cost) in zip(
                self.rows.terms,
                each_term(self.rows, self.columns, tile, scores, self.offsets),
                strict=True,
            ):
                bend = self.rows.loss.curvature(margin) * cost * member
                above = np.broadcast_to(target > 0, bend.shape)
                if q == 0 or term.offset_above == term.offset_below:
                    by_offset[term.offset_above if q else 0] += bend
                else:
                    by_offset[term.offset_above] += np.where(above, bend, 0.0)
                    by_offset[term.offset_below] += np.where(above, 0.0, bend)
            bends = by_offset.sum(axis=0)
            for c in range(n_columns):
                bent = np.flatnonzero(bends[:, c])
                raw = tile.raw[bent] if len(bent) < len(bends) else tile.raw
                scaled = raw * np.sqrt(bends[bent, c])[:, None]
                hessian[c] += scaled.T @ scaled
                if q:
                    cross[c] += raw.T @ by_offset[:, bent, c].T
                    corner[c] += by_offset[:, :, c].sum(axis=1, dtype=np.float64)
        return hessian, cross, corner


@dataclass(frozen=True, eq=False)
class GramPass:
    """The weighted Gram matrix of the raw features and their sums over each class."""

    reader: Reader
    diagonal_only: bool = False

    def __call__(self, block: Block) -> tuple[Array, Array]:
        n_raw, n_classes = self.reader.features.n_raw, len(self.reader.classes)
        gram = np.zeros(n_raw if self.diagonal_only else (n_raw, n_raw))
        sums = np.zeros((n_classes, n_raw))
        codes = self.reader.codes(block)
        start = 0
        for tile in self.reader.tiles(block):
            stop = start + len(tile.raw)
            weighted = tile.raw * np.sqrt(tile.weight)[:, None]
            if self.diagonal_only:
                gram += np.einsum("ij,ij->j", weighted, weighted)
            else:
                gram += weighted.T @ weighted
            indicator = codes[start:stop, None] == np.arange(n_classes)
            sums += (indicator * tile.weight[:, None]).T.astype(tile.raw.dtype) @ tile.raw
            start = stop
        return gram, sums


@dataclass(frozen=True, eq=False)
class HeldOutPass:
    """Weight of the held-out rows that each column gets wrong, for every fold.

    For one problem (two classes) a score above zero means class 1. For several, the columns
    are grouped: `weights` has one block of columns per problem and the largest score wins.
    Rows whose score lies within the group's `band` of zero are counted apart (rejected).
    """

    reader: Reader
    weights: Array  # (n_raw, problems * candidates)
    offsets: Array  # (problems * candidates,)
    fold: IntArray  # (candidates,)
    band: Array  # (problems * candidates,)

    def __call__(self, block: Block) -> tuple[Array, Array, Array]:
        n_candidates = len(self.fold)
        n_problems = self.weights.shape[1] // n_candidates
        wrong, rejected = np.zeros(n_candidates), np.zeros(n_candidates)
        counted = np.zeros(n_candidates)
        codes = self.reader.codes(block)
        start = 0
        for tile in self.reader.tiles(block):
            stop = start + len(tile.raw)
            scores = workspace("scores", (len(tile.raw), self.weights.shape[1]), tile.raw.dtype)
            np.matmul(tile.raw, self.weights, out=scores)
            scores += self.offsets.astype(scores.dtype)
            by_problem = scores.reshape(len(scores), n_problems, n_candidates)
            if n_problems == 1:
                label = (by_problem[:, 0] > 0).astype(int)
                refused = np.abs(by_problem[:, 0]) <= self.band[:n_candidates]
                refused &= self.band[:n_candidates] > 0
            else:
                label = by_problem.argmax(axis=1)
                refused = np.zeros(label.shape, dtype=bool)
            test = self.reader.folds.test(tile.numbers)[:, self.fold] * tile.weight[:, None]
            wrong += (test * ((label != codes[start:stop, None]) & ~refused)).sum(axis=0)
            rejected += (test * refused).sum(axis=0)
            counted += test.sum(axis=0)
            start = stop
        return wrong, rejected, counted
