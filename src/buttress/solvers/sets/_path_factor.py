"""The linear systems of the interior point: ``2 mu + (1/M) sum of class scatters``."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array
from buttress.solvers.sets._spaces import FeatureFactor, IllConditioned, KernelFactor, LabelledRows

# With a rank above this part of n the kernel form costs less.
_KERNEL_ABOVE = 0.5
# Corrections of a solution by its residual, until that is this part of the right side.
_REFINEMENTS = 3
_SOLVED = 1e-8
# The kernel form serves while it leaves no more than this.
_SOUND = 1e-3


class PathSystem:
    """Points, and the systems that belong to curvatures of their rows.

    Parameters
    ----------
    features : array of shape (n, p)
        The points.
    rows : LabelledRows
    K : array of shape (n, n), optional
        Their products, where they are held: with many dimensions the systems are solved by a
        factor of n³/3 operations, as long as its digits are enough, instead of n p².
    """

    def __init__(self, features: Array, rows: LabelledRows, K: Array | None = None) -> None:
        n, p = features.shape
        self.features, self.rows = features, rows
        self.K = K if p > _KERNEL_ABOVE * n else None
        self._rounding = 0.0
        if K is not None:
            # what a sum of products may be off, for coefficients whose absolute sum is two
            largest = float(np.max(np.sum(features**2, axis=1)))
            self._rounding = 4.0 * float(np.finfo(np.float64).eps) * largest

    def distance(self, signed: Array) -> tuple[float, float]:
        """``||sum_i signed_i phi_i||`` for coefficients that sum to zero; what it may be off.

        The points of a kernel matrix are known as well as their products.
        """
        norm = float(np.linalg.norm(self.features.T @ signed))
        return norm, self._rounding / max(norm, float(np.sqrt(self._rounding)), 1e-300)

    def factor(self, mu: float, curvature: Array) -> PathFactor:
        """The system at a multiplier and curvatures of the rows, factorised."""
        return PathFactor(self, mu, curvature)


class PathFactor:
    """Solutions, each corrected by its residual, which costs products with the points only."""

    def __init__(self, system: PathSystem, mu: float, curvature: Array) -> None:
        self.system, self.mu, self.curvature = system, mu, curvature
        self.sums = [float(curvature[mask].sum()) for mask in system.rows.masks]
        self.kernel: KernelFactor | None = None
        self.explicit: FeatureFactor | None = None
        if system.K is not None:
            try:
                self.kernel = KernelFactor(system.K, mu, curvature, system.rows)
            except IllConditioned:
                system.K = None

    def solve(self, right: Array) -> Array:
        """``H^-1 right``."""
        if self.kernel is not None:
            solution, left = self._refined(right)
            if left <= _SOUND:
                return solution
            self.kernel = self.system.K = None
        return self._refined(right)[0]

    def _refined(self, right: Array) -> tuple[Array, float]:
        """A solution, and the part of the right side that it leaves."""
        size = max(float(np.linalg.norm(right)), 1e-300)
        best: Array = np.zeros_like(right)
        residual, left = right, 1.0
        for _ in range(_REFINEMENTS):
            solution = best + self._roughly(residual)
            residual = right - self._times(solution)
            now = float(np.linalg.norm(residual)) / size
            if not now < left:
                break
            best, left = solution, now
            if left <= _SOLVED:
                break
        return best, left

    def _roughly(self, right: Array) -> Array:
        features = self.system.features
        if self.kernel is not None:
            (coefficients,) = self.kernel.expansion(features @ right)
            return np.asarray(right / (2.0 * self.mu) - features.T @ coefficients)
        if self.explicit is None:
            self.explicit = FeatureFactor(features, self.mu, self.curvature, self.system.rows)
        ((solution, _),) = self.explicit.descent((-right, right))
        return solution

    def _times(self, x: Array) -> Array:
        system = self.system
        values = system.features @ x
        for mask, total in zip(system.rows.masks, self.sums, strict=True):
            if total > 0.0:
                values[mask] -= float(self.curvature[mask] @ values[mask]) / total
        image = system.features.T @ (self.curvature * values)
        return np.asarray(2.0 * self.mu * x + image / system.rows.total)
