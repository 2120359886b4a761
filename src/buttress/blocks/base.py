"""Blocks of rows: what a solver that only ever sums over rows needs to know of the data.

A source hands out blocks and runs a task on each of them; the solver adds up the results.
Where the blocks live (in memory, in files, on the workers of a cluster) is the source's
business. Rows are numbered over all blocks, and nothing a solver decides may depend on where
one block ends and the next begins.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from buttress._arrays import Array, IntArray
from buttress._threads import results_in_order

Result = TypeVar("Result")

# Rows of a block in memory: enough work for a thread, small against the data.
_FEWEST_BLOCK_ROWS, _MOST_BLOCK_ROWS = 4_096, 32_768


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows.

    Attributes
    ----------
    X : array or CSR matrix of shape (rows, p)
        In float64 or float32.
    y : array of shape (rows,) or None
        Labels.
    weight : array of shape (rows,) or None
    start : int
        Number of the first row among all rows.
    where : str
        For messages: which file and row group, which chunk, or which rows.
    names : sequence of str or None
        Feature names, for messages.
    rows : array of shape (rows,) or None
        Numbers of the rows where they are not consecutive (a sample).
    kept : dict or None
        What a pass may leave with a block that stays in memory for the next one.
    """

    X: Any
    y: NDArray[Any] | None
    weight: Array | None
    start: int
    where: str
    names: Sequence[str] | None = None
    rows: IntArray | None = None
    kept: dict[str, Any] | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def numbers(self) -> IntArray:
        """The number of every row among all rows."""
        if self.rows is not None:
            return self.rows
        return np.arange(self.start, self.start + len(self))

    def codes(self, classes: NDArray[Any]) -> IntArray:
        """Index of every row's label among `classes`, which are sorted."""
        if self.y is None:
            raise ValueError(f"{self.where} has no labels.")
        return np.searchsorted(classes, self.y)


