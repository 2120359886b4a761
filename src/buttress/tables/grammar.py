"""One grammar of cells: what is missing, what is a number, what is a label.

A cell is the text between two delimiters of a CSV line, or the value of a field of a JSON line:
its string, the digits of its number as they stand there, "True" or "False", or nothing for
null. `buttress fit`, `predict` and `stream` read both through this module.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array

# Every spelling of NaN that float() takes: what is missing among numbers is so among texts.
_NAN = map("".join, product(("", "+", "-"), "nN", "aA", "nN"))
# What stands for "no value". "None" is not in it: it is a common category.
MISSING = frozenset({"", "NA", "N/A", "n/a", "NULL", "null", "?", "#N/A", *_NAN})

# Numbers that can be computed with: squares of their differences must stay finite, also after a
# division by a small spread.
LARGEST = 1e100

_DELIMITERS = ",;\t|"
_WHOLE = re.compile(r"-?[1-9][0-9]*|0")
_WITH_COMMA = re.compile(r"[+-]?([0-9]+,[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?")
_SMALLEST, _LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
# What a spreadsheet takes for the start of a formula, or skips before one.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
# Levels of brackets in a JSON line. A row is one level; the parser's own limit is the stack's.
_DEEPEST = 50


class Malformed(ValueError):
    """The reason why a line is no row."""


# -- cells -------------------------------------------------------------------------------------


def is_blank(cell: str | None) -> bool:
    """Whether a cell holds no value.

    Examples
    --------
    >>> is_blank(" NA "), is_blank("-NAN"), is_blank("None"), is_blank("0")
    (True, True, False, False)
    """
    return cell is None or cell.strip() in MISSING


def to_number(cell: str, decimal: str = ".") -> float:
    """The number in a cell, which must not be blank.

    Python's own ``1_000`` and digits of other scripts are no numbers here.

    Parameters
    ----------
    cell : str
    decimal : {".", ","}
        The decimal mark. With a comma, a point is no part of a number.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> to_number(" 1.5e3 "), to_number("1,5", decimal=",")
    (1500.0, 1.5)
    >>> to_number("1_000")
    Traceback (most recent call last):
    ...
    ValueError: '1_000' is no number
    """
    text = cell.strip()
    if decimal == "," and not isinstance(cell, _Digits):
        text = "." if "." in text else text.replace(",", ".", 1)
    if "_" in text or not text.isascii():
        raise ValueError(f"{cell!r} is no number")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{cell!r} is no number") from None


def to_numbers(cells: Sequence[str | None], decimal: str = ".") -> Array:
    """Many cells at once, NaN where a cell is blank.

    Raises
    ------
    ValueError
        When one is neither blank nor a number.
    """
    if decimal == "." and None not in cells:
        together = "".join(cells)  # type: ignore[arg-type]
        if "_" not in together and together.isascii():
            try:
                return np.fromiter(map(float, cells), np.float64, len(cells))  # type: ignore[arg-type]
            except ValueError:
                pass
    return np.array(
        [math.nan if is_blank(cell) else to_number(cell or "", decimal) for cell in cells]
    )


def looks_numeric(cell: str, decimal: str = ".") -> bool:
    """Whether a cell is a number."""
    try:
        to_number(cell, decimal)
    except ValueError:
        return False
    return True


def has_decimal_comma(cell: str) -> bool:
    """Whether a cell is a number written with a decimal comma.

    Examples
    --------
    >>> has_decimal_comma("-3,14"), has_decimal_comma("3.14"), has_decimal_comma("1,2,3")
    (True, False, False)
    """
    return _WITH_COMMA.fullmatch(cell.strip()) is not None


def to_label(cell: str) -> int | str:
    """A label exactly as it is written: an int where its digits are the int's own.

    Examples
    --------
    >>> to_label("7"), to_label("007"), to_label("1.0"), to_label("9007199254740993")
    (7, '007', '1.0', 9007199254740993)
    """
    text = cell.strip()
    if _WHOLE.fullmatch(text) and len(text) < 20 and _SMALLEST <= int(text) <= _LARGEST:
        return int(text)
    return text


def class_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels for a classifier: whole numbers as int, all else as the text it was.

    Parameters
    ----------
    labels : ndarray
        Float as other libraries hand it over, or objects from `to_label`.

    Examples
    --------
    >>> class_labels(np.array([1.0, 2.0])), class_labels(np.array([0.5, 1.0]))
    (array([1, 2]), array(['0.5', '1'], dtype='<U3'))
    >>> class_labels(np.array([7, "007"], dtype=object))
    array(['7', '007'], dtype='<U3')
    """
    if labels.dtype.kind == "f":
        if np.all(labels == np.rint(labels)) and np.all(np.abs(labels) < 2**53):
            return labels.astype(np.int64)
        whole = [int(value) if value.is_integer() else value for value in labels.tolist()]
        return np.array([str(value) for value in whole])
    if labels.dtype.kind != "O":
        return labels
    if all(type(label) is int and _SMALLEST <= label <= _LARGEST for label in labels):
        return labels.astype(np.int64)
    return labels.astype(str)


def for_spreadsheet(cell: Any) -> Any:
    """A cell of a CSV file for people: what a spreadsheet would run is marked as text.

    A text that begins with one of ``= + - @``, a tab or a new line, and is no number, gets an
    apostrophe before it. Files that programs read are written without this.

    Examples
    --------
    >>> for_spreadsheet("=cmd|' /C calc'!A0"), for_spreadsheet("-1.5"), for_spreadsheet(-1.5)
    ("'=cmd|' /C calc'!A0", '-1.5', -1.5)
    """
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not looks_numeric(cell):
        return "'" + cell
    return cell


