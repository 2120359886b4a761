"""The support vectors of an online model: storage that grows by doubling."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers.numerics.lines import lanes

_FIRST_CAPACITY = 64


class DenseRows:
    """Rows of a fixed length, appended, replaced or removed."""

    def __init__(self, width: int, dtype: Any, capacity: int = 0) -> None:
        self.array = np.empty((capacity, width), dtype=dtype)

    def reserve(self, capacity: int, n: int) -> None:
        grown = np.empty((capacity, self.array.shape[1]), dtype=self.array.dtype)
        grown[:n] = self.array[:n]
        self.array = grown

    def append(self, rows: Any, n: int) -> None:
        self.array[n : n + len(rows)] = rows

    def view(self, n: int) -> Array:
        return self.array[:n]

    def keep(self, mask: BoolArray, n: int) -> None:
        kept = self.array[:n][mask]
        self.array[: len(kept)] = kept

    def move(self, source: int, target: int) -> None:
        self.array[target] = self.array[source]


class Panels:
    """Vectors packed for `_panels`: ``array[v // lanes, :, v % lanes]`` is vector v."""

    def __init__(self, width: int, dtype: Any) -> None:
        self.lanes = lanes(np.dtype(dtype))
        self.array = np.zeros((0, width, self.lanes), dtype=dtype)

    def reserve(self, capacity: int, n: int) -> None:
        used = -(-n // self.lanes)
        # zeros: the places after the last vector are multiplied too
        grown = np.zeros((-(-capacity // self.lanes), *self.array.shape[1:]), self.array.dtype)
        grown[:used] = self.array[:used]
        self.array = grown

    def put(self, indices: Any, rows: Array) -> None:
        """Set the vectors at `indices`, an index array."""
        self.array[indices // self.lanes, :, indices % self.lanes] = rows

    def append(self, rows: Array, n: int) -> None:
        self.put(np.arange(n, n + len(rows)), rows)

    def keep(self, mask: BoolArray, n: int) -> None:
        kept = np.flatnonzero(mask)
        rows = self.array[kept // self.lanes, :, kept % self.lanes]
        self.put(np.arange(len(kept)), rows)

    def move(self, source: int, target: int) -> None:
        row = self.array[source // self.lanes, :, source % self.lanes]
        self.array[target // self.lanes, :, target % self.lanes] = row

    def used(self, n: int) -> Array:
        """The panels of the first `n` vectors."""
        return self.array[: -(-n // self.lanes)]


class SparseRows:
    """Compressed rows: values and columns grow by doubling too."""

    def __init__(self, width: int, dtype: Any) -> None:
        self.width = width
        self.data = np.empty(0, dtype=dtype)
        self.indices = np.empty(0, dtype=np.int64)
        self.indptr = np.zeros(1, dtype=np.int64)

    def reserve(self, capacity: int, n: int) -> None:
        grown = np.zeros(capacity + 1, dtype=np.int64)
        grown[: n + 1] = self.indptr[: n + 1]
        self.indptr = grown

    def reserve_entries(self, room: int, used: int = 0) -> None:
        """Make room for that many stored values in all."""
        data, indices = self.data, self.indices
        self.data = np.empty(room, dtype=data.dtype)
        self.indices = np.empty(room, dtype=np.int64)
        self.data[:used], self.indices[:used] = data[:used], indices[:used]

    def append(self, rows: Any, n: int) -> None:
        start = int(self.indptr[n])
        end = start + rows.nnz
        if end > len(self.data):
            self.reserve_entries(max(end, 2 * len(self.data), _FIRST_CAPACITY), start)
        self.data[start:end] = rows.data
        self.indices[start:end] = rows.indices
        self.indptr[n + 1 : n + 1 + rows.shape[0]] = start + rows.indptr[1:]

    def view(self, n: int) -> Any:
        end = int(self.indptr[n])
        arrays = (self.data[:end], self.indices[:end], self.indptr[: n + 1])
        return sparse.csr_matrix(arrays, shape=(n, self.width), copy=False)

    def keep(self, mask: BoolArray, n: int) -> None:
        kept = self.view(n)[mask]
        self.append(kept, 0)


class VectorStore:
    """Support vectors with their coefficients, stream positions and class codes.

    Attributes
    ----------
    n : int
        How many there are.
    rows : DenseRows or SparseRows
        The vectors as the user gave them.
    augmented : Panels or None
        The vectors in the form one matrix product turns into exponents (Gaussian kernel).
    largest : float
        A bound on ``gamma |z|²`` over all augmented vectors.
    coef : array of shape (n_problems, capacity), float64
    kxx : array of shape (capacity,)
        The kernel of every vector with itself.
    position, code : arrays of shape (capacity,)
    """

    def __init__(
        self, width: int, n_problems: int, dtype: Any, *, is_sparse: bool, augmented: int = 0
    ) -> None:
        self.n = 0
        self.rows: Any = SparseRows(width, dtype) if is_sparse else DenseRows(width, dtype)
        self.augmented = Panels(augmented, dtype) if augmented else None
        self.largest = 0.0
        self.coef = np.zeros((n_problems, 0))
        self.kxx = np.empty(0)
        self.position = np.empty(0, dtype=np.int64)
        self.code = np.empty(0, dtype=np.int64)

    @property
    def capacity(self) -> int:
        return len(self.position)

    @property
    def bytes_per_vector(self) -> float:
        """Memory one more vector costs, capacity left unused not counted."""
        if isinstance(self.rows, SparseRows):
            per_row = 16.0 * float(self.rows.indptr[self.n]) / max(self.n, 1) + 8
        else:
            per_row = float(self.rows.array.itemsize * self.rows.array.shape[1])
        if self.augmented is not None:
            per_row += self.augmented.array.itemsize * self.augmented.array.shape[1]
        return per_row + 8.0 * len(self.coef) + 24.0

    def reserve(self, wanted: int) -> bool:
        """Make room for `wanted` vectors in all; True when the storage grew."""
        if wanted <= self.capacity:
            return False
        self.resize(max(wanted, 2 * self.capacity, _FIRST_CAPACITY))
        return True

    def resize(self, capacity: int) -> None:
        n = self.n
        self.rows.reserve(capacity, n)
        if self.augmented is not None:
            self.augmented.reserve(capacity, n)
        coef = np.zeros((len(self.coef), capacity))
        coef[:, :n] = self.coef[:, :n]
        self.coef = coef
        for name in ("kxx", "position", "code"):
            old = getattr(self, name)
            grown = np.empty(capacity, dtype=old.dtype)
            grown[:n] = old[:n]
            setattr(self, name, grown)

    def append(
        self,
        rows: Any,
        augmented: Array | None,
        coef: Array | None,
        kxx: Array,
        position: IntArray,
        code: IntArray,
    ) -> bool:
        """Add vectors; `coef` may be None when the columns are filled already."""
        m = rows.shape[0]
        grew = self.reserve(self.n + m)
        self.rows.append(rows, self.n)
        if self.augmented is not None:
            assert augmented is not None
            self.augmented.append(augmented, self.n)
            self.note_size(augmented)
        end = self.n + m
        if coef is not None:
            self.coef[:, self.n : end] = coef
        self.kxx[self.n : end] = kxx
        self.position[self.n : end] = position
        self.code[self.n : end] = code
        self.n = end
        return grew

    def note_size(self, augmented: Array) -> None:
        """Keep a bound on ``gamma |z|²``, which stands negated in the last column."""
        if len(augmented):
            self.largest = max(self.largest, -float(augmented[:, -1].min()))

    def keep(self, mask: BoolArray) -> None:
        """Drop the vectors whose entry of `mask` is False, in order."""
        n = self.n
        self.rows.keep(mask, n)
        if self.augmented is not None:
            self.augmented.keep(mask, n)
        kept = int(mask.sum())
        self.coef[:, :kept] = self.coef[:, :n][:, mask]
        self.kxx[:kept] = self.kxx[:n][mask]
        self.position[:kept] = self.position[:n][mask]
        self.code[:kept] = self.code[:n][mask]
        self.n = kept

    def remove(self, index: int) -> None:
        """Drop one vector of a dense store; the last one takes its place."""
        last = self.n - 1
        if index != last:
            self.rows.move(last, index)
            if self.augmented is not None:
                self.augmented.move(last, index)
            self.coef[:, index] = self.coef[:, last]
            self.kxx[index] = self.kxx[last]
            self.position[index] = self.position[last]
            self.code[index] = self.code[last]
        self.n = last

    def vectors(self) -> Any:
        return self.rows.view(self.n)

    def panels(self) -> Array:
        assert self.augmented is not None
        return self.augmented.used(self.n)

    def replace(self, index: int, row: Array, augmented: Array) -> None:
        """Put another vector in the place of one (Gaussian kernel)."""
        assert self.augmented is not None
        self.rows.view(self.n)[index] = row
        self.augmented.put(np.array([index]), augmented)
        self.note_size(augmented)

    def state(self) -> dict[str, Any]:
        """The vectors and what is stored with them, as arrays and numbers."""
        n = self.n
        state: dict[str, Any] = {
            "n": n,
            "capacity": self.capacity,
            "coef": self.coef[:, :n],
            "kxx": self.kxx[:n],
            "position": self.position[:n],
            "code": self.code[:n],
        }
        vectors = self.vectors()
        if isinstance(self.rows, DenseRows):
            return state | {"rows": vectors}
        return state | {
            "data": vectors.data,
            "indices": vectors.indices,
            "indptr": vectors.indptr,
            "room": len(self.rows.data),
        }

    def restore(self, state: dict[str, Any]) -> Any:
        """Make the room a `state` had, and return its vectors, which are not added yet."""
        n = int(state["n"])
        self.resize(int(state["capacity"]))
        if "rows" in state:
            return np.asarray(state["rows"], dtype=self.rows.array.dtype)
        self.rows.reserve_entries(int(state["room"]))
        arrays = (state["data"], state["indices"], state["indptr"])
        return sparse.csr_matrix(arrays, shape=(n, self.rows.width))
