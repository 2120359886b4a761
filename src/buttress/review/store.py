"""The review queue in SQLite: what a reviewer was told is on disk, whatever happens next.

Every change is one transaction in write-ahead mode with ``synchronous=FULL``; a method returns
after the commit. The file may be opened by several processes.
"""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from buttress.review._database import Database
from buttress.review.opinions import CHANGE, KEEP, OPEN, UNSURE, ReviewOutcome, outcome_of
from buttress.review.records import Decision, Item, ReviewError

# Rows rescored in one transaction: a reviewer's decision waits no longer than these take.
_RESCORED_AT_ONCE = 2000


class ReviewStore(Database):
    """Rows to look at, who looks at which, and what was decided.

    Parameters
    ----------
    path : path-like
        The SQLite file; made when it does not exist.
    overlap : float
        Share of the rows that two reviewers see, so that their agreement can be measured.
    lease_seconds : float
        For how long a row handed out is kept from other reviewers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> store = ReviewStore(pathlib.Path(tempfile.mkdtemp()) / "review.sqlite", overlap=0)
    >>> store.add([(0, "1", "no", "yes", 0.9, 0.9, True, None)])
    >>> item = store.next("ada")[0]
    >>> store.decide(item.id, "ada", "change", label="yes", request="r1").label
    'yes'
    >>> store.next("ada")
    []
    """

    def __init__(
        self, path: str | Path, *, overlap: float = 0.1, lease_seconds: float = 600.0
    ) -> None:
        super().__init__(Path(path))
        self.overlap = overlap
        self.lease_seconds = lease_seconds
        self._rescored = 0

    def add(self, items: Iterable[tuple[Any, ...]]) -> None:
        """Add rows: id (or None), key, given, suggested, wrong, priority, queued, content.

        A key that is there already is left as it is.
        """
        with self._change() as base:
            base.executemany(
                "INSERT OR IGNORE INTO items (id, key, given, suggested, wrong, priority, queued, "
                "content) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                items,
            )

    def rescore(self, scores: Iterable[tuple[str | None, float, float, bool, int]]) -> None:
        """New suggested label, wrong, priority, queued for the rows of these ids."""
        entries = list(scores)
        for start in range(0, len(entries), _RESCORED_AT_ONCE):
            with self._change() as base:
                base.executemany(
                    "UPDATE items SET suggested = ?, wrong = ?, priority = ?, queued = ? "
                    "WHERE id = ?",
                    entries[start : start + _RESCORED_AT_ONCE],
                )
        self._rescored += 1

    # -- the queue -------------------------------------------------------------------------

    def next(self, reviewer: str, k: int = 1) -> list[Item]:
        """The most valuable rows for a reviewer, kept from the others for a while.

        Rows still held by the reviewer come first, then open rows and those that wait for
        another opinion by priority; disputes among others come with them, the reviewer's own
        at the very end.
        """
        now = time.time()
        with self._change() as base:
            base.execute("DELETE FROM leases WHERE until <= ?", (now,))
            held = self._held(reviewer, k)
            free = "NOT EXISTS (SELECT 1 FROM leases WHERE item = items.id AND reviewer <> ?)"
            said = (
                "EXISTS (SELECT 1 FROM decisions WHERE item = items.id AND undone IS NULL "
                "AND reviewer = ?)"
            )
            chosen = list(held)
            if len(chosen) < k:
                fresh = self._select(f"state = 'open' AND queued = 1 AND {free}", (reviewer,), k)
                asked = self._select(
                    f"state IN ('second', 'disputed') AND {free} AND NOT {said}",
                    (reviewer, reviewer),
                    k,
                )
                merged = sorted(fresh + asked, key=lambda item: (-item.priority, item.id))
                chosen += [item for item in merged if item not in held][: k - len(chosen)]
            if len(chosen) < k:
                chosen += self._select(
                    f"state = 'disputed' AND {free} AND {said}",
                    (reviewer, reviewer),
                    k - len(chosen),
                )
            base.executemany(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)",
                [(item.id, reviewer, now + self.lease_seconds) for item in chosen],
            )
        return chosen

    def _held(self, reviewer: str, k: int) -> list[Item]:
        """Rows handed out to a reviewer who has not spoken of them yet."""
        return self._select(
            "id IN (SELECT item FROM leases WHERE reviewer = ?) AND state <> 'done' AND NOT EXISTS "
            "(SELECT 1 FROM decisions WHERE item = items.id AND undone IS NULL AND reviewer = ?)",
            (reviewer, reviewer),
            k,
        )

    def _select(self, condition: str, values: Sequence[Any], k: int, offset: int = 0) -> list[Item]:
        rows = self._rows(
            "SELECT id, key, given, suggested, wrong, priority, state, label, content FROM items "
            f"WHERE {condition} ORDER BY priority DESC, id LIMIT ? OFFSET ?",
            (*values, k, offset),
        )
        return [Item(*row) for row in rows]

    def page(self, number: int, size: int, *, state: str = "all") -> tuple[list[Item], int]:
        """One page of the rows, most valuable first, and the number of rows in all."""
        condition = {
            "all": "(queued = 1 OR state <> 'open')",
            "open": "state = 'open' AND queued = 1",
            "reviewed": "state <> 'open'",
            "disputed": "state = 'disputed'",
        }[state]
        total = int(self._rows(f"SELECT count(*) FROM items WHERE {condition}")[0][0])
        return self._select(condition, (), size, (number - 1) * size), total

    def item(self, number: int) -> Item:
        """The row with this id."""
        rows = self._select("id = ?", (number,), 1)
        if not rows:
            raise ReviewError(f"there is no row {number} in this review")
        return rows[0]

    def hold(self, number: int, reviewer: str) -> bool:
        """Keep a row for a reviewer; False when another has it."""
        now = time.time()
        with self._change() as base:
            base.execute("DELETE FROM leases WHERE until <= ?", (now,))
            base.execute(
                "INSERT OR IGNORE INTO leases VALUES (?, ?, ?)",
                (number, reviewer, now + self.lease_seconds),
            )
            (holder,) = base.execute(
                "SELECT reviewer FROM leases WHERE item = ?", (number,)
            ).fetchone()
        return bool(holder == reviewer)

    # -- decisions -------------------------------------------------------------------------

    def decide(
        self,
        number: int,
        reviewer: str,
        verdict: str,
        *,
        label: str | None = None,
        note: str = "",
        request: str,
        second_look: bool = False,
    ) -> Decision:
        """Record a decision; it is on disk when this returns.

        Parameters
        ----------
        number : int
            The row.
        reviewer : str
        verdict : {"keep", "change", "unsure"}
        label : str, optional
            The right label, for "change".
        note : str
        request : str
            A name of this request, unique; repeating it changes nothing and gives the same
            answer, so that a lost connection can be tried again.
        second_look : bool
            The reviewer saw the opinions in dispute and settles it.
        """
        if verdict not in (KEEP, CHANGE, UNSURE):
            raise ReviewError(f"verdict {verdict!r} is not accepted: keep, change or unsure")
        with self._change() as base:
            again = self._decisions("request = ?", (request,))
            if again:
                return again[0]
            item = self.item(number)
            if verdict == KEEP:
                label = item.given
            if verdict != UNSURE and not label:
                raise ReviewError(f"{verdict} needs a label")
            if verdict == CHANGE and label == item.given:
                verdict = KEEP
            settles = second_look and item.state == "disputed"
            before = self._decisions("item = ? AND reviewer = ?", (number, reviewer))
            if before and not settles:
                raise ReviewError("you have decided this row already; undo that first")
            base.execute(
                "INSERT INTO decisions (item, reviewer, verdict, label, note, at, seconds, wrong, "
                "second_look, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    number,
                    reviewer,
                    verdict,
                    None if verdict == UNSURE else label,
                    note,
                    datetime.now(UTC).isoformat(timespec="seconds"),
                    time.time(),
                    item.wrong,
                    settles,
                    request,
                ),
            )
            base.execute("DELETE FROM leases WHERE item = ?", (number,))
            self._settle(base, number)
            return self._decisions("request = ?", (request,))[0]

    def undo(self, reviewer: str) -> Decision:
        """Take back the reviewer's last decision; the row is theirs again."""
        with self._change() as base:
            decisions = self._decisions("reviewer = ?", (reviewer,))
            if not decisions:
                raise ReviewError("there is nothing to undo")
            last = decisions[-1]
            taken = base.execute("SELECT taken FROM decisions WHERE id = ?", (last.id,)).fetchone()
            if taken[0]:
                raise ReviewError("the model has learned this label; it cannot be taken back")
            now = time.time()
            base.execute(
                "UPDATE decisions SET undone = ? WHERE id = ?",
                (datetime.now(UTC).isoformat(timespec="seconds"), last.id),
            )
            self._settle(base, last.item)
            base.execute(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)",
                (last.item, reviewer, now + self.lease_seconds),
            )
        return last

    def _settle(self, base: sqlite3.Connection, number: int) -> ReviewOutcome:
        """Bring the state of a row in line with its decisions."""
        decisions = self._decisions("item = ?", (number,))
        opinions = [(decision.label, decision.second_look) for decision in decisions]
        outcome = outcome_of(opinions, wants_two=self.wants_two(number))
        base.execute(
            "UPDATE items SET state = ?, label = ? WHERE id = ?",
            (outcome.state, outcome.label, number),
        )
        return outcome

    def wants_two(self, number: int) -> bool:
        """Whether a row is among those that two reviewers see; the same answer always."""
        return zlib.crc32(f"row {number}".encode()) / 2**32 < self.overlap

    def _decisions(self, condition: str, values: Sequence[Any]) -> list[Decision]:
        rows = self._rows(
            "SELECT id, item, reviewer, verdict, label, note, at, wrong, second_look "
            f"FROM decisions WHERE {condition} AND undone IS NULL ORDER BY id",
            values,
        )
        return [Decision(*row[:8], *map(bool, row[8:])) for row in rows]

    def decisions(self, item: int | None = None) -> list[Decision]:
        """All decisions that stand, in order; of one row if given."""
        if item is not None:
            return self._decisions("item = ?", (item,))
        return self._decisions("1", ())

    # -- what the rest of the program asks -------------------------------------------------

    def outcomes(self) -> dict[int, str]:
        """The label of every row that has a decided one."""
        return dict(self._rows("SELECT id, label FROM items WHERE label IS NOT NULL"))

    def given_where_decided(self) -> dict[int, str | None]:
        """The given label of every row that somebody has looked at."""
        return dict(
            self._rows("SELECT id, given FROM items WHERE id IN (SELECT item FROM decisions)")
        )

    def counts(self) -> Mapping[str, int]:
        """Rows by state; "open" counts those in the queue."""
        rows = self._rows(
            "SELECT state, count(*) FROM items WHERE state <> 'open' OR queued = 1 GROUP BY state"
        )
        return {OPEN: 0, "second": 0, "disputed": 0, "done": 0} | dict(rows)

    def next_wrong(self, k: int) -> list[float]:
        """P(wrong) of the first rows of the queue."""
        return [item.wrong for item in self._select("state = 'open' AND queued = 1", (), k)]

    def open_wrong(self, n_bins: int) -> tuple[list[float], list[int]]:
        """P(wrong) of all open rows in bins: the mean of every bin, and its number of rows."""
        rows = self._rows(
            "SELECT avg(wrong), count(*) FROM items WHERE state = 'open' "
            "GROUP BY CAST(wrong * ? AS INTEGER)",
            (n_bins,),
        )
        return [float(mean) for mean, _ in rows], [int(count) for _, count in rows]

    def version(self) -> tuple[int, int]:
        """Changes with every decision and every undo."""
        last, undone = self._rows("SELECT coalesce(max(id), 0), count(undone) FROM decisions")[0]
        return int(last), int(undone)

    def change_count(self) -> tuple[int, ...]:
        """Differs whenever rows, decisions or scores have changed, here or in another process."""
        last, undone = self.version()
        rows = int(self._rows("SELECT coalesce(max(id), 0) FROM items")[0][0])
        return last, undone, rows, self._rescored, int(self._rows("PRAGMA data_version")[0][0])

    def untaken(self, older_than: float) -> list[tuple[Decision, Item]]:
        """Labels decided some seconds ago that the model has not learned yet, in order."""
        rows = self._rows(
            "SELECT id FROM decisions WHERE undone IS NULL AND taken = 0 AND label IS NOT NULL "
            "AND seconds <= ? ORDER BY id",
            (time.time() - older_than,),
        )
        decisions = []
        for (number,) in rows:
            decision = self._decisions("id = ?", (number,))[0]
            item = self.item(decision.item)
            if item.label is not None and item.label == decision.label:
                decisions.append((decision, item))
        return decisions

    def mark_taken(self, decisions: Iterable[int]) -> None:
        """The model has learned these decisions; they can no longer be undone."""
        with self._change() as base:
            base.executemany(
                "UPDATE decisions SET taken = 1 WHERE id = ?", [(number,) for number in decisions]
            )
