"""Newton directions of the penalised problem, in two representations of ``f``.

With the thresholds of both classes eliminated, the problem at penalty ``mu`` is

    F(f) = min_r (1/M) sum_i w_i l(r_i - y_i f(x_i)) - r_p - r_n + mu ||f||^2,

its gradient is ``2 mu f - (z_p - z_n)`` and its Hessian ``2 mu + (1/M) sum of class scatters``.
`KernelFunctions` holds ``f`` by its coefficients on the rows and factorises a matrix of the size
of the curved rows (n^3/3 operations); `FeatureFunctions` holds it by coordinates and factorises
one of the size of the rank r (n r^2 operations), which stays sound as ``mu`` tends to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray
from buttress._compile import compiled
from buttress.solvers.numerics.lapack import cholesky_in_place, cholesky_solve
from buttress.solvers.numerics.systems import one_plus_scaled

# Curvatures below this part of the largest do not change a Newton step.
_NO_CURVATURE = 1e-15


class IllConditioned(Exception):
    """The kernel form cannot go on; explicit features can."""


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The labels and weights of one binary problem: ``y`` is ±1, ``total`` the sum of weights."""

    y: Array
    w: Array

    @property
    def total(self) -> float:
        return float(self.w.sum())

    @property
    def masks(self) -> tuple[BoolArray, BoolArray]:
        """Which rows are positive, which negative."""
        return self.y > 0, self.y < 0

    def uniform(self) -> Array:
        """Uniform weights ``alpha`` within both classes."""
        p, n = self.masks
        return np.asarray(np.where(p, self.w / self.w[p].sum(), self.w / self.w[n].sum()))


Function = tuple[Array, Array]


class KernelFunctions:
    """Functions ``f = sum_i x_i k(x_i, .)`` with a centred Gram matrix."""

    sound_at_zero = False

    def __init__(self, K: Array) -> None:
        self.K = K
        self.spread = float(np.sqrt(np.max(np.diagonal(K), initial=0.0)))

    @property
    def size(self) -> int:
        return len(self.K)

    def values(self, x: Array) -> Array:
        return np.asarray(self.K @ x)

    def inner(self, a: tuple[Array, Array], b: tuple[Array, Array]) -> float:
        """Inner product of two functions, each given as (coordinates, values)."""
        return float(a[0] @ b[1])

    def gradient(self, x: Array, g: Array, mu: float, beta: Array, rows: LabelledRows) -> Any:
        """``2 mu f - (z_p - z_n)`` for row weights `beta` = ``w l'``."""
        d = 2.0 * mu * x - rows.y * beta / rows.total
        return d, self.K @ d

    def factor(self, mu: float, curvature: Array, rows: LabelledRows) -> KernelFactor:
        """The Hessian at given curvatures of the rows, factorised."""
        return KernelFactor(self.K, mu, curvature, rows)


class KernelFactor:
    """``H^-1`` on functions given as (coefficients, values).

    With ``G = K / (2 mu M)`` and the curvatures ``D`` of the curved rows it solves
    ``(I + D½ G D½) s = right side`` under the condition that the class sums do not change.
    """

    def __init__(self, K: Array, mu: float, curvature: Array, rows: LabelledRows) -> None:
        self.K, self.mu = K, mu
        self.q = np.flatnonzero(curvature > _NO_CURVATURE * curvature.max(initial=0.0))
        self.scale = 1.0 / (2.0 * mu * rows.total)
        self.root = np.sqrt(curvature[self.q])
        B = np.empty((len(self.q), len(self.q)))
        one_plus_scaled(K, self.q, self.root, B, self.scale)
        try:
            self.cholesky = _cholesky(B)
        except np.linalg.LinAlgError:
            raise IllConditioned from None  # a Gram matrix that is indefinite by rounding
        self.e = np.stack([self.root * m[self.q] for m in rows.masks])
        self.solved = solve_cholesky(self.cholesky, self.e)
        # set when refining it for another problem took long
        self.tired = False
        self._rounded: NDArray[np.float32] | None = None

    def rounded(self) -> NDArray[np.float32]:
        """The Cholesky factor in single precision, enough for a preconditioner."""
        if self._rounded is None:
            self._rounded = np.zeros(self.cholesky.shape, dtype=np.float32)
            round_lower(self.cholesky, self._rounded)
        return self._rounded

    def descent(self, *functions: Function) -> list[Function]:
        """``-H^-1 f`` for every function."""
        steps_down = []
        for f, change in zip(functions, self.expansion(*(f[1] for f in functions)), strict=True):
            step = change - f[0] / (2.0 * self.mu)
            steps_down.append((step, np.asarray(self.K @ step)))
        return steps_down

    def expansion(self, *values: Array) -> list[Array]:
        """Coefficients of ``f / (2 mu) - H^-1 f`` for functions of the given values."""
        rights = np.stack([self.root * g[self.q] for g in values]) / (2.0 * self.mu)
        expansions: list[Array] = []
        for s in solve_cholesky(self.cholesky, rights):
            coefficients: Array = np.zeros(len(self.K))
            coefficients[self.q] = (self.root * self.scale) * self._without_class_sums(s)
            expansions.append(coefficients)
        return expansions

    def _without_class_sums(self, s: Array) -> Array:
        gram = self.e @ self.solved.T
        present = np.flatnonzero(np.diagonal(gram) > 0)
        if len(present) == 0:
            return s
        block = np.ix_(present, present)
        shift = np.linalg.solve(gram[block], self.e[present] @ s)
        return np.asarray(s - shift @ self.solved[present])


