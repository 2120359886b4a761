"""Corrections of labels: key, old label, new label, who, when, note; applied wholly or not at all.

A correction speaks of labels exactly as they are written in the file. It is applied only where
the old label still stands; one that meets another label is a conflict, and a set of
corrections with a conflict changes nothing.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from buttress._files import replacing
from buttress._words import did_you_mean
from buttress.review._csv_edit import read_csv_as_written, write_csv_with_labels
from buttress.review._parquet_edit import read_parquet_as_written, write_parquet_with_labels
from buttress.tables.grammar import Malformed, csv_records
from buttress.tables.reading import form_of
from buttress.tables.table import AbsentColumn, TableError, listed, objects

# What `Correction.key_column` says when the key is the number of the row, counted from 1.
ROW_NUMBER = "row number"


@dataclass(frozen=True)
class Correction:
    """One decision on one label.

    Attributes
    ----------
    key : str
        The row: its number (the first row of data is 1), or its value in the key column.
    old_label, new_label : str
        As written in the file. They are equal when a person looked and kept the label.
    who, when, note : str
        The reviewer, the time (ISO 8601), and a remark.
    key_column : str
        Which column holds the key, or "row number"; when empty, what `apply_corrections` is told.

    Examples
    --------
    >>> Correction("17", "benign", "malignant", who="ada").new_label
    'malignant'
    """

    key: str
    old_label: str
    new_label: str
    who: str = ""
    when: str = ""
    note: str = ""
    key_column: str = ""


@dataclass(frozen=True)
class Conflict:
    """A correction that cannot be applied, and why.

    Attributes
    ----------
    line : int
        Position of the correction, counted from 1.
    correction : Correction
    reason : str
    """

    line: int
    correction: Correction
    reason: str

    def __str__(self) -> str:
        return f"correction {self.line}, {self._row()}: {self.reason}"

    def _row(self) -> str:
        if self.correction.key_column in ("", ROW_NUMBER):
            return f"row {self.correction.key}"
        return f"{self.correction.key_column}={self.correction.key}"


class CorrectionError(ValueError):
    """Corrections that cannot be applied; nothing was changed.

    Parameters
    ----------
    conflicts : sequence of Conflict
        One for every correction at fault; the message has one line for each.
    """

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        super().__init__("\n".join(map(str, conflicts)))
        self.conflicts = tuple(conflicts)


def read_corrections(path: str | os.PathLike[str]) -> list[Correction]:
    """Read a CSV file of corrections.

    Parameters
    ----------
    path : path-like
        With the columns ``key``, ``old_label`` and ``new_label``, and ``who``, ``when``,
        ``note`` and ``key_column`` if there are any; other columns are not looked at.

    Raises
    ------
    TableError
        When a column is missing, or a row has no key or label.
    """
    accepted = [field.name for field in fields(Correction)]
    corrections = []
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            records = csv_records(reader)
            header = next(records, [])
            absent = [name for name in accepted[:3] if name not in header]
            if absent:
                raise TableError(f"{path}: no column {listed(absent)} of corrections")
            for cells in filter(None, records):
                record = dict(zip(header, cells, strict=False))
                entry = {name: record.get(name, "").strip() for name in accepted}
                if not (entry["key"] and entry["old_label"] and entry["new_label"]):
                    raise TableError(
                        f"{path}, line {reader.line_num}: a correction needs a key, an old and a "
                        "new label"
                    )
                corrections.append(Correction(**entry))
    except UnicodeDecodeError:
        raise TableError(f"{path}: not a text file in UTF-8") from None
    except Malformed as reason:
        raise TableError(f"{path}, {reason}") from None
    return corrections


def write_corrections(path: str | os.PathLike[str], corrections: Iterable[Correction]) -> None:
    """Write corrections as CSV; the file appears whole or not at all.

    Parameters
    ----------
    path : path-like
    corrections : iterable of Correction
    """
    names = [field.name for field in fields(Correction)]
    with replacing(path, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(
            [getattr(correction, name) for name in names] for correction in corrections
        )


def corrected_labels(
    labels: Sequence[Any] | NDArray[Any],
    corrections: Sequence[Correction],
    *,
    keys: Sequence[str] | None = None,
    key_column: str = ROW_NUMBER,
) -> NDArray[Any]:
    """The labels after all corrections, taken in order; the labels given are not touched.

    Parameters
    ----------
    labels : sequence
        As written; None for a missing one.
    corrections : sequence of Correction
    keys : sequence of str, optional
        The key of every row; the row's number, counted from 1, when not given.
    key_column : str
        What the keys are; a correction that names another is a conflict.

    Returns
    -------
    ndarray of object

    Raises
    ------
    CorrectionError
        With one line for every correction whose row is not there or not unique, whose keys are
        of another column, or whose old label no longer stands.

    Examples
    --------
    >>> corrected_labels(["a", "b"], [Correction("2", "b", "a", who="ada")]).tolist()
    ['a', 'a']
    >>> corrected_labels(["a", "b"], [Correction("2", "a", "c")])
    Traceback (most recent call last):
    ...
    buttress.review.corrections.CorrectionError: correction 1, row 2: the label is 'b', not 'a'
    """
    result = objects(list(labels))
    rows = _rows_of_keys(keys, len(result))
    conflicts = []
    for line, correction in enumerate(corrections, start=1):
        reason, row = _found(correction, rows, key_column)
        if row is not None and result[row] != correction.old_label:
            current = "missing" if result[row] is None else repr(result[row])
            already = " (already corrected)" if result[row] == correction.new_label else ""
            reason = f"the label is {current}, not {correction.old_label!r}{already}"
        if reason:
            conflicts.append(Conflict(line, correction, reason))
        elif row is not None:
            result[row] = correction.new_label
    if conflicts:
        raise CorrectionError(conflicts)
    return result


def _rows_of_keys(keys: Sequence[str] | None, n_rows: int) -> dict[str, list[int]]:
    if keys is None:
        return {str(row + 1): [row] for row in range(n_rows)}
    rows: dict[str, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    return rows


def _found(
    correction: Correction, rows: dict[str, list[int]], key_column: str
) -> tuple[str, int | None]:
    """Why the row of a correction is not known, or the row."""
    if correction.key_column not in ("", key_column):
        return f"its key is of {correction.key_column!r}, not of {key_column!r}", None
    matching = rows.get(correction.key, [])
    if not matching:
        return "there is no such row", None
    if len(matching) > 1:
        return f"{len(matching)} rows have this key", None
    return "", matching[0]


def apply_corrections(
    data: str | os.PathLike[str],
    corrections: Sequence[Correction],
    out: str | os.PathLike[str],
    *,
    target: str | None = None,
    key: str | None = None,
) -> int:
    """Write a table with its labels corrected; all else stays exactly as it was written.

    Parameters
    ----------
    data : path-like
        CSV (also ``.csv.gz``) or Parquet.
    corrections : sequence of Correction
    out : path-like
        Of the same format; may be `data` itself. Written when every correction applies.
    target : str, optional
        Column of the labels. When not given it is the only column in which every correction
        finds its old label.
    key : str, optional
        Column of the keys; otherwise what the corrections say, or the number of the row.

    Returns
    -------
    int
        How many labels are different now.

    Raises
    ------
    CorrectionError
        As `corrected_labels`; nothing is written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "data.csv").write_text('a,y\\n1.50,"no"\\n2,yes\\n')
    >>> apply_corrections(folder / "data.csv", [Correction("1", "no", "yes")], folder / "new.csv")
    1
    >>> (folder / "new.csv").read_text()
    'a,y\\n1.50,yes\\n2,yes\\n'
    """
    source, goal = Path(data), Path(out)
    binary = _is_parquet(source)
    if binary != _is_parquet(goal):
        raise TableError(f"{out}: the result has the format of {data}; give it the same ending")
    columns = read_columns_as_written(source)
    named = key if key is not None else key_of(corrections)
    if named is not None and named not in columns:
        hint = did_you_mean(named, columns) or f"; it has {listed(columns)}"
        raise AbsentColumn(f"{data}: there is no column {named!r} of keys{hint}")
    keys = None if named is None else ["" if v is None else v for v in columns[named]]
    label = target if target is not None else _target_of(source, columns, corrections, keys, named)
    if label not in columns:
        hint = did_you_mean(label, columns) or f"; it has {listed(columns)}"
        raise AbsentColumn(f"{data}: there is no column {label!r}{hint}")
    before = columns[label]
    after = corrected_labels(before, corrections, keys=keys, key_column=named or ROW_NUMBER)
    changed = {
        row: str(new)
        for row, (old, new) in enumerate(zip(before, after.tolist(), strict=True))
        if old != new
    }
    if binary:
        write_parquet_with_labels(source, goal, label, changed)
    else:
        write_csv_with_labels(source, goal, label, changed)
    return len(changed)


def read_columns_as_written(path: Path) -> dict[str, list[str | None]]:
    """Every column of a file as text, exactly as written but for surrounding blanks."""
    if _is_parquet(path):
        return read_parquet_as_written(path)
    form = form_of(path)
    if form != "csv":
        what = {"jsonl": "JSON lines"}.get(form, form.upper())
        raise TableError(
            f"{path}: holds {what}; corrections are applied to CSV and Parquet files "
            f"(buttress convert {path} rows.csv)"
        )
    return read_csv_as_written(path)


def key_of(corrections: Sequence[Correction]) -> str | None:
    """The column of keys that corrections name; None for the number of the row."""
    named = sorted({correction.key_column or ROW_NUMBER for correction in corrections})
    if len(named) > 1:
        raise TableError(f"the corrections have keys of more than one kind: {listed(named)}")
    return None if not named or named[0] == ROW_NUMBER else named[0]


def _target_of(
    path: Path,
    columns: dict[str, list[str | None]],
    corrections: Sequence[Correction],
    keys: Sequence[str] | None,
    key_column: str | None,
) -> str:
    """The one column in which all corrections apply."""
    fitting = []
    for name, values in columns.items():
        try:
            corrected_labels(values, corrections, keys=keys, key_column=key_column or ROW_NUMBER)
        except CorrectionError:
            continue
        fitting.append(name)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise TableError(f"{path}: corrections fit the columns {listed(fitting)}; name the target")
    # One column holds every label that the corrections speak of, if any does: show its conflicts.
    spoken = {c.old_label for c in corrections} | {c.new_label for c in corrections}
    likely = [name for name, values in columns.items() if spoken <= set(values)]
    if len(likely) == 1:
        return likely[0]
    raise TableError(f"{path}: no column holds the old labels of all corrections; name the target")


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")
