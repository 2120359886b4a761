"""An update rule's decision as a compiled function that one loop can call for all rules.

Loops that took the decision as an argument would be compiled anew for every rule, and Numba
cannot keep such code on disk. They take its address instead: the loops are compiled once, and a
call by address costs some nanoseconds per row beside the row's sum over the support vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from buttress._arrays import Array

# Numbers before a rule's own.
N_COMMON = 8

_SIGNATURE = types.float64(
    types.float64,
    types.float64,
    types.float64,
    types.float64,
    types.boolean,
    types.CPointer(types.float64),
)


@cache
def _compiled(decision: Callable[..., float]) -> Any:
    for on_disk in (True, False):
        try:
            return numba.cfunc(_SIGNATURE, cache=on_disk, error_model="numpy")(decision)
        except RuntimeError as error:  # a function typed at a prompt has no file to be kept beside
            if not on_disk or "cannot cache" not in str(error):
                raise
        except NumbaError as error:
            raise TypeError(
                f"{decision.__qualname__} cannot be compiled: it must be a function of numbers "
                f"(z, y, kxx, tolerance, first, numbers) that returns a number. {error}"
            ) from error
    raise AssertionError("the second attempt returns or raises")


def encoded(decision: Callable[..., float], common: Sequence[float], numbers: Array) -> Array:
    """A rule as one array: where its decision stands in memory, common numbers, its own.

    An address has 47 bits, which a double holds exactly; one array is handed to a compiled loop
    in a fraction of the time of a tuple.

    Examples
    --------
    >>> from buttress.solvers.stream.rules import PerceptronRule
    >>> encoded(PerceptronRule.decide, [0.0] * 7, np.array([2.5]))[1:]
    array([0. , 0. , 0. , 0. , 0. , 0. , 0. , 2.5])
    """
    whole = np.array([_compiled(decision).address, *common, *numbers], dtype=np.float64)
    assert len(common) == N_COMMON - 1
    assert int(whole[0]) == _compiled(decision).address
    return whole


@intrinsic
def decide(context: Any, z: Any, y: Any, kxx: Any, tolerance: Any, first: Any, rule: Any) -> Any:
    """Call a rule's decision; `rule` is what `encoded` made of it."""
    arguments = (*_SIGNATURE.args[:-1], types.Array(types.float64, 1, "C"))

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        numbers = target.make_array(signature.args[-1])(target, builder, values[-1]).data
        given = [
            target.get_argument_value(builder, kind, value)
            for kind, value in zip(signature.args[:-1], values[:-1], strict=True)
        ]
        own_numbers = builder.gep(numbers, [ir.Constant(ir.IntType(64), N_COMMON)])
        form = ir.FunctionType(
            ir.DoubleType(), [argument.type for argument in (*given, own_numbers)]
        )
        address = builder.fptoui(builder.load(numbers), ir.IntType(64))
        return builder.call(builder.inttoptr(address, form.as_pointer()), [*given, own_numbers])

    return types.float64(*arguments), generate
