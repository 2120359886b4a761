"""Rows of a kernel matrix: the whole matrix in memory, or a cache of its latest rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import lapack

from buttress._arrays import Array, IntArray
from buttress._threads import one_blas_thread
from buttress.solvers.numerics.rows import add_rows, gather

# Rows are computed by matrix products of this many at a time.
_ROWS_COMPUTED = 512
# Rows whose kernel tells whether its rank is low.
_SAMPLE = 400


class KernelMatrix:
    """A kernel matrix held in memory.

    Parameters
    ----------
    K : array of shape (n, n)
        Float32 or float64; not copied when its rows are contiguous.
    features : array of shape (n, p), optional
        Points whose products are the kernel, float64. With them a solution is also a vector,
        which keeps digits that sums of products lose (see `buttress.solvers.hinge.smo`).
    """

    def __init__(self, K: Array, features: Array | None = None) -> None:
        K = np.asarray(K)
        if K.ndim != 2 or K.shape[0] != K.shape[1]:
            raise ValueError(f"The kernel matrix must be square; its shape is {K.shape}.")
        if K.dtype not in (np.float32, np.float64):
            K = K.astype(np.float64)
        self._buffer = np.ascontiguousarray(K)
        self.features = features

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self._buffer.shape[0])

    @property
    def most_rows(self) -> int:
        """How many rows can be asked for at once."""
        return self.n

    @property
    def diagonal(self) -> Array:
        """``k(x_i, x_i)``, in float64."""
        return np.diagonal(self._buffer).astype(np.float64)

    @property
    def whole(self) -> Array | None:
        """The matrix itself, rows contiguous, where it is held."""
        return self._buffer

    @property
    def factorable(self) -> bool:
        """Whether there are `points`."""
        return self.features is not None or self.whole is not None

    def known_rank(self, accuracy: float = 0.0) -> int | None:
        """`rank` where it costs nothing more."""
        return self._ranks.get(accuracy) if self.features is None else self.features.shape[1]

    def rank(self, accuracy: float = 0.0) -> int:
        """The dimension of the points, or what a sample of them suggests; kept.

        A sample whose rank is high says no more than that: the number of all rows is returned.
        Costs less than a hundredth of a second. For `accuracy` see `points`.
        """
        known = self.known_rank(accuracy)
        if known is None:
            rows = np.unique(np.linspace(0, self.n - 1, min(self.n, _SAMPLE)).astype(np.intp))
            with one_blas_thread():
                known = _pivoted_factor(self.part(rows, rows), accuracy).shape[1]
            self._ranks[accuracy] = known = self.n if known > len(rows) // 2 else known
        return known

    @cached_property
    def _ranks(self) -> dict[float, int]:
        return {}

    def points(self, accuracy: float = 0.0) -> Array | None:
        """Points whose products are the kernel: the features, or a pivoted Cholesky factor.

        No product of two points is further from the kernel than `accuracy`, or than rounding if
        that is more. The factor is kept; it costs n r^2 operations for a kernel of rank r. None
        where the kernel is not held as a whole.
        """
        if self.features is not None or self.whole is None:
            return self.features
        if accuracy not in self._factors:
            self._factors[accuracy] = _pivoted_factor(self.whole, accuracy)
        return self._factors[accuracy]

    @cached_property
    def _factors(self) -> dict[float, Array]:
        return {}

    def part(self, rows: IntArray, columns: IntArray) -> Array:
        """The kernel of `rows` with `columns`, float64; distinct rows."""
        out = np.empty((len(rows), len(columns)))
        gather(self._buffer, self._slots(rows), columns, out)
        return out

    def submatrix(self, rows: IntArray) -> Array:
        """The kernel of `rows` with themselves, float64."""
        distinct, where = np.unique(rows, return_inverse=True)
        small = self.part(distinct, distinct)
        if len(distinct) == len(rows) and (where[1:] > where[:-1]).all():
            return small
        # Rows that are asked for twice are read from memory once.
        out = np.empty((len(rows), len(rows)))
        gather(small, where, where, out)
        return out

    @property
    def has_rough_sums(self) -> bool:
        """Whether `add` can be had in less time with fewer digits."""
        return False

    def add(self, rows: IntArray, steps: Array, g: Array, rough: bool = False) -> None:
        """``g += K[:, rows] @ steps``, in place and in float64; what is held is not `rough`."""
        add_rows(self._buffer, self._slots(rows), steps, g)

    def times(self, c: Array) -> Array:
        """``K @ c`` from the beginning, in float64; costs one row per non-zero of `c`."""
        if self.features is not None:
            return np.asarray(self.features @ (self.features.T @ c))
        g = np.zeros(self.n)
        used = np.flatnonzero(c)
        step = min(_ROWS_COMPUTED, self.most_rows)
        for start in range(0, len(used), step):
            rows = used[start : start + step]
            self.add(rows, c[rows], g)
        return g

    def _slots(self, rows: IntArray) -> IntArray:
        return rows


class UnheldKernel(KernelMatrix):
    """A kernel matrix that is not held as a whole; its diagonal is.

    Parameters
    ----------
    diagonal : array of shape (n,)
        ``k(x_i, x_i)``.
    features : array of shape (n, p), optional
        As in `KernelMatrix`.
    """

    def __init__(self, diagonal: Array, features: Array | None) -> None:
        self._diagonal = np.asarray(diagonal, dtype=np.float64)
        self.features = features

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self._diagonal)

    @property
    def diagonal(self) -> Array:
        """``k(x_i, x_i)``, in float64."""
        return self._diagonal

    @property
    def whole(self) -> Array | None:
        """None: there is none."""
        return None


class KernelRowCache(UnheldKernel):
    """The least recently used rows of a kernel matrix too large to hold.

    Parameters
    ----------
    compute : callable
        Takes an integer array of m rows and returns the (m, n) block of the kernel matrix.
    diagonal : array of shape (n,)
        ``k(x_i, x_i)``.
    cache_size : float
        Megabytes for the rows.
    dtype : dtype
        Storage, float32 or float64.
    features : array of shape (n, p), optional
        As in `KernelMatrix`.
    """

    def __init__(
        self,
        compute: Callable[[IntArray], Array],
        diagonal: Array,
        cache_size: float = 200.0,
        dtype: Any = np.float64,
        features: Array | None = None,
    ) -> None:
        super().__init__(diagonal, features)
        self._compute = compute
        n = self.n
        bytes_per_row = n * np.dtype(dtype).itemsize
        # Fewer rows than this and every block of the solver would start from nothing.
        capacity = max(min(n, 64), min(n, int(cache_size * 2**20 // max(1, bytes_per_row))))
        self._buffer = np.empty((capacity, n), dtype=dtype)
        self._slot_of = np.full(n, -1, dtype=np.intp)
        self._row_in = np.full(capacity, -1, dtype=np.intp)
        self._used_at = np.full(capacity, -1, dtype=np.int64)
        self._clock = 0

    @property
    def most_rows(self) -> int:
        """How many rows can be asked for at once."""
        return len(self._row_in)

    def _slots(self, rows: IntArray) -> IntArray:
        self._clock += 1
        held = self._slot_of[rows]
        self._used_at[held[held >= 0]] = self._clock
        missing = rows[held < 0]
        if len(missing):
            missing = np.unique(missing)
            oldest = np.argpartition(self._used_at, len(missing) - 1)[: len(missing)]
            evicted = self._row_in[oldest]
            self._slot_of[evicted[evicted >= 0]] = -1
            for start in range(0, len(missing), _ROWS_COMPUTED):
                some = slice(start, start + _ROWS_COMPUTED)
                self._buffer[oldest[some]] = self._compute(missing[some])
            self._slot_of[missing] = oldest
            self._row_in[oldest] = missing
            self._used_at[oldest] = self._clock
        return self._slot_of[rows]


def _pivoted_factor(K: Array, accuracy: float) -> Array:
    """F with ``F F' = K`` up to `accuracy` or rounding, as many columns as that takes."""
    tol = accuracy if accuracy > 0.0 else -1.0
    matrix = np.array(K, dtype=np.float64, order="F")
    factor, pivots, rank, _ = lapack.dpstrf(matrix, lower=1, tol=tol, overwrite_a=1)
    F = np.zeros((len(K), rank))
    F[pivots - 1] = np.tril(factor[:, :rank])
    return F


# What the solvers accept.
KernelSource: TypeAlias = "Array | KernelMatrix"


def as_kernel_rows(K: KernelSource) -> KernelMatrix:
    """`K` itself when it already gives rows, else a `KernelMatrix` around the array."""
    return K if isinstance(K, KernelMatrix) else KernelMatrix(K)