class FeatureFunctions:
    """Functions ``f(x_i) = phi_i . v`` with explicit features."""

    sound_at_zero = True

    def __init__(self, features: Array) -> None:
        self.features = features
        self.spread = float(np.sqrt(np.max(np.sum(features**2, axis=1), initial=0.0)))

    @property
    def size(self) -> int:
        return int(self.features.shape[1])

    def values(self, v: Array) -> Array:
        return np.asarray(self.features @ v)

    def inner(self, a: tuple[Array, Array], b: tuple[Array, Array]) -> float:
        """Inner product of two functions, each given as (coordinates, values)."""
        return float(a[0] @ b[0])

    def gradient(self, v: Array, g: Array, mu: float, beta: Array, rows: LabelledRows) -> Any:
        """``2 mu f - (z_p - z_n)`` for row weights `beta` = ``w l'``."""
        d = 2.0 * mu * v - self.features.T @ (rows.y * beta) / rows.total
        return d, None

    def factor(self, mu: float, curvature: Array, rows: LabelledRows) -> FeatureFactor:
        """The Hessian at given curvatures of the rows, factorised."""
        return FeatureFactor(self.features, mu, curvature, rows)


class FeatureFactor:
    """``H^-1`` on functions given as (coordinates, anything)."""

    def __init__(self, features: Array, mu: float, curvature: Array, rows: LabelledRows) -> None:
        self.features, self.mu = features, mu
        H = np.zeros((features.shape[1], features.shape[1]))
        for mask in rows.masks:
            q = np.flatnonzero(mask & (curvature > 0))
            if len(q) == 0:
                continue
            d = curvature[q]
            block = features[q]
            # in place: new memory would take as long as the product
            block -= (d @ block) / d.sum()
            block *= np.sqrt(d)[:, None]
            H += block.T @ block
        H /= rows.total
        H[np.diag_indices_from(H)] += 2.0 * mu
        self.cholesky = _repaired_cholesky(H)

    def descent(self, *functions: Function) -> list[Function]:
        """``-H^-1 f`` for every function."""
        solved = solve_cholesky(self.cholesky, -np.stack([f[0] for f in functions]))
        return [(s, np.asarray(self.features @ s)) for s in solved]


def _cholesky(A: Array) -> Array:
    """Factor of a symmetric matrix given by its lower triangle (C order); overwrites it."""
    if cholesky_in_place(A) != 0:
        raise np.linalg.LinAlgError("the Newton matrix is not positive definite")
    return A


def _repaired_cholesky(A: Array) -> Array:
    """The same when directions without curvature may make the matrix singular."""
    jitter = 1e-15 * max(float(np.diagonal(A).max(initial=0.0)), 1e-15)
    while True:
        try:
            return _cholesky(A.copy())
        except np.linalg.LinAlgError:
            A[np.diag_indices_from(A)] += jitter
            jitter *= 100.0


def solve_cholesky(factor: Array, rights: Array) -> Array:
    """Solutions, one per row of `rights`."""
    solved = np.array(rights, dtype=np.float64, order="C")
    cholesky_solve(factor, solved)
    return solved


@compiled()
def round_lower(factor: Array, out: NDArray[np.float32]) -> None:
    """Copy the lower triangle in single precision; what stands above it was never written."""
    for i in range(len(factor)):
        for j in range(i + 1):
            out[i, j] = factor[i, j]
