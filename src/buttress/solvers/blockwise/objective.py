"""The objectives of all columns as functions of coordinates, evaluated by passes over blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._deadline import check_time
from buttress.blocks.base import ArrayBlocks, Block, BlockSource
from buttress.kernels.approximate import FeatureMap, LinearMap
from buttress.solvers.blockwise.columns import Folds, ProblemColumns, RowLoss
from buttress.solvers.blockwise.passes import CurvaturePass, GradientPass, GramPass, Reader
from buttress.solvers.blockwise.scan import Summary, scan


@dataclass(frozen=True, eq=False)
class Objective:
    """``mean loss + slope'o + linear'(w, o) + alpha ||w||^2`` for every column.

    Coordinates w are such that the mapped row is ``raw(x) @ basis``; the parameters of a
    column are w followed by the offsets. `rotation` leads from these coordinates back to those
    of the feature map.
    """

    source: BlockSource
    reader: Reader
    basis: Array | None
    rows: RowLoss
    columns: ProblemColumns
    class_folds: Array  # (n_classes, n_folds + 1): row weight of each class in each fold
    linear: Array | None = None
    rotation: Array | None = None

    @property
    def n_components(self) -> int:
        """Coordinates w."""
        features = self.reader.features
        return features.n_raw if self.basis is None else int(self.basis.shape[1])

    @property
    def n_parameters(self) -> int:
        return self.n_components + self.rows.n_offsets

    @property
    def class_weight(self) -> Array:
        """Row weight of each class, all folds together."""
        return np.asarray(self.class_folds[:, -1])

    @property
    def total_weight(self) -> Array:
        """Row weight that counts for each column."""
        return np.asarray(self.class_folds.sum(axis=0)[self.columns.fold])

    def raw_weights(self, theta: Array) -> Array:
        """Weights on the raw features, in the data's precision."""
        w = theta[: self.n_components]
        w = w if self.basis is None else self.basis @ w
        return np.ascontiguousarray(w, dtype=self.source.dtype)

    def __call__(self, theta: Array, index: IntArray) -> tuple[Array, Array]:
        """Values and gradients of some columns at the points `theta`."""
        value, gradient, _ = self.parts(theta, index)
        return value, gradient

    def parts(self, theta: Array, index: IntArray) -> tuple[Array, Array, Array]:
        """Values, gradients, and the mean slopes of each term below and above."""
        check_time()
        m, columns = self.n_components, self.columns[index]
        offsets = theta[m:].astype(self.source.dtype)
        task = GradientPass(self.reader, self.rows, columns, self.raw_weights(theta), offsets)
        value, raw, by_side = self.source.sum(task)
        weight = self.total_weight[index]
        value = value / weight + columns.alpha * (theta[:m] ** 2).sum(axis=0)
        raw /= weight
        by_side = by_side / weight
        gradient = np.empty_like(theta)
        gradient[:m] = raw if self.basis is None else self.basis.T @ raw
        gradient[:m] += 2.0 * columns.alpha * theta[:m]
        gradient[m:] = self._offset_gradient(by_side)
        if self.rows.n_offsets:
            slope = np.asarray(self.rows.slope)[:, None]
            value += (slope * theta[m:]).sum(axis=0)
            gradient[m:] += slope
        if self.linear is not None:
            value += (self.linear[:, index] * theta).sum(axis=0)
            gradient += self.linear[:, index]
        return value, gradient, by_side

    def _offset_gradient(self, by_side: Array) -> Array:
        gradient = np.zeros((self.rows.n_offsets, by_side.shape[2]))
        if self.rows.n_offsets:
            for k, term in enumerate(self.rows.terms):
                gradient[term.offset_below] += by_side[k, 0]
                gradient[term.offset_above] += by_side[k, 1]
        return gradient

    def hessians(self, theta: Array, index: IntArray) -> Array:
        """Second derivatives of some columns, shape (k, parameters, parameters)."""
        m, q, columns = self.n_components, self.rows.n_offsets, self.columns[index]
        offsets = theta[m:].astype(self.source.dtype)
        task = CurvaturePass(self.reader, self.rows, columns, self.raw_weights(theta), offsets)
        H, B, E = self.source.sum(task)
        out = np.zeros((len(columns), m + q, m + q))
        weight = self.total_weight[index]
        for c in range(len(columns)):
            inner, cross = H[c], B[c]
            if self.basis is not None:
                inner, cross = self.basis.T @ inner @ self.basis, self.basis.T @ cross
            out[c, :m, :m], out[c, :m, m:], out[c, m:, :m] = inner, cross, cross.T
            out[c, range(m, m + q), range(m, m + q)] = E[c]
            out[c] /= weight[c]
            out[c, range(m), range(m)] += 2.0 * columns.alpha[c]
        return out

    def gram(self) -> tuple[Array, Array]:
        """Gram matrix of the mapped rows and their sums over each class, both weighted."""
        gram, sums = self.source.sum(GramPass(self.reader))
        if self.basis is not None:
            gram, sums = self.basis.T @ gram @ self.basis, sums @ self.basis
        return gram, sums

    def rotated(self, vectors: Array) -> Objective:
        """The same problem in other orthonormal coordinates."""
        m = self.n_components
        linear = self.linear
        if linear is not None:
            linear = np.vstack([vectors.T @ linear[:m], linear[m:]])
        return replace(
            self,
            basis=vectors if self.basis is None else self.basis @ vectors,
            linear=linear,
            rotation=vectors if self.rotation is None else self.rotation @ vectors,
        )

    def only(self, chosen: Any) -> Objective:
        """The problem of some columns."""
        linear = None if self.linear is None else self.linear[:, chosen]
        return replace(self, columns=self.columns[chosen], linear=linear)

    def with_linear(self, linear: Array | None) -> Objective:
        """The problem with another linear term, in the coordinates of the feature map."""
        return replace(self, linear=None if linear is None else self.from_given(linear))

    def to_given(self, theta: Array) -> Array:
        """Parameters in the coordinates of the feature map."""
        if self.rotation is None:
            return theta
        m = self.n_components
        return np.vstack([self.rotation @ theta[:m], theta[m:]])

    def from_given(self, theta: Array) -> Array:
        """Parameters in this problem's coordinates."""
        if self.rotation is None:
            return theta
        m = self.n_components
        return np.vstack([self.rotation.T @ theta[:m], theta[m:]])

    def in_coordinates(self, dtype: np.dtype[Any], *, for_a_start: bool = False) -> Objective:
        """The same problem on rows in memory whose coordinates are kept, in this precision.

        They are computed in double precision, because a basis may be large and most of it cancel
        in the sum; a sample that only gives a start and a metric needs no more than its own.
        """
        kept, basis = self.source, self.basis
        same = basis is None and kept.dtype == dtype
        if same or not isinstance(kept, ArrayBlocks):
            return self
        if for_a_start and basis is not None:
            basis = basis.astype(kept.dtype)
        mapped = np.empty((kept.n_rows, self.n_components), dtype=dtype)
        for _ in kept.map(partial(_set_coordinates, basis, mapped)):
            pass
        source = ArrayBlocks(mapped, kept.y, kept.weight, rows=kept.rows, keep=True)
        reader = replace(self.reader, features=LinearMap(mapped.shape[1]))
        return replace(self, source=source, reader=reader, basis=None)

    def on_sample(self, sample: Block) -> Objective | None:
        """The same problem on a few rows, mapped once and kept; None when a class is missing.

        The rows are weighted so that every fold's classes have the shares they have among all
        rows: under strong penalties the side on which the offset lies hangs on the majority.
        """
        features = self.reader.features
        raw = features.raw(sample.X)
        if len(sample) < self.source.n_rows:
            # A start and a metric need no more digits.
            raw = raw.astype(np.float32, copy=False)
        source = ArrayBlocks(raw, sample.y, sample.weight, rows=sample.rows, keep=True)
        try:
            seen = scan(source, self.reader.folds)
        except ValueError:
            return None
        if len(seen.classes) < len(self.reader.classes):
            return None
        share, drawn = self.class_folds, seen.fold_weight
        balance = (share / share.sum(axis=0)) / (drawn / drawn.sum(axis=0))
        reader = replace(self.reader, features=LinearMap(raw.shape[1]), balance=balance)
        return replace(self, source=source, reader=reader, class_folds=balance * drawn)


def _set_coordinates(basis: Array | None, mapped: Array, block: Block) -> None:
    rows = mapped[block.start : block.start + len(block)]
    if basis is None:
        rows[:] = block.X
    else:
        np.matmul(block.X, basis, out=rows, casting="same_kind")


def make_objective(
    source: BlockSource,
    features: FeatureMap,
    summary: Summary,
    rows: RowLoss,
    columns: ProblemColumns,
    folds: Folds,
    linear: Any = None,
) -> Objective:
    """Put the pieces together."""
    return Objective(
        source,
        Reader(features, summary.classes, folds),
        features.basis,
        rows,
        columns,
        summary.fold_weight,
        linear,
    )
