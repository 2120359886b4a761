"""Lines of a stream become rows, with a reason for every line that does not."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from buttress._words import did_you_mean
from buttress.tables._text import text_kind
from buttress.tables.grammar import (
    LARGEST,
    Malformed,
    csv_fields,
    delimiter_of,
    field_label,
    has_decimal_comma,
    header_names,
    is_blank,
    json_fields,
    to_label,
    to_number,
)
from buttress.tables.other_files import NOT_UTF8
from buttress.tables.stream.outputs import StreamChanged
from buttress.tables.table import boolean_hint, listed

# Of a text where nobody knows categories.
_NUMBERS_ONLY = (
    "; --features names columns of numbers, and --from goes on with a fitted model of categories"
)


@dataclass(frozen=True)
class Row:
    """One row of the stream.

    Attributes
    ----------
    line : int
        Its line in the input, counted from 1, a CSV header included.
    values : list
        One per feature: a number, the text of a category, or None where it is missing.
    label : int, str or None
        Exactly as written; None when the row has none.
    key : str or None
    """

    line: int
    values: list[Any]
    label: int | str | None
    key: str | None


class LineReader:
    """Whole lines of a binary stream, with the position behind the last one.

    Parameters
    ----------
    file : binary file, or anything with its `readline`
    name : str
        For the messages.
    seekable : bool
        Whether the file can be read again from its start; otherwise it is sent again.
    growing : bool
        Whether a last line without its end may still be being written.
    """

    def __init__(
        self, file: Any, name: str = "the input", *, seekable: bool, growing: bool = False
    ) -> None:
        self.file = file
        self.name = name
        self.seekable = seekable
        self.growing = growing
        self.offset = 0
        self.lines = 0
        self._read = hashlib.sha256()
        self._rest = b""
        self._open_end = False
        self.mark()

    def next(self) -> str | None:
        """The next line without its end, or None when there is none (yet)."""
        raw = self._rest + (self.file.readline() or b"")
        if not raw:
            return None
        if self.growing and not raw.endswith(b"\n"):
            self._rest = raw
            return None
        self._rest = b""
        self._took(raw)
        self.lines += 1
        text = raw.decode("utf-8", errors="surrogateescape").rstrip("\r\n")
        # the byte order mark of some editors
        return text.removeprefix("\ufeff") if self.lines == 1 else text

    def _took(self, raw: bytes) -> None:
        self.offset += len(raw)
        self._read.update(raw)
        self._open_end = not raw.endswith(b"\n")

    def mark(self) -> None:
        """Remember this place: `state` describes it until the next mark."""
        self._marked = (self.offset, self.lines, self._read.copy())

    def state(self) -> dict[str, Any]:
        """The marked place, and a fingerprint of everything before it."""
        offset, lines, read = self._marked
        return {"offset": offset, "lines": lines, "sha256": read.hexdigest()}

    def skip_to(self, state: Mapping[str, Any]) -> None:
        """Continue behind what an earlier run has read.

        Raises
        ------
        StreamChanged
            When the input is shorter than that, or another one.
        """
        wanted = int(state["offset"])
        self.lines = int(state["lines"])
        if getattr(self.file, "forgets", False):
            self.mark()
            return
        if self.seekable:
            self.file.seek(0)
        while self.offset < wanted:
            chunk = self.file.read(min(wanted - self.offset, 1 << 20))
            if not chunk:
                raise StreamChanged(
                    f"{self.name} is shorter than what was read of it before: {self.offset} of "
                    f"{wanted} bytes"
                )
            self._took(chunk)
        if self._read.hexdigest() != state["sha256"]:
            raise StreamChanged(
                f"{self.name} is not the input that the run began with: its first {wanted} bytes "
                "are others"
            )
        self._finish_line()
        self.mark()

    def _finish_line(self) -> None:
        """The last line of the earlier run may have lacked its end; it must not have grown."""
        if not self._open_end or self.offset == 0:
            return
        after = self.file.read(1)
        if after == b"\n":
            self._took(after)
        elif after == b"\r":
            self._rest = after
        elif after:
            raise StreamChanged(
                f"{self.name} has changed: line {self.lines}, which the run took for whole, goes on"
            )


class PipeLines:
    """Lines of a named pipe; nothing is waited for.

    Parameters
    ----------
    path : Path
    """

    # What was read from a pipe does not come again.
    forgets = True

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


@dataclass
class Columns:
    """The features of a stream, and what may stand in them.

    Attributes
    ----------
    names : list of str or None
        None takes all fields of the header, or of the first JSON object, but label and key.
    categories : mapping of str to list of str
        The known categories of text columns; all other columns are numbers.
    impute : bool
        Whether a missing value is filled in rather than refused.
    """

    names: list[str] | None = None
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    impute: bool = False


class RowParser:
    """Turns lines into rows of the same features.

    Parameters
    ----------
    kind : {"csv", "jsonl"}
    target : str
        Name of the label.
    key : str or None
        Name of the field that identifies a row.
    columns : Columns
    decimal : {".", ","}
        The decimal mark.
    """

    def __init__(
        self, kind: str, target: str, key: str | None, columns: Columns, decimal: str = "."
    ) -> None:
        self.kind = kind
        self.target = target
        self.key = key
        self.features = columns.names
        self.categories = {name: frozenset(known) for name, known in columns.categories.items()}
        self.impute = columns.impute
        self.decimal = decimal
        self.header_line: list[str] | None = None
        self.delimiter = ","

    def header(self, line: str) -> None:
        """Take the delimiter and the names of the CSV columns."""
        _refuse_foreign_bytes(line, NOT_UTF8)
        if "\r" in line:
            raise Malformed("its lines end in CR alone, as on old machines: end them in LF")
        self.delimiter = delimiter_of(line, self.decimal)
        names = header_names(csv_fields(line, self.delimiter))
        self._choose(names)
        assert self.features is not None
        wanted = [*self.features, *([] if self.key is None else [self.key])]
        absent = [name for name in wanted if name not in names]
        if absent:
            hint = did_you_mean(absent[0], names) or f"; it has {listed(names)}"
            raise Malformed(f"the header has no column {listed(absent)}{hint}")
        self.header_line = names

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
        values = [self._value(name, record.get(name)) for name in self.features]
        key = None
        if self.key is not None:
            key = record.get(self.key)
            if key is None or not key.strip():
                raise Malformed(f"the key {self.key!r} is missing")
        label = record.get(self.target)
        if label is None or is_blank(label):
            return Row(line, values, None, key)
        return Row(line, values, to_label(label) if self.kind == "csv" else field_label(label), key)

    def record(self, text: str) -> dict[str, str | None]:
        """The cells of one line by name."""
        _refuse_foreign_bytes(text, "the line is not UTF-8")
        if self.kind != "csv":
            return json_fields(text)
        assert self.header_line is not None
        fields = csv_fields(text, self.delimiter)
        if len(fields) != len(self.header_line):
            odd = (
                "; is it part of a row with a line break in quotes?" if text.count('"') % 2 else ""
            )
            raise Malformed(f"{len(fields)} fields, expected {len(self.header_line)}{odd}")
        return dict(zip(self.header_line, (cell.strip() for cell in fields), strict=True))

    def _value(self, name: str, cell: str | None) -> float | str | None:
        if cell is None or is_blank(cell):
            if self.impute:
                return None
            raise Malformed(f"the feature {name!r} is missing")
        if name in self.categories:
            if cell.strip() not in self.categories[name]:
                hint = boolean_hint([cell.strip()], self.categories[name])
                raise Malformed(f"the feature {name!r} holds an unknown category: {cell!r}{hint}")
            return cell.strip()
        try:
            number = to_number(cell, self.decimal)
        except ValueError:
            hint = "" if self.categories else _NUMBERS_ONLY
            if has_decimal_comma(cell):
                hint = "; is the decimal mark a comma (--decimal ,)?"
            raise Malformed(f"the feature {name!r} is no number: {cell[:80]!r}{hint}") from None
        if not math.isfinite(number):
            raise Malformed(f"the feature {name!r} is not finite: {cell[:80]!r}")
        if abs(number) > LARGEST:
            raise Malformed(f"the feature {name!r} is too large to compute with: {cell[:80]!r}")
        return number


def _refuse_foreign_bytes(text: str, reason: str) -> None:
    """Raise when a line holds bytes that are no UTF-8, which were read as lone surrogates."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Malformed(reason) from None


def guess_kind(path: Path | None, given: str | None) -> str:
    """ "csv" or "jsonl", from the option or the file; standard input is JSON lines."""
    if given is not None:
        return given
    return "jsonl" if path is None else text_kind(path)
