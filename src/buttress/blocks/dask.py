"""Blocks that live on the workers of a Dask cluster (extra ``dask``).

A pass sends the task to the workers and brings back its sum: the rows stay where they are.
A worker that is lost takes nothing with it, because Dask knows how each block was made and
makes it again elsewhere.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from buttress._arrays import IntArray
from buttress.blocks.base import Block, BlockSource, LocalBlocks, Result, working_dtype

# What Dask's client raises when the other side is no longer there.
_LOST_ERRORS = {
    "FutureCancelledError",
    "CancelledError",
    "CommClosedError",
    "FuturesCancelledError",
}
# Sums are added in groups of this many on the workers before they travel further.
_FAN_IN = 8


def is_dask(X: Any) -> bool:
    """Whether `X` is a Dask array or dataframe; Dask is not imported to find out."""
    return hasattr(X, "__dask_graph__") and (hasattr(X, "to_delayed"))


class DaskBlocks(BlockSource):
    """Chunks of a Dask array or partitions of a Dask dataframe, or row groups read by workers.

    Parameters
    ----------
    X : dask array of shape (n, p), dask dataframe, or LocalBlocks
        Arrays are rechunked to whole rows. Files must be readable by every worker.
    y : dask array, dask series, or str, optional
        The labels, or the dataframe's column of labels.
    weight : dask array, dask series, or str, optional
    columns : sequence of str, optional
        The dataframe's features; all other columns when not given.
    client : distributed.Client, optional
        Where to compute. The current client when not given, else Dask's default scheduler.
    persist : bool, default=True
        Keep the blocks in the workers' memory between passes (with a client only).
    verbose : int
        Show Dask's own progress bar for every pass.
    """

    is_local = False

    def __init__(
        self,
        X: Any,
        y: Any = None,
        weight: Any = None,
        *,
        columns: Sequence[str] | None = None,
        client: Any = None,
        persist: bool = True,
        verbose: int = 0,
    ) -> None:
        import dask

        self.client = client if client is not None else current_client()
        self.verbose = verbose
        if isinstance(X, LocalBlocks):
            self.feature_names, self.dtype = X.feature_names, X.dtype
            self.n_features, sizes = X.n_features, np.diff([*X.starts, X.n_rows]).tolist()
            blocks = [dask.delayed(_call)(partial(X.read, i)) for i in range(len(sizes))]
        else:
            chunks, sizes = self._partitions(X, y, weight, columns)
            starts = np.concatenate([[0], np.cumsum(sizes)])
            blocks = [
                dask.delayed(_make_block)(
                    chunk, int(start), f"chunk {i}", self.feature_names, self.dtype
                )
                for i, (chunk, start) in enumerate(zip(chunks, starts[:-1], strict=True))
            ]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self.n_rows = int(starts[-1])
        kept = [i for i, size in enumerate(sizes) if size]
        if not kept:
            raise ValueError("The Dask collection has no rows.")
        self._starts = starts[kept]
        blocks = [blocks[i] for i in kept]
        self._futures: list[Any] | None = None
        if persist and self.client is not None:
            from distributed import futures_of

            with self._current():
                blocks = list(dask.persist(*blocks))
            self._futures = [futures_of(block)[0] for block in blocks]
        self._blocks = blocks

    @classmethod
    def opens(cls, X: Any) -> bool:
        return is_dask(X)

    @classmethod
    def open(cls, X: Any, y: Any, weight: Any, columns: Sequence[str] | None) -> DaskBlocks:
        return cls(X, y, weight, columns=columns)

    def map(
        self, task: Callable[[Block], Result], rows: IntArray | None = None
    ) -> Iterator[Result]:
        holders: Any = range(len(self._blocks))
        if rows is not None:
            holders = np.unique(np.searchsorted(self._starts, np.asarray(rows), "right") - 1)
        return iter(self._compute(self._run_on(task, holders)))

    def sum(self, task: Callable[[Block], tuple[Any, ...]]) -> tuple[Any, ...]:
        level = self._run_on(task, range(len(self._blocks)))
        while len(level) > 1:
            level = [
                self._call_later(_add, level[i : i + _FAN_IN])
                for i in range(0, len(level), _FAN_IN)
            ]
        return tuple(np.asarray(array) for array in self._compute(level)[0])

    def _run_on(self, task: Any, holders: Any) -> list[Any]:
        import dask

        # One node holds the task: it is pickled once, whatever the number of blocks.
        if self._futures is not None:
            blocks = [self._futures[i] for i in holders]
            shared = self._call_later(_same, _Held(task))
            with self._connected():
                return list(self.client.map(_run, [shared] * len(blocks), blocks, pure=False))
        shared = dask.delayed(_Held(task), traverse=False)
        return [dask.delayed(_run, traverse=False)(shared, self._blocks[i]) for i in holders]

    def _call_later(self, function: Callable[[Any], Any], argument: Any) -> Any:
        """A call on a worker: of what is there already, or as part of a graph.

        Graphs of a pass take the client longer to build than a short pass takes a worker.
        """
        import dask

        if self._futures is None:
            return dask.delayed(function)(argument)
        with self._connected():
            return self.client.submit(function, argument, pure=False)

    def _compute(self, values: list[Any]) -> list[Any]:
        import dask

        if self.client is None:
            from dask.diagnostics import ProgressBar

            bar = ProgressBar() if self.verbose > 0 else nullcontext()
            with bar:
                return list(dask.compute(*values))
        with self._connected():
            futures = self.client.compute(values)
            if self.verbose > 0:
                from distributed import progress

                progress(futures, notebook=False)
            return list(self.client.gather(futures))

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """A context in which whatever a lost cluster raises becomes one clear error."""
        address = getattr(self.client.scheduler, "address", "its address")
        try:
            yield
        except (Exception, CancelledError) as error:
            if type(error).__name__ not in _LOST_ERRORS and self.client.status == "running":
                raise
            raise ConnectionError(
                f"The Dask scheduler at {address} has gone, or lost its workers: start the cluster "
                "again, and then this."
            ) from None

    def _current(self) -> AbstractContextManager[Any]:
        return self.client.as_current()  # type: ignore[no-any-return]

    def _partitions(
        self, X: Any, y: Any, weight: Any, columns: Sequence[str] | None
    ) -> tuple[list[Any], list[int]]:
        import dask

        if hasattr(X, "columns"):
            special = [name for name in (y, weight) if isinstance(name, str)]
            names = list(X.columns)
            wanted = (
                list(columns) if columns is not None else [c for c in names if c not in special]
            )
            for name in (*wanted, *special):
                if name not in names:
                    known = ", ".join(map(str, names))
                    raise ValueError(f"The dataframe has no column {name!r}; it has {known}.")
            self.feature_names = [str(name) for name in wanted]
            self.n_features = len(wanted)
            kinds = [working_dtype(kind) for kind in X.dtypes[wanted]]
            self.dtype = max(kinds, default=np.dtype(np.float64))
            frames = X[wanted].to_delayed()
            more = [self._column(X, y), self._column(X, weight)]
        else:
            X = X.rechunk({1: -1})
            self.n_features = int(X.shape[1])
            self.dtype = working_dtype(X.dtype)
            frames = list(X.to_delayed().ravel())
            more = [self._matching(X, y, "y"), self._matching(X, weight, "weight")]
        chunks = []
        for i, frame in enumerate(frames):
            chunks.append([frame, *(None if extra is None else extra[i] for extra in more)])
        if hasattr(X, "chunks") and not np.isnan(np.sum(X.chunks[0])):
            sizes = [int(size) for size in X.chunks[0]]
        else:
            sizes = [int(size) for size in self._compute([dask.delayed(len)(f) for f in frames])]
        return chunks, sizes

    @staticmethod
    def _column(X: Any, column: Any) -> list[Any] | None:
        if column is None:
            return None
        series = X[column] if isinstance(column, str) else column
        partitions = list(series.to_delayed())
        if len(partitions) != X.npartitions:
            raise ValueError(
                f"The labels have {len(partitions)} partitions, the dataframe {X.npartitions}."
            )
        return partitions

    @staticmethod
    def _matching(X: Any, column: Any, name: str) -> list[Any] | None:
        if column is None:
            return None
        import dask.array as da

        column = column if is_dask(column) else da.from_array(np.asarray(column))
        known = not (np.isnan(np.sum(X.chunks[0])) or np.isnan(np.sum(column.chunks[0])))
        if known:
            if column.shape[0] != X.shape[0]:
                raise ValueError(f"{name} has {column.shape[0]} rows, X has {X.shape[0]}.")
            column = column.rechunk((X.chunks[0],))
        elif len(column.chunks[0]) != len(X.chunks[0]):
            raise ValueError(f"{name} and X are cut into different numbers of chunks.")
        return list(column.to_delayed().ravel())


class _Held:
    """Hides a task from Dask, which would look into it for collections."""

    def __init__(self, task: Any) -> None:
        self.task = task


def _run(held: _Held, block: Block) -> Any:
    return held.task(block)


def _same(held: _Held) -> _Held:
    return held


def _call(function: Callable[[], Block]) -> Block:
    return function()


def _add(tuples: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(sum(pieces[1:], start=pieces[0]) for pieces in zip(*tuples, strict=True))


def _make_block(
    chunk: list[Any], start: int, where: str, names: Sequence[str] | None, dtype: np.dtype[Any]
) -> Block:
    X, y, weight = chunk
    if not isinstance(X, np.ndarray) and not hasattr(X, "tocsr"):
        X = X.to_numpy(dtype=dtype)
    if isinstance(X, np.ndarray):
        X = np.ascontiguousarray(X, dtype=dtype)
    labels = None if y is None else np.asarray(y)
    if labels is not None and labels.dtype.kind == "O":
        labels = labels.astype(str)
    weights = None if weight is None else np.asarray(weight, dtype=np.float64)
    return Block(X, labels, weights, start, where, names)


def current_client() -> Any:
    """The current Dask client, None when there is none."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


def connect(address: str | None = None, **options: Any) -> Any:
    """A client of the scheduler at `address`, or of a new cluster on this machine.

    Parameters
    ----------
    address : str, optional
        For example "tcp://10.0.0.1:8786". Without one (or "local") a cluster is started here.
    **options
        For ``distributed.Client`` (``timeout``) or ``distributed.LocalCluster`` (``n_workers``,
        ``threads_per_worker``, ``memory_limit``).

    Raises
    ------
    ConnectionError
        When no scheduler answers at the address.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ImportError("Dask clusters need distributed: pip install buttress[dask]") from error
    if address is None or address == "local":
        return Client(LocalCluster(**({"dashboard_address": ":0"} | options)))
    try:
        return Client(address, **({"timeout": "5s"} | options))
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"No Dask scheduler answers at {address}: start one with `dask scheduler`, or check "
            "the address and port."
        ) from error
