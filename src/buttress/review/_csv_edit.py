"""CSV files with some labels changed: every other byte stays as it was."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from buttress._files import replacing
from buttress.tables.grammar import Malformed, csv_records, csv_rows, delimiter_of
from buttress.tables.other_files import NOT_UTF8, other_kind
from buttress.tables.table import TableError

_QUOTE = '"'


def read_csv_as_written(path: Path) -> dict[str, list[str | None]]:
    """Every column of a CSV file as text, stripped of surrounding blanks."""
    names: list[str] = []
    columns: list[list[str | None]] = []
    for _, record in _records(path):
        if not names:
            names = record
            columns = [[] for _ in names]
        elif record:
            for column, value in zip(columns, record, strict=True):
                column.append(value)
    return dict(zip(names, columns, strict=True))


def write_csv_with_labels(
    source: Path, goal: Path, target: str, changed: Mapping[int, str]
) -> None:
    """Copy a CSV file, with new labels in the rows of `changed` (counted from 0).

    Only the label's own characters are replaced; quotes, blanks, line ends and the other
    fields of its row stay.
    """
    text = _text(source)
    delimiter = _delimiter(text)
    pieces, row, column = [], -1, -1
    for raw, record in _records(source):
        if record and column < 0:
            column = record.index(target)
        elif record:
            row += 1
            if row in changed:
                start, end = field_spans(raw, delimiter)[column]
                raw = raw[:start] + _quoted(changed[row], delimiter) + raw[end:]
        pieces.append(raw)
    data = "".join(pieces).encode()
    with replacing(goal) as file:
        file.write(gzip.compress(data) if goal.suffix.lower() == ".gz" else data)


def field_spans(record: str, delimiter: str) -> list[tuple[int, int]]:
    """Where the fields of a record stand, without the blanks around them.

    Examples
    --------
    >>> field_spans('1, "a,b" ,c\\n', ",")
    [(0, 1), (3, 8), (10, 11)]
    """
    spans, start = [], 0
    quoted, fresh, closed = False, True, False
    body = record.rstrip("\r\n")
    for position, sign in enumerate(body):
        if quoted:
            quoted, closed = sign != _QUOTE, sign == _QUOTE
        elif sign == _QUOTE and (fresh or closed):
            # A quote opens a field at its start; right after a closing one it stands for itself.
            quoted, fresh, closed = True, False, False
        elif sign == delimiter:
            spans.append(_without_blanks(body, start, position))
            start, fresh, closed = position + 1, True, False
        else:
            fresh, closed = fresh and sign == " ", False
    spans.append(_without_blanks(body, start, len(body)))
    return spans


def _without_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] in " \t":
        start += 1
    while end > start and text[end - 1] in " \t":
        end -= 1
    return start, end


def _quoted(label: str, delimiter: str) -> str:
    if any(sign in label for sign in (delimiter, _QUOTE, "\n", "\r")) or label != label.strip():
        return _QUOTE + label.replace(_QUOTE, 2 * _QUOTE) + _QUOTE
    return label


def _records(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Raw text and fields of every record, blank lines (without fields) included."""
    text = _text(path)
    file: IO[str] = io.StringIO(text, newline="")
    taken: list[str] = []
    width = 0

    def lines() -> Iterator[str]:
        for line in file:
            first = not taken and not width
            taken.append(line)
            yield line.removeprefix("\ufeff") if first else line

    reader = csv_rows(lines(), _delimiter(text))
    try:
        for fields in csv_records(reader):
            raw = "".join(taken)
            taken.clear()
            record = [value.strip() for value in fields]
            if width != 1 and record in ([""], []):
                yield raw, []  # a line of blanks is a blank line, as it is for the other readers
                continue
            if width and record and len(record) != width:
                raise TableError(
                    f"{path}, line {reader.line_num}: {len(record)} fields, the header has {width}"
                )
            width = width or len(record)
            yield raw, record
    except Malformed as reason:
        raise TableError(f"{path}, {reason}") from None
    if not width:
        raise TableError(f"{path}: the file is empty")


def _delimiter(text: str) -> str:
    """The delimiter of the header, which blank lines may stand before."""
    lines = io.StringIO(text, newline="")
    return delimiter_of(next((line for line in lines if line.strip("\ufeff \t\r\n")), ""))


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if path.suffix.lower() == ".gz":
            data = gzip.decompress(data)
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise TableError(f"{path}: {other_kind(path) or NOT_UTF8}") from None
    except (EOFError, gzip.BadGzipFile):
        raise TableError(f"{path}: the compressed file is damaged") from None
