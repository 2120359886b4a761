"""Nearest points of two (reduced) convex hulls: the dual of the hinge-shaped set losses.

``min ½ ||z_p - z_n||^2`` over ``0 <= alpha <= cap`` with sum one in each class, by Mehrotra's
predictor-corrector method and a final solve on the free rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, optimize

from buttress._arrays import Array
from buttress.solvers.sets._spaces import Rows
from buttress.solvers.sets.geometry import Geometry

# No weight exceeds one, so a cap beyond it never binds.
_FREE_CAP = 2.0
# Rows up to which hulls that meet are solved by an active-set search where the distance is too
# large for the tolerance, and where it is not.
_ACTIVE_SET_ROWS, _FEW_ROWS = 600, 120
# What cheap steps aim at, as a part of the distance that is enough.
_MUCH_LESS = 0.02
# Steps towards the common point of hulls that meet.
_APPROACHES = 40
# Pivots of the free rows' factor closer to zero than this mean a singular system.
_REGULAR = 1e-6
# Beyond so many free rows the interior point's own accuracy has to do.
_POLISHED_ROWS = 1500


def hull_weights(
    geometry: Geometry, rows: Rows, cap: Array, max_iter: int, enough: float = 0.0
) -> tuple[Array, int]:
    """The weights of both nearest points, and the number of interior-point steps.

    A step costs one Cholesky factorisation: n^3/3 operations, or n r^2 for points of rank r.
    Hulls that meet are left apart by no more than rounding; nothing is done about a distance
    up to `enough`.
    """
    features = geometry.features
    scale = float(np.sqrt(np.max(np.sum(features**2, axis=1), initial=0.0)))
    if scale == 0.0:
        return rows.uniform(), 1
    signed = features * (rows.y / scale)[:, None]
    cap = np.where(cap < 1.0, cap, _FREE_CAP)
    alpha = rows.uniform()
    # a class whose caps sum to one has no choice
    free = np.ones(len(alpha), dtype=bool)
    for mask in rows.masks:
        if cap[mask].sum() <= 1.0 + 1e-9:
            free[mask] = False
    n_iter = 1
    if free.any():
        masks = [mask[free] for mask in rows.masks if free[mask].any()]
        fixed = signed[~free].T @ alpha[~free]
        solver = _InteriorPoint(
            signed[free], fixed, np.array(masks, dtype=float), cap[free], enough / scale
        )
        alpha[free], n_iter = solver.solve(alpha[free], max_iter)
    return alpha, n_iter


class _InteriorPoint:
    """``min ½ ||F'a + fixed||^2`` over ``0 <= a <= cap``, ``A a = 1``."""

    def __init__(self, F: Array, fixed: Array, A: Array, cap: Array, enough: float) -> None:
        self.F, self.fixed, self.A, self.cap, self.enough = F, fixed, A, cap, enough
        n, r = F.shape
        self.Q = None if 2 * r < n else F @ F.T

    def gradient(self, a: Array) -> Array:
        return np.asarray(self.F @ (self.F.T @ a + self.fixed))

    def _factor(self, theta: Array) -> Any:
        if self.Q is not None:
            S = self.Q.copy()
            S[np.diag_indices_from(S)] += theta
        else:
            scaled = self.F / np.sqrt(theta)[:, None]
            S = scaled.T @ scaled
            S[np.diag_indices_from(S)] += 1.0
        return linalg.cho_factor(S, lower=True, overwrite_a=True, check_finite=False)

    def _apply(self, factor: Any, theta: Array, right: Array) -> Array:
        if self.Q is not None:
            return np.asarray(linalg.cho_solve(factor, right, check_finite=False))
        scaled = (right.T / theta).T
        inner = linalg.cho_solve(factor, self.F.T @ scaled, check_finite=False)
        return np.asarray(scaled - ((self.F @ inner).T / theta).T)

    def solve(self, a: Array, max_iter: int) -> tuple[Array, int]:
        cap, A = self.cap, self.A
        u = cap - a
        g = self.gradient(a)
        level = max(float(np.abs(g).mean()), 1e-12)
        lam = np.array([float(g @ row) / row.sum() for row in A])
        slack = g - A.T @ lam
        zl, zu = np.maximum(slack, 0.0) + level, np.maximum(-slack, 0.0) + level
        n_iter = 0
        best = (a, zl, zu)
        while n_iter < min(max_iter, 100):
            g = self.gradient(a)
            gap = float(zl @ a + zu @ u)
            dual_residual = g - A.T @ lam - zl + zu
            objective = 0.5 * float(np.sum((self.F.T @ a + self.fixed) ** 2))
            residual = float(np.abs(dual_residual).max())
            if residual > 1e-9 and n_iter > 5 and gap < 1e-12:
                break  # rounding has taken over; the best point is kept
            best = (a, zl, zu)
            if gap <= 1e-13 * objective or objective <= 1e-24:
                break
            n_iter += 1
            theta = zl / a + zu / u
            try:
                factor = self._factor(theta)
            except linalg.LinAlgError:
                break
            solved = self._apply(factor, theta, A.T)
            schur = A @ solved
            mu = gap / (2 * len(a))

            def direction(tl: Array, tu: Array) -> tuple[Array, Array, Array, Array]:
                right = -dual_residual + tl / a - zl - (tu / u - zu)  # noqa: B023
                base = self._apply(factor, theta, right)  # noqa: B023
                dlam = np.linalg.solve(schur, 1.0 - A @ a - A @ base)  # noqa: B023
                da = base + solved @ dlam  # noqa: B023
                dl = tl / a - zl - zl / a * da  # noqa: B023
                du = tu / u - zu + zu / u * da  # noqa: B023
                return da, dlam, dl, du

            zero = np.zeros_like(a)
            da, _, dl, du = direction(zero, zero)
            p, d = _longest(a, da, u, -da), _longest(zl, dl, zu, du)
            after = float((zl + d * dl) @ (a + p * da) + (zu + d * du) @ (u - p * da))
            sigma = (after / gap) ** 3 * mu
            da, dlam, dl, du = direction(sigma - da * dl, sigma + da * du)
            step = min(0.995 * _longest(a, da, u, -da), 0.995 * _longest(zl, dl, zu, du), 1.0)
            if not np.isfinite(step) or step < 1e-10:
                break
            a = a + step * da
            u = cap - a
            if (u <= 0).any() or (a <= 0).any():
                break
            lam, zl, zu = lam + step * dlam, zl + step * dl, zu + step * du
        return self._touching(self._polished(*best)), n_iter

    def _touching(self, a: Array) -> Array:
        """Where the hulls meet the distance is zero; remove what rounding leaves of it.

        Least changes relative to the room that each weight has; where there is none, such as at
        a row that both classes share, an active-set search. Hulls that do not meet keep `a`.
        """
        distance = self._distance(a)
        if not _MUCH_LESS * self.enough < distance < 1e-4:
            return a
        # By the linear part of ``½ d^2`` the hulls are apart by the root of what is left.
        if self._violation(a) < 0.25 * distance**2:
            return a
        best, near = a, distance
        system, right = np.vstack([self.F.T, self.A]), np.r_[-self.fixed, np.ones(len(self.A))]
        for _ in range(_APPROACHES):
            room = np.minimum(best, self.cap - best)
            scaled = system * room
            values, vectors = linalg.eigh(scaled @ scaled.T, check_finite=False)
            used = values > 1e-24 * values[-1]
            vectors = vectors[:, used]
            solved = vectors @ ((vectors.T @ (right - system @ best)) / values[used])
            change = room * (scaled.T @ solved)
            step = min(1.0, 0.9 * _longest(best, change, self.cap - best, -change))
            changed = self._repaired(best + step * change)
            if not self._feasible(changed) or self._distance(changed) >= 0.98 * near:
                break
            best, near = changed, self._distance(changed)
            if near <= _MUCH_LESS * self.enough:
                return best
        most = _ACTIVE_SET_ROWS if near > self.enough else _FEW_ROWS
        if near > 1e-6 * distance and len(a) <= most:
            found = optimize.lsq_linear(system, right, (0.0, self.cap), method="bvls", tol=1e-15)
            if self._feasible(found.x) and self._distance(found.x) < self._distance(best):
                best = found.x
        return best

    def _distance(self, a: Array) -> float:
        return float(np.linalg.norm(self.F.T @ a + self.fixed))

    def _feasible(self, a: Array) -> bool:
        inside = (a >= 0.0).all() and (a <= self.cap).all()
        return bool(inside and np.abs(self.A @ a - 1.0).max() <= 1e-13)

    def _polished(self, a: Array, zl: Array, zu: Array) -> Array:
        """Put the rows at their bounds and solve for the free ones exactly."""
        low, high = zl > a, zu > self.cap - a
        free = ~(low | high)
        candidate = np.where(low, 0.0, np.where(high, self.cap, a))
        if not 0 < free.sum() <= _POLISHED_ROWS:
            return self._repaired(a)
        correction = _Correction(self.F[free], self.A[:, free])
        for _ in range(3):
            residual = np.r_[-self.gradient(candidate)[free], 1.0 - self.A @ candidate]
            candidate[free] += correction.of(residual)
        inside = (candidate >= 0) & (candidate <= self.cap)
        if not inside.all() or np.abs(self.A @ candidate - 1.0).max() > 1e-12:
            return self._repaired(a)
        better = self._violation(candidate) <= self._violation(self._repaired(a))
        return candidate if better else self._repaired(a)

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
            values, self.vectors = linalg.eigh(system, check_finite=False)
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


def _longest(s: Array, ds: Array, t: Array, dt: Array) -> float:
    """The longest step that keeps both ``s`` and ``t`` non-negative."""
    longest = 1.0
    for value, change in ((s, ds), (t, dt)):
        falling = change < 0
        if falling.any():
            longest = min(longest, float((-value[falling] / change[falling]).min()))
    return longest
