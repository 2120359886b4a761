"""The interior point's linear algebra where points are known: systems in their dimensions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from buttress._arrays import Array, IntArray


@dataclass(frozen=True, eq=False)
class _VariableGroup:
    """The variables of one group.

    Attributes
    ----------
    number : int
        -1 for those outside of all groups.
    members : integer array
        The variables.
    points : array of shape (k, r)
        Those that they weigh, once.
    of : integer array
        Which of the points every variable weighs.
    room : array of shape (k, r)
        For the centred and scaled points.
    """

    number: int
    members: IntArray
    points: Array
    of: IntArray
    room: Array

    def sums(self, values: Array) -> Array:
        """Sums of the members' values over the variables of every point."""
        return np.asarray(np.bincount(self.of, weights=values, minlength=len(self.points)))


class PointSpace:
    """Dual vectors by their coordinates; a step costs ``n r^2`` operations for every group.

    Parameters
    ----------
    points : array of shape (n, r)
    row, group : integer arrays of shape (m,)
        The point of every variable, and its group: 0, 1, ... or -1 for none.
    n_groups : int
    """

    def __init__(self, points: Array, row: IntArray, group: IntArray, n_groups: int) -> None:
        self.points, self.row, self.n_groups = points, row, n_groups
        self.groups: list[_VariableGroup] = []
        for number in (*range(self.n_groups), -1):
            members = np.flatnonzero(group == number)
            if len(members):
                rows, of = np.unique(row[members], return_inverse=True)
                chosen = points if len(rows) == len(points) else points[rows]
                self.groups.append(
                    _VariableGroup(number, members, chosen, of, np.empty_like(chosen))
                )

    @property
    def spread(self) -> float:
        """The largest coordinate."""
        return float(np.abs(self.points).max(initial=0.0))

    def zero(self) -> Array:
        """The dual vector zero."""
        return np.zeros(self.points.shape[1])

    def vector(self, weights: Array) -> Array:
        """The dual vector ``sum_i weights_i x_i``."""
        return np.asarray(self.points.T @ weights)

    def values(self, w: Array) -> Array:
        """The products of the points with a dual vector."""
        return np.asarray(self.points @ w)

    def square(self, w: Array) -> float:
        """``||w||^2``."""
        return float(w @ w)

    def away(self, weights: Array, w: Array) -> tuple[Array, float]:
        """How far ``sum_i weights_i x_i`` is from w, and the difference of their squares."""
        vector = self.points.T @ weights - w
        return vector, float(vector @ (vector + 2.0 * w))

    def system(self, inverse: Array) -> PointSystem | None:
        """The factorised system for these ``1 / theta``; None where rounding spoils it.

        The next system overwrites it.
        """
        matrix = np.eye(self.points.shape[1])
        blocks = []
        for group in self.groups:
            block = _ScaledGroup(group, inverse[group.members])
            matrix += block.scaled.T @ block.scaled
            blocks.append(block)
        factor, info = linalg.lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        return None if info != 0 else PointSystem(factor, blocks, inverse, self.n_groups)


class _ScaledGroup:
    """A group's points, centred with the weights ``phi = 1 / theta`` and times ``sqrt(phi)``."""

    def __init__(self, group: _VariableGroup, inverse: Array) -> None:
        self.group, self.inverse = group, inverse
        phi = group.sums(inverse)
        self.total = float(phi.sum())
        root = np.sqrt(phi)
        self.per_root = 1.0 / np.where(root > 0.0, root, 1.0)
        self.scaled = group.room
        self.centre = np.zeros(group.points.shape[1])
        if group.number >= 0:
            self.centre = (phi @ group.points) / self.total
            np.subtract(group.points, self.centre, out=self.scaled)
            self.scaled *= root[:, None]
        else:
            np.multiply(group.points, root[:, None], out=self.scaled)


class PointSystem:
    """A factorised system: the multipliers are eliminated first, which centres the points of
    every group with the weights ``1 / theta``; what is left is one plus the scatters."""

    def __init__(
        self, factor: Array, blocks: list[_ScaledGroup], inverse: Array, n_groups: int
    ) -> None:
        self.factor, self.blocks, self.inverse, self.n_groups = factor, blocks, inverse, n_groups

    def solve(self, right: Array, vector: Array, missing: Array) -> tuple[Array, Array, Array]:
        """Changes of the variables, the dual vector and the multipliers."""
        forward = vector.copy()
        means = []
        for block in self.blocks:
            group, pull = block.group, right[block.group.members]
            mean = 0.0
            if group.number >= 0:
                mean = float(block.inverse @ pull) / block.total
                forward += block.centre * missing[group.number]
            means.append(mean)
            pulled = group.sums(block.inverse * (pull - mean))
            forward += (block.per_root * pulled) @ block.scaled
        dw, _ = linalg.lapack.dpotrs(self.factor, forward, lower=1)
        db = np.empty_like(right)
        dm = np.zeros(self.n_groups)
        for mean, block in zip(means, self.blocks, strict=True):
            group, extra = block.group, 0.0
            if group.number >= 0:
                extra = float(missing[group.number]) / block.total
                dm[group.number] = mean - float(block.centre @ dw) - extra
            change = block.per_root * (block.scaled @ dw)
            pull = right[group.members]
            db[group.members] = block.inverse * (pull - mean - change[group.of] + extra)
        return db, dw, dm
