"""Lines of a stream become rows: JSON lines or CSV, with a reason for every line that does not."""

from __future__ import annotations

import csv
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Malformed(Exception):
    """The reason why a line is no row."""


@dataclass(frozen=True)
class Row:
    """One row of the stream.

    Attributes
    ----------
    line : int
        Its line in the input, counted from 1, a CSV header included.
    features : list of float
    label, key : str or None
        None when the row has none.
    """

    line: int
    features: list[float]
    label: str | None
    key: str | None


class LineReader:
    """Whole lines of a binary stream, with the position behind the last one.

    Parameters
    ----------
    file : binary file, or anything with its `readline`
    seekable : bool
        Whether `skip_to` may jump; otherwise it reads and drops.
    growing : bool
        Whether a last line without its end may still be being written.
    """

    def __init__(self, file: Any, *, seekable: bool, growing: bool = False) -> None:
        self.file = file
        self.seekable = seekable
        self.growing = growing
        self.offset = 0
        self.lines = 0
        self._rest = b""

    def skip_to(self, offset: int, lines: int) -> None:
        """Continue behind what an earlier run has read."""
        if self.seekable:
            self.file.seek(offset)
        else:
            left = offset
            while left > 0:
                chunk = self.file.read(min(left, 1 << 20))
                if not chunk:
                    break
                left -= len(chunk)
        self.offset, self.lines, self._rest = offset, lines, b""

    def next(self) -> str | None:
        """The next line without its end, or None when there is none (yet)."""
        part = self.file.readline()
        raw = self._rest + (part or b"")
        if not raw:
            return None
        if self.growing and not raw.endswith(b"\n"):
            self._rest = raw
            return None
        self._rest = b""
        self.offset += len(raw)
        self.lines += 1
        return raw.decode("utf-8", errors="replace").rstrip("\r\n")


class PipeLines:
    """Lines of a named pipe; nothing is waited for.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._rest = b""

    def readline(self) -> bytes:
        """A whole line, or nothing when none has arrived."""
        if b"\n" not in self._rest:
            try:
                self._rest += os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                return b""
        head, end, tail = self._rest.partition(b"\n")
        if not end:
            return b""
        self._rest = tail
        return head + end


class RowParser:
    """Turns lines into rows of the same features.

    Parameters
    ----------
    kind : {"csv", "jsonl"}
    target : str
        Name of the label.
    key : str or None
        Name of the field that identifies a row.
    features : list of str or None
        Their names; None takes all others of the header, or of the first JSON object.
    """

    def __init__(self, kind: str, target: str, key: str | None, features: list[str] | None) -> None:
        self.kind = kind
        self.target = target
        self.key = key
        self.features = features
        self.columns: list[str] | None = None
        self.delimiter = ","

    def header(self, line: str) -> None:
        """Take the delimiter and the names of the CSV columns."""
        from buttress.tables.grammar import delimiter_of

        line = line.removeprefix("\ufeff")  # the byte order mark of some editors
        self.delimiter = delimiter_of(line)
        self.columns = [name.strip() for name in _split(line, self.delimiter)]
        doubled = sorted({name for name in self.columns if self.columns.count(name) > 1})
        if doubled:
            raise ValueError(f"the header has the column {doubled} more than once")
        self._choose(self.columns)
        assert self.features is not None
        wanted = [*self.features, *([self.key] if self.key else [])]
        absent = [name for name in wanted if name not in self.columns]
        if absent:
            raise ValueError(f"the header has no column {absent}: {self.columns}")

    def _choose(self, names: list[str]) -> None:
        if self.features is None:
            self.features = [name for name in names if name not in (self.target, self.key)]

    def parse(self, text: str, line: int) -> Row:
        """The row of one line.

        Raises
        ------
        Malformed
            With the reason.
        """
        record = self.record(text)
        if self.features is None:
            self._choose(list(record))
        assert self.features is not None
        values = [_number(name, record) for name in self.features]
        key = None
        if self.key is not None:
            key = _text(record.get(self.key))
            if key is None:
                raise Malformed(f"the key {self.key!r} is missing")
        return Row(line, values, _text(record.get(self.target)), key)

    def record(self, text: str) -> dict[str, Any]:
        """The fields of one line by name."""
        if self.kind == "csv":
            assert self.columns is not None
            fields = _split(text, self.delimiter)
            if len(fields) != len(self.columns):
                raise Malformed(f"{len(fields)} fields, expected {len(self.columns)}")
            return dict(zip(self.columns, (field.strip() for field in fields), strict=True))
        try:
            record = json.loads(text)
        except ValueError as error:
            raise Malformed(f"not JSON: {error}") from None
        if not isinstance(record, dict):
            raise Malformed("not a JSON object")
        return record


def _split(text: str, delimiter: str) -> list[str]:
    try:
        rows = list(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise Malformed(f"not CSV: {error}") from None
    return rows[0] if rows else []


def _number(name: str, record: dict[str, Any]) -> float:
    value = record.get(name)
    if value is None or value == "":
        raise Malformed(f"the feature {name!r} is missing")
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise Malformed(f"the feature {name!r} is no number: {value!r}")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise Malformed(f"the feature {name!r} is no number: {value!r}") from None
    if not math.isfinite(number):
        raise Malformed(f"the feature {name!r} is not finite: {value!r}")
    return number


def _text(value: Any) -> str | None:
    """A label or key as text; None, NaN and the empty string are no value."""
    if value is None or value == "" or value != value:
        return None
    return value if isinstance(value, str) else json.dumps(value)


def guess_kind(path: Path | None, given: str | None) -> str:
    """ "csv" or "jsonl", from the option or the file's name; standard input is JSON lines."""
    if given is not None:
        return given
    return "csv" if path is not None and path.suffix.lower() == ".csv" else "jsonl"
