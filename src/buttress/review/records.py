"""What the review store holds: its tables, rows and decisions."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS items (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, given TEXT, suggested TEXT,
  wrong REAL NOT NULL, priority REAL NOT NULL, queued INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'open', label TEXT, content TEXT
);
CREATE INDEX IF NOT EXISTS items_in_order ON items (state, queued, priority DESC, id);
CREATE TABLE IF NOT EXISTS decisions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, item INTEGER NOT NULL REFERENCES items (id),
  reviewer TEXT NOT NULL, verdict TEXT NOT NULL, label TEXT, note TEXT NOT NULL, at TEXT NOT NULL,
  seconds REAL NOT NULL, wrong REAL NOT NULL, second_look INTEGER NOT NULL,
  request TEXT NOT NULL UNIQUE, undone TEXT, taken INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS decisions_of_item ON decisions (item);
CREATE TABLE IF NOT EXISTS leases (
  item INTEGER PRIMARY KEY REFERENCES items (id), reviewer TEXT NOT NULL, until REAL NOT NULL
);
"""


class ReviewError(ValueError):
    """A request that does not fit the state of the review; nothing was changed."""


@dataclass(frozen=True)
class Item:
    """A row in the queue.

    Attributes
    ----------
    id : int
        Position in the table; for refused rows a running number.
    key : str
    given, suggested : str or None
        Labels as written.
    wrong : float
        Estimated probability that the given label (or answer) is wrong.
    priority : float
    state : str
    label : str or None
        As decided so far.
    content : str or None
        The values of a row that is in no table, as JSON.
    """

    id: int
    key: str
    given: str | None
    suggested: str | None
    wrong: float
    priority: float
    state: str
    label: str | None
    content: str | None


@dataclass(frozen=True)
class Decision:
    """What a reviewer decided, and when."""

    id: int
    item: int
    reviewer: str
    verdict: str
    label: str | None
    note: str
    at: str
    wrong: float
    second_look: bool
