"""The kernel of the rows of a block, kept from one block to the next."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.solvers.hinge._loops import mirror
from buttress.solvers.hinge.kernel_rows import KernelMatrix
from buttress.solvers.numerics.rows import gather

# New rows are fetched this many at a time.
_ROWS_FETCHED = 256


class BlockKernel:
    """A square matrix of which only the rows and columns that changed are fetched again.

    Parameters
    ----------
    K : KernelMatrix
        Where the rows come from.
    capacity : int
        The largest number of rows. Memory is touched only as far as it is used.
    """

    def __init__(self, K: KernelMatrix, capacity: int) -> None:
        self.K = K
        self.matrix: Array = np.empty((capacity, capacity))
        self.rows: IntArray = np.empty(0, dtype=np.intp)
        self._slot_of = np.full(K.n, -1, dtype=np.intp)

    def move_to(self, rows: IntArray) -> None:
        """Hold the kernel of these distinct rows, in the order of `self.rows`."""
        wanted = np.zeros(self.K.n, dtype=bool)
        wanted[rows] = True
        size = len(rows)
        arranged = np.full(size, -1, dtype=np.intp)
        stays = np.flatnonzero(wanted[self.rows[:size]])
        arranged[stays] = self.rows[stays]
        wanted[arranged[stays]] = False
        slots = np.flatnonzero(arranged < 0)
        arranged[slots] = np.flatnonzero(wanted)
        self._slot_of[self.rows] = -1
        self._slot_of[arranged] = np.arange(size)
        self.rows = arranged
        for first in range(0, len(slots), _ROWS_FETCHED):
            new = slots[first : first + _ROWS_FETCHED]
            self.matrix[new, :size] = self.K.part(arranged[new], arranged)
        if len(slots) < size:
            mirror(self.matrix, slots, size)

    def submatrix(self, rows: IntArray) -> Array:
        """The kernel of `rows` (they may repeat) with themselves."""
        slots = self._slot_of[rows]
        if (slots < 0).any():
            return self.K.submatrix(rows)
        out = np.empty((len(rows), len(rows)))
        gather(self.matrix, slots, slots, out)
        return out
