"""The product that gives exponents, four rows against one panel of vectors at a time.

With a dozen features a matrix product is over before BLAS has packed its operands. Here the
vectors are stored packed: panels of one cache line's worth of them, feature by feature. The
innermost step is one line of a panel times one number of each row, added up in registers. Streams
and their predictions take 0.6 of the time of BLAS and NumPy's exponential
(``benchmarks/instructions.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from buttress.solvers.numerics.lines import LineEmitter

# Rows multiplied together: their sums fill half of the registers.
GROUP = 4
# Vectors per tile: a group's exponents stay in the first-level cache, the panels near it.
TILE = 256


def _exponents(  # pragma: no cover (runs while compiling, so not with a warm cache)
    emit: LineEmitter, rows: Sequence[Any], panel: Any, entries: Any
) -> list[Any]:
    """A line per row: the last entries are added, the others multiplied and added."""
    builder = emit.builder
    last = builder.sub(entries, emit.integer(1))
    width = emit.integer(emit.width)
    constant = emit.load(emit.at(panel, last, width))
    start = [
        builder.fadd(constant, emit.everywhere(builder.load(emit.at(row, last)))) for row in rows
    ]

    def add_feature(k: Any, sums: list[Any]) -> list[Any]:
        right = emit.load(emit.at(panel, k, width))
        numbers = [emit.everywhere(builder.load(emit.at(row, k))) for row in rows]
        pairs = zip(numbers, sums, strict=True)
        return [emit.multiply_add(number, right, total) for number, total in pairs]

    return emit.loop(emit.integer(0), last, start, add_feature)


def _panel_exponents(count: int) -> Any:
    """A function for compiled loops that gives the exponents of `count` rows with some vectors.

    Its arguments are `left`, an array of shape (n, p + 1); the first row; `panels`, an array of
    shape (n_panels, p + 1, lanes) with the vectors z; the first panel and the one after the
    last; and `E` of shape (GROUP, TILE), all in C order. With v counted from the first vector
    in those panels, it sets

        ``E[r, v] = left[row + r, -1] + z_v[-1] + left[row + r, :-1] @ z_v[:-1]``.
    """

    @intrinsic  # type: ignore[untyped-decorator,unused-ignore]
    def exponents(  # pragma: no cover (runs while compiling, so not with a warm cache)
        typing_context: Any, left: Any, row: Any, panels: Any, first: Any, last: Any, E: Any
    ) -> Any:
        word = types.intp
        signature = types.void(left, word, panels, word, word, E)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            emit = LineEmitter(context, builder, left.dtype)
            _, row, _, first, last, _ = arguments
            rows, lines, out = (
                context.make_array(signature.args[k])(context, builder, arguments[k])
                for k in (0, 2, 5)
            )
            entries = cgutils.unpack_tuple(builder, rows.shape, 2)[1]
            stride = cgutils.unpack_tuple(builder, out.shape, 2)[1]
            lefts = [
                emit.at(rows.data, builder.add(row, emit.integer(r)), entries) for r in range(count)
            ]
            width = emit.integer(emit.width)

            def write_panel(panel: Any, values: list[Any]) -> list[Any]:
                base = emit.at(lines.data, panel, entries, width)
                column = emit.at(out.data, builder.sub(panel, first), width)
                for r, e in enumerate(_exponents(emit, lefts, base, entries)):
                    emit.store(e, emit.at(column, emit.integer(r), stride))
                return values

            emit.loop(first, last, [], write_panel)
            return context.get_dummy_value()

        return signature, generate

    return exponents


four_rows, one_row = _panel_exponents(GROUP), _panel_exponents(1)
