"""The rows as points of a Euclidean space: a centred Gram matrix, features, or both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from buttress._arrays import Array
from buttress.solvers.sets._spaces import FeatureFunctions, KernelFunctions

# Diagonal entries below this part of the largest end the pivoted factorisation.
_PIVOT_TOLERANCE = 1e-13
# With a rank below this part of n explicit features are cheaper than the kernel form.
_FEATURES_BELOW = 0.5
# The square of a norm, a sum of products, has few digits below this part of the largest product.
_FEW_DIGITS = 1e-12
# What a product of two entries may be off, relative to the largest.
_ROUNDING = 8.0 * np.finfo(np.float64).eps
# Directions left out of an expansion: variances below these parts of the largest.
_CUTS = (1e-14, 1e-12, 1e-10, 1e-8)


class CentredGeometry:
    """Points given by their Gram matrix or by explicit features, prepared once.

    Both classes' weights sum to one, so a common shift of all points changes nothing but the
    intercept; the points are centred, which keeps the digits that a large common offset (or a
    very wide kernel) would cost.

    Parameters
    ----------
    K : array of shape (n, n), optional
        Gram matrix.
    features : array of shape (n, p), optional
        The points themselves; one of the two is needed.
    """

    def __init__(self, K: Array | None = None, features: Array | None = None) -> None:
        if (K is None) == (features is None):
            raise ValueError("Give either the Gram matrix or the features.")
        self._factor: tuple[Array, Any, int] | None = None
        self._high_rank: bool | None = None
        if features is not None:
            features = np.asarray(features, dtype=np.float64)
            self.shift = features.mean(axis=0)
            self.explicit = True
            self._features: Array | None = features - self.shift
            self._K: Array | None = None
            self.n = len(features)
        else:
            K = _definite(np.asarray(K))
            self.shift = K.mean(axis=0)
            self.explicit = False
            self._features = None
            self._K = K - self.shift
            self._K -= self._K.mean(axis=1)[:, None]
            self.n = len(K)

    @property
    def rank(self) -> int:
        """The dimension of the space that the points span."""
        return int(self._pivoted()[2]) if self._features is None else self._features.shape[1]

    @property
    def gram(self) -> Array | None:
        """Products of the centred points, where they are held."""
        return self._K

    @property
    def features(self) -> Array:
        """Coordinates of the centred points, from a pivoted Cholesky factorisation if need be."""
        if self._features is None:
            factor, pivot, rank = self._pivoted()
            features = np.zeros((self.n, rank))
            features[pivot - 1] = np.tril(factor[:, :rank])
            self._features, self._factor = features, None
            self._pivots = pivot[:rank] - 1
        return self._features

    def _pivoted(self) -> tuple[Array, Any, int]:
        if self._factor is None:
            assert self._K is not None
            scale = float(np.max(np.diagonal(self._K), initial=0.0))
            self._factor = _pivoted_cholesky(self._K.copy(), scale)
        return self._factor

    def space(self) -> KernelFunctions | FeatureFunctions:
        """The cheaper representation of functions on these points."""
        if self._K is not None and self._has_high_rank():
            return KernelFunctions(self._K)
        return FeatureFunctions(self.features)

    def _has_high_rank(self) -> bool:
        """Whether the rank exceeds `_FEATURES_BELOW` times n; mostly a part of the rows tells."""
        if self._high_rank is None:
            assert self._K is not None
            enough = _FEATURES_BELOW * self.n
            rows = np.linspace(0, self.n - 1, int(np.ceil(1.2 * enough))).astype(int)
            sample = self._K[np.ix_(rows, rows)]
            scale = float(np.max(np.diagonal(self._K), initial=0.0))
            self._high_rank = _pivoted_cholesky(sample, scale)[2] > enough or self.rank > enough
        return self._high_rank

    def function(self, c: Array, v: Array | None) -> tuple[Array, float]:
        """Values and norm of the function that is stored as `v`, or as the expansion `c`.

        Coefficients rounded to single precision do not sum to zero, and then the centre counts.
        The norm of an expansion is rounded up by what its sum of n^2 products may be off.
        """
        if v is not None:
            return np.asarray(self.features @ v), float(np.linalg.norm(v))
        assert self._K is not None
        total, mean = float(c.sum()), float(self.shift.mean())
        values = self._K @ c
        square = float(c @ values) + total * (2.0 * float(self.shift @ c) - mean * total)
        values = values + total * (self.shift - mean)
        largest = float(np.max(np.diagonal(self._K) + np.abs(self.shift), initial=0.0))
        off = _ROUNDING * largest * float(np.abs(c).sum()) * float(np.abs(c).max(initial=0.0))
        return values, float(np.sqrt(max(square, 0.0) + off))

    def expansions(self, v: Array) -> Iterator[Array]:
        """Coefficients of sum zero with ``features' c = v``, nearly, from exact to small.

        First on the pivots of the Gram matrix, where the features are a triangle; then with the
        directions left out in which the points hardly differ. A function that needs these has
        coefficients so large that sums of them lose its digits.
        """
        features = self.features
        c = np.zeros(self.n)
        c[self._pivots] = solve_triangular(
            features[self._pivots], v, lower=True, trans="T", check_finite=False
        )
        yield c - c.mean()  # the centre, the mean of all points, takes back their sum
        values, vectors = np.linalg.eigh(features.T @ features)
        inside = vectors.T @ v
        for cut in _CUTS:
            keep = values > cut * max(float(values.max(initial=0.0)), 1e-300)
            c = features @ (vectors[:, keep] @ (inside[keep] / values[keep]))
            yield c - c.mean()

    def coefficients(self, v: Array) -> Array:
        """The smallest expansion coefficients ``c`` with ``features' c = v``."""
        values, vectors = np.linalg.eigh(self.features.T @ self.features)
        keep = values > 1e-14 * max(float(values.max(initial=0.0)), 1e-300)
        solved = vectors[:, keep] @ ((vectors[:, keep].T @ v) / values[keep])
        return np.asarray(self.features @ solved)

    def offset(self, c: Array, v: Array | None) -> float:
        """What the centring subtracted from every value of the function."""
        if self.explicit:
            assert v is not None
            return float(self.shift @ v)
        return float(self.shift @ c)

    def difference(self, signed: Array) -> tuple[Array, float]:
        """``sum_i signed_i phi_i`` for coefficients that sum to zero: values and norm.

        A norm that products know to few digits is computed from coordinates. It is then exact for
        points whose products are the given ones up to rounding.
        """
        if self._K is not None and not isinstance(self.space(), FeatureFunctions):
            values = np.asarray(self._K @ signed)
            square = float(signed @ values)
            if square > _FEW_DIGITS * float(np.max(np.diagonal(self._K), initial=0.0)):
                return values, float(np.sqrt(square))
            return values, float(np.linalg.norm(self.features.T @ signed))
        z = self.features.T @ signed
        return np.asarray(self.features @ z), float(np.linalg.norm(z))


def _pivoted_cholesky(K: Array, scale: float) -> tuple[Array, Any, int]:
    """Factor, pivots (from one) and rank of a Gram matrix, which is overwritten."""
    # the transpose of a symmetric matrix is the Fortran-ordered matrix itself
    factor, pivot, rank, _ = lapack.dpstrf(
        K.T, lower=1, tol=_PIVOT_TOLERANCE * scale, overwrite_a=1
    )
    return factor, pivot, int(rank) if scale > 0.0 else 0


def _definite(K: Array) -> Array:
    """The matrix in float64; a float32 one gets back on its diagonal what rounding may have cost.

    The entries of a float32 Gram matrix are known to 6e-8 of its scale, so its eigenvalues to
    about sqrt(n) times that, and may be negative by as much.
    """
    if K.dtype != np.float32:
        return np.asarray(K, dtype=np.float64)
    double = K.astype(np.float64)
    scale = float(np.max(np.diagonal(double), initial=0.0))
    double[np.diag_indices_from(double)] += 2.0 * np.finfo(np.float32).eps * np.sqrt(len(K)) * scale
    return double
