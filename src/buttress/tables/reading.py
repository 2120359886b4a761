"""CSV by the standard library, Parquet by pyarrow; whole or in blocks of rows."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import os
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from buttress.tables.table import Table, TableError, as_column, as_text, listed

# What stands for "no value" in a CSV file. "None" is not in it: it is a common category.
MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?", "#N/A"})

_DELIMITERS = ",;\t|"


def read_table(
    path: str | os.PathLike[str], *, text: Collection[str] = (), block_rows: int = 20_000
) -> Table:
    """Read a whole CSV or Parquet file.

    A CSV column is numeric when each of its values is a number or missing. The delimiter
    (comma, semicolon, tab or bar) is the one most frequent in the header; files may be
    compressed (``.csv.gz``).

    Parameters
    ----------
    path : path-like
        ``.parquet`` and ``.pq`` are read with pyarrow (extra ``data``), all else as CSV.
    text : collection of str
        Columns that are categories even if they look like numbers.
    block_rows : int
        Rows converted at a time.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("age,city\\n31,Oslo\\n,Bergen\\n")
    >>> read_table(file)["age"]
    array([31., nan])
    """
    forced = set(text)
    while True:
        blocks: list[Table] = []
        for block in iter_table(path, text=forced, block_rows=block_rows):
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
    unknown = set(text) - set(blocks[0].names)
    if unknown:
        raise TableError(f"{path}: there is no column {listed(unknown)}")
    return Table(
        {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0].names}
    )


def iter_table(
    path: str | os.PathLike[str],
    *,
    text: Collection[str] = (),
    numeric: Collection[str] = (),
    block_rows: int = 20_000,
) -> Iterator[Table]:
    """Read a CSV or Parquet file in blocks of rows, so that it need not fit in memory.

    Parameters
    ----------
    path : path-like
    text, numeric : collection of str
        Columns whose kind is known; a value of the wrong kind raises and is named. The kind
        of the other columns is found in each block.
    block_rows : int
        Rows per block.
    """
    source = Path(path)
    if source.is_dir():
        raise TableError(f"{path}: is a directory, expected a CSV or Parquet file")
    if not source.exists():
        raise TableError(f"{path}: no such file")
    if source.suffix.lower() in (".parquet", ".pq"):
        return _iter_parquet(source, block_rows, set(text), set(numeric))
    return _iter_csv(source, block_rows, set(text), set(numeric))


# -- CSV -----------------------------------------------------------------------------------


def _iter_csv(path: Path, block_rows: int, text: set[str], numeric: set[str]) -> Iterator[Table]:
    try:
        with _open_text(path) as file:
            reader = csv.reader(file, delimiter=_delimiter(path), skipinitialspace=True)
            names = _header(path, reader)
            first = True
            while True:
                rows, lines = _block(path, reader, len(names), block_rows)
                if not rows:
                    if first:
                        raise TableError(f"{path}: the file has a header but no rows")
                    return
                first = False
                yield Table(
                    {
                        name: _csv_column(path, name, values, lines, text, numeric)
                        for name, values in zip(names, zip(*rows, strict=True), strict=True)
                    }
                )
    except UnicodeDecodeError:
        raise TableError(f"{path}: not a text file in UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TableError(f"{path}: the compressed file is damaged") from None
    except csv.Error as error:
        raise TableError(f"{path}: not a CSV file: {error}") from None


def _open_text(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _delimiter(path: Path) -> str:
    with _open_text(path) as file:
        return delimiter_of(file.readline(1_000_000))


def delimiter_of(header: str) -> str:
    """The delimiter of a CSV file, from its first line.

    Examples
    --------
    >>> delimiter_of("age;weight, in kg;label")
    ';'
    """
    return max(_DELIMITERS, key=header.count)


def _header(path: Path, reader: Iterator[list[str]]) -> list[str]:
    names = [name.strip() for name in next(reader, [])]
    if not any(names):
        raise TableError(f"{path}: the file is empty")
    if all(_is_float(name) for name in names):
        raise TableError(f"{path}: the first line holds numbers, expected the names of the columns")
    if "" in names:
        raise TableError(f"{path}: column {names.index('') + 1} has no name")
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise TableError(f"{path}: column {listed(sorted(doubled))} appears more than once")
    return names


def _block(
    path: Path, reader: Any, width: int, block_rows: int
) -> tuple[list[list[str]], list[int]]:
    rows, lines = [], []
    for row in itertools.islice(reader, block_rows):
        if not row:
            continue  # a blank line, as editors leave at the end
        if len(row) != width:
            raise TableError(
                f"{path}, line {reader.line_num}: {len(row)} fields, the header has {width}"
            )
        rows.append(row)
        lines.append(reader.line_num)
    return rows, lines


def _csv_column(
    path: Path,
    name: str,
    values: Sequence[str],
    lines: Sequence[int],
    text: set[str],
    numeric: set[str],
) -> NDArray[Any]:
    if name not in text:
        try:
            return _numbers(values)
        except ValueError:
            if name in numeric:
                line, value = next(
                    (line, value)
                    for line, value in zip(lines, values, strict=True)
                    if value.strip() not in MISSING and not _is_float(value)
                )
                raise TableError(
                    f"{path}, line {line}: column {name!r} is numeric, but holds {value!r}"
                ) from None
    column = np.empty(len(values), dtype=object)
    stripped = [value.strip() for value in values]
    column[:] = [None if value in MISSING else value for value in stripped]
    return column


def _numbers(values: Sequence[str]) -> NDArray[Any]:
    try:
        return np.array(values).astype(np.float64)
    except ValueError:
        return np.array([math.nan if v.strip() in MISSING else float(v) for v in values])


def _is_float(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


# -- Parquet -------------------------------------------------------------------------------


def _iter_parquet(
    path: Path, block_rows: int, text: set[str], numeric: set[str]
) -> Iterator[Table]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise TableError(
            f"{path}: reading Parquet needs pyarrow: pip install 'buttress[data]'"
        ) from None
    try:
        file = parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid:
        raise TableError(f"{path}: not a Parquet file") from None
    with file:
        if file.metadata.num_rows == 0:
            raise TableError(f"{path}: the file has no rows")
        for batch in file.iter_batches(batch_size=block_rows):
            columns = {}
            for name, values in zip(batch.schema.names, batch.columns, strict=True):
                column = _arrow_column(path, pyarrow, name, values)
                columns[name] = as_text(column) if name in text else column
                if name in numeric and columns[name].dtype.kind != "f":
                    raise TableError(f"{path}: column {name!r} is numeric, but holds {values.type}")
            yield Table(columns)


def _arrow_column(path: Path, pyarrow: Any, name: str, values: Any) -> NDArray[Any]:
    kind = values.type
    types = pyarrow.types
    if types.is_dictionary(kind):
        values, kind = values.dictionary_decode(), kind.value_type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return np.asarray(values.cast(pyarrow.float64()).to_numpy(zero_copy_only=False))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_boolean(kind):
        return as_column(np.array(values.to_pylist(), dtype=object))
    if types.is_null(kind):
        return np.full(len(values), np.nan)
    raise TableError(f"{path}: column {name!r} has the type {kind}, expected numbers or text")
