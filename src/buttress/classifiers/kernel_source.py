"""The kernel of the training rows as the solvers take it: a matrix, or rows as needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.classifiers.training import TrainingSet
from buttress.kernels import Kernel, make_kernel
from buttress.solvers.hinge.kernel_rows import KernelMatrix, KernelRowCache
from buttress.solvers.hinge.streamed_kernel import StreamedKernel

# Up to so many features a Gaussian similarity takes less time to compute three times than to
# compute, write to memory and read back twice (20 to 50 thousand rows).
_STREAMED_FEATURES = 64


def kernel_of(estimator: Any, width: float | None, center: Array | None) -> Kernel:
    """The kernel that an estimator's parameters name, with this width and center."""
    return make_kernel(
        estimator.kernel,
        gamma=width,
        degree=estimator.degree,
        coef0=estimator.coef0,
        kernel_params=estimator.kernel_params,
        center=center,
    )


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
    """The whole Gram matrix when it fits in `cache_size` megabytes, else its rows as needed.

    Rows that cost little are computed whenever they are needed, others are kept in a cache of
    that size. A precomputed matrix is used as it is. A kernel that may be indefinite is checked on
    the whole matrix, so it is not used with a cache.

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
    if kernel.name == "rbf" and isinstance(X, np.ndarray) and X.shape[1] <= _STREAMED_FEATURES:
        return _streamed_rbf(kernel, X)
    return KernelRowCache(
        lambda rows: np.asarray(kernel(X[rows], X)),
        kernel.diagonal(X),
        cache_size,
        data.X.dtype,
    )


def _streamed_rbf(kernel: Kernel, X: Array) -> KernelMatrix:
    """The Gaussian kernel of dense rows, which is computed as often as it is asked for."""
    if kernel.center is not None:
        X = X - kernel.center.astype(X.dtype, copy=False)
        kernel = replace(kernel, center=None)
    single = X.astype(np.float32, copy=False)

    def sums(rows: IntArray, steps: Array) -> Array:
        # steps are float64, so similarities of single precision are summed in double
        return kernel.sums(X, X[rows], steps[None])[:, 0]

    def rough_sums(rows: IntArray, steps: Array) -> Array:
        return kernel.sums(single, single[rows], steps[None].astype(np.float32))[:, 0]

    return StreamedKernel(
        lambda rows, columns: kernel(X[rows], X[columns]),
        sums,
        kernel.diagonal(X),
        rough_sums,
    )


def _linear_source(kernel: Kernel, X: Array, cache_size: float) -> KernelMatrix:
    """The linear kernel with its points, so that a solution is also a vector."""
    points = _centred(kernel, X.astype(np.float64))
    if len(X) ** 2 * X.dtype.itemsize <= cache_size * 2**20:
        return KernelMatrix(gram_matrix(kernel, points), points)
    return StreamedKernel(
        lambda rows, columns: points[rows] @ points[columns].T,
        lambda rows, steps: points @ (steps @ points[rows]),
        np.einsum("ij,ij->i", points, points),
        features=points,
    )
