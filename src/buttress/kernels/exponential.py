"""The exponential of many non-positive numbers, in a form that compilers vectorise.

``exp(x) = 2**k exp(r)`` with ``k = round(x / ln 2)`` and a polynomial for ``exp(r)``,
``|r| <= ln(2)/2``, that interpolates at the Chebyshev points. Adding 1.5·2**52 rounds to an
integer and leaves it in the low bits of the sum, so no conversion instruction is needed, which
AVX2 lacks for 64-bit integers. The library call is not vectorised inside a compiled loop and
costs five to seven times as much, NumPy's 1.3 times (1.8 in single precision), on which Gram
matrices, landmarks and predictions rest (``benchmarks/instructions.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from buttress._arrays import Array
from buttress._compile import FAST, compiled

_INVERSE_LN2 = 1.4426950408889634
_LN2_HIGH = 6.93145751953125e-1
_LN2_LOW = 1.42860682030941723212e-6
# What rounds to integers when it is added and subtracted: 1.5 times 2**52 and 2**23.
ROUND_64 = 6755399441055744.0
ROUND_32 = np.float32(12582912.0)
# Below this the result is close to the denormal numbers: make it larger, scale back at the end.
_LOW_64 = -650.0
_SHIFT_64 = 128.0
_SCALE_64 = 2.0**-128
_LEAST_64 = -780.0
_LOW_32 = np.float32(-60.0)
_SHIFT_32 = np.float32(64.0)
_SCALE_32 = np.float32(2.0**-64)
_LEAST_32 = np.float32(-110.0)


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def times_power_of_two(  # pragma: no cover (runs while compiling, so not with a warm cache)
    typing_context: Any, value: Any, rounded: Any
) -> Any:
    """``value * 2**k`` where the integer k sits in the low bits of `rounded`."""
    double = value == types.float64
    width, mantissa = (64, 52) if double else (32, 23)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer = ir.IntType(width)
        bits = builder.bitcast(arguments[0], integer)
        exponent = builder.shl(
            builder.bitcast(arguments[1], integer), ir.Constant(integer, mantissa)
        )
        return builder.bitcast(builder.add(bits, exponent), arguments[0].type)

    return value(value, value), generate


@compiled(fastmath={"contract"})
def exp64(x: Any) -> Any:
    """``exp(x)`` for x up to rounding above 0, to one unit in the last place."""
    x = max(x, _LEAST_64)
    low = x < _LOW_64
    rounded = x * _INVERSE_LN2 + ROUND_64
    k = rounded - ROUND_64
    rounded += _SHIFT_64 if low else 0.0
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 2.7620088445409746e-07 + r * 2.510038549551032e-08
    p = 2.7557268459997064e-06 + r * p
    p = 2.4801521295954376e-05 + r * p
    p = 0.00019841269863053618 + r * p
    p = 0.0013888888917213717 + r * p
    p = 0.008333333333330062 + r * p
    p = 0.04166666666662413 + r * p
    p = 0.16666666666666669 + r * p
    p = 0.5000000000000001 + r * p
    # 1 is added last, so that only its rounding is seen
    p = 1.0 + (r + r * r * p)
    return times_power_of_two(p, rounded) * (_SCALE_64 if low else 1.0)


@compiled(fastmath={"contract"})
def exp32(x: Any) -> Any:
    """``exp(x)`` for a float32 of that kind, to one unit in the last place."""
    x = max(x, _LEAST_32)
    low = x < _LOW_32
    rounded = x * np.float32(_INVERSE_LN2) + ROUND_32
    k = rounded - ROUND_32
    rounded += _SHIFT_32 if low else np.float32(0.0)
    r = (x - k * np.float32(0.693359375)) - k * np.float32(-2.12194440e-4)
    p = np.float32(0.008363179052722578) + r * np.float32(0.0013926183587713494)
    p = np.float32(0.041666554617204574) + r * p
    p = np.float32(0.16666576989698775) + r * p
    p = np.float32(0.5) + r * p
    p = np.float32(1.0) + (r + r * r * p)
    return times_power_of_two(p, rounded) * (_SCALE_32 if low else np.float32(1.0))


@compiled(fastmath=FAST)
def exp_in_place_64(E: Array) -> None:
    """Replace exponents, which only rounding makes positive, by their exponentials."""
    n, m = E.shape
    for i in range(n):
        for j in range(m):
            E[i, j] = exp64(min(E[i, j], 0.0))


@compiled(fastmath=FAST)
def exp_in_place_32(E: Array) -> None:
    """The float32 version of `exp_in_place_64`."""
    n, m = E.shape
    for i in range(n):
        for j in range(m):
            E[i, j] = exp32(min(E[i, j], np.float32(0.0)))
