"""Rows of a request body: JSON, JSON lines or CSV, read strictly."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NoReturn

from buttress.serve.errors import RequestError
from buttress.tables.grammar import MISSING, csv_reason, csv_rows, delimiter_of, is_blank_line
from buttress.tables.table import listed

try:
    import orjson
except ImportError:  # the standard library reads the same, several times slower
    orjson = None  # type: ignore[assignment]

FORMATS = {
    "application/json": "json",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/x-jsonlines": "jsonl",
    "text/csv": "csv",
}


@dataclass(frozen=True)
class RequestRows:
    """The rows of a request.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    values : list of sequences
        One entry per row, in the order of `names`; None for a missing value. Numbers of a CSV
        body are text still.
    form : {"json", "jsonl", "csv"}
    """

    names: tuple[str, ...]
    values: Sequence[Sequence[Any]]
    form: str

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class OptionalColumns:
    """The columns that some rows of a request may have and others not.

    Attributes
    ----------
    model : frozenset of str
        The model's columns: all rows have them.
    kept : sequence of str
        Columns that rows may lack; they are missing there.
    lenient : bool
        Rows may differ in all others too. Those that some rows lack are left out.
    """

    model: frozenset[str] = frozenset()
    kept: Sequence[str] = ()
    lenient: bool = False

    def __contains__(self, name: str) -> bool:
        return name not in self.model and (self.lenient or name in self.kept)


# Every row has the columns of the first.
_NONE_OPTIONAL = OptionalColumns()


def format_of(content_type: str | None) -> str:
    """The form of a body by its content type; JSON when none is given.

    Examples
    --------
    >>> format_of("text/csv; charset=utf-8"), format_of(None)
    ('csv', 'json')
    """
    if not content_type:
        return "json"
    kind, _, settings = content_type.partition(";")
    form = FORMATS.get(kind.strip().lower())
    if form is None:
        raise RequestError(
            f"content type {kind.strip()[:80]!r} is not accepted: {', '.join(sorted(FORMATS))}", 415
        )
    charset = settings.lower().replace(" ", "").replace('"', "")
    if "charset=" in charset and "charset=utf-8" not in charset:
        raise RequestError("the body must be in UTF-8", 415)
    return form


def read_rows(
    body: bytes,
    form: str,
    columns: Sequence[str],
    most_rows: int,
    optional: OptionalColumns = _NONE_OPTIONAL,
) -> RequestRows:
    """The rows of a body.

    Parameters
    ----------
    body : bytes
    form : {"json", "jsonl", "csv"}
    columns : sequence of str
        The model's columns, which lists of values without names are in the order of.
    most_rows : int
        More are refused.
    optional : OptionalColumns
        In which columns objects of JSON may differ; in none when not given.

    Examples
    --------
    >>> read_rows(b'{"rows": [{"a": 1, "b": null}]}', "json", ["a", "b"], 10).values
    [(1, None)]
    """
    if form == "json" and (quick := _quickly_read(body)) is not None:
        return _rows_of(quick, columns, most_rows, optional)
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError("the body is not text in UTF-8", 400) from None
    if form == "csv":
        return _csv_rows(text, most_rows)
    if form == "jsonl":
        records = [
            read_json(line, f"line {number}")
            for number, line in enumerate(text.split("\n"), start=1)
            if line.strip()
        ]
        _check_number(len(records), most_rows)
        return _records(records, tuple(columns), form, optional)
    return _rows_of(read_json(text, "the body"), columns, most_rows, optional)


def _rows_of(
    content: Any, columns: Sequence[str], most_rows: int, optional: OptionalColumns
) -> RequestRows:
    """The rows of a JSON body."""
    names = tuple(columns)
    if isinstance(content, dict):
        if "rows" not in content:
            raise RequestError('expected {"rows": [...]} or a list of rows')
        if "columns" in content:
            names = _names(content["columns"])
        content = content["rows"]
    if not isinstance(content, list):
        raise RequestError('expected {"rows": [...]} or a list of rows')
    _check_number(len(content), most_rows)
    return _records(content, names, "json", optional)


def _quickly_read(body: bytes) -> Any:
    """What the strict reader would give, by the fast one; None where that is not certain.

    The fast reader refuses NaN and infinite numbers by itself, but takes the last of two equal
    names. Every name in the text is followed by a colon, so when there are as many colons as
    names were read, none was doubled.
    """
    if orjson is None:
        return None
    try:
        content = orjson.loads(body)
    except ValueError:
        return None  # the strict reader says what is wrong
    rows, n_names = content, 0
    if type(content) is dict:
        rows, n_names = content.get("rows"), len(content)
    if type(rows) is not list or not rows:
        return None
    if dict in (kinds := set(map(type, rows))):
        if len(kinds) > 1:
            return None
        n_names += sum(map(len, rows))
    return content if body.count(b":") == n_names else None


def read_json(text: str | bytes, what: str) -> Any:
    """Strict JSON: no NaN, no doubled names, no endless nesting."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except RecursionError:
        raise RequestError(f"{what} is nested too deeply", 400) from None
    except UnicodeDecodeError:
        raise RequestError(f"{what} is not text in UTF-8", 400) from None
    except ValueError as error:
        # Numbers of thousands of digits are refused by Python itself.
        raise RequestError(f"{what} is not JSON: {str(error)[:120]}", 400) from None


