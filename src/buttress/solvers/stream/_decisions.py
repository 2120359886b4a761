"""An update rule's decision as a compiled function that one loop can call for all rules.

Loops that took the decision as an argument would be compiled anew for every rule, and Numba
cannot keep such code on disk. They take its address instead: the loops are compiled once, and a
call by address costs some nanoseconds per row beside the row's sum over the support vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core.errors import NumbaError
from numba.extending import intrinsic

_SIGNATURE = types.float64(
    types.float64,
    types.float64,
    types.float64,
    types.float64,
    types.boolean,
    types.CPointer(types.float64),
)


@cache
def _compiled(decide: Callable[..., float]) -> Any:
    for on_disk in (True, False):
        try:
            return numba.cfunc(_SIGNATURE, cache=on_disk, error_model="numpy")(decide)
        except RuntimeError as error:  # a function typed at a prompt has no file to be kept beside
            if not on_disk or "cannot cache" not in str(error):
                raise
        except NumbaError as error:
            raise TypeError(
                f"{decide.__qualname__} cannot be compiled: it must be a function of numbers "
                f"(z, y, kxx, tolerance, first, own) that returns a number. {error}"
            ) from error
    raise AssertionError("the second attempt returns or raises")


def address_of(decide: Callable[..., float]) -> int:
    """Where the compiled form of a rule's decision stands in memory.

    Examples
    --------
    >>> from buttress.solvers.stream.rules import PerceptronRule
    >>> address_of(PerceptronRule.decide) > 0
    True
    """
    return int(_compiled(decide).address)


@intrinsic
def decide_at(
    context: Any,
    address: Any,
    z: Any,
    y: Any,
    kxx: Any,
    tolerance: Any,
    first: Any,
    own: Any,
) -> Any:
    """Call the decision at `address`; `own` is the array of the rule's numbers."""
    arguments = (types.intp, *_SIGNATURE.args[:-1], types.Array(types.float64, 1, "C"))

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        numbers = target.make_array(signature.args[-1])(target, builder, values[-1]).data
        given = [
            target.get_argument_value(builder, kind, value)
            for kind, value in zip(signature.args[1:-1], values[1:-1], strict=True)
        ]
        form = ir.FunctionType(ir.DoubleType(), [one.type for one in (*given, numbers)])
        pointer = builder.inttoptr(values[0], form.as_pointer())
        return builder.call(pointer, [*given, numbers])

    return types.float64(*arguments), generate
