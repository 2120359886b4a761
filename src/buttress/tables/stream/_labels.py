"""Labels that arrive after their rows: joined by a key, in bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress.tables.grammar import Malformed
from buttress.tables.stream.rows import LineReader, RowParser
from buttress.tables.table import objects


class LabelStream:
    """The second stream of a run.

    Parameters
    ----------
    reader : LineReader
        Lines with the key and the label.
    parser : RowParser
        Knows their names; has no features.
    max_pending : int
        Rows that wait for a label at most, and labels that wait for a row; the oldest go.
    """

    def __init__(self, reader: LineReader, parser: RowParser, max_pending: int) -> None:
        self.reader = reader
        self.parser = parser
        self.max_pending = max_pending
        self.waiting: dict[str, tuple[list[Any], int, int]] = {}
        self.early: dict[str, int | str] = {}
        self.n_given_up = 0

    def label_of(self, key: str) -> int | str | None:
        """A label that came before its row."""
        return self.early.pop(key, None)

    def wait(self, key: str, values: list[Any], position: int, answer: int) -> None:
        """Keep an answered row until its label comes."""
        self.waiting[key] = (values, position, answer)
        if len(self.waiting) > self.max_pending:
            self.waiting.pop(next(iter(self.waiting)))
            self.n_given_up += 1

    def next(self) -> tuple[str, int | str] | None:
        """The next key and label, or None when there is none now.

        Raises
        ------
        Malformed
            When the line is neither.
        """
        text = self.reader.next()
        if text is None:
            return None
        if self.parser.kind == "csv" and self.parser.header_line is None:
            try:
                self.parser.header(text)
            except Malformed as reason:
                raise ValueError(f"{self.reader.name}: {reason}") from None
            return self.next()
        if not text.strip():
            return self.next()
        row = self.parser.parse(text, self.reader.lines)
        assert row.key is not None
        if row.label is None:
            raise Malformed(f"the label {self.parser.target!r} is missing")
        return row.key, row.label

    def keep_early(self, key: str, label: int | str) -> None:
        """Keep a label whose row has not come."""
        self.early[key] = label
        if len(self.early) > self.max_pending:
            self.early.pop(next(iter(self.early)))

    def state(self) -> dict[str, Any]:
        """What a resumed run needs."""
        rows = list(self.waiting.values())
        self.reader.mark()
        return {
            "input": self.reader.state(),
            "header": self.parser.header_line,
            "delimiter": self.parser.delimiter,
            "keys": list(self.waiting),
            "values": _packed([row[0] for row in rows]),
            "positions": np.array([row[1] for row in rows], dtype=np.int64),
            "answers": np.array([row[2] for row in rows], dtype=np.int64),
            "early_keys": list(self.early),
            "early_labels": list(self.early.values()),
            "given_up": self.n_given_up,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a state; the reader has skipped to its place already."""
        self.parser.header_line = state["header"]
        self.parser.delimiter = state["delimiter"]
        self.waiting = {
            key: (values, int(position), int(answer))
            for key, values, position, answer in zip(
                state["keys"],
                _unpacked(state["values"]),
                state["positions"],
                state["answers"],
                strict=True,
            )
        }
        self.early = dict(zip(state["early_keys"], state["early_labels"], strict=True))
        self.n_given_up = int(state["given_up"])


def _packed(rows: list[list[Any]]) -> Any:
    """Rows of numbers as one array, rows with text one by one."""
    if any(isinstance(value, str) for row in rows for value in row):
        return [objects(row) for row in rows]
    return np.array([[np.nan if v is None else v for v in row] for row in rows], dtype=np.float64)


def _unpacked(rows: Any) -> list[list[Any]]:
    return [
        [None if isinstance(value, float) and value != value else value for value in row.tolist()]
        for row in rows
    ]
