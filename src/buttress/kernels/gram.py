"""Exact Gram matrices, by scikit-learn's names, a callable, or given ready ("precomputed")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import lapack
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from buttress._arrays import Array
from buttress._compile import compiled
from buttress.kernels._rbf import rbf_gram, rbf_matrix, rbf_sums

# Positive semidefinite for every accepted parameter, so no need to look at eigenvalues.
_ALWAYS_DEFINITE = frozenset({"linear", "rbf", "laplacian", "chi2", "cosine"})
_TAKES_GAMMA = frozenset({"rbf", "poly", "polynomial", "sigmoid", "laplacian", "chi2"})
_GRAM_ROUNDING = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}


# Parameters of an estimator that is given parts of a Gram matrix which was checked as a whole, or
# needs no check: a factorisation for every part would take longer than many a fit.
CHECKED_GRAM: dict[str, Any] = {"kernel": "precomputed", "kernel_params": {"definite": True}}


def kernel_names() -> list[str]:
    """The accepted kernel names, sorted.

    Examples
    --------
    >>> "rbf" in kernel_names()
    True
    """
    return sorted({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"})


def kernel_arguments(name: str) -> list[str]:
    """The arguments that a named kernel takes beside the rows, sorted.

    Examples
    --------
    >>> kernel_arguments("sigmoid")
    ['coef0', 'gamma']
    >>> kernel_arguments("precomputed")
    ['definite']

    Whether a ready matrix is "definite" is somebody's word for it: then it is not checked.
    """
    return ["definite"] if name == "precomputed" else sorted(KERNEL_PARAMS.get(name, ()))


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel with its parameters fixed.

    Attributes
    ----------
    name : str or callable
        As in ``sklearn.metrics.pairwise``, "precomputed", or a function of two matrices of
        rows that returns the matrix of their similarities, or of two rows that returns a
        number (scikit-learn's convention).
    params : mapping
        What is passed to the kernel function.
    center : array or None
        Subtracted from the rows before distances are taken: the products behind
        ``||x - z||^2`` then lose no digits to a common offset of the features. None where rows
        are sparse and to stay so.
    """

    name: str | Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    center: Array | None = None

    def __call__(self, X: Any, Z: Any | None = None) -> Array:
        """The matrix of similarities of the rows of `X` with those of `Z` (or of `X`)."""
        if self.name == "precomputed":
            return np.asarray(X)
        if self.name == "rbf":
            return self._rbf(X, Z)
        if self.name == "linear":
            return _dense(X @ (X if Z is None else Z).T)
        return np.asarray(pairwise_kernels(X, Z, metric=self.name, **self.params))

    def sums(self, X: Any, Z: Any, coefs: Array) -> Array:
        """``self(X, Z) @ coefs.T``, for the Gaussian kernel without forming the matrix.

        Examples
        --------
        >>> X, Z = np.zeros((1, 2)), np.ones((3, 2))
        >>> kernel = make_kernel("rbf", gamma=0.0)
        >>> kernel.sums(X, Z, np.array([[1.0, 2.0, 3.0]])).tolist()
        [[6.0]]
        """
        if self.name == "rbf":
            X, Z = self._centred(X), self._centred(Z)
            if self._tiled(X, Z):
                return rbf_sums(X, Z, coefs, self.params["gamma"])
            return np.asarray(replace(self, center=None)(X, Z) @ coefs.T)
        return np.asarray(self(X, Z) @ coefs.T)

    @staticmethod
    def _tiled(X: Any, Z: Any) -> bool:
        dense = isinstance(X, np.ndarray) and isinstance(Z, np.ndarray)
        return bool(dense and X.dtype == Z.dtype and X.dtype in _GRAM_ROUNDING)

    def diagonal(self, X: Any) -> Array:
        """``k(x, x)`` for every row of `X` (a square Gram matrix when precomputed)."""
        if self.name == "precomputed":
            return np.diagonal(X).copy()
        if self.name in ("rbf", "laplacian"):
            return np.ones(X.shape[0], dtype=X.dtype)
        if self.name == "linear":
            return _squared_norms(X)
        return np.array([self(X[i : i + 1])[0, 0] for i in range(X.shape[0])], dtype=X.dtype)

    @property
    def always_definite(self) -> bool:
        """Whether every Gram matrix of this kernel is positive semidefinite."""
        if self.name == "precomputed":
            return self.params.get("definite") is True
        if self.name in ("poly", "polynomial"):
            return bool(self.params.get("coef0", 0.0) >= 0 and self.params.get("gamma", 1.0) >= 0)
        return self.name in _ALWAYS_DEFINITE

    def gram(self, X: Any) -> Array:
        """The Gram matrix of the training rows, refused when it is not one.

        Raises
        ------
        ValueError
            When the matrix is not symmetric or has a negative eigenvalue beyond rounding.
        """
        K = self(X)
        if not self.always_definite:
            check_positive_semidefinite(K)
        return K

    def _rbf(self, X: Any, Z: Any | None) -> Array:
        X = self._centred(X)
        Z = X if Z is None else self._centred(Z)
        if self._tiled(X, Z):
            gamma = self.params["gamma"]
            return rbf_gram(X, gamma) if Z is X else rbf_matrix(X, Z, gamma)
        K = _dense(X @ Z.T)
        K *= -2.0
        K += _squared_norms(X)[:, None]
        K += _squared_norms(Z)[None, :]
        np.maximum(K, 0.0, out=K)
        if Z is X:
            np.fill_diagonal(K, 0.0)
        K *= -self.params["gamma"]
        return np.exp(K, out=K)

    def _centred(self, X: Any) -> Any:
        if self.center is None:
            return X
        # there is a centre where a model was fitted on dense rows: sparse ones now are made so
        return _dense(X) - self.center.astype(X.dtype, copy=False)


