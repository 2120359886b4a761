"""The kernel of the training rows as the solvers take it: a matrix, or a cache of its rows."""

from __future__ import annotations

import numpy as np

from buttress.classifiers._training import TrainingSet
from buttress.kernels import Kernel
from buttress.solvers.kernel_rows import KernelMatrix, KernelRowCache


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
    if kernel.name == "precomputed" or n * n * itemsize <= cache_size * 2**20:
        return KernelMatrix(kernel.gram(data.X))
    if not kernel.always_definite:
        raise ValueError(
            f"kernel={kernel.name!r} must be checked for positive semidefiniteness on the whole "
            f"matrix of {n} rows, {n * n * itemsize / 2**20:.0f} MB; cache_size={cache_size:g} MB "
            "is too small."
        )
    return KernelRowCache(
        lambda rows: np.asarray(kernel(data.X[rows], data.X)),
        kernel.diagonal(data.X),
        cache_size,
        data.X.dtype,
    )
