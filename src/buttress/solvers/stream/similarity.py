"""Kernel values between a block of rows and the stored vectors, by one matrix product each.

Three sources with the same methods: the Gaussian kernel on dense rows (the fast one), any
other kernel through `buttress.kernels`, and a Gram matrix given in advance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from buttress._arrays import Array
from buttress._threads import share, workers
from buttress.kernels import Kernel
from buttress.solvers.numerics.workspace import workspace
from buttress.solvers.stream._loops import extend_rbf, rbf_within
from buttress.solvers.stream._panels import GROUP, TILE
from buttress.solvers.stream._tiles import Precision, fill_tiles, sum_tiles
from buttress.solvers.stream.store import VectorStore

# Rows per task when predicting.
_PREDICT_ROWS = 128
# Vectors per task where the kernel matrix itself is wanted.
_VECTORS_PER_TASK = 8 * TILE
# Below this many kernel values a second thread costs more than it saves.
_WORTH_A_THREAD = 250_000

_LOG2_E = 1.4426950408889634
# (limit, depth, near, noise) of the correction. In double precision an exponent is then never
# off by more than 1e-13; single precision is only kept from inventing distances.
_CORRECTION = {
    np.dtype(np.float64): (100.0 * _LOG2_E, 40.0 * _LOG2_E, 0.0, 1e-14),
    np.dtype(np.float32): (4e4 * _LOG2_E, 20.0 * _LOG2_E, 2e-6, 2e-6),
}


class Source(Protocol):
    """Where kernel values come from."""

    def prepare(self, block: Any) -> Any: ...

    def sums(self, prepared: Any, store: VectorStore, *, predicting: bool = False) -> Array: ...

    def against(self, prepared: Any, store: VectorStore, out: Array) -> None: ...

    def within(self, prepared: Any) -> Array:
        """The block's own kernel matrix; the next block may be written over it."""
        ...

    def augmented(self, prepared: Any) -> Array | None: ...


class _RbfBlock(NamedTuple):
    """Rows, and both sides of the product that gives exponents."""

    rows: Array
    left: Array
    right: Array


@dataclass(frozen=True, eq=False)
class RbfSource:
    """``exp(-gamma |x - z|²) = 2**(-g |x - z|²)`` on dense rows.

    With rows extended to ``[2 g x, -g |x|²]`` and vectors to ``[z, -g |z|²]`` (both centred)
    one product gives the whole exponent.
    """

    gamma: float
    center: Array

    @property
    def base_two(self) -> float:
        return self.gamma * _LOG2_E

    def prepare(self, block: Array) -> _RbfBlock:
        n, p = block.shape
        rows = np.array(block, order="C")
        left, right = np.empty((2, n, p + 1), dtype=rows.dtype)
        extend_rbf(rows, self.center.astype(rows.dtype), self.base_two, left, right)
        return _RbfBlock(rows, left, right)

    def sums(self, prepared: _RbfBlock, store: VectorStore, *, predicting: bool = False) -> Array:
        n, m = len(prepared.rows), store.n
        F = np.zeros((n, len(store.coef)))
        if n == 0 or m == 0:
            return F
        rows, vectors = (prepared.rows, prepared.left), (store.vectors(), store.panels())
        precision = self._precision(prepared, store)
        # A row is summed up by one thread: how many there are changes no bit of the result.
        if predicting:
            step = _PREDICT_ROWS
        elif n * m < _WORTH_A_THREAD:
            step = n
        else:
            step = -(-n // (GROUP * workers())) * GROUP

        def work(start: int) -> None:
            span = (start, min(start + step, n))
            sum_tiles(rows, span, vectors, store.coef, precision, F)

        share(work, range(0, n, step))
        return F

    def against(self, prepared: _RbfBlock, store: VectorStore, out: Array) -> None:
        n, m = len(prepared.rows), store.n
        if n == 0 or m == 0:
            return
        rows, vectors = (prepared.rows, prepared.left), (store.vectors(), store.panels())
        precision = self._precision(prepared, store)
        step = m if n * m < _WORTH_A_THREAD else _VECTORS_PER_TASK

        def work(first: int) -> None:
            fill_tiles(rows, vectors, (first, min(first + step, m)), precision, out)

        share(work, range(0, m, step))

    def _precision(self, prepared: _RbfBlock, store: VectorStore) -> Precision:
        """What the tiles are told of rounding; a limit of 0 when no exponent can be wrong."""
        limit, depth, near, noise = _CORRECTION[prepared.left.dtype]
        largest_row = -float(prepared.left[:, -1].min())
        if near == 0 and largest_row + store.largest <= limit:
            limit = 0.0
        return self.base_two, limit, depth, near, noise, store.largest

    def within(self, prepared: _RbfBlock) -> Array:
        n = len(prepared.rows)
        K = workspace("kernel within a block", (n, n), np.float64)
        rbf_within(prepared.rows, self.base_two, K)
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
