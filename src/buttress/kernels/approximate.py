"""Feature maps that stand in for a kernel at scale: Nyström and random Fourier features.

A map is fitted once, on a few rows, and applied block by block. It is kept in two factors,
``transform(X) = raw(X) @ basis``: a solver folds `basis` into its weights and never forms
the second product for all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import linalg, sparse

from buttress._arrays import Array
from buttress._threads import one_blas_thread
from buttress.kernels.exponential import exp_in_place_32, exp_in_place_64
from buttress.kernels.gram import Kernel

# Directions of the landmarks' Gram matrix below this share of the largest are left out. They hold
# nothing that a classifier needs, and their inverse would blow rounding up: with this cut sums
# over differently cut blocks give the same coefficients to about nine digits.
_LEAST_DIRECTION = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-7}


class FeatureMap(Protocol):
    """``k(x, z)`` as an inner product of ``raw(x) @ basis`` and ``raw(z) @ basis``."""

    @property
    def basis(self) -> Array | None:
        """Matrix of shape (n_raw, n_components) in float64, or None for the identity."""
        ...

    @property
    def n_raw(self) -> int:
        """Columns of `raw`."""
        ...

    @property
    def flops_per_row(self) -> float:
        """Floating-point operations of matrix products for one row of `raw`."""
        ...

    def raw(self, X: Any, out: Array | None = None, /) -> Array:
        """The features before `basis`, in the precision of `X`; in `out` where that helps."""
        ...


def transform(features: FeatureMap, X: Any) -> Array:
    """The mapped rows, ``raw(X) @ basis``.

    Examples
    --------
    >>> transform(LinearMap(2), np.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    raw = features.raw(X)
    return raw if features.basis is None else raw @ features.basis.astype(raw.dtype)


def inverse_root(K: Array, cut: float = 1e-12) -> Array:
    """A matrix R with ``R R' = K^+``, its columns the well determined directions of `K`.

    Examples
    --------
    >>> inverse_root(np.diag([4.0, 0.0])).tolist()
    [[0.5], [0.0]]
    """
    with one_blas_thread():
        values, vectors = linalg.eigh(K)
    kept = values > cut * max(float(values[-1]), 0.0)
    root = vectors[:, kept] / np.sqrt(values[kept])
    # eigh leaves the signs open; fix them, so that equal landmarks give equal features.
    largest = np.abs(root).argmax(axis=0)
    signs = np.sign(root[largest, np.arange(root.shape[1])])
    return np.asarray(root * signs)


@dataclass(frozen=True, eq=False)
class LinearMap:
    """The linear kernel is its own feature map.

    Parameters
    ----------
    n_features : int
    """

    n_features: int
    basis = None
    flops_per_row = 0.0

    @property
    def n_raw(self) -> int:
        return self.n_features

    def raw(self, X: Any, out: Array | None = None, /) -> Array:
        """The rows themselves, dense."""
        return np.asarray(X.toarray() if sparse.issparse(X) else X)


@dataclass(frozen=True, eq=False)
class NystroemMap:
    """``k(x, Z) K_ZZ^{-1/2}`` for landmarks Z; made by `nystroem_map`.

    Attributes
    ----------
    kernel : Kernel
    landmarks : array or CSR matrix of shape (m, p)
    basis : array of shape (m, n_components)
        An inverse square root of the landmarks' Gram matrix. Columns are fewer than m when
        landmarks depend on each other.
    """

    kernel: Kernel
    landmarks: Any
    basis: Array
    # The exponent -gamma ||x - z||^2 as one product of augmented rows; RBF on dense rows only.
    _exponent: Array | None = None

    @property
    def n_raw(self) -> int:
        return int(self.landmarks.shape[0])

    @property
    def flops_per_row(self) -> float:
        return 2.0 * float(self.landmarks.shape[0]) * float(self.landmarks.shape[1])

    def raw(self, X: Any, out: Array | None = None, /) -> Array:
        """Similarities of the rows of `X` with the landmarks."""
        if self._exponent is None or sparse.issparse(X):
            return self.kernel(X, self.landmarks)
        p = X.shape[1]
        augmented = np.empty((X.shape[0], p + 2), dtype=X.dtype)
        rows = augmented[:, :p]
        np.subtract(X, self.kernel.center if self.kernel.center is not None else 0.0, out=rows)
        np.einsum("ij,ij->i", rows, rows, out=augmented[:, p])
        augmented[:, p + 1] = 1.0
        K = np.matmul(augmented, self._exponent.astype(X.dtype, copy=False), out=out)
        (exp_in_place_32 if K.dtype == np.float32 else exp_in_place_64)(K)
        return np.asarray(K)


def nystroem_map(kernel: Kernel, landmarks: Any) -> NystroemMap:
    """Make the Nyström map of a kernel for given landmarks.

    Parameters
    ----------
    kernel : Kernel
        Any positive semidefinite kernel except "precomputed".
    landmarks : array or CSR matrix of shape (m, p)
        Training rows; see `choose_landmarks`.

    Notes
    -----
    Costs m² p + O(m³) once, and m p operations per row mapped (another m² when `transform`
    forms the second product). On the landmarks themselves, and everywhere when they are all
    the training rows, the map reproduces the kernel exactly.

    References
    ----------
    C. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines",
    NeurIPS 2000.

    Examples
    --------
    >>> from buttress.kernels import make_kernel
    >>> kernel, Z = make_kernel("rbf", gamma=0.5), np.array([[0.0], [1.0]])
    >>> mapped = transform(nystroem_map(kernel, Z), Z)
    >>> bool(np.allclose(mapped @ mapped.T, kernel(Z)))
    True
    """
    if kernel.name == "precomputed":
        raise ValueError("kernel='precomputed' has no rows to choose landmarks from.")
    dtype = np.dtype(landmarks.dtype)
    wide = landmarks.astype(np.float64)
    basis = inverse_root(np.asarray(kernel.gram(wide)), _LEAST_DIRECTION.get(dtype, 1e-7))
    exponent = None
    if kernel.name == "rbf" and not sparse.issparse(landmarks):
        centred = wide if kernel.center is None else wide - kernel.center
        norms = np.einsum("ij,ij->i", centred, centred)
        rows = np.vstack([-2.0 * centred.T, np.ones(len(norms)), norms])
        exponent = (-kernel.params["gamma"] * rows).astype(dtype)
    return NystroemMap(kernel, landmarks, basis, exponent)


@dataclass(frozen=True, eq=False)
class FourierMap:
    """``sqrt(2/m) cos(X W + phase)``; made by `fourier_map`.

    Attributes
    ----------
    weights : array of shape (p, m)
    phase : array of shape (m,)
    """

    weights: Array
    phase: Array
    basis = None

    @property
    def n_raw(self) -> int:
        return int(self.weights.shape[1])

    @property
    def flops_per_row(self) -> float:
        return 2.0 * float(self.weights.shape[0]) * float(self.weights.shape[1])

    def raw(self, X: Any, out: Array | None = None, /) -> Array:
        """The random features of the rows of `X`."""
        weights = self.weights.astype(X.dtype, copy=False)
        if sparse.issparse(X):
            angle = np.asarray(X @ weights)
        else:
            angle = np.matmul(X, weights, out=out)
        angle += self.phase.astype(X.dtype, copy=False)
        np.cos(angle, out=angle)
        angle *= np.sqrt(2.0 / self.n_raw)
        return angle


def fourier_map(
    kernel: Kernel,
    n_features: int,
    n_components: int,
    seed: int,
    *,
    orthogonal: bool = True,
) -> FourierMap:
    """Draw random Fourier features of a shift-invariant kernel.

    Parameters
    ----------
    kernel : Kernel
        "rbf" or "laplacian".
    n_features : int
        Columns of the data.
    n_components : int
        Features to draw.
    seed : int
    orthogonal : bool, default=True
        Draw the frequencies of the RBF kernel in orthogonal groups, which lowers the variance;
        False draws them independently. The Laplacian kernel's are always independent.

    References
    ----------
    A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NeurIPS 2007.
    F. Yu and others, "Orthogonal random features", NeurIPS 2016.

    Examples
    --------
    >>> from buttress.kernels import make_kernel
    >>> kernel, X = make_kernel("rbf", gamma=0.5), np.array([[0.0], [1.0]])
    >>> mapped = transform(fourier_map(kernel, 1, 20000, seed=0), X)
    >>> bool(np.allclose(mapped @ mapped.T, kernel(X), atol=0.02))
    True
    """
    rng = np.random.default_rng((seed, 2))
    gamma = float(kernel.params.get("gamma", 1.0))
    if kernel.name == "laplacian":
        weights = gamma * rng.standard_cauchy((n_features, n_components))
    elif kernel.name == "rbf":
        draw = _orthogonal_normal if orthogonal else _independent_normal
        weights = np.sqrt(2.0 * gamma) * draw(rng, n_features, n_components)
    else:
        raise ValueError(
            f"approximation='fourier' needs kernel 'rbf' or 'laplacian', got {kernel.name!r}; "
            "approximation='nystroem' takes any kernel."
        )
    phase = rng.uniform(0.0, 2.0 * np.pi, n_components)
    return FourierMap(weights, phase)


def _independent_normal(rng: np.random.Generator, p: int, m: int) -> Array:
    return rng.standard_normal((p, m))


def _orthogonal_normal(rng: np.random.Generator, p: int, m: int) -> Array:
    """Columns in orthogonal groups of p, each distributed like a standard normal vector."""
    groups = []
    for _ in range(-(-m // p)):
        q, r = linalg.qr(rng.standard_normal((p, p)))
        groups.append(q * np.sign(np.diagonal(r)))
    directions = np.hstack(groups)[:, :m]
    lengths = np.sqrt(rng.chisquare(p, size=m))
    return np.asarray(directions * lengths)