# -- lines -------------------------------------------------------------------------------------


def delimiter_of(header: str, decimal: str = ".") -> str:
    """The delimiter of a CSV file, from its first line; the decimal mark if there is no other.

    Numbers with a decimal comma stand in quotes then, as spreadsheets write them.

    Examples
    --------
    >>> delimiter_of("age;weight, in kg;label"), delimiter_of("age;weight, in kg", decimal=",")
    (';', ';')
    >>> delimiter_of("age,weight,label", decimal=","), delimiter_of("a", decimal=",")
    (',', ';')
    """
    candidates = _DELIMITERS.replace(decimal, "")
    if decimal in header and not any(mark in header for mark in candidates):
        return decimal
    return max(candidates, key=header.count)


def csv_rows(lines: Iterable[str], delimiter: str) -> Any:
    """A reader of CSV rows from lines, the same for files and streams."""
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)


def csv_records(reader: Any) -> Iterator[list[str]]:
    """The rows of a reader of a file; where one is none, the error names the line it began in.

    Raises
    ------
    Malformed
    """
    while True:
        first = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise Malformed(f"line {first}: not a CSV file: {csv_reason(error)}") from None
        if row is None:
            return
        yield row


def is_blank_line(row: Sequence[str]) -> bool:
    """Whether a row is a line without a character but blanks, as editors leave at the end."""
    return len(row) < 2 and not "".join(row).strip()


def csv_text(header: Sequence[Any], rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV, below the names of their columns."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def csv_reason(error: csv.Error) -> str:
    """What is wrong with text that is no CSV.

    Examples
    --------
    >>> csv_reason(csv.Error("unexpected end of data"))
    'a quote is opened and not closed'
    """
    said = str(error)
    if said == "unexpected end of data":
        return "a quote is opened and not closed"
    return f"{said} (is a quote not closed?)" if said.startswith("field larger") else said


def csv_fields(line: str, delimiter: str) -> list[str]:
    """The fields of one line that is a whole row.

    Raises
    ------
    Malformed
    """
    refuse_nul(line)
    try:
        rows = list(csv_rows([line], delimiter))
    except csv.Error as error:
        raise Malformed(f"not CSV: {csv_reason(error)} in this line") from None
    return rows[0] if rows else []


def header_names(fields: Sequence[str]) -> list[str]:
    """The names of the columns, from the fields of the first line.

    Raises
    ------
    Malformed
        When they are no names.
    """
    names = [name.strip() for name in fields]
    if not any(names):
        raise Malformed("the file is empty")
    if all(looks_numeric(name) or has_decimal_comma(name) for name in names):
        raise Malformed("the first line holds numbers, expected the names of the columns")
    if "" in names:
        raise Malformed(f"column {names.index('') + 1} has no name")
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise Malformed(f"column {', '.join(map(repr, doubled))} appears more than once")
    return names


def json_fields(line: str) -> dict[str, Any]:
    """The cells of a JSON line by name; `field_label` can tell a number from a string.

    Raises
    ------
    Malformed
        When the line is no object of plain values, or too deep to be one.

    Examples
    --------
    >>> json_fields('{"id": "007", "x": 1.50, "done": true, "note": null}')
    {'id': '007', 'x': '1.50', 'done': 'True', 'note': None}
    """
    refuse_nul(line)
    if line.count("[") + line.count("{") > _DEEPEST and _depth(line) > _DEEPEST:
        raise Malformed("not a row: brackets within brackets")
    try:
        record = json.loads(
            line,
            parse_int=_Digits,
            parse_float=_Digits,
            parse_constant=_Digits,
            object_pairs_hook=_once_each,
        )
    except Malformed:
        raise
    except ValueError as error:
        raise Malformed(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise Malformed("not a JSON object")
    if "\\u" in line:
        for text in (*record, *record.values()):
            _refuse_escapes(text)
    return {name: _cell(name, value) for name, value in record.items()}


class _Digits(str):
    """The digits of a JSON number, as they stand in the line."""

    __slots__ = ()


def field_label(cell: str) -> int | str:
    """The label of a field: a string of a JSON line as it is, digits follow `to_label`.

    Blanks in a string are part of it; those around a cell of CSV are how the line is set.
    """
    return to_label(cell) if isinstance(cell, _Digits) else cell


def _refuse_escapes(text: Any) -> None:
    """Raise when an escape of JSON made what no text holds: a NUL, or half of a character."""
    if not isinstance(text, str):
        return
    refuse_nul(text)
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise Malformed(f"{text!a} holds half of a character (a lone surrogate)")


def _cell(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)  # as in a CSV file that Python or pandas wrote, and in Parquet
    raise Malformed(f"the field {name!r} holds {type(value).__name__}, expected a number or text")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        doubled = sorted({name for name in names if names.count(name) > 1})
        raise Malformed(f"the field {', '.join(map(repr, doubled))} appears more than once")
    return record


def _depth(line: str) -> int:
    """Levels of brackets outside of strings."""
    depth = deepest = 0
    quoted = escaped = False
    for sign in line:
        if quoted:
            quoted = escaped or sign != '"'
            escaped = sign == "\\" and not escaped
        elif sign == '"':
            quoted = True
        elif sign in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth -= 1
    return deepest


def refuse_nul(line: str) -> None:
    """Raise when a line holds a NUL byte: it is from a broken write, or no text."""
    if "\x00" in line:
        raise Malformed("the line holds a NUL byte")
