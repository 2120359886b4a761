"""Nearest points of two (reduced) convex hulls: the dual of the hinge-shaped set losses.

``min ½ ||z_p - z_n||^2`` over ``0 <= alpha <= cap`` with sum one in each class, by the interior
point of `buttress.solvers.boxqp.group_sums` and a final solve on the free rows.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from buttress._arrays import Array
from buttress.solvers.boxqp.group_sums import SumsProblem, longest_step, minimise_with_sums
from buttress.solvers.numerics.lapack import cholesky_in_place, cholesky_solve
from buttress.solvers.sets._spaces import LabelledRows
from buttress.solvers.sets.geometry import CentredGeometry

# No weight exceeds one, so a cap beyond it never binds.
_FREE_CAP = 2.0
# Half the square of a distance, in units of the farthest point, below which rounding tells more.
_ROUNDING = 1e-20
# What cheap steps aim at, as a part of the distance that is enough.
_MUCH_LESS = 0.02
# Weights below these shares of the largest have no room.
_WITHOUT_ROOM = (1e-3, 1e-5, 1e-7)
# Steps towards the common point of hulls that meet.
_APPROACHES = 40
# What is added to the diagonal of a singular system, relative to its mean.
_RIDGE = 1e-15
# Pivots of the free rows' factor closer to zero than this mean a singular system.
_REGULAR = 1e-6
# Beyond so many free rows the interior point's own accuracy has to do.
_POLISHED_ROWS = 1500
_HULL_STEPS = 100


def hull_weights(
    geometry: CentredGeometry, rows: LabelledRows, cap: Array, max_iter: int, enough: float = 0.0
) -> tuple[Array, int]:
    """The weights of both nearest points, and the number of interior-point steps.

    A step costs one Cholesky factorisation: n^3/3 operations, or n r^2 for points of rank r.
    Hulls that meet are left apart by no more than rounding; nothing is done about a distance
    up to `enough`.
    """
    features = geometry.features
    scale = float(np.sqrt(np.max(np.sum(features**2, axis=1), initial=0.0)))
    alpha = rows.uniform()
    if scale == 0.0:
        return alpha, 1
    signed = features * (rows.y / scale)[:, None]
    cap = np.where(cap < 1.0, cap, _FREE_CAP)
    lower = np.zeros_like(cap)
    for mask in rows.masks:
        # a class whose caps sum to one has no choice
        if cap[mask].sum() <= 1.0 + 1e-9:
            lower[mask] = cap[mask] = alpha[mask]
    free = cap > lower
    if not free.any():
        return alpha, 1
    n, r = features.shape
    gram = 2 * r > n
    problem = SumsProblem(
        signed @ signed.T if gram else signed, np.zeros(n), lower, cap, np.arange(n),
        np.where(rows.y > 0, 0, 1), np.ones(2), gram=gram,
    )  # fmt: skip
    steps = min(max_iter, _HULL_STEPS)
    nearest = minimise_with_sums(problem, start=alpha, max_iter=steps, enough=_ROUNDING)
    masks = [mask[free] for mask in rows.masks if free[mask].any()]
    hulls = _Hulls(
        signed[free], signed[~free].T @ alpha[~free], np.array(masks, dtype=float), cap[free],
        enough / scale,
    )  # fmt: skip
    ends = nearest.b[free], nearest.low_force[free], nearest.high_force[free]
    alpha[free] = hulls.finished(*ends)
    return alpha, nearest.n_iter


class _Hulls:
    """``½ ||F'a + fixed||^2`` over ``0 <= a <= cap``, ``A a = 1``, near its minimum."""

    def __init__(self, F: Array, fixed: Array, A: Array, cap: Array, enough: float) -> None:
        self.F, self.fixed, self.A, self.cap, self.enough = F, fixed, A, cap, enough

    def gradient(self, a: Array) -> Array:
        return np.asarray(self.F @ (self.F.T @ a + self.fixed))

    def finished(self, a: Array, zl: Array, zu: Array) -> Array:
        """The interior point's weights, exact; rows at their bounds are where hulls do not meet."""
        repaired = self._repaired(a)
        if self._meet(repaired):
            return self._touching(repaired)
        polished = self._polished(a, zl, zu)
        if polished is None:
            return repaired
        return self._touching(polished) if self._meet(polished) else polished

    def _meet(self, a: Array) -> bool:
        """Whether the hulls may meet: by the linear part of ``½ d^2`` they are hardly apart."""
        distance = self._distance(a)
        return distance < 1e-4 and self._violation(a) >= 0.25 * distance**2

    def _touching(self, a: Array) -> Array:
        """Where the hulls meet the distance is zero; remove what rounding leaves of it.

        Least changes relative to the room that each weight has; where there is none, such as at
        a row that both classes share, those without room are put on their bounds before.
        """
        best = self._closer(a) if self._distance(a) > _MUCH_LESS * self.enough else a
        for share in _WITHOUT_ROOM:
            if self._distance(best) <= _MUCH_LESS * self.enough:
                break
            low, high = a < share * a.max(), self.cap - a < share * self.cap
            snapped = np.where(low, 0.0, np.where(high, self.cap, a))
            closer = self._closer(self._repaired(snapped))
            if self._feasible(closer) and self._distance(closer) < self._distance(best):
                best = closer
        return best

    def _closer(self, a: Array) -> Array:
        """Steps that bring the hulls together, as far as they do."""
        best, near = a, self._distance(a)
        system, right = np.vstack([self.F.T, self.A]), np.r_[-self.fixed, np.ones(len(self.A))]
        for _ in range(_APPROACHES):
            room = np.maximum(np.minimum(best, self.cap - best), 0.0)
            scaled = system * room
            change = room * (scaled.T @ _solved(scaled @ scaled.T, right - system @ best))
            longest = longest_step((best, change), (self.cap - best, -change))
            step = min(1.0, 0.9 * longest)
            changed = self._repaired(best + step * change)
            if not self._feasible(changed) or self._distance(changed) >= 0.98 * near:
                break
            best, near = changed, self._distance(changed)
            if near <= _MUCH_LESS * self.enough:
                break
        return best

    def _distance(self, a: Array) -> float:
        return float(np.linalg.norm(self.F.T @ a + self.fixed))

    def _feasible(self, a: Array) -> bool:
        inside = (a >= 0.0).all() and (a <= self.cap).all()
        return bool(inside and np.abs(self.A @ a - 1.0).max() <= 1e-13)

    def _polished(self, a: Array, zl: Array, zu: Array) -> Array | None:
        """Put the rows at their bounds and solve for the free ones exactly, if that is better."""
        low, high = zl > a, zu > self.cap - a
        free = ~(low | high)
        candidate = np.where(low, 0.0, np.where(high, self.cap, a))
        if not 0 < free.sum() <= _POLISHED_ROWS:
            return None
        correction = _Correction(self.F[free], self.A[:, free])
        for _ in range(3):
            residual = np.r_[-self.gradient(candidate)[free], 1.0 - self.A @ candidate]
            candidate[free] += correction.of(residual)
        inside = (candidate >= 0) & (candidate <= self.cap)
        if not inside.all() or np.abs(self.A @ candidate - 1.0).max() > 1e-12:
            return None
        better = self._violation(candidate) <= self._violation(self._repaired(a))
        return candidate if better else None

    def _repaired(self, a: Array) -> Array:
        """Class sums exact."""
        for row in self.A:
            member = row > 0
            a = np.where(member, a / a[member].sum(), a)
        return a

    def _violation(self, a: Array) -> float:
        """Duality gap of ``½ d^2``: the largest decrease of its linear part."""
        g = self.gradient(a)
        worst = float(g @ a)
        for row in self.A:
            member = np.flatnonzero(row)
            order = member[np.argsort(g[member])]
            filled = np.minimum(np.cumsum(self.cap[order]), 1.0)
            worst -= float(g[order] @ np.diff(np.r_[0.0, filled]))
        return worst