def write_json(content: Any) -> bytes:
    """JSON without blanks."""
    if orjson is not None:
        return bytes(orjson.dumps(content))
    return json.dumps(content, separators=(",", ":")).encode()


def _refuse_constant(name: str) -> NoReturn:
    raise RequestError(f"{name} is not a JSON number; write null for a missing value", 400)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise RequestError("a name appears twice in one object", 400)
    return record


def _names(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RequestError('"columns" must be a list of names')
    if len(set(names)) < len(names):
        raise RequestError('"columns" names a column twice')
    return tuple(names)


def _records(
    records: list[Any], names: tuple[str, ...], form: str, optional: OptionalColumns
) -> RequestRows:
    first = records[0]
    if isinstance(first, dict):
        names = tuple(first)
        try:
            if set(map(len, records)) == {len(names)}:
                return RequestRows(names, list(map(picker(names), records)), form)
        except (TypeError, KeyError):
            pass  # as many names, but others
        return _unlike_records(records, form, optional)
    for number, record in enumerate(records, start=1):
        if not isinstance(record, list):
            raise RequestError(f"row {number} is neither an object nor a list of values")
        if len(record) != len(names):
            raise RequestError(f"row {number} has {len(record)} values, expected {len(names)}")
    return RequestRows(names, records, form)


def picker(keys: Sequence[Any]) -> Callable[[Any], Sequence[Any]]:
    """What takes the values under some keys out of a row, in that order.

    Examples
    --------
    >>> picker(["b"])({"a": 1, "b": 2}), picker([1, 0])([3, 4])
    ((2,), (4, 3))
    """
    if len(keys) == 1:
        (key,) = keys
        return lambda row: (row[key],)
    return itemgetter(*keys) if keys else lambda row: ()


def _unlike_records(records: list[Any], form: str, optional: OptionalColumns) -> RequestRows:
    """Rows that differ in columns that they may differ in.

    A name that some rows lack stays only where it is kept: a body of a thousand rows may have a
    thousand such names, and the table of them a million values.
    """
    if not all(isinstance(record, dict) for record in records):
        _name_odd_record(records, optional)
    common = set(records[0]).intersection(*records)
    some = set().union(*records) - common
    if not all(name in optional for name in some):
        _name_odd_record(records, optional)
    names = [name for name in records[0] if name in common]
    names += [name for name in optional.kept if name in some]
    values = [tuple(map(record.get, names)) for record in records]
    return RequestRows(tuple(names), values, form)


def _name_odd_record(records: list[Any], optional: OptionalColumns) -> NoReturn:
    """Say which row is not as the first."""
    first = dict.fromkeys(name for name in records[0] if name not in optional)
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise RequestError(f"row {number} is not an object as the first row is")
        for name in first:
            if name not in record:
                raise RequestError(f"row {number} has no column {name!r}")
        more = [name for name in record if name not in first and name not in optional]
        if more:
            named = listed(more, 3)
            raise RequestError(f"row {number} has the column {named}, the first row has not")
    raise AssertionError("every row is as the first")


def _csv_rows(text: str, most_rows: int) -> RequestRows:
    header = next((line for line in text.split("\n") if line.strip()), "")
    reader = csv_rows(io.StringIO(text, newline=""), delimiter_of(header))
    try:
        first: list[str] = next((one for one in reader if not is_blank_line(one)), [])
        names = tuple(name.strip() for name in first)
        if not names:
            raise RequestError("the body is empty: expected CSV with a header", 400)
        if len(set(names)) < len(names):
            raise RequestError("the header names a column twice")
        values: list[Sequence[Any]] = []
        for record in reader:
            if not record or (len(names) > 1 and is_blank_line(record)):
                continue
            if len(record) != len(names):
                raise RequestError(
                    f"line {reader.line_num} has {len(record)} fields, the header has {len(names)}"
                )
            stripped = [value.strip() for value in record]
            values.append([None if value in MISSING else value for value in stripped])
            if len(values) > most_rows:
                break
    except csv.Error as error:
        raise RequestError(f"the body is not CSV: {csv_reason(error)}", 400) from None
    _check_number(len(values), most_rows)
    return RequestRows(names, values, "csv")


def _check_number(n_rows: int, most_rows: int) -> None:
    if n_rows == 0:
        raise RequestError("there are no rows in the request")
    if n_rows > most_rows:
        raise RequestError(f"more than {most_rows} rows in one request", 413)
