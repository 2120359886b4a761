"""Blocks of rows: what a solver that only ever sums over rows needs to know of the data.

A source hands out blocks and runs a task on each of them; the solver adds up the results.
Where the blocks live (in memory, in files, on the workers of a cluster) is the source's
business. Rows are numbered over all blocks, and nothing a solver decides may depend on where
one block ends and the next begins.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import ThreadpoolController

from buttress._arrays import Array, IntArray

Result = TypeVar("Result")

# Rows of a block in memory: enough work for a thread, small against the data.
_FEWEST_ROWS, _MOST_ROWS = 4_096, 32_768


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


class BlockSource(Protocol):
    """Rows in blocks."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def feature_names(self) -> Sequence[str] | None: ...

    def map(
        self, task: Callable[[Block], Result], rows: IntArray | None = None
    ) -> Iterator[Result]:
        """Run `task` on every block (or those that hold some of `rows`), results in order."""
        ...

    def sum(self, task: Callable[[Block], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Run `task`, which returns a tuple of arrays, on every block and add the tuples up."""
        ...


class ArrayBlocks:
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
        self.rows = rows
        self.n_threads = n_threads
        self.feature_names: Sequence[str] | None = None
        if block_size is None:
            # Two blocks per thread, so that none is idle for long.
            share = -(-X.shape[0] // (2 * (n_threads or os.cpu_count() or 1)))
            block_size = min(max(share, _FEWEST_ROWS), _MOST_ROWS)
        self.block_size = block_size
        for name, column in (("y", self.y), ("weight", weight)):
            if column is not None and len(column) != X.shape[0]:
                raise ValueError(f"{name} has {len(column)} rows, X has {X.shape[0]}.")

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return working_dtype(self.X.dtype)

    def map(
        self, task: Callable[[Block], Result], rows: IntArray | None = None
    ) -> Iterator[Result]:
        starts = np.arange(0, self.n_rows, self.block_size)
        if rows is not None:
            starts = np.unique(np.asarray(rows) // self.block_size) * self.block_size
        calls = [partial(self._run, task, int(start)) for start in starts]
        return run_in_threads(calls, self.n_threads)

    def sum(self, task: Callable[[Block], tuple[Any, ...]]) -> tuple[Any, ...]:
        return total(self.map(task))

    def _run(self, task: Callable[[Block], Result], start: int) -> Result:
        if self._kept is not None and start in self._kept:
            return task(self._kept[start])
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
        return task(block)


def working_dtype(dtype: Any) -> np.dtype[Any]:
    """float32 for float32 (and half) data, float64 for everything else."""
    return np.dtype(np.float32) if dtype in (np.float32, np.float16) else np.dtype(np.float64)


def run_in_threads(
    calls: Sequence[Callable[[], Result]], n_threads: int | None = None
) -> Iterator[Result]:
    """Results of `calls` in order, a few calls ahead in threads with one BLAS thread each.

    Large products and element-wise work both scale this way, where BLAS threads would leave
    the element-wise part on one processor.
    """
    workers = min(n_threads or os.cpu_count() or 1, len(calls))
    if workers <= 1:
        for call in calls:
            yield call()
        return
    with (
        _thread_control().limit(limits=1, user_api="blas"),
        ThreadPoolExecutor(max_workers=workers) as pool,
    ):
        remaining = iter(calls)
        # Few results wait at a time, whatever the number of blocks.
        waiting = deque(pool.submit(call) for call in islice(remaining, 2 * workers))
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(call) for call in islice(remaining, 1))
            yield result


@cache
def _thread_control() -> ThreadpoolController:
    # Looking for the loaded libraries takes milliseconds: once is enough.
    return ThreadpoolController()


def total(results: Iterator[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The element-wise sum of tuples of arrays, in order."""
    first = next(results)
    sums = [np.array(part, dtype=np.float64) for part in first]
    for result in results:
        for into, part in zip(sums, result, strict=True):
            into += part
    return tuple(sums)


def take_rows(source: BlockSource, rows: IntArray) -> Block:
    """The rows with these (increasing) numbers, collected from their blocks."""
    rows = np.asarray(rows)
    if len(rows) and not (rows[0] >= 0 and rows[-1] < source.n_rows):
        raise ValueError(f"row numbers must lie in [0, {source.n_rows}).")
    parts = list(source.map(partial(_take, rows), rows=rows))
    X = [part.X for part in parts]
    y = [part.y for part in parts if part.y is not None]
    weight = [part.weight for part in parts if part.weight is not None]
    return Block(
        sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X),
        np.concatenate(y) if y else None,
        np.concatenate(weight) if weight else None,
        0,
        "sample",
        parts[0].names,
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
