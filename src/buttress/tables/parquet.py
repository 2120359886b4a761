"""Tables from Parquet files, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.tables._columns import Kinds
from buttress.tables.table import Table, TableError, as_column, as_text, listed, objects, text_of


def parquet_names(path: Path) -> list[str]:
    """The columns of a Parquet file."""
    _, file = open_parquet(path)
    with file:
        return _names(path, file)


def iter_parquet(path: Path, block_rows: int, kinds: Kinds) -> Iterator[Table]:
    """Blocks of rows of a Parquet file."""
    pyarrow, file = open_parquet(path)
    with file:
        _names(path, file)
        if file.metadata.num_rows == 0:
            raise TableError(f"{path}: the file has no rows")
        try:
            for batch in file.iter_batches(batch_size=block_rows):
                yield _table(path, pyarrow, batch, kinds)
        except (pyarrow.ArrowException, OSError) as error:
            raise TableError(f"{path}: the Parquet file is damaged: {error}") from None


def give_back() -> None:
    """Return memory that no block needs any more: pyarrow keeps it, more than a table takes."""
    import pyarrow

    pyarrow.default_memory_pool().release_unused()


def open_parquet(path: Path) -> tuple[Any, Any]:
    """The module pyarrow and the file, or why there is none."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise TableError(
            f"{path}: reading Parquet needs pyarrow: pip install 'buttress[data]'"
        ) from None
    try:
        return pyarrow, parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError):
        raise TableError(f"{path}: not a Parquet file") from None


def _names(path: Path, file: Any) -> list[str]:
    names = [str(name) for name in file.schema_arrow.names]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise TableError(f"{path}: column {listed(doubled)} appears more than once")
    return names


def _table(path: Path, pyarrow: Any, batch: Any, kinds: Kinds) -> Table:
    columns, written = {}, {}
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        if name in kinds.keep:
            written[name] = objects(values.to_pylist())
        if name in kinds.skip:
            continue
        if name == kinds.target:
            columns[name] = _labels(path, pyarrow, name, values)
            continue
        column = _column(path, pyarrow, name, values)
        columns[name] = as_text(column) if name in kinds.text else column
        if name in kinds.numeric and columns[name].dtype.kind != "f":
            raise TableError(f"{path}: column {name!r} is numeric, but holds {values.type}")
    return Table(columns, {name: written[name] for name in kinds.keep})


def _column(path: Path, pyarrow: Any, name: str, values: Any) -> NDArray[Any]:
    kind = values.type
    types = pyarrow.types
    if types.is_dictionary(kind):
        values, kind = values.dictionary_decode(), kind.value_type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return np.asarray(values.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_boolean(kind):
        return as_column(np.array(values.to_pylist(), dtype=object))
    if types.is_date(kind) or types.is_timestamp(kind):
        # a time zone is one for the whole column: the values are in UTC
        plain = values.cast(pyarrow.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
        return as_column(plain.astype("datetime64[us]"))
    if types.is_null(kind):
        return np.full(len(values), np.nan)
    raise TableError(f"{path}: column {name!r} has the type {kind}, expected numbers or text")


def _labels(path: Path, pyarrow: Any, name: str, values: Any) -> NDArray[Any]:
    """Whole numbers as int, however large; everything else as its text, blanks included."""
    types = pyarrow.types
    kind = values.type.value_type if types.is_dictionary(values.type) else values.type
    if types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind):
        return objects(values.to_pylist())
    column = _column(path, pyarrow, name, values)
    if column.dtype.kind != "f":
        return column
    return objects([_whole(value) for value in column.tolist()])


def _whole(value: float) -> int | str | None:
    if value != value:
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else text_of(value)
