"""The interior point's linear algebra where only the products of the points are known.

With ``Phi_i`` the sum of ``1 / theta_j`` over the variables of row i, the changes u of the row
values solve ``(1 + R K R) R u = ...`` with ``R = sqrt(Phi)``: one matrix of as many rows as the
kernel has, whatever the number of variables and groups, with no eigenvalue below one.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from buttress._arrays import Array, IntArray
from buttress.solvers.numerics.systems import one_plus_scaled


class GramSpace:
    """Dual vectors as ``sum_i beta_i x_i``; a step costs ``n^3 / 3`` operations.

    A dual vector is held as beta followed by its products with the points, which are brought up
    to date with it: as sums over beta they would lose digits.

    Parameters
    ----------
    K : array of shape (n, n), float64
        The products of the points.
    row, group : integer arrays of shape (m,)
        The point of every variable, and its group: 0, 1, ... or -1 for none.
    n_groups : int
    """

    def __init__(self, K: Array, row: IntArray, group: IntArray, n_groups: int) -> None:
        self.K, self.row, self.group, self.n_groups = K, row, group, n_groups
        self.room = np.empty_like(K)

    @property
    def spread(self) -> float:
        """The length of the longest point."""
        return float(np.sqrt(np.diagonal(self.K).max(initial=0.0)))

    def zero(self) -> Array:
        """The dual vector zero."""
        return np.zeros(2 * len(self.K))

    def vector(self, weights: Array) -> Array:
        """The dual vector ``sum_i weights_i x_i``."""
        return np.concatenate([weights, self.K @ weights])

    def values(self, w: Array) -> Array:
        """The products of the points with a dual vector."""
        return w[len(self.K) :]

    def square(self, w: Array) -> float:
        """``||w||^2``."""
        n = len(self.K)
        return float(w[:n] @ w[n:])

    def away(self, weights: Array, w: Array) -> tuple[Array, float]:
        """How far ``sum_i weights_i x_i`` is from w, and the difference of their squares."""
        n = len(self.K)
        beta = weights - w[:n]
        values = self.K @ beta
        return np.concatenate([beta, values]), float(beta @ (values + 2.0 * w[n:]))

    def system(self, inverse: Array) -> GramSystem | None:
        """The factorised system for these ``1 / theta``; None where rounding spoils it."""
        # one row for every group, the last for the variables outside of all
        at = self.group % (self.n_groups + 1) * len(self.K) + self.row
        return GramSystem.of(self, inverse, at)


class GramSystem:
    """A factorised system; the multipliers are found from what their groups sum to."""

    def __init__(self, space: GramSpace, inverse: Array, at: IntArray, root: Array) -> None:
        self.space, self.inverse, self.at, self.root = space, inverse, at, root
        self.weight = self._by_group(inverse)
        total = self.weight.sum(axis=0)
        self.per_total = 1.0 / np.where(total > 0, total, 1.0)
        self.others = _sums_of_others(self.weight)
        self.per_root = np.where(root > 0, 1.0 / np.where(root > 0, root, 1.0), 0.0)

    @classmethod
    def of(cls, space: GramSpace, inverse: Array, at: IntArray) -> GramSystem | None:
        """Form and factorise."""
        n = len(space.K)
        root = np.sqrt(np.bincount(space.row, weights=inverse, minlength=n))
        made = cls(space, inverse, at, root)
        one_plus_scaled(space.K, np.arange(n), root, space.room)
        # the lower triangle by rows is LAPACK's upper triangle by columns
        made.factor, info = linalg.lapack.dpotrf(space.room.T, lower=0, overwrite_a=1, clean=0)
        if info != 0:
            return None
        k = space.n_groups
        scaled = made.weight[:k] * made.per_root
        made.pulled = made._solved(scaled.T).T
        inside = scaled @ made.pulled.T
        # the weights that one row has in two groups; a group of its own has none in others
        shared = (made.weight[:k] * made.per_total) @ made.weight[:k].T
        np.fill_diagonal(shared, 0.0)
        apart = ((made.weight * made.others)[:k] * made.per_total).sum(axis=1)
        made.sums = inside - shared + np.diag(apart)
        made.scaled = scaled
        return made

    factor: Array
    pulled: Array
    sums: Array
    scaled: Array

    def solve(self, right: Array, vector: Array, missing: Array) -> tuple[Array, Array, Array]:
        """Changes of the variables, the dual vector and the multipliers."""
        space = self.space
        n, k = len(space.K), space.n_groups
        pushed = self._by_group(self.inverse * right)
        all_pushed = pushed.sum(axis=0)
        scaled = all_pushed * self.per_root
        solved = self._solved(self.root * vector[n:] - scaled)
        if k:
            between = (self.others * pushed - self.weight * _sums_of_others(pushed))[:k]
            due = (between * self.per_total).sum(axis=1) - self.scaled @ solved - missing
            dm = np.linalg.lstsq(self.sums, due, rcond=None)[0]
        else:
            dm = np.zeros(0)
        change = (solved + scaled - dm @ (self.scaled - self.pulled)) * self.per_root
        force = right - change[space.row]
        force -= np.append(dm, 0.0)[space.group]
        db = self.inverse * force
        beta = vector[:n] + np.bincount(space.row, weights=db, minlength=n)
        # rows without a variable follow the others
        without = np.flatnonzero(self.root == 0.0)
        change[without] = space.K[without] @ beta
        return db, np.concatenate([beta, change]), dm

    def _by_group(self, values: Array) -> Array:
        """Sums over the variables of every row, group by group; the last are in none."""
        groups, n = self.space.n_groups + 1, len(self.space.K)
        sums = np.bincount(self.at, weights=values, minlength=groups * n)
        return np.asarray(sums, dtype=np.float64).reshape(groups, n)

    def _solved(self, right: Array) -> Array:
        return np.asarray(linalg.lapack.dpotrs(self.factor, right, lower=0)[0])


def _sums_of_others(x: Array) -> Array:
    """For every row of x the sum of all others: as total minus the row it would lose digits."""
    return np.array([np.delete(x, k, axis=0).sum(axis=0) for k in range(len(x))])
