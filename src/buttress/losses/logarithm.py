"""The logarithm of numbers not below one, in a form that compilers vectorise.

``log(x) = k ln 2 + log(f)`` with f in [sqrt(1/2), sqrt(2)) and the series of the inverse
hyperbolic tangent, ``log(f) = 2 (s + s^3/3 + s^5/5 + ...)`` with ``s = (f - 1) / (f + 1)``. The
exponent becomes a floating-point number by adding a large constant, because AVX2 has no
conversion from 64-bit integers. The library call is not vectorised inside a compiled
loop, and neither is a division that is checked for zero: 5.6 times its speed (15 in single
precision) for the passes of paths on landmarks (``benchmarks/instructions.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from buttress._compile import WITHIN

_LN2 = 0.6931471805599453
# Bits of sqrt(1/2): where the mantissa is cut.
_ROOT_HALF = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}
# A number whose last bits hold an integer: 2^23 and 2^52.
_LARGE = {32: 0x4B000000, 64: 0x4330000000000000}


def _layout(value: Any) -> tuple[int, int]:
    return (64, 52) if value == types.float64 else (32, 23)


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _exponent(  # pragma: no cover (runs while compiling, so not with a warm cache)
    typing_context: Any, value: Any
) -> Any:
    """The integer k as a number plus 2^23 (float32) or 2^52 (float64)."""
    width, mantissa = _layout(value)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer = ir.IntType(width)
        bits = builder.bitcast(arguments[0], integer)
        shifted = builder.sub(bits, ir.Constant(integer, _ROOT_HALF[width]))
        k = builder.lshr(shifted, ir.Constant(integer, mantissa))
        large = builder.or_(k, ir.Constant(integer, _LARGE[width]))
        return builder.bitcast(large, arguments[0].type)

    return value(value), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _mantissa(  # pragma: no cover (runs while compiling, so not with a warm cache)
    typing_context: Any, value: Any
) -> Any:
    """The number f in [sqrt(1/2), sqrt(2))."""
    width, mantissa = _layout(value)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer = ir.IntType(width)
        root = ir.Constant(integer, _ROOT_HALF[width])
        shifted = builder.sub(builder.bitcast(arguments[0], integer), root)
        low = builder.and_(shifted, ir.Constant(integer, (1 << mantissa) - 1))
        return builder.bitcast(builder.add(low, root), arguments[0].type)

    return value(value), generate


def log_from_one(x: Any) -> Any:
    """``log(x)`` of a finite number not below 1, to about one unit in the last place.

    In compiled code the precision is that of `x`.
    """
    return np.log(x)


@overload(log_from_one, jit_options={**WITHIN, "fastmath": {"contract"}, "error_model": "numpy"})
def _log_from_one(x: Any) -> Any:  # pragma: no cover (compiling)
    return _log32 if x == types.float32 else _log64


def _log32(x: Any) -> Any:  # pragma: no cover (compiled)
    k = _exponent(x) - np.float32(8388608.0)
    f = _mantissa(x)
    s = (f - np.float32(1.0)) / (f + np.float32(1.0))
    q = s * s
    p = np.float32(2 / 7) + q * np.float32(2 / 9)
    p = np.float32(2 / 5) + q * p
    p = np.float32(2 / 3) + q * p
    p = np.float32(2.0) + q * p
    return k * np.float32(_LN2) + s * p


def _log64(x: Any) -> Any:  # pragma: no cover (compiled)
    k = _exponent(x) - 4503599627370496.0
    f = _mantissa(x)
    s = (f - 1.0) / (f + 1.0)
    q = s * s
    p = 2 / 19 + q * (2 / 21)
    p = 2 / 17 + q * p
    p = 2 / 15 + q * p
    p = 2 / 13 + q * p
    p = 2 / 11 + q * p
    p = 2 / 9 + q * p
    p = 2 / 7 + q * p
    p = 2 / 5 + q * p
    p = 2 / 3 + q * p
    p = 2.0 + q * p
    return k * _LN2 + s * p