def make_kernel(
    kernel: str | Callable[..., Any],
    *,
    gamma: float | None = None,
    degree: float = 3,
    coef0: float = 0.0,
    kernel_params: Mapping[str, Any] | None = None,
    center: Array | None = None,
) -> Kernel:
    """Fix a kernel's parameters.

    Parameters
    ----------
    kernel : str or callable
        A name of `kernel_names` or a function.
    gamma : float, optional
        The width, resolved (`resolve_gamma`); kernels without one ignore it.
    degree, coef0 : float
        For "poly" and "sigmoid".
    kernel_params : mapping, optional
        Further arguments of the kernel function; for callables the only ones passed.
    center : array, optional
        A point near the data; see `Kernel`.

    Raises
    ------
    ValueError
        When the name is unknown.
    """
    extra = dict(kernel_params or {})
    if callable(kernel):
        return Kernel(kernel, extra)
    if kernel not in kernel_names():
        raise ValueError(
            f"Unknown kernel {kernel!r}: expected one of {kernel_names()} or a callable."
        )
    params: dict[str, Any] = {}
    if kernel in _TAKES_GAMMA and gamma is not None:
        params["gamma"] = gamma
    if kernel in ("poly", "polynomial"):
        params |= {"degree": degree, "coef0": coef0}
    if kernel == "sigmoid":
        params["coef0"] = coef0
    return Kernel(kernel, params | extra, center if kernel == "rbf" else None)


def check_symmetric(K: Array) -> float:
    """Raise a ValueError when `K` differs from its transpose; return what rounding may differ.

    Examples
    --------
    >>> check_symmetric(np.array([[1.0, 0.5], [0.2, 1.0]]))
    Traceback (most recent call last):
    ...
    ValueError: The kernel matrix is not symmetric.
    """
    scale, asymmetry = _largest(K) if K.size else (0.0, 0.0)
    tolerance = float(_GRAM_ROUNDING.get(K.dtype, 1e-9) * scale)
    if asymmetry > tolerance:
        raise ValueError("The kernel matrix is not symmetric.")
    return tolerance


def check_positive_semidefinite(K: Array) -> None:
    """Raise a ValueError that names the smallest eigenvalue when `K` is no Gram matrix.

    Costs one Cholesky factorisation (n³/3 operations) when `K` passes.

    Examples
    --------
    >>> check_positive_semidefinite(np.array([[1.0, 2.0], [2.0, 1.0]]))
    Traceback (most recent call last):
    ...
    ValueError: The kernel matrix is not positive semidefinite: its smallest eigenvalue is -1...
    """
    tolerance = check_symmetric(K)
    if tolerance == 0.0:
        return
    shifted = np.array(K, dtype=np.float64, order="C")
    shifted[np.diag_indices_from(shifted)] += tolerance * np.sqrt(len(K))
    # the transpose is in LAPACK's order: no copy
    if lapack.dpotrf(shifted.T, overwrite_a=1, clean=0)[1] != 0:
        smallest = float(linalg.eigvalsh(K.astype(np.float64), subset_by_index=[0, 0])[0])
        raise ValueError(
            "The kernel matrix is not positive semidefinite: its smallest eigenvalue is "
            f"{smallest:.6g}. Use a positive semidefinite kernel, or repair the matrix yourself "
            "(for example by adding that much to its diagonal)."
        )


@compiled()
def _largest(K: Array) -> tuple[float, float]:
    """The largest entry, and the largest difference from the transpose; tile by tile."""
    n, tile = K.shape[0], 64
    entry, difference = 0.0, 0.0
    for top in range(0, n, tile):
        for left in range(0, top + 1, tile):
            for i in range(top, min(top + tile, n)):
                for j in range(left, min(left + tile, i + 1)):
                    below, above = K[i, j], K[j, i]
                    entry = max(entry, abs(below), abs(above))
                    difference = max(difference, abs(below - above))
    return entry, difference


def _dense(product: Any) -> Array:
    return np.asarray(product.toarray() if sparse.issparse(product) else product)


def _squared_norms(X: Any) -> Array:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))
