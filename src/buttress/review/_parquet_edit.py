"""Parquet files with some labels changed: types, metadata and the other columns stay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from buttress._files import replacing
from buttress.tables.parquet import open_parquet
from buttress.tables.table import TableError, text_of


def read_parquet_as_written(path: Path) -> dict[str, list[str | None]]:
    """Every column of a Parquet file as text."""
    table = open_parquet(path)[1].read()
    return {
        name: [None if value is None else text_of(value) for value in table[name].to_pylist()]
        for name in table.column_names
    }


def write_parquet_with_labels(
    source: Path, goal: Path, target: str, changed: Mapping[int, str]
) -> None:
    """Copy a Parquet file, with new labels in the rows of `changed` (counted from 0)."""
    import pyarrow
    import pyarrow.parquet as parquet

    table = open_parquet(source)[1].read()
    column = table.schema.get_field_index(target)
    kind = table.schema.field(column).type
    values = table[target].to_pylist()
    for row, label in changed.items():
        values[row] = _of_kind(label, kind, pyarrow, f"{source}: column {target!r}")
    plain = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    labels = pyarrow.array(values, type=plain)
    if plain is not kind:
        labels = labels.dictionary_encode().cast(kind)
    table = table.set_column(column, table.schema.field(column), labels)
    with replacing(goal) as file:
        parquet.write_table(table, file)


def _of_kind(label: str, kind: Any, pyarrow: Any, where: str) -> Any:
    types = pyarrow.types
    try:
        if types.is_boolean(kind):
            return {"True": True, "False": False}[label]
        if types.is_integer(kind):
            return int(label)
        if types.is_floating(kind):
            return float(label)
    except (KeyError, ValueError):
        raise TableError(f"{where} holds {kind}: {label!r} cannot be a label of it") from None
    return label
