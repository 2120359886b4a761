"""Labels that arrive after their rows: joined by a key, in bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress.cli._stream_rows import LineReader, Malformed, RowParser


class LabelStream:
    """The second stream of a `buttress stream` run.

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
        self.waiting: dict[str, tuple[list[float], int, int]] = {}
        self.early: dict[str, str] = {}
        self.n_given_up = 0

    def label_of(self, key: str) -> str | None:
        """A label that came before its row."""
        return self.early.pop(key, None)

    def wait(self, key: str, features: list[float], position: int, answer: int) -> None:
        """Keep an answered row until its label comes."""
        self.waiting[key] = (features, position, answer)
        if len(self.waiting) > self.max_pending:
            self.waiting.pop(next(iter(self.waiting)))
            self.n_given_up += 1

    def next(self) -> tuple[str, str] | None:
        """The next key and label, or None when there is none now.

        Raises
        ------
        Malformed
            When the line is neither.
        """
        text = self.reader.next()
        if text is None:
            return None
        if self.parser.kind == "csv" and self.parser.columns is None:
            self.parser.header(text)
            return self.next()
        row = self.parser.parse(text, self.reader.lines)
        assert row.key is not None
        if row.label is None:
            raise Malformed(f"the label {self.parser.target!r} is missing")
        return row.key, row.label

    def keep_early(self, key: str, label: str) -> None:
        """Keep a label whose row has not come."""
        self.early[key] = label
        if len(self.early) > self.max_pending:
            self.early.pop(next(iter(self.early)))

    def state(self) -> dict[str, Any]:
        rows = list(self.waiting.values())
        return {
            "offset": self.reader.offset,
            "lines": self.reader.lines,
            "columns": self.parser.columns,
            "delimiter": self.parser.delimiter,
            "keys": list(self.waiting),
            "features": np.array([row[0] for row in rows], dtype=np.float64),
            "positions": np.array([row[1] for row in rows], dtype=np.int64),
            "answers": np.array([row[2] for row in rows], dtype=np.int64),
            "early_keys": list(self.early),
            "early_labels": list(self.early.values()),
            "given_up": self.n_given_up,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.reader.skip_to(int(state["offset"]), int(state["lines"]))
        self.parser.columns = state["columns"]
        self.parser.delimiter = state.get("delimiter", ",")
        self.waiting = {
            key: (features.tolist(), int(position), int(answer))
            for key, features, position, answer in zip(
                state["keys"], state["features"], state["positions"], state["answers"], strict=True
            )
        }
        self.early = dict(zip(state["early_keys"], state["early_labels"], strict=True))
        self.n_given_up = int(state["given_up"])
