"""Cholesky factorisation and solves for compiled code.

Numba has no triangular solve, and its Cholesky copies. SciPy exposes LAPACK's routines by address;
they are registered here under names of our own, so that compiled functions that call them can be
cached on disk.
"""

from __future__ import annotations

import llvmlite.binding
import numpy as np
from numba import types
from numba.extending import get_cython_function_address

from buttress._arrays import Array
from buttress._compile import compiled

_PREFIX = "buttress_"


def _routine(name: str, n_arguments: int) -> types.ExternalFunction:
    address = get_cython_function_address("scipy.linalg.cython_lapack", name)
    llvmlite.binding.add_symbol(_PREFIX + name, address)
    signature = types.void(*(types.voidptr,) * n_arguments)
    return types.ExternalFunction(_PREFIX + name, signature)


_dpotrf, _dpotrs = _routine("dpotrf", 5), _routine("dpotrs", 8)


# LAPACK reads Fortran order: the lower triangle of a C-ordered matrix is its upper triangle.
_UPPER = np.uint8(ord("U"))


@compiled()
def cholesky_in_place(a: Array) -> int:
    """Factorise the symmetric matrix of which `a` (C order, float64) holds the lower triangle.

    Rows may be longer than the matrix. Returns 0, or the order of the first minor that is not
    positive definite.
    """
    uplo = np.full(1, _UPPER)
    n = np.full(1, a.shape[0], dtype=np.int32)
    ld = np.full(1, a.shape[1], dtype=np.int32)
    info = np.zeros(1, dtype=np.int32)
    _dpotrf(uplo.ctypes, n.ctypes, a.ctypes, ld.ctypes, info.ctypes)
    return int(info[0])


@compiled()
def cholesky_solve(factor: Array, right: Array) -> None:
    """Overwrite the rows of `right` (C order, one right-hand side a row) with solutions."""
    uplo = np.full(1, _UPPER)
    n = np.full(1, factor.shape[0], dtype=np.int32)
    ld = np.full(1, factor.shape[1], dtype=np.int32)
    m = np.full(1, right.shape[0], dtype=np.int32)
    info = np.zeros(1, dtype=np.int32)
    size, b = n.ctypes, right.ctypes
    _dpotrs(uplo.ctypes, size, m.ctypes, factor.ctypes, ld.ctypes, b, size, info.ctypes)
