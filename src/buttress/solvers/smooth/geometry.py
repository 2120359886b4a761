"""The shape of a quadratic penalty: a Gram matrix, or features when it has low rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from buttress._arrays import Array

# Below this share of n a rank makes features cheaper, and far better conditioned.
_LOW_RANK = 0.4

# Ratio of singular values below which features are not turned into a Gram matrix.
_UNEVEN = 1e-4


@dataclass(frozen=True, eq=False)
class Eigenbasis:
    """Features in which the weighted second moment of the rows is diagonal.

    Attributes
    ----------
    features : array of shape (n, m)
    eigenvalues : array of shape (m,)
    weight : array of shape (n,) or None
        The row weights.
    rotation : array of shape (p, m) or None
        From these features' weights to those of the geometry's own features (feature form).
    """

    features: Array
    eigenvalues: Array
    weight: Array | None
    rotation: Array | None

    def coefficients(self, weights: Array) -> Array:
        """Feature weights of shape (L, m) as coefficients in the geometry's coordinates."""
        if self.rotation is not None:
            return np.asarray(weights @ self.rotation.T)
        duals = (weights / self.eigenvalues) @ self.features.T
        return np.asarray(duals if self.weight is None else duals * self.weight)

    def weights(self, coefficients: Array) -> Array:
        """The inverse of `coefficients`."""
        matrix = self.features if self.rotation is None else self.rotation
        return np.asarray(coefficients @ matrix)


@dataclass(frozen=True, eq=False)
class ScaledGeometry:
    """Training rows as a Gram matrix or as features, scaled to unit mean squared norm.

    Attributes
    ----------
    matrix : array of shape (n, n) or (n, m), float64
        ``K / scale`` in kernel form, else features F with ``F F' = K / scale``.
    kernel_form : bool
        Which of the two.
    scale : float
        Mean diagonal of the Gram matrix; a penalty alpha on the original scale is
        ``alpha / scale`` here.
    back : array of shape (p, m) or None
        For explicit rows: feature weights times `back'` are weights of the columns of X.
    center : array of shape (p,) or None
        What was subtracted from the rows.
    """

    matrix: Array
    kernel_form: bool
    scale: float
    back: Array | None = None
    center: Array | None = None

    def similarity_product(self, dual: Array) -> Array:
        """``(K / scale) @ dual`` for one dual vector or several as columns."""
        if self.kernel_form:
            return np.asarray(self.matrix @ dual)
        return np.asarray(self.matrix @ (self.matrix.T @ dual))

    def eigenbasis(self, weight: Array | None, smallest: float) -> Eigenbasis:
        """Eigenvectors of the weighted Gram matrix, scaled; eigenvalues below `smallest` dropped.

        Costs one symmetric eigendecomposition of order n, or of the number of features.
        """
        root = None if weight is None else np.sqrt(weight)
        if self.kernel_form:
            K = self.matrix if root is None else self.matrix * root * root[:, None]
            values, vectors = linalg.eigh(K, check_finite=False, driver="evd")
            keep = values > max(smallest, 0.0)
            values, vectors = values[keep], vectors[:, keep]
            vectors *= np.sqrt(values)
            if root is not None:
                vectors /= root[:, None]
            return Eigenbasis(vectors, values, weight, None)
        weighted = self.matrix if root is None else self.matrix * root[:, None]
        values, rotation = linalg.eigh(weighted.T @ weighted, check_finite=False)
        keep = values > max(smallest, 0.0)
        rotation = rotation[:, keep]
        return Eigenbasis(np.asarray(self.matrix @ rotation), values[keep], weight, rotation)


def from_gram(K: Array, most_features: int | None = None) -> ScaledGeometry:
    """The geometry of a Gram matrix, in feature form when its rank is low.

    `most_features` is the largest rank that is low, a share of n if not given.

    A pivoted Cholesky factorisation finds the rank r at the cost of n r² operations; it is not
    needed where so large a part of the matrix is clearly definite that the rank cannot be low.
    """
    K = np.asarray(K, dtype=np.float64)
    n = len(K)
    scale = float(np.trace(K)) / n
    if not scale > 0:
        return ScaledGeometry(np.zeros((n, 1)), False, 1.0)
    # a Gaussian kernel's has the scale it should have, and is not copied
    scaled = K if scale == 1.0 else K / scale
    most = int(_LOW_RANK * n)
    if most_features is not None:
        most = min(most, most_features)
    if _definite(scaled[: most + 1, : most + 1]):
        return ScaledGeometry(scaled, True, scale)
    factor, order, rank, _ = lapack.dpstrf(scaled, lower=1, tol=-1.0)
    if rank <= most:
        features = np.empty((n, rank))
        features[order - 1] = np.tril(factor)[:, :rank]
        return ScaledGeometry(features, False, scale)
    return ScaledGeometry(scaled, True, scale)


def _definite(block: Array) -> bool:
    """Whether a principal part has full rank by the measure of the pivoted factorisation."""
    factor, info = lapack.dpotrf(block.T, lower=0, clean=0)
    smallest = 100.0 * len(block) * np.finfo(np.float64).eps * float(np.max(np.diagonal(block)))
    return bool(info == 0 and np.min(np.diagonal(factor)) ** 2 > smallest)


def from_rows(X: Array, weight: Array | None, *, fit_intercept: bool) -> ScaledGeometry:
    """The geometry of a linear kernel: orthogonal features of the (centred) rows.

    Costs one singular value decomposition, n p min(n, p) operations. Centring is free when
    there is an intercept, and keeps large offsets of the features from costing digits.
    """
    X = np.asarray(X, dtype=np.float64)
    center = np.average(X, axis=0, weights=weight) if fit_intercept else np.zeros(X.shape[1])
    rows = X - center
    left, singular, right = linalg.svd(rows, full_matrices=False, check_finite=False)
    keep = singular > max(X.shape) * np.finfo(np.float64).eps * max(singular[0], 1e-300)
    if not keep.any():
        return ScaledGeometry(np.zeros((len(X), 1)), False, 1.0, np.zeros((X.shape[1], 1)), center)
    features = left[:, keep] * singular[keep]
    scale = float(np.einsum("ij,ij->", features, features)) / len(X)
    features /= np.sqrt(scale)
    back = right[keep].T / np.sqrt(scale)
    # A Gram matrix has the singular values squared, and rounding in proportion to the largest.
    even = singular[keep][-1] > _UNEVEN * singular[0]
    if even and features.shape[1] > _LOW_RANK * len(X):
        return ScaledGeometry(features @ features.T, True, scale, None, center)
    return ScaledGeometry(features, False, scale, back, center)
