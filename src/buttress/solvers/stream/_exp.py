"""Powers of two of many non-positive numbers, and weighted sums of them.

As the exponential of `buttress.kernels`, for exponents that are brought to base 2 where they are
made: ``2**x = 2**k 2**r`` with ``k = round(x)`` and a polynomial for ``2**r``, ``|r| <= 1/2``,
that interpolates at the Chebyshev points. The rest r is exact, which `exp` has to work for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress._compile import FAST, compiled, inner
from buttress.kernels.exponential import ROUND_32, ROUND_64, times_power_of_two

# The least exponent of a normal number (2e-308 and 1e-38); below it the result is 0.
_LEAST_POWER_64, _LEAST_POWER_32 = -1022.0, np.float32(-126.0)
# (2**r - 1) / r, the constant first.
_T = (
    0.6931471805599453,
    0.24022650695910097,
    0.0555041086648216,
    0.009618129107606888,
    0.0013333558146416936,
    0.0001540353044173605,
    1.525273382983612e-05,
    1.321544258792169e-06,
    1.0178062445845772e-07,
    7.072585949269223e-09,
    4.4549605981867755e-10,
)
_D0, _D1, _D2 = np.float32(0.69314718802), np.float32(0.24022650760), np.float32(0.05550357114)
_D3, _D4, _D5 = np.float32(0.00961808255), np.float32(0.00133908633), np.float32(0.00015453162)


@inner(fastmath={"contract"})
def power64(x: Any) -> Any:
    """``2**x`` for x up to rounding above 0, to one unit in the last place."""
    rounded = x + ROUND_64
    r = x - (rounded - ROUND_64)
    # two short chains of multiplications in place of a long one: half the waiting
    q = r * r
    even = ((((_T[10] * q + _T[8]) * q + _T[6]) * q + _T[4]) * q + _T[2]) * q + _T[0]
    odd = (((_T[9] * q + _T[7]) * q + _T[5]) * q + _T[3]) * q + _T[1]
    # 1 is added last, so that only its rounding is seen
    power = times_power_of_two((odd * r + even) * r + 1.0, rounded)
    return power if x >= _LEAST_POWER_64 else 0.0


@inner(fastmath={"contract"})
def power32(x: Any) -> Any:
    """``2**x`` for a float32 of that kind, to one unit in the last place."""
    rounded = x + ROUND_32
    r = x - (rounded - ROUND_32)
    q = r * r
    even = (_D4 * q + _D2) * q + _D0
    odd = (_D5 * q + _D3) * q + _D1
    power = times_power_of_two((odd * r + even) * r + np.float32(1.0), rounded)
    return power if x >= _LEAST_POWER_32 else np.float32(0.0)


@compiled(fastmath=FAST)
def powers_of_two(E: Array, n: int, m: int) -> None:
    """Replace the first n rows and m columns of a matrix of exponents by their powers of two."""
    if E.itemsize == 8:
        for i in range(n):
            for j in range(m):
                E[i, j] = power64(E[i, j])
    else:
        for i in range(n):
            for j in range(m):
                E[i, j] = power32(E[i, j])


@inner(fastmath=FAST)
def weighted_powers_64(E: Array, i: int, a: Array, m: int) -> Any:
    """``sum_j a[0, j] 2**E[i, j]`` over the first m columns, without storing the powers."""
    total = 0.0
    for j in range(m):
        total += power64(E[i, j]) * a[0, j]
    return total


@inner(fastmath=FAST)
def weighted_powers_32(E: Array, i: int, a: Array, m: int) -> Any:
    """The float32 version of `weighted_powers_64`."""
    total = np.float32(0.0)
    for j in range(m):
        total += power32(E[i, j]) * a[0, j]
    return total
