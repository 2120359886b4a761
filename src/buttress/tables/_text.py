"""Tables from files of text: CSV with a header, or one JSON object per line."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from buttress._files import is_device
from buttress.tables._columns import Kinds
from buttress.tables.grammar import (
    Malformed,
    csv_records,
    csv_rows,
    delimiter_of,
    field_label,
    header_names,
    is_blank_line,
    json_fields,
    refuse_nul,
    to_label,
)
from buttress.tables.other_files import NOT_UTF8
from buttress.tables.table import Table, TableError

# Suffixes that say what text is in a file.
_KINDS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
}
# How JSON begins: with an object, or an array of them. A header of CSV may begin "[id],[name]".
_JSON = re.compile(r"\{|\[\s*(\{|$)")
_JSON_BLANKS = " \t\r\n"


def suffix_of(path: Path) -> str:
    """The suffix that says what a file is, without the one of its compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def text_kind(path: Path) -> str:
    """What text is in a file, "csv" or "jsonl": by its suffix, else by its first character.

    What can be read only once, as a pipe, is not looked into: it holds JSON lines.
    """
    kind = _KINDS.get(suffix_of(path))
    if kind is not None:
        return kind
    if is_device(path):
        return "jsonl"
    with opened(path, errors="surrogateescape") as file:
        first = next((line.strip(_JSON_BLANKS) for line in file if line.strip()), "")
    # A file without a line yet is like a pipe.
    return "jsonl" if not first or _JSON.match(first) else "csv"


def csv_names(path: Path, decimal: str) -> list[str]:
    """The columns of a CSV file."""
    with opened(path) as file:
        return _csv_header(path, file, decimal)[0]


def jsonl_names(path: Path) -> list[str]:
    """The fields of a file of JSON lines, in the order in which they come."""
    with opened(path) as file:
        names: dict[str, None] = {}
        for _, record in _records(path, file):
            names.update(dict.fromkeys(record))
    if not names:
        raise TableError(f"{path}: the file is empty")
    return list(names)


def _csv_header(path: Path, file: IO[str], decimal: str) -> tuple[list[str], Any]:
    """Names of the columns, and the reader behind them."""
    lines = lines_without_nul(path, file)
    # Blank lines before the header are skipped, as those behind it are.
    start = []
    for line in lines:
        start.append(line)
        if line.strip():
            break
    reader = csv_rows(chain(start, lines), delimiter_of("".join(start[-1:]), decimal))
    fields = next((row for row in csv_records(reader) if not is_blank_line(row)), [])
    try:
        return header_names(fields), reader
    except Malformed as reason:
        raise TableError(f"{path}: {reason}") from None


def iter_csv(path: Path, block_rows: int, kinds: Kinds) -> Iterator[Table]:
    """Blocks of rows of a CSV file."""
    with opened(path) as file:
        names, reader = _csv_header(path, file, kinds.decimal)
        n_read = 0
        while True:
            rows, lines = _csv_block(path, reader, len(names), block_rows)
            if not rows:
                break
            n_read += len(rows)
            cells = dict(zip(names, zip(*rows, strict=True), strict=True))
            yield kinds.table(cells, lines, to_label)
        if n_read == 0:
            raise TableError(f"{path}: the file has a header but no rows")


def iter_jsonl(path: Path, block_rows: int, kinds: Kinds) -> Iterator[Table]:
    """Blocks of rows of a file of JSON lines; a field that a line has not is missing."""
    names = jsonl_names(path)
    with opened(path) as file:
        records = _records(path, file)
        while block := list(islice(records, block_rows)):
            lines = [line for line, _ in block]
            cells = {name: [record.get(name) for _, record in block] for name in names}
            yield kinds.table(cells, lines, field_label)


@contextmanager
def opened(path: Path, errors: str = "strict") -> Iterator[IO[str]]:
    """The text of a file; whatever is wrong with it ends as a `TableError`."""
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="") as unpacked:
                yield unpacked
        else:
            with open(path, encoding="utf-8-sig", errors=errors, newline="") as file:
                yield file
    except UnicodeDecodeError:
        raise TableError(f"{path}: {NOT_UTF8}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TableError(f"{path}: the compressed file is damaged") from None
    except Malformed as reason:
        raise TableError(f"{path}, {reason}") from None


def lines_without_nul(path: Path, file: IO[str]) -> Iterator[str]:
    """The lines of a file, none of which may hold a NUL byte."""
    for number, line in enumerate(file, start=1):
        try:
            refuse_nul(line)
        except Malformed as reason:
            raise TableError(f"{path}, line {number}: {reason}") from None
        yield line


def _csv_block(
    path: Path, reader: Any, width: int, block_rows: int
) -> tuple[list[list[str]], list[int]]:
    rows: list[list[str]] = []
    lines: list[int] = []
    for row in csv_records(reader):
        if not row or (width > 1 and is_blank_line(row)):
            continue
        if len(row) != width:
            raise TableError(
                f"{path}, line {reader.line_num}: {len(row)} fields, the header has {width}"
            )
        rows.append(row)
        lines.append(reader.line_num)
        if len(rows) == block_rows:
            break
    return rows, lines


def _records(path: Path, file: IO[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            yield number, json_fields(line)
        except Malformed as reason:
            array = line.lstrip().startswith("[")
            hint = "; an array becomes one object per line with jq -c '.[]'" if array else ""
            raise TableError(f"{path}, line {number}: {reason}{hint}") from None
