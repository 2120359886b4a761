"""Instructions on lines of numbers, for the innermost steps of a few loops.

A loop in Python syntax gives no say over registers, so where that matters the instructions are
written out. A line is one cache line's worth of numbers; the compiler maps lines to whatever
vectors the processor has. What rests on it, the panels of streams, gains a factor of 1.7 on
prediction (``benchmarks/instructions.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

# Bytes of one line.
LINE = 64

_INDEX = ir.IntType(32)


def lanes(dtype: Any) -> int:
    """Numbers per line."""
    return LINE // int(dtype.itemsize)


class LineEmitter:  # pragma: no cover (runs while compiling, so not with a warm cache)
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
