"""What a stream looked like: counts per block of rows, and the error over the last rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import BoolArray, IntArray

_COUNTS = ("labelled", "updates", "skipped", "mistakes")
# Beyond this many entries two neighbours become one, so that the record stays small for ever.
_MAX_ENTRIES = 4096


class History:
    """Counts per `width` consecutive stream positions, whatever the cut into calls.

    Parameters
    ----------
    width : int
        Rows per entry at the start; it doubles whenever there are more than 4096 entries.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.counts = np.zeros((0, len(_COUNTS)), dtype=np.int64)
        self.vectors = np.zeros(0, dtype=np.int64)
        self.n_seen = 0

    def add(
        self,
        position: IntArray,
        labelled: BoolArray,
        updates: BoolArray,
        skipped: BoolArray,
        mistakes: BoolArray,
        vectors: IntArray,
        n_seen: int,
    ) -> None:
        """Record rows at these stream positions; `vectors` counts them after each row."""
        while int(position.max(initial=0)) // self.width >= _MAX_ENTRIES:
            self._halve()
        entry = position // self.width
        last = int(entry.max(initial=-1))
        if last >= len(self.vectors):
            missing = last + 1 - len(self.vectors)
            self.counts = np.vstack([self.counts, np.zeros((missing, 4), dtype=np.int64)])
            self.vectors = np.concatenate([self.vectors, np.full(missing, -1)])
        for column, flags in enumerate((labelled, updates, skipped, mistakes)):
            np.add.at(self.counts[:, column], entry, flags)
        self.vectors[entry] = vectors
        self.n_seen = n_seen

    def _halve(self) -> None:
        if len(self.vectors) % 2:
            self.counts = np.vstack([self.counts, np.zeros((1, 4), dtype=np.int64)])
            self.vectors = np.append(self.vectors, -1)
        self.counts = self.counts[::2] + self.counts[1::2]
        self.vectors = np.where(self.vectors[1::2] < 0, self.vectors[::2], self.vectors[1::2])
        self.width *= 2

    def as_dict(self) -> dict[str, IntArray]:
        """The record as equally long arrays, ready for a data frame."""
        end = np.minimum((1 + np.arange(len(self.vectors))) * self.width, self.n_seen)
        record: dict[str, Any] = {"n_seen": end}
        record |= {name: self.counts[:, column].copy() for column, name in enumerate(_COUNTS)}
        # Entries whose rows were never reported keep the count before them.
        filled = np.maximum.accumulate(np.where(self.vectors < 0, -1, np.arange(len(self.vectors))))
        record["support_vectors"] = np.where(filled < 0, 0, self.vectors[filled])
        return record

    def state(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> History:
        history = cls(int(state["width"]))
        history.counts = np.array(state["counts"], dtype=np.int64).reshape(-1, len(_COUNTS))
        history.vectors = np.array(state["vectors"], dtype=np.int64)
        history.n_seen = int(state["n_seen"])
        return history


class Window:
    """The share of mistakes among the last `length` labelled rows."""

    def __init__(self, length: int) -> None:
        self.flags = np.zeros(length, dtype=np.bool_)
        self.n = 0

    def add(self, mistakes: BoolArray) -> None:
        length = len(self.flags)
        recent = mistakes[-length:]
        start = self.n + len(mistakes) - len(recent)
        self.flags[(start + np.arange(len(recent))) % length] = recent
        self.n += len(mistakes)

    @property
    def error(self) -> float:
        """Zero before the first labelled row."""
        known = min(self.n, len(self.flags))
        return float(self.flags[:known].mean()) if known else 0.0

    def state(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Window:
        window = cls(len(state["flags"]))
        window.flags = np.array(state["flags"], dtype=np.bool_)
        window.n = int(state["n"])
        return window
