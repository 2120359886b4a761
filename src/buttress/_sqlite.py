"""Changes of an SQLite file: whole or not at all, and on disk when they are done."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


def keep_safely(base: sqlite3.Connection) -> None:
    """Write ahead, and to the disk: what was told to be done survives a crash."""
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=FULL")


@contextmanager
def transaction(base: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A transaction; on disk when the block ends without an error.

    Examples
    --------
    >>> base = sqlite3.connect(":memory:", isolation_level=None)
    >>> with transaction(base):
    ...     _ = base.execute("CREATE TABLE numbers (value INTEGER)")
    """
    base.execute("BEGIN IMMEDIATE")
    try:
        yield base
        base.execute("COMMIT")
    except BaseException:
        if base.in_transaction:
            base.execute("ROLLBACK")
        raise
