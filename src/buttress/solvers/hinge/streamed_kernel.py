"""A kernel that is never held: its products with coefficients are formed tile by tile.

Where similarities cost little (few features), computing a row again takes less time than writing
it to memory and reading it back; the descent moves most rows two or three times only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.solvers.hinge.kernel_rows import UnheldKernel

# Columns of a tile: enough for products of matrices at full speed, few enough for the cache.
_TILE_COLUMNS = 512


class StreamedKernel(UnheldKernel):
    """A kernel known by functions of its rows.

    Parameters
    ----------
    block : callable
        Takes two integer arrays and returns the kernel of these rows with these columns.
    sums : callable
        Takes an integer array `rows` and as many coefficients and returns
        ``K[:, rows] @ coefficients``.
    diagonal : array of shape (n,)
        ``k(x_i, x_i)``.
    rough_sums : callable, optional
        `sums` to about six digits in less time, for the way to the solution.
    features : array of shape (n, p), optional
        As in `KernelMatrix`.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> streamed = StreamedKernel(
    ...     lambda rows, columns: K[np.ix_(rows, columns)],
    ...     lambda rows, steps: K[:, rows] @ steps,
    ...     np.diagonal(K),
    ... )
    >>> streamed.times(np.array([1.0, -1.0])).tolist()
    [1.0, -1.0]
    """

    def __init__(
        self,
        block: Callable[[IntArray, IntArray], Array],
        sums: Callable[[IntArray, Array], Array],
        diagonal: Array,
        rough_sums: Callable[[IntArray, Array], Array] | None = None,
        features: Array | None = None,
    ) -> None:
        super().__init__(diagonal, features)
        self._block, self._sums, self._rough_sums = block, sums, rough_sums

    @property
    def has_rough_sums(self) -> bool:
        """Whether `add` can be had in less time with fewer digits."""
        return self._rough_sums is not None

    def part(self, rows: IntArray, columns: IntArray) -> Array:
        """The kernel of `rows` with `columns`, float64."""
        return np.asarray(self._block(rows, columns), dtype=np.float64)

    def add(self, rows: IntArray, steps: Array, g: Array, rough: bool = False) -> None:
        """``g += K[:, rows] @ steps``, in place; `rough` sums have about six digits."""
        sums = self._rough_sums if rough and self._rough_sums is not None else self._sums
        for start in range(0, len(rows), _TILE_COLUMNS):
            some = slice(start, start + _TILE_COLUMNS)
            g += sums(rows[some], steps[some])
