"""The maximum of a stretch of an array, in vector registers.

Compilers do not split a floating-point maximum over several accumulators by themselves, and a
chain of scalar comparisons costs more than all the arithmetic around it. Six times as fast as the
compiled loop on 1024 numbers, for the pair steps of single fits (``benchmarks/instructions.py``).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# The stretch that `largest` looks at; arrays are padded to a multiple of it.
LANES = 64
_VECTOR = 4


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def largest(  # pragma: no cover (runs while compiling, so not with a warm cache)
    typing_context: Any, x: Any, start: Any
) -> Any:
    """The largest of ``x[start : start + LANES]`` for a contiguous float64 array without NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        vector = ir.VectorType(ir.DoubleType(), _VECTOR)
        first = builder.bitcast(builder.gep(array.data, [arguments[1]]), vector.as_pointer())

        def larger(a: Any, b: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        def half(value: Any, lanes: list[int]) -> Any:
            chosen = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
            return builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), chosen)

        values = []
        for k in range(LANES // _VECTOR):
            loaded = builder.load(builder.gep(first, [ir.Constant(ir.IntType(64), k)]))
            loaded.align = 8
            values.append(loaded)
        while len(values) > 1:
            values = [larger(values[k], values[k + 1]) for k in range(0, len(values), 2)]
        top, width = values[0], _VECTOR
        while width > 1:
            width //= 2
            lanes = list(range(2 * width))
            top = larger(half(top, lanes[:width]), half(top, lanes[width:]))
        return builder.extract_element(top, ir.Constant(ir.IntType(32), 0))

    return types.float64(x, types.intp), generate
