"""Kernel values between a block of rows and the stored vectors, by one matrix product each.

Three sources with the same methods: the Gaussian kernel on dense rows (the fast one), any
other kernel through `buttress.kernels`, and a Gram matrix given in advance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from buttress._arrays import Array
from buttress.kernels import Kernel
from buttress.solvers._stream_exp import exp_in_place_32, exp_in_place_64
from buttress.solvers._stream_loops import correct_exponents, extend_rbf, rbf_within
from buttress.solvers._stream_store import VectorStore
from buttress.solvers._stream_threads import scratch, share, workers
from buttress.solvers._stream_tiles import TILE, sum_tiles_32, sum_tiles_64

# Rows per task.
_LEARN_ROWS = 64
_PREDICT_ROWS = 128
# Vectors per task where the kernel matrix itself is wanted.
_WIDE = 1024
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
        rows = np.array(block, order="C")
        left, right = (np.empty((n, p + 2), dtype=rows.dtype) for _ in range(2))
        size = np.empty(n)
        extend_rbf(rows, self.center.astype(rows.dtype), self.gamma, left, right, size)
        return _RbfBlock(rows, left, size, right)

    def sums(self, prepared: _RbfBlock, store: VectorStore, *, predicting: bool = False) -> Array:
        n, m = len(prepared.rows), store.n
        F = np.zeros((n, len(store.coef)))
        if n == 0 or m == 0:
            return F
        dtype = prepared.left.dtype
        sum_tiles: Any = sum_tiles_64 if dtype == np.float64 else sum_tiles_32
        right = store.augmented_vectors()
        correction = self._correction(prepared, store)
        fixed: Any = (
            np.ascontiguousarray(store.coef[:, :m].T, dtype=dtype),
            self.gamma,
            correction,
        )
        group = _PREDICT_ROWS if predicting else _LEARN_ROWS
        # Learning, all threads work on one block: every tile has a place of its own, and the
        # places are added in order, so the number of threads changes no bit of the result.
        n_tiles = 1 if predicting else -(-m // TILE)
        steps = 1 if predicting or n * m < _WORTH_A_THREAD else min(workers(), n_tiles)
        parts = np.zeros((n_tiles, n, len(store.coef)))

        def work(task: tuple[int, int]) -> None:
            rows = slice(task[0], min(task[0] + group, n))
            block: Any = (prepared.left[rows], right, prepared.rows[rows], store.vectors())
            space = scratch(group * TILE, dtype)
            own = np.zeros((n_tiles, rows.stop - rows.start, len(store.coef)))
            known: Any = (prepared.size[rows], store.largest)
            sum_tiles(*block, *known, *fixed, task[1], steps, space, own)
            if predicting:
                F[rows] = own[0]
            else:
                parts[task[1] :: steps, rows] = own[task[1] :: steps]

        share(work, [(start, begin) for start in range(0, n, group) for begin in range(steps)])
        return F if predicting else np.asarray(parts.sum(axis=0))

    def against(self, prepared: _RbfBlock, store: VectorStore, out: Array) -> None:
        n, m = len(prepared.rows), store.n
        if n == 0 or m == 0:
            return
        exp_in_place = exp_in_place_64 if out.dtype == np.float64 else exp_in_place_32
        right = store.augmented_vectors()
        correction = self._correction(prepared, store)
        vectors = store.vectors()

        def work(first: int) -> None:
            part = slice(first, min(first + _WIDE, m))
            E = scratch(n * _WIDE, out.dtype)[: n * (part.stop - first)].reshape(n, -1)
            np.matmul(prepared.left, right[part].T, out=E)
            if correction[0] > 0:
                pair = (prepared.rows, vectors[part], prepared.size, right[part])
                correct_exponents(E, *pair, store.largest, self.gamma, *correction)
            exp_in_place(E)
            out[:, part] = E

        share(work, list(range(0, m, _WIDE)))

    def _correction(self, prepared: _RbfBlock, store: VectorStore) -> Array:
        """What `correct_exponents` is told; the first number is 0 when it is not needed."""
        limit, depth, near, noise = _CORRECTION[prepared.left.dtype]
        if near == 0 and float(prepared.size.max()) + store.largest <= limit:
            limit = 0.0
        return np.array([limit, depth, near, noise])

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
