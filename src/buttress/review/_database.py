"""The SQLite file of a review: opened, changed in transactions, and sure of what it is about."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from buttress._sqlite import keep_safely, transaction
from buttress.review.records import SCHEMA, ReviewError

_VERSION = "1"


class Database:
    """A file that several threads and processes may change.

    Parameters
    ----------
    path : Path
        Made when it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._base = sqlite3.connect(
            path, timeout=60, check_same_thread=False, isolation_level=None
        )
        try:
            keep_safely(self._base)
            self._base.executescript(SCHEMA)
        except sqlite3.DatabaseError as error:
            self._base.close()
            raise ReviewError(f"{path}: not a review store: {error}") from None
        self.remember("version", _VERSION)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._base.close()

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """A transaction; on disk when the block ends without an error."""
        with self._lock, transaction(self._base):
            yield self._base

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._base.execute(query, values).fetchall()

    # -- what the store is about -----------------------------------------------------------

    def remember(self, name: str, value: str) -> None:
        """Keep a fact, or check that it is the one kept before."""
        with self._change() as base:
            base.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (name, value))
            known = base.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()[0]
        if known != value:
            raise ReviewError(
                f"{self.path} was made for another {name} ({known}, now {value}); continue with "
                "that one, or start a review in another --store"
            )

    def known(self, name: str) -> str:
        """A fact that was kept."""
        rows = self._rows("SELECT value FROM about WHERE name = ?", (name,))
        if not rows:
            raise ReviewError(f"{self.path} is no review of a table")
        return str(rows[0][0])