def _solved(A: Array, right: Array) -> Array:
    """A solution of ``A x = right``, A positive semidefinite; overwrites A."""
    ridge = _RIDGE * max(float(np.trace(A)) / len(A), 1e-300)
    while True:
        shifted = A.copy()
        shifted[np.diag_indices_from(A)] += ridge
        if cholesky_in_place(shifted) == 0:
            solution = np.array(right)
            cholesky_solve(shifted, solution[None])
            return solution
        ridge *= 10.0


class _Correction:
    """Solutions of the optimality conditions ``[FF' A'; A 0]`` of the free rows.

    By a Cholesky factor; of least norm, by eigenvalues, where copies or a low rank make the
    system singular.
    """

    def __init__(self, F: Array, A: Array) -> None:
        self.A = A[A.any(axis=1)]
        self.present = A.any(axis=1)
        Q = F @ F.T
        k, m = len(Q), len(self.A)
        try:
            self.factor = linalg.cho_factor(Q, lower=True, check_finite=False)
            pivots = np.diagonal(self.factor[0])
            self.regular = bool(pivots.min() > _REGULAR * pivots.max())
        except linalg.LinAlgError:
            self.regular = False
        if self.regular:
            self.solved = linalg.cho_solve(self.factor, self.A.T, check_finite=False)
            self.schur = self.A @ self.solved
        else:
            system = np.zeros((k + m, k + m))
            system[:k, :k], system[:k, k:], system[k:, :k] = Q, self.A.T, self.A
            values, self.vectors = linalg.eigh(system, driver="evd", check_finite=False)
            used = np.abs(values) > 1e-13 * np.abs(values).max()
            self.inverse = np.where(used, 1.0 / np.where(used, values, 1.0), 0.0)

    def of(self, residual: Array) -> Array:
        """The change of the free weights that removes `residual`."""
        k = self.A.shape[1]
        right, sums = residual[:k], residual[k:][self.present]
        if not self.regular:
            both = np.r_[right, sums]
            return np.asarray((self.vectors @ (self.inverse * (self.vectors.T @ both)))[:k])
        base = linalg.cho_solve(self.factor, right, check_finite=False)
        return np.asarray(base + self.solved @ np.linalg.solve(self.schur, sums - self.A @ base))
