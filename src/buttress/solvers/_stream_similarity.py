"""Kernel values between a block of rows and the stored vectors, by one matrix product each.

Three sources with the same methods: the Gaussian kernel on dense rows (the fast one), any
other kernel through `buttress.kernels`, and a Gram matrix given in advance.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

from buttress._arrays import Array
from buttress.kernels import Kernel
from buttress.solvers._stream_exp import (
    add_exp_dot_32,
    add_exp_dot_64,
    exp_in_place_32,
    exp_in_place_64,
)
from buttress.solvers._stream_loops import correct_exponents, rbf_within
from buttress.solvers._stream_store import VectorStore

# Vectors per product: a tile of 32 rows stays in the second-level cache.
_TILE = 1024
# Rows per task. Fixed, so that the number of threads changes no bit of the result.
_LEARN_ROWS = 32
_PREDICT_ROWS = 128
# Below this many kernel values a second thread costs more than it saves.
_WORTH_A_THREAD = 100_000

# (limit, depth, near, noise) of `correct_exponents`. In double precision an exponent is then
# never off by more than 1e-13; single precision is only kept from inventing distances.
_CORRECTION = {
    np.dtype(np.float64): (100.0, 40.0, 0.0, 1e-14),
    np.dtype(np.float32): (4e4, 20.0, 2e-6, 2e-6),
}


class Source(Protocol):
    """Where kernel values come from."""

    def prepare(self, block: Any) -> Any: ...

    def sums(self, prepared: Any, store: VectorStore, *, predicting: bool = False) -> Array: ...

    def against(self, prepared: Any, store: VectorStore, out: Array) -> None: ...

    def within(self, prepared: Any) -> Array: ...

    def augmented(self, prepared: Any) -> Array | None: ...


@dataclass(frozen=True, eq=False)
class _RbfBlock:
    rows: Array
    left: Array
    size: Array
    right: Array


@dataclass(frozen=True, eq=False)
class RbfSource:
    """``exp(-gamma |x - z|²)`` on dense rows.

    With rows extended to ``[2 gamma x, -gamma |x|², 1]`` and vectors to ``[z, 1, -gamma |z|²]``
    (both centred) one product gives the whole exponent.
    """

    gamma: float
    center: Array

    def prepare(self, block: Array) -> _RbfBlock:
        n, p = block.shape
        centred = block - self.center.astype(block.dtype)
        size = self.gamma * np.einsum("ij,ij->i", centred, centred, dtype=np.float64)
        left = np.empty((n, p + 2), dtype=block.dtype)
        np.multiply(centred, 2.0 * self.gamma, out=left[:, :p])
        left[:, p] = -size
        left[:, p + 1] = 1.0
        right = np.empty((n, p + 2), dtype=block.dtype)
        right[:, :p] = centred
        right[:, p] = 1.0
        right[:, p + 1] = -size
        return _RbfBlock(np.ascontiguousarray(block), left, size, right)

    def sums(self, prepared: _RbfBlock, store: VectorStore, *, predicting: bool = False) -> Array:
        F = np.zeros((len(prepared.rows), len(store.coef)))
        coef = store.coef[:, : store.n].astype(prepared.left.dtype)
        double = prepared.left.dtype == np.float64
        add_exp_dot = add_exp_dot_64 if double else add_exp_dot_32
        exp_in_place = exp_in_place_64 if double else exp_in_place_32

        def tile_done(rows: slice, columns: slice, E: Array) -> None:
            if len(coef) == 1:
                add_exp_dot(E, coef[0, columns], F[rows, 0])
            else:
                exp_in_place(E)
                F[rows] += E @ coef[:, columns].T

        self._tiles(prepared, store, tile_done, _PREDICT_ROWS if predicting else _LEARN_ROWS)
        return F

    def against(self, prepared: _RbfBlock, store: VectorStore, out: Array) -> None:
        exp_in_place = exp_in_place_64 if out.dtype == np.float64 else exp_in_place_32

        def tile_done(rows: slice, columns: slice, E: Array) -> None:
            exp_in_place(E)
            out[rows, columns] = E

        self._tiles(prepared, store, tile_done, _LEARN_ROWS)

    def within(self, prepared: _RbfBlock) -> Array:
        n = len(prepared.rows)
        K = np.empty((n, n))
        rbf_within(prepared.rows, self.gamma, K)
        return K

    def augmented(self, prepared: _RbfBlock) -> Array:
        return prepared.right

    def column(self, prepared: _RbfBlock, vector: Array) -> Array:
        """Kernel values of the block's rows with one vector."""
        difference = prepared.rows - vector
        distance = np.einsum("ij,ij->i", difference, difference, dtype=np.float64)
        return np.asarray(np.exp(-self.gamma * distance))

    def _tiles(
        self,
        prepared: _RbfBlock,
        store: VectorStore,
        done: Callable[[slice, slice, Array], None],
        group: int,
    ) -> None:
        n, m = len(prepared.rows), store.n
        if m == 0 or n == 0:
            return
        vectors, augmented = store.vectors(), store.augmented_vectors()
        sizes = np.ascontiguousarray(-augmented[:, -1], dtype=np.float64)
        limit, depth, near, noise = _CORRECTION[prepared.left.dtype]
        reach = float(prepared.size.max() + sizes.max())
        must_correct = near > 0 or reach > limit

        def work(start: int) -> None:
            rows = slice(start, min(start + group, n))
            left = prepared.left[rows]
            for first in range(0, m, _TILE):
                columns = slice(first, min(first + _TILE, m))
                E = _scratch(len(left), columns.stop - first, left.dtype)
                np.matmul(left, augmented[columns].T, out=E)
                if must_correct:
                    correct_exponents(
                        E,
                        prepared.rows[rows],
                        vectors[columns],
                        prepared.size[rows],
                        sizes[columns],
                        self.gamma,
                        limit,
                        depth,
                        near,
                        noise,
                    )
                done(rows, columns, E)

        _run(work, range(0, n, group), threaded=n > group and n * m > _WORTH_A_THREAD)


