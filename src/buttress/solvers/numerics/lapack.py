"""Products, Cholesky factors and solves by BLAS and LAPACK, for compiled code.

Numba has no triangular solve, its Cholesky copies, and so do its products of parts of matrices.
SciPy exposes the routines by address; they are registered here under names of our own, so that
compiled functions that call them can be cached on disk.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

from buttress._arrays import Array
from buttress._compile import compiled, inner

_PREFIX = "buttress_"
# What routines of Fortran take for an integer, and for the address of anything.
_INTEGER = ir.IntType(32)
_ADDRESS = ir.IntType(8).as_pointer()


def _routine(library: str, name: str) -> Any:
    """A routine as compiled code calls it: with one tuple of its arguments.

    Arrays are passed as they are, numbers by the address of a copy. The value of the last
    argument after the call, an integer, is returned.
    """
    address = get_cython_function_address(f"scipy.linalg.cython_{library}", name)
    llvmlite.binding.add_symbol(_PREFIX + name, address)

    @intrinsic  # type: ignore[untyped-decorator,unused-ignore]
    def call(typing_context: Any, arguments: Any) -> Any:  # pragma: no cover (while compiling)
        kinds = [types.unliteral(kind) for kind in arguments]

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            pointers = []
            for k, kind in enumerate(kinds):
                value = builder.extract_value(values[0], k)
                if isinstance(kind, types.Array):
                    target = context.make_array(kind)(context, builder, value).data
                else:
                    if isinstance(kind, types.Integer) and kind.bitwidth > _INTEGER.width:
                        value = builder.trunc(value, _INTEGER)
                    target = cgutils.alloca_once_value(builder, value)
                pointers.append(builder.bitcast(target, _ADDRESS))
            kind = ir.FunctionType(ir.VoidType(), [_ADDRESS] * len(pointers))
            function = cgutils.get_or_insert_function(builder.module, kind, _PREFIX + name)
            builder.call(function, pointers)
            return builder.load(builder.bitcast(pointers[-1], _INTEGER.as_pointer()))

        return types.int32(types.Tuple(kinds)), generate

    return call


_dpotrf, _dpotrs = _routine("lapack", "dpotrf"), _routine("lapack", "dpotrs")
_dpotri = _routine("lapack", "dpotri")
_sgemm = _routine("blas", "sgemm")

# LAPACK reads Fortran order: the lower triangle of a C-ordered matrix is its upper triangle.
_UPPER = np.uint8(ord("U"))
_AS_IS, _TRANSPOSED = np.uint8(ord("N")), np.uint8(ord("T"))


@compiled()
def cholesky_in_place(a: Array) -> int:
    """Factorise the symmetric matrix of which `a` (C order, float64) holds the lower triangle.

    Rows may be longer than the matrix. Returns 0, or the order of the first minor that is not
    positive definite.
    """
    return int(_dpotrf((_UPPER, len(a), a, a.shape[1], 0)))


@compiled()
def cholesky_solve(factor: Array, right: Array) -> None:
    """Overwrite the rows of `right` (C order, one right-hand side a row) with solutions."""
    n, m = len(factor), len(right)
    _dpotrs((_UPPER, n, m, factor, factor.shape[1], right, right.shape[1], 0))


@compiled()
def inverse_from_cholesky(factor: Array) -> int:
    """Overwrite a Cholesky factor with the lower triangle of the inverse; 0 where there is one."""
    return int(_dpotri((_UPPER, len(factor), factor, factor.shape[1], 0)))


@inner()
def single_product(
    a: Array, b: Array, turned: tuple[bool, bool], out: Array, sizes: tuple[int, int, int]
) -> None:
    """``out = a @ b`` for float32 arrays in C order of which a part counts.

    Either factor may be `turned`, that is transposed. `sizes` are the rows of `out`, how many
    products are summed, and the columns of `out`. Fortran order sees all three transposed: it
    computes ``out' = b' a'``.
    """
    order_a = _TRANSPOSED if turned[0] else _AS_IS
    order_b = _TRANSPOSED if turned[1] else _AS_IS
    one, nothing, (rows, depth, columns) = np.float32(1.0), np.float32(0.0), sizes
    wide_a, wide_b, wide = a.shape[1], b.shape[1], out.shape[1]
    _sgemm((order_b, order_a, columns, rows, depth, one, b, wide_b, a, wide_a, nothing, out, wide))
