"""Blocks from Parquet and Arrow files, a row group at a time (extra ``data``)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, IntArray
from buttress.blocks.base import Block, LocalBlocks

_PARQUET, _ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")


@dataclass(frozen=True)
class _RowGroup:
    path: Path
    index: int
    start: int
    n_rows: int

    @property
    def where(self) -> str:
        return f"{self.path}, row group {self.index}"


class ParquetBlocks(LocalBlocks):
    """Row groups of one file, of several, or of all files of a directory, in order of name.

    Parameters
    ----------
    path : path-like or sequence of path-like
        Files ending in .parquet or .pq, or Arrow files (.arrow, .feather, .ipc, whose record
        batches count as row groups), or a directory that holds some at any depth.
    target : str, optional
        The column of labels.
    columns : sequence of str, optional
        The features, by name; all other numeric columns when not given.
    weight : str, optional
        The column of row weights.
    n_threads : int, optional
        Row groups worked on at a time.

    Raises
    ------
    ValueError
        When a column is missing, is not numeric, or changes its type between files. The
        message names the file and the column.
    """

    feature_names: list[str]
    from_files = True
    asked_last = True

    def __init__(
        self,
        path: Any,
        target: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.files = find_files(path)
        self.target, self.weight, self.n_threads = target, weight, n_threads
        self.feature_names = [] if columns is None else list(columns)
        self._groups: list[_RowGroup] = []
        first_schema: Any = None
        start = 0
        for file in self.files:
            schema, sizes = _describe(file)
            doubled = sorted({name for name in schema.names if schema.names.count(name) > 1})
            if doubled:
                raise ValueError(f"{file}: column {doubled[0]!r} appears more than once.")
            if first_schema is None:
                first_schema = schema
                if columns is None:
                    special = (target, weight)
                    self.feature_names = [name for name in schema.names if name not in special]
            self._check(file, schema, first_schema)
            for index, n_rows in enumerate(sizes):
                if n_rows:
                    self._groups.append(_RowGroup(file, index, start, n_rows))
                start += n_rows
        self.n_rows, self.n_features = start, len(self.feature_names)
        if start == 0:
            raise ValueError(f"{path}: no rows.")
        kinds = {str(first_schema.field(name).type) for name in self.feature_names}
        narrow = kinds <= {"float", "halffloat"}
        self.dtype = np.dtype(np.float32 if narrow else np.float64)

    @property
    def starts(self) -> IntArray:
        return np.array([group.start for group in self._groups])

    @classmethod
    def opens(cls, X: Any) -> bool:
        return isinstance(X, (str, os.PathLike))

    @classmethod
    def open(cls, X: Any, y: Any, weight: Any, columns: Sequence[str] | None) -> ParquetBlocks:
        for name, value in (("y", y), ("sample_weight", weight)):
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{name} must be the name of a column when X is a path.")
        return cls(X, y, columns=columns, weight=weight)

    def read(self, index: int) -> Block:
        group = self._groups[index]
        wanted = [*self.feature_names, *(c for c in (self.target, self.weight) if c is not None)]
        table = _read_group(group, list(dict.fromkeys(wanted)))
        # Columns are contiguous in the file and stay so: the matrix is in Fortran order.
        X = np.empty((self.n_features, table.num_rows), dtype=self.dtype)
        for j, name in enumerate(self.feature_names):
            X[j] = table.column(name).to_numpy()
        y = None if self.target is None else self._labels(table, group)
        weight: Array | None = None
        if self.weight is not None:
            weight = np.asarray(table.column(self.weight).to_numpy(), dtype=np.float64)
        return Block(X.T, y, weight, group.start, group.where, self.feature_names)

    def _labels(self, table: Any, group: _RowGroup) -> NDArray[Any]:
        column = table.column(self.target)
        if column.null_count:
            raise ValueError(
                f"{group.where}: column {self.target!r} (the target) holds missing values."
            )
        labels = np.asarray(column.to_numpy())
        return labels.astype(str) if labels.dtype.kind == "O" else labels

    def _check(self, file: Path, schema: Any, first_schema: Any) -> None:
        import pyarrow.types as types

        for name in (self.target, self.weight, *self.feature_names):
            if name is None:
                continue
            if name not in schema.names:
                raise ValueError(
                    f"{file}: column {name!r} is missing; it has {', '.join(schema.names)}."
                )
            kind = schema.field(name).type
            if kind != first_schema.field(name).type:
                raise ValueError(
                    f"{file}: column {name!r} has type {kind}, but {first_schema.field(name).type} "
                    f"in {self.files[0]}."
                )
            numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
            if name != self.target and not numeric:
                raise ValueError(
                    f"{file}: column {name!r} has type {kind}: features and weights must be "
                    "numbers. Choose columns by name or encode it first."
                )


def find_files(path: Any) -> list[Path]:
    """The data files a path (or several) stands for, sorted by name within a directory."""
    if isinstance(path, (list, tuple)):
        return [file for each in path for file in find_files(each)]
    location = Path(os.fspath(path))
    if location.is_dir():
        files = sorted(
            file
            for file in location.rglob("*")
            if file.suffix in _PARQUET + _ARROW and not file.name.startswith((".", "_"))
        )
        if not files:
            raise ValueError(f"{location}: no Parquet or Arrow files in this directory.")
        return files
    if not location.exists():
        raise FileNotFoundError(f"{location}: no such file or directory.")
    if location.suffix not in _PARQUET + _ARROW:
        raise ValueError(
            f"{location}: expected a file ending in {', '.join(_PARQUET + _ARROW)}, or a directory."
        )
    return [location]


def _describe(file: Path) -> tuple[Any, list[int]]:
    """Schema and rows of every row group."""
    try:
        if file.suffix in _PARQUET:
            import pyarrow.parquet as pq

            with pq.ParquetFile(file) as opened:
                meta = opened.metadata
                sizes = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
                return opened.schema_arrow, sizes
        import pyarrow as pa

        with pa.memory_map(str(file)) as mapped:
            reader = pa.ipc.open_file(mapped)
            sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
            return reader.schema, sizes
    except ImportError as error:
        raise ImportError("Parquet and Arrow files need pyarrow: pip install buttress[data]") from (
            error
        )
    except (OSError, ValueError) as error:
        raise ValueError(f"{file}: not a readable Parquet or Arrow file ({error}).") from error


def _read_group(group: _RowGroup, columns: list[str]) -> Any:
    import pyarrow as pa

    try:
        if group.path.suffix in _PARQUET:
            import pyarrow.parquet as pq

            with pq.ParquetFile(group.path) as opened:
                return opened.read_row_group(group.index, columns=columns, use_threads=False)
        with pa.OSFile(str(group.path)) as file:
            batch = pa.ipc.open_file(file).get_batch(group.index)
            return pa.Table.from_batches([batch]).select(columns)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{group.path}: the file is damaged ({reason}).") from None
