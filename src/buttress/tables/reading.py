"""Files become tables: CSV, JSON lines and Parquet; whole or in blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from buttress._files import is_device
from buttress._words import did_you_mean
from buttress.tables._columns import Kinds
from buttress.tables._text import (
    csv_names,
    iter_csv,
    iter_jsonl,
    jsonl_names,
    suffix_of,
    text_kind,
)
from buttress.tables.libsvm import SUFFIXES as LIBSVM
from buttress.tables.libsvm import iter_libsvm, libsvm_names
from buttress.tables.other_files import other_kind
from buttress.tables.parquet import give_back, iter_parquet, parquet_names
from buttress.tables.table import Table, TableError

_PARQUET = (".parquet", ".pq")
# What reads the blocks of a file, by its form, and its names where no decimal mark matters.
_BLOCKS = {"csv": iter_csv, "jsonl": iter_jsonl, "parquet": iter_parquet, "libsvm": iter_libsvm}
_NAMES = {"jsonl": jsonl_names, "parquet": parquet_names, "libsvm": libsvm_names}


def read_table(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    text: Collection[str] = (),
    keep: Sequence[str] = (),
    skip: Collection[str] = (),
    decimal: str = ".",
    block_rows: int = 20_000,
) -> Table:
    """Read a whole CSV, JSON lines or Parquet file.

    A column is numeric when each of its values is a number or missing. The delimiter of CSV
    (comma, semicolon, tab or bar) is the one most frequent in the header; files of text may be
    compressed (``.csv.gz``).

    Parameters
    ----------
    path : path-like
        ``.parquet`` and ``.pq`` are read with pyarrow (extra ``data``), ``.jsonl``,
        ``.ndjson`` and ``.json`` as one JSON object per line, ``.svm``, ``.libsvm`` and
        ``.svmlight`` as LIBSVM files (columns ``label``, ``x1``, ``x2``, ...), ``.csv``, ``.tsv``
        and ``.txt`` as CSV; any other file as JSON lines when it begins with a brace, else as CSV.
    target : str, optional
        A column of labels, kept exactly as they are written: objects of int where the digits
        are the int's own, of str otherwise ("007", "1.0"), None where there is none.
    text : collection of str
        Columns that are categories even if they look like numbers.
    keep : sequence of str
        Columns also wanted as they stand in the file: `Table.written`.
    skip : collection of str
        Columns to leave out, whatever they hold.
    decimal : {".", ","}
        The decimal mark of CSV and of strings in JSON lines.
    block_rows : int
        Rows converted at a time.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("age,city,code\\n31,Oslo,007\\n,Bergen,12\\n")
    >>> read_table(file)["age"]
    array([31., nan])
    >>> read_table(file, target="code")["code"]
    array(['007', 12], dtype=object)
    """
    if text or keep:
        present = column_names(path, decimal=decimal)
        for name in (*text, *keep):
            if name not in present:
                hint = did_you_mean(name, present)
                raise TableError(f"{path}: there is no column {name!r}{hint}")
    forced = set(text)
    while True:
        blocks: list[Table] = []
        for block in iter_table(
            path,
            target=target,
            text=forced,
            keep=keep,
            skip=skip,
            decimal=decimal,
            block_rows=block_rows,
        ):
            # Numeric in one block and text in another: read again, as text throughout.
            mixed = {
                name
                for name, values in block.columns.items()
                if blocks and values.dtype.kind != blocks[0][name].dtype.kind
            }
            if mixed:
                forced |= mixed
                break
            blocks.append(block)
        else:
            break
    # A column of the blocks goes as soon as it is whole: never all rows twice.
    table = Table(
        {
            name: np.concatenate([block.columns.pop(name) for block in blocks])
            for name in blocks[0].names
        },
        {name: np.concatenate([block.written[name] for block in blocks]) for name in keep},
    )
    if suffix_of(Path(path)) in _PARQUET:
        give_back()
    return table


def iter_table(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    text: Collection[str] = (),
    numeric: Collection[str] = (),
    keep: Sequence[str] = (),
    skip: Collection[str] = (),
    decimal: str = ".",
    block_rows: int = 20_000,
) -> Iterator[Table]:
    """Read a CSV, JSON lines or Parquet file in blocks of rows, so that it need not fit in memory.

    Parameters
    ----------
    path : path-like
    target, skip, decimal
        As in `read_table`.
    text, numeric : collection of str
        Columns whose kind is known; a value of the wrong kind raises and is named. The kind
        of the other columns is found in each block.
    keep : sequence of str
        Columns also wanted as they stand in the file: `Table.written`.
    block_rows : int
        Rows per block.
    """
    source = _checked(path, decimal)
    kinds = Kinds(
        source,
        target,
        frozenset(text),
        frozenset(numeric),
        decimal,
        tuple(keep),
        frozenset(skip),
    )
    return _BLOCKS[form_of(source)](source, block_rows, kinds)


def column_names(path: str | os.PathLike[str], *, decimal: str = ".") -> list[str]:
    """The names of a file's columns, in order.

    Parameters
    ----------
    path, decimal
        As in `read_table`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("age,city\\n31,Oslo\\n")
    >>> column_names(file)
    ['age', 'city']
    """
    source = _checked(path, decimal)
    form = form_of(source)
    return csv_names(source, decimal) if form == "csv" else _NAMES[form](source)


def form_of(source: Path) -> str:
    """What is in a file: "csv", "jsonl", "parquet" or "libsvm".

    By its suffix, or by its first character where that says nothing.
    """
    suffix = suffix_of(source)
    if suffix in _PARQUET:
        return "parquet"
    return "libsvm" if suffix in LIBSVM else text_kind(source)


def _checked(path: str | os.PathLike[str], decimal: str) -> Path:
    source = Path(path)
    if source.is_dir():
        raise TableError(f"{path}: is a directory, expected a CSV, JSON lines or Parquet file")
    if not source.exists():
        raise TableError(f"{path}: no such file")
    if is_device(source):
        raise TableError(f"{path}: is a pipe, which cannot be read twice; save it in a file first")
    if source.suffix.lower() not in (".gz", *_PARQUET) and (what := other_kind(source)):
        raise TableError(f"{path}: {what}")
    if decimal not in (".", ","):
        raise ValueError(f"decimal={decimal!r} is not accepted: expected '.' or ','.")
    return source
