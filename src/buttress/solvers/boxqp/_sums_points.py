"""The interior point's linear algebra where points are known: systems in their dimensions."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from buttress._arrays import Array, IntArray

# Of the variables: members of a group, their rows once, and which of these every one weighs.
Part = tuple[IntArray, IntArray, IntArray]


class PointSpace:
    """Dual vectors by their coordinates; a step costs ``n r^2`` operations for every group.

    Parameters
    ----------
    points : array of shape (n, r)
    row, group : integer arrays of shape (m,)
        The point of every variable, and its group: 0, 1, ... or -1 for none.
    """

    def __init__(self, points: Array, row: IntArray, group: IntArray) -> None:
        self.points, self.row = points, row
        self.numbers = [*range(int(group.max(initial=-1)) + 1), -1]
        members = [np.flatnonzero(group == k) for k in self.numbers]
        # the points of every group once, however many of its variables weigh them
        self.parts: list[Part] = [
            (mine, *np.unique(row[mine], return_inverse=True)) for mine in members
        ]

    @property
    def spread(self) -> float:
        """The largest coordinate."""
        return float(np.abs(self.points).max(initial=0.0))

    def zero(self) -> Array:
        """The dual vector zero."""
        return np.zeros(self.points.shape[1])

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
        """The factorised system for these ``1 / theta``; None where rounding spoils it."""
        r = self.points.shape[1]
        matrix = np.eye(r)
        blocks: list[tuple[int, IntArray, IntArray, Array, Array, float]] = []
        for k, (members, rows, of) in zip(self.numbers, self.parts, strict=True):
            if len(members) == 0:
                continue
            phi = np.bincount(of, weights=inverse[members], minlength=len(rows))
            x = self.points[rows]
            total = float(phi.sum())
            centre = np.zeros(r) if k < 0 else (phi @ x) / total
            x = x - centre
            scaled = x * np.sqrt(phi)[:, None]
            matrix += scaled.T @ scaled
            blocks.append((k, members, of, x, centre, total))
        try:
            factor = linalg.cho_factor(matrix, lower=True, check_finite=False)
        except (linalg.LinAlgError, ValueError):
            return None
        return PointSystem(factor, blocks, inverse, len(self.numbers) - 1)


class PointSystem:
    """A factorised system: the multipliers are eliminated first, which centres the points of
    every group with the weights ``1 / theta``; what is left is one plus the scatters."""

    def __init__(
        self,
        factor: tuple[Array, bool],
        blocks: list[tuple[int, IntArray, IntArray, Array, Array, float]],
        inverse: Array,
        n_groups: int,
    ) -> None:
        self.factor, self.blocks, self.inverse, self.n_groups = factor, blocks, inverse, n_groups

    def solve(self, right: Array, vector: Array, missing: Array) -> tuple[Array, Array, Array]:
        """Changes of the variables, the dual vector and the multipliers."""
        forward = vector.copy()
        means = []
        for k, members, of, x, centre, total in self.blocks:
            phi = self.inverse[members]
            mean = 0.0 if k < 0 else float(phi @ right[members]) / total
            means.append(mean)
            pulled = phi * (right[members] - mean)
            forward += x.T @ np.bincount(of, weights=pulled, minlength=len(x))
            if k >= 0:
                forward += centre * missing[k]
        dw = linalg.cho_solve(self.factor, forward, check_finite=False)
        db = np.empty_like(right)
        dm = np.zeros(self.n_groups)
        for mean, (k, members, of, x, centre, total) in zip(means, self.blocks, strict=True):
            extra = 0.0
            if k >= 0:
                extra = float(missing[k]) / total
                dm[k] = mean - float(centre @ dw) - extra
            db[members] = self.inverse[members] * (right[members] - mean - (x @ dw)[of] + extra)
        return db, dw, dm
