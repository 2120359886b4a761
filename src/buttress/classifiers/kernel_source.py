"""The kernel of the training rows as the solvers take it: a matrix, or a cache of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.classifiers.training import TrainingSet
from buttress.kernels import Kernel
from buttress.solvers.hinge.kernel_rows import KernelMatrix, KernelRowCache


def gram_matrix(kernel: Kernel, X: Any) -> Array:
    """The Gram matrix of the rows, refused when it has entries that are not finite.

    Raises
    ------
    ValueError
        When an entry overflows or is undefined, or the matrix is not positive semidefinite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        K = kernel.gram(X)
    check_finite(kernel, K)
    return K


def centred_gram_matrix(kernel: Kernel, X: Any) -> Array:
    """The Gram matrix of rows taken from the kernel's center: for machines with an intercept.

    The intercept takes up what a shift of the features changes in a linear function, and the
    products of centred rows lose no digits to a common offset.
    """
    return gram_matrix(kernel, _centred(kernel, X))


def _centred(kernel: Kernel, X: Any) -> Any:
    if kernel.name != "linear" or kernel.center is None:
        return X
    return X - kernel.center.astype(X.dtype, copy=False)


def check_finite(kernel: Kernel, values: Array) -> None:
    """Raise a ValueError when similarities (or sums of them) overflow or are undefined."""
    # two numbers tell, without a second matrix; NaN is passed on
    ends = [np.min(values, initial=0.0), np.max(values, initial=0.0)]
    if not np.isfinite(ends).all():
        raise ValueError(
            f"kernel={kernel.name!r} gives similarities that are not finite numbers on these "
            "rows. Scale the features, and check degree, coef0 and kernel_params."
        )


def kernel_source(kernel: Kernel, data: TrainingSet, cache_size: float) -> KernelMatrix:
    """The whole Gram matrix when it fits in `cache_size` megabytes, else a cache of rows.

    A precomputed matrix is used as it is. A kernel that may be indefinite is checked on the
    whole matrix, so it is not used with a cache.

    Raises
    ------
    ValueError
        When the matrix is not positive semidefinite, or would have to be checked but does not
        fit.
    """
    n, itemsize = data.X.shape[0], data.X.dtype.itemsize
    X = data.X
    if kernel.name != "precomputed" and 8 * n * n <= cache_size * 2**20:
        # a sum of similarities decides, so in float64 where it fits
        X, itemsize = X.astype(np.float64), 8
    if kernel.name == "linear" and isinstance(X, np.ndarray) and X.shape[1] < n:
        return _linear_source(kernel, X, cache_size)
    if kernel.name == "precomputed" or n * n * itemsize <= cache_size * 2**20:
        return KernelMatrix(centred_gram_matrix(kernel, X))
    if not kernel.always_definite:
        raise ValueError(
            f"kernel={kernel.name!r} must be checked for positive semidefiniteness on the whole "
            f"matrix of {n} rows, {n * n * itemsize / 2**20:.0f} MB; cache_size={cache_size:g} MB "
            "is too small."
        )
    X = _centred(kernel, X)
    return KernelRowCache(
        lambda rows: np.asarray(kernel(X[rows], X)),
        kernel.diagonal(X),
        cache_size,
        data.X.dtype,
    )


def _linear_source(kernel: Kernel, X: Array, cache_size: float) -> KernelMatrix:
    """The linear kernel with its points, so that a solution is also a vector."""
    points = _centred(kernel, X.astype(np.float64))
    if len(X) ** 2 * X.dtype.itemsize <= cache_size * 2**20:
        return KernelMatrix(gram_matrix(kernel, points), points)
    return KernelRowCache(
        lambda rows: np.asarray(points[rows] @ points.T),
        np.einsum("ij,ij->i", points, points),
        cache_size,
        X.dtype,
        points,
    )
