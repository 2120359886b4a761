"""The product that gives exponents, four rows against one panel of vectors at a time.

With a dozen features a matrix product is over before BLAS has packed its operands. Here the
vectors are stored packed: panels of one cache line's worth of them, feature by feature. The
innermost step is one line of a panel times one number of each row, added up in registers. A loop
in Python syntax gives no say over registers, so the instructions are written out; the compiler
maps lines to whatever vectors the processor has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# Bytes of one line of a panel.
LINE = 64
# Rows multiplied together: their sums fill half of the registers.
GROUP = 4
# Vectors per tile: a group's exponents stay in the first-level cache, the panels near it.
TILE = 256

_INDEX = ir.IntType(32)


def lanes(dtype: Any) -> int:
    """Vectors per panel."""
    return LINE // int(dtype.itemsize)


class _Emitter:  # pragma: no cover (runs while compiling, so not with a warm cache)
    """Instructions on lines, appended to a function under construction."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        self.builder = builder
        self.item = dtype.bitwidth // 8
        self.width = LINE // self.item
        self.number = context.get_data_type(dtype)
        self.line = ir.VectorType(self.number, self.width)
        self.word = context.get_value_type(types.intp)
        self.fused = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(self.line, [self.line] * 3),
            f"llvm.fmuladd.v{self.width}f{dtype.bitwidth}",
        )

    def integer(self, value: int) -> Any:
        return ir.Constant(self.word, value)

    def at(self, base: Any, *factors: Any) -> Any:
        """The address that many numbers after `base`; the factors are multiplied."""
        offset = factors[0]
        for factor in factors[1:]:
            offset = self.builder.mul(offset, factor)
        return self.builder.gep(base, [offset])

    def load(self, pointer: Any) -> Any:
        loaded = self.builder.load(self.builder.bitcast(pointer, self.line.as_pointer()))
        loaded.align = self.item
        return loaded

    def store(self, line: Any, pointer: Any) -> None:
        stored = self.builder.store(line, self.builder.bitcast(pointer, self.line.as_pointer()))
        stored.align = self.item

    def everywhere(self, number: Any) -> Any:
        nothing = ir.Constant(self.line, ir.Undefined)
        alone = self.builder.insert_element(nothing, number, ir.Constant(_INDEX, 0))
        mask = ir.Constant(ir.VectorType(_INDEX, self.width), [0] * self.width)
        return self.builder.shuffle_vector(alone, nothing, mask)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        return self.builder.call(self.fused, [a, b, c])

    def loop(
        self,
        begin: Any,
        end: Any,
        values: Sequence[Any],
        body: Callable[[Any, list[Any]], Sequence[Any]],
    ) -> list[Any]:
        """``for k in range(begin, end): values = body(k, values)``; the last values."""
        builder = self.builder
        before = builder.block
        head, inside, after = (builder.append_basic_block(name) for name in ("k", "in", "out"))
        builder.branch(head)
        builder.position_at_end(head)
        k = builder.phi(self.word)
        k.add_incoming(begin, before)
        running = [builder.phi(value.type) for value in values]
        for phi, value in zip(running, values, strict=True):
            phi.add_incoming(value, before)
        builder.cbranch(builder.icmp_signed("<", k, end), inside, after)
        builder.position_at_end(inside)
        changed = body(k, running)
        k.add_incoming(builder.add(k, self.integer(1)), builder.block)
        for phi, value in zip(running, changed, strict=True):
            phi.add_incoming(value, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return running

    def exponents(self, rows: Sequence[Any], panel: Any, entries: Any) -> list[Any]:
        """A line per row: the last entries are added, the others multiplied and added."""
        last = self.builder.sub(entries, self.integer(1))
        width = self.integer(self.width)
        constant = self.load(self.at(panel, last, width))
        start = [
            self.builder.fadd(constant, self.everywhere(self.builder.load(self.at(row, last))))
            for row in rows
        ]

        def add_feature(k: Any, sums: list[Any]) -> list[Any]:
            right = self.load(self.at(panel, k, width))
            numbers = [self.everywhere(self.builder.load(self.at(row, k))) for row in rows]
            pairs = zip(numbers, sums, strict=True)
            return [self.multiply_add(number, right, total) for number, total in pairs]

        return self.loop(self.integer(0), last, start, add_feature)


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
            emit = _Emitter(context, builder, left.dtype)
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
                for r, e in enumerate(emit.exponents(lefts, base, entries)):
                    emit.store(e, emit.at(column, emit.integer(r), stride))
                return values

            emit.loop(first, last, [], write_panel)
            return context.get_dummy_value()

        return signature, generate

    return exponents


four_rows, one_row = _panel_exponents(GROUP), _panel_exponents(1)
