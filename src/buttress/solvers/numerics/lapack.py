"""Cholesky factorisation, solves and products in single precision for compiled code.

Numba has no triangular solve, its Cholesky copies, and so do its products of parts of matrices.
SciPy exposes the routines of BLAS and LAPACK by address; they are registered here under names of
our own, so that compiled functions that call them can be cached on disk.
"""

from __future__ import annotations

import llvmlite.binding
import numpy as np
from numba import types
from numba.extending import get_cython_function_address

from buttress._arrays import Array
from buttress._compile import compiled

_PREFIX = "buttress_"


def _routine(library: str, name: str, n_arguments: int) -> types.ExternalFunction:
    address = get_cython_function_address(f"scipy.linalg.cython_{library}", name)
    llvmlite.binding.add_symbol(_PREFIX + name, address)
    signature = types.void(*(types.voidptr,) * n_arguments)
    return types.ExternalFunction(_PREFIX + name, signature)


_dpotrf, _dpotrs = _routine("lapack", "dpotrf", 5), _routine("lapack", "dpotrs", 8)
_sgemm = _routine("blas", "sgemm", 13)


# LAPACK reads Fortran order: the lower triangle of a C-ordered matrix is its upper triangle.
_UPPER = np.uint8(ord("U"))
_AS_IS, _TRANSPOSED = np.uint8(ord("N")), np.uint8(ord("T"))


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


@compiled()
def single_product(a: Array, transposed_a: bool, b: Array, transposed_b: bool, out: Array) -> None:
    """``out = a @ b`` for float32, either transposed or not; rows may be parts of longer ones.

    Fortran order sees all three transposed: it computes ``out' = b' a'``.
    """
    flags = np.array(
        [
            _TRANSPOSED if transposed_b else _AS_IS,
            _TRANSPOSED if transposed_a else _AS_IS,
        ],
        dtype=np.uint8,
    )
    inner = a.shape[0] if transposed_a else a.shape[1]
    sizes = np.array([out.shape[1], out.shape[0], inner], dtype=np.int32)
    strides = np.array([b.strides[0] // 4, a.strides[0] // 4, out.strides[0] // 4], dtype=np.int32)
    factors = np.array([1.0, 0.0], dtype=np.float32)
    _sgemm(
        flags[:1].ctypes,
        flags[1:].ctypes,
        sizes[:1].ctypes,
        sizes[1:].ctypes,
        sizes[2:].ctypes,
        factors[:1].ctypes,
        b.ctypes,
        strides[:1].ctypes,
        a.ctypes,
        strides[1:].ctypes,
        factors[1:].ctypes,
        out.ctypes,
        strides[2:].ctypes,
    )