@dataclass(frozen=True, eq=False)
class KernelSource:
    """Any kernel of `buttress.kernels`, on dense or sparse rows."""

    kernel: Kernel

    def prepare(self, block: Any) -> Any:
        return block

    def sums(self, prepared: Any, store: VectorStore, *, predicting: bool = False) -> Array:
        n, m = prepared.shape[0], store.n
        if m == 0 or n == 0:
            return np.zeros((n, len(store.coef)))
        return np.asarray(
            self._values(prepared, store.vectors()) @ store.coef[:, :m].T, dtype=np.float64
        )

    def against(self, prepared: Any, store: VectorStore, out: Array) -> None:
        if store.n and prepared.shape[0]:
            out[:, : store.n] = self._values(prepared, store.vectors())

    def within(self, prepared: Any) -> Array:
        return np.asarray(self._values(prepared, prepared), dtype=np.float64)

    def augmented(self, prepared: Any) -> None:
        return None

    def _values(self, X: Any, Z: Any) -> Array:
        if self.kernel.name == "rbf" and sparse.issparse(X):
            return _sparse_rbf(X, Z, float(self.kernel.params["gamma"]))
        return self.kernel(X, Z)


@dataclass(frozen=True, eq=False)
class GramSource:
    """A Gram matrix of the whole stream; blocks and vectors are row numbers, one column."""

    gram: Array

    def prepare(self, block: Array) -> Array:
        return block[:, 0].astype(np.int64)

    def sums(self, prepared: Any, store: VectorStore, *, predicting: bool = False) -> Array:
        columns = store.vectors()[:, 0].astype(np.int64)
        K = self.gram[np.ix_(prepared, columns)]
        return np.asarray(K @ store.coef[:, : store.n].T, dtype=np.float64)

    def against(self, prepared: Any, store: VectorStore, out: Array) -> None:
        columns = store.vectors()[:, 0].astype(np.int64)
        out[:, : store.n] = self.gram[np.ix_(prepared, columns)]

    def within(self, prepared: Any) -> Array:
        return self.gram[np.ix_(prepared, prepared)].astype(np.float64)

    def augmented(self, prepared: Any) -> None:
        return None


def _sparse_rbf(X: Any, Z: Any, gamma: float) -> Array:
    """The Gaussian kernel of compressed rows, with differences where the products cancel."""
    x = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    z = np.asarray(Z.multiply(Z).sum(axis=1), dtype=np.float64).ravel()
    size = x[:, None] + z[None, :]
    distance = size - 2.0 * np.asarray((X @ Z.T).toarray(), dtype=np.float64)
    # What rounding may have made of a zero, and in double precision everything that matters
    # where the squared norms are large against the width.
    noise = (1e-6 if X.dtype == np.float32 else 1e-14) * size
    far = 0.0 if X.dtype == np.float32 else 40.0 / max(gamma, 1e-300)
    i, j = np.nonzero(distance <= np.where(gamma * size > 100.0, np.maximum(noise, far), noise))
    if len(i):
        difference = X[i] - Z[j]
        distance[i, j] = np.asarray(difference.multiply(difference).sum(axis=1)).ravel()
    return np.asarray(np.exp(-gamma * np.maximum(distance, 0.0)), dtype=X.dtype)


# -- threads -------------------------------------------------------------------------------

_local = threading.local()
# The BLAS limit is a setting of the whole process: one model at a time may change it.
_limiting = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}


def _scratch(rows: int, columns: int, dtype: Any) -> Array:
    """A matrix that every thread reuses from call to call."""
    buffers = _local.__dict__.setdefault("buffers", {})
    flat = buffers.get(dtype)
    if flat is None or len(flat) < rows * columns:
        flat = buffers[dtype] = np.empty(max(rows, _PREDICT_ROWS) * _TILE, dtype=dtype)
    return np.asarray(flat[: rows * columns].reshape(rows, columns))


def _pool(workers: int) -> ThreadPoolExecutor:
    # Threads do not survive a fork: every process makes its own pool.
    process = os.getpid()
    pool = _pools.get(process)
    if pool is None:
        _pools.clear()
        pool = _pools[process] = ThreadPoolExecutor(workers, thread_name_prefix="buttress-stream")
    return pool


def _controller() -> ThreadpoolController:
    if not hasattr(_local, "controller"):
        _local.controller = ThreadpoolController().select(user_api="blas")
    return _local.controller


def _run(work: Callable[[int], None], tasks: Iterable[int], *, threaded: bool) -> None:
    """Do all `tasks`, on as many threads as BLAS is allowed, each with one BLAS thread."""
    starts = list(tasks)
    controller = _controller()
    workers = max((lib.num_threads for lib in controller.lib_controllers), default=1)

    def several(part: list[int]) -> None:
        for start in part:
            work(start)

    if not threaded or workers < 2 or not _limiting.acquire(blocking=False):
        several(starts)
        return
    try:
        with controller.limit(limits=1):
            pool = _pool(workers)
            parts = [starts[i::workers] for i in range(min(workers, len(starts)))]
            others = [pool.submit(several, part) for part in parts[1:]]
            several(parts[0])
            for other in others:
                other.result()
    finally:
        _limiting.release()