class BlockSource(ABC):
    """Rows in blocks.

    A subclass registers itself when its module is imported: say in `opens` which of a user's
    data it is for, and `buttress.blocks.sources` finds it. Files of this package are imported
    for that; a source of one's own, in a file of one's own, by whoever needs it.
    """

    # What a subclass says, as attributes or properties; the dtype is float64 or float32.
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    feature_names: Sequence[str] | None = None
    # Whether a task on a block runs in this process.
    is_local: bool = True
    # Whether a pass reads files, so that rows that fit are better kept in memory.
    from_files: bool = False
    # A source for whatever path nobody else opens.
    asked_last: ClassVar[bool] = False
    registered: ClassVar[list[type[BlockSource]]] = []

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # one that does not say what it opens is a variant of another, made by hand
        if "opens" in vars(cls):
            BlockSource.registered.append(cls)

    @classmethod
    def opens(cls, X: Any) -> bool:
        """Whether a user's `X` (a path, a collection) is for this source; looks, reads nothing."""
        return False

    @classmethod
    def open(cls, X: Any, y: Any, weight: Any, columns: Sequence[str] | None) -> BlockSource:
        """The source of a user's `X`, with labels, weights and features as `as_blocks` has them.

        Where `columns` are given the blocks have these features and no others, in this order: a
        model asks so for the names it was fitted on (`feature_names`), whatever else `X` holds.
        """
        raise AssertionError(f"{cls.__name__} opens nothing")

    @abstractmethod
    def map(
        self, task: Callable[[Block], Result], rows: IntArray | None = None
    ) -> Iterator[Result]:
        """Run `task` on every block (or those that hold some of `rows`), results in order."""

    def sum(self, task: Callable[[Block], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Run `task`, which returns a tuple of arrays, on every block and add the tuples up."""
        return total(self.map(task))


class LocalBlocks(BlockSource):
    """Blocks that this process reads one by one, a few at a time in threads."""

    n_threads: int | None = None

    @property
    @abstractmethod
    def starts(self) -> IntArray:
        """Number of the first row of every block, increasing."""

    @abstractmethod
    def read(self, index: int) -> Block:
        """One block."""

    def map(
        self, task: Callable[[Block], Result], rows: IntArray | None = None
    ) -> Iterator[Result]:
        wanted: Any = range(len(self.starts))
        if rows is not None:
            wanted = np.unique(np.searchsorted(self.starts, np.asarray(rows), "right") - 1).tolist()
        calls = [partial(self._run, task, index) for index in wanted]
        return results_in_order(calls, self.n_threads)

    def _run(self, task: Callable[[Block], Result], index: int) -> Result:
        return task(self.read(index))


class ArrayBlocks(LocalBlocks):
    """Blocks of an array, a memory-mapped array or a CSR matrix.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, p)
        A ``numpy.memmap`` is read block by block and never copied as a whole.
    y : array of shape (n,), optional
    weight : array of shape (n,), optional
    rows : array of shape (n,), optional
        Numbers of the rows where they are a sample of a larger set.
    block_size : int, optional
        Rows in a block.
    n_threads : int, optional
        Blocks worked on at a time; all processors when not given.
    keep : bool
        Hand out the same blocks in every pass, so that passes can leave something with them.

    Examples
    --------
    >>> source = ArrayBlocks(np.arange(10.0).reshape(5, 2), block_size=2)
    >>> [len(block) for block in source.map(lambda block: block)]
    [2, 2, 1]
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        weight: Array | None = None,
        *,
        rows: IntArray | None = None,
        block_size: int | None = None,
        n_threads: int | None = None,
        keep: bool = False,
    ) -> None:
        self._kept: dict[int, Block] | None = {} if keep else None
        self.X, self.y, self.weight = X, None if y is None else np.asarray(y), weight
        self.n_rows, self.n_features = (int(size) for size in X.shape)
        self.dtype = working_dtype(X.dtype)
        self.rows = rows
        self.n_threads = n_threads
        if block_size is None:
            # Two blocks per thread, so that none is idle for long.
            share = -(-X.shape[0] // (2 * (n_threads or os.cpu_count() or 1)))
            block_size = min(max(share, _FEWEST_BLOCK_ROWS), _MOST_BLOCK_ROWS)
        self.block_size = block_size
        for name, column in (("y", self.y), ("weight", weight)):
            if column is not None and len(column) != X.shape[0]:
                raise ValueError(f"{name} has {len(column)} rows, X has {X.shape[0]}.")

    @property
    def keeps(self) -> bool:
        """Whether every pass sees the same blocks."""
        return self._kept is not None

    @property
    def starts(self) -> IntArray:
        return np.arange(0, self.n_rows, self.block_size)

    def read(self, index: int) -> Block:
        start = index * self.block_size
        if self._kept is not None and start in self._kept:
            return self._kept[start]
        stop = min(start + self.block_size, self.n_rows)
        X = self.X[start:stop]
        if not sparse.issparse(X):
            X = np.asarray(X, dtype=self.dtype)
        block = Block(
            X,
            None if self.y is None else self.y[start:stop],
            None if self.weight is None else self.weight[start:stop],
            start,
            f"rows {start} to {stop - 1}",
            self.feature_names,
            None if self.rows is None else self.rows[start:stop],
            None if self._kept is None else {},
        )
        if self._kept is not None:
            self._kept[start] = block
        return block


def working_dtype(dtype: Any) -> np.dtype[Any]:
    """float32 for float32 (and half) data, float64 for everything else."""
    return np.dtype(np.float32) if dtype in (np.float32, np.float16) else np.dtype(np.float64)


def total(results: Iterator[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The element-wise sum of tuples of arrays, in order."""
    first = next(results)
    sums = [np.array(summand, dtype=np.float64) for summand in first]
    for result in results:
        for into, summand in zip(sums, result, strict=True):
            into += summand
    return tuple(sums)


def take_rows(source: BlockSource, rows: IntArray) -> Block:
    """The rows with these (increasing) numbers, collected from their blocks."""
    rows = np.asarray(rows)
    if len(rows) and not (rows[0] >= 0 and rows[-1] < source.n_rows):
        raise ValueError(f"row numbers must lie in [0, {source.n_rows}).")
    taken = list(source.map(partial(_take, rows), rows=rows))
    X = [block.X for block in taken]
    y = [block.y for block in taken if block.y is not None]
    weight = [block.weight for block in taken if block.weight is not None]
    return Block(
        sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X),
        np.concatenate(y) if y else None,
        np.concatenate(weight) if weight else None,
        0,
        "sample",
        taken[0].names,
        rows,
    )


def _take(rows: IntArray, block: Block) -> Block:
    inside = rows[(rows >= block.start) & (rows < block.start + len(block))] - block.start
    return Block(
        block.X[inside],
        None if block.y is None else block.y[inside],
        None if block.weight is None else block.weight[inside],
        block.start,
        block.where,
        block.names,
    )
