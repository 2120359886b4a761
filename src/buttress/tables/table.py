"""Columns by name: numbers as float64 with NaN, text as str with None."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from buttress._arrays import BoolArray
from buttress._frames import columns_of
from buttress._words import did_you_mean
from buttress.tables.grammar import LARGEST


class TableError(ValueError):
    """A file or table that cannot be used; the message names the column or line at fault."""


class AbsentColumn(TableError):
    """A column that was asked for is not in the table."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length.

    Attributes
    ----------
    columns : dict of str to ndarray
        A numeric column is float64 with NaN for a missing value; a text column is an object
        array of str with None for a missing value.
    written : dict of str to ndarray
        Columns that a reader was asked to keep, exactly as they stand in the file.

    Examples
    --------
    >>> import numpy as np
    >>> table = Table({"age": np.array([31.0, np.nan]), "city": np.array(["Oslo", None], object)})
    >>> len(table), table.names, table.missing()
    (2, ['age', 'city'], {'age': 1, 'city': 1})
    """

    columns: dict[str, NDArray[Any]]
    written: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self), len(self.columns)

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        try:
            return self.columns[name]
        except KeyError:
            raise TableError(
                f"there is no column {name!r}{did_you_mean(name, self.names)}; "
                f"the columns are {listed(self.names)}"
            ) from None

    def take(self, rows: Any) -> Table:
        """The rows of these positions, or where this mask is true."""
        return Table(
            {name: values[rows] for name, values in self.columns.items()},
            {name: values[rows] for name, values in self.written.items()},
        )

    def without(self, *names: str) -> Table:
        """All columns but these."""
        left = {name: values for name, values in self.columns.items() if name not in names}
        return Table(left, self.written)

    def missing(self) -> dict[str, int]:
        """Number of missing values of every column that has some."""
        counts = {name: int(is_missing(values).sum()) for name, values in self.columns.items()}
        return {name: count for name, count in counts.items() if count}

    def complete(self) -> BoolArray:
        """Which rows have no missing value."""
        mask = np.ones(len(self), dtype=bool)
        for values in self.columns.values():
            mask &= ~is_missing(values)
        return mask


def is_number(values: NDArray[Any]) -> bool:
    """Whether a column of a table is numeric."""
    return values.dtype.kind == "f"


def is_missing(values: NDArray[Any]) -> BoolArray:
    """Which entries of a column are missing."""
    if is_number(values):
        return np.asarray(np.isnan(values))
    return np.fromiter((value is None for value in values), dtype=bool, count=len(values))


def refuse_too_large(table: Table, where: str, first: int = 1) -> None:
    """Raise when a number is infinite or nearly, naming its column and the row of the file.

    Parameters
    ----------
    table : Table
    where : str
        The file.
    first : int
        The number of the table's first row in it.
    """
    for name, values in table.columns.items():
        if is_number(values) and (above := np.abs(values) > LARGEST).any():
            row = int(above.argmax())
            what = "holds an infinite value"
            if np.isfinite(values[row]):
                what = f"is too large to compute with: {values[row]:g}"
            raise TableError(f"{where}, row {first + row}: column {name!r} {what}")


def boolean_hint(texts: Iterable[str], known: Collection[str]) -> str:
    """The end of a message about unknown texts, where true of JSON met a "true" that is known.

    Examples
    --------
    >>> boolean_hint(["True"], ["false", "true"])
    "; true and false of JSON are the texts 'True' and 'False'"
    >>> boolean_hint(["Oslo"], ["oslo"])
    ''
    """
    if any(text in ("True", "False") and text.lower() in known for text in texts):
        return "; true and false of JSON are the texts 'True' and 'False'"
    return ""


def lacking(names: Sequence[str], what: str = " of the model") -> str:
    """The beginning of a message about columns that are not there.

    Examples
    --------
    >>> lacking(["age"]), lacking(["age", "sex"], "")
    ("the column 'age' of the model is missing", "the columns 'age', 'sex' are missing")
    """
    several = len(names) > 1
    return (
        f"the column{'s' if several else ''} {listed(names)}{what} "
        f"{'are' if several else 'is'} missing"
    )


def listed(names: Iterable[Any], limit: int = 8) -> str:
    """Names for a message: quoted, and not more than a few.

    Examples
    --------
    >>> listed(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    every = [repr(str(name)) for name in names]
    more = len(every) - limit
    return ", ".join(every[:limit]) + (f" and {more} more" if more > 0 else "")


def as_table(data: Any, names: Iterable[str] | None = None) -> Table:
    """A table from what users have: a data frame, a dict of columns, or a matrix.

    Parameters
    ----------
    data : Table, data frame, mapping of columns, or 2-D array
        A frame of pandas, polars, pyarrow, Modin, a DuckDB relation, or any other that narwhals
        knows. Booleans are text ("True", "False"), as they are in a CSV file, and so are dates
        ("2024-02-29") and categories made of numbers.
    names : iterable of str, optional
        Names of the columns of a matrix; "x0", "x1", ... when not given.

    Examples
    --------
    >>> as_table({"age": [31, 40], "city": ["Oslo", None]})["city"]
    array(['Oslo', None], dtype=object)
    """
    if isinstance(data, Table):
        return data
    if sparse.issparse(data):
        raise TableError("sparse matrices are not supported here: use X.toarray()")
    if isinstance(data, Mapping):
        table = Table({str(name): as_column(values) for name, values in data.items()})
    elif (frame := _frame_columns(data)) is not None:
        table = Table({name: as_column(values) for name, values in frame.items()})
    else:
        matrix = _as_matrix(data)
        keys = [f"x{i}" for i in range(matrix.shape[1])] if names is None else list(names)
        if len(keys) != matrix.shape[1]:
            raise TableError(f"expected {len(keys)} columns, got {matrix.shape[1]}")
        table = Table({key: as_column(matrix[:, i]) for i, key in enumerate(keys)})
    lengths = {len(values) for values in table.columns.values()}
    if len(lengths) > 1:
        raise TableError(f"columns differ in length: {sorted(lengths)}")
    return table


def as_column(values: Any) -> NDArray[Any]:
    """One column as float64, or as text when any of its values is not a number."""
    array = np.asarray(values)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    if array.dtype.kind == "m":
        raise TableError("durations are not supported: turn them into numbers")
    if array.dtype.kind == "M":
        return dates_as_text(array)
    entries = array.tolist()
    gone = [_is_gone(entry) for entry in entries]
    if not all(gone) and all(
        g or (isinstance(entry, (int, float)) and not isinstance(entry, bool))
        for g, entry in zip(gone, entries, strict=True)
    ):
        return np.array(
            [np.nan if g else float(e) for g, e in zip(gone, entries, strict=True)], dtype=float
        )
    return objects([None if g else text_of(e) for g, e in zip(gone, entries, strict=True)])


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """A column of Python objects, whatever they are."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def dates_as_text(values: NDArray[Any]) -> NDArray[Any]:
    """Dates as they are written in a file: without the time where all of them are midnight.

    Examples
    --------
    >>> dates_as_text(np.array(["2024-02-29", "NaT"], dtype="datetime64[s]"))
    array(['2024-02-29', None], dtype=object)
    """
    gone = np.isnat(values)
    days = values.astype("datetime64[D]")
    whole = bool((days[~gone] == values[~gone]).all())
    written = np.datetime_as_string(days if whole else values.astype("datetime64[us]"))
    return objects([None if g else str(text) for g, text in zip(gone, written, strict=True)])


def as_text(values: NDArray[Any]) -> NDArray[Any]:
    """A column as text, whole numbers without a decimal point."""
    if not is_number(values):
        return values
    return objects([None if value != value else text_of(value) for value in values.tolist()])


def as_written(cells: NDArray[Any]) -> NDArray[Any]:
    """A column of `Table.written` as text: its digits and words stay, blanks around them go.

    Examples
    --------
    >>> as_written(np.array(["007", " NA ", None, 9007199254740993], dtype=object))
    array(['007', 'NA', None, '9007199254740993'], dtype=object)
    """
    return objects([None if _is_gone(cell) else text_of(cell) for cell in cells])


def text_of(value: Any) -> str:
    """How a value is written in a file, without blanks around it."""
    return label_text(value).strip()


def label_text(value: Any) -> str:
    """How a label is written in a file: blanks are part of it."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _as_matrix(data: Any) -> NDArray[Any]:
    matrix = np.asarray(data)
    if matrix.ndim != 2:
        raise TableError(
            f"expected a table or a matrix, got an array of shape {matrix.shape}. Reshape your "
            "data, with X.reshape(-1, 1) if it is one column or X.reshape(1, -1) if one row"
        )
    if matrix.dtype.kind == "c":
        raise TableError("Complex data not supported: take real and imaginary part as two columns")
    return matrix


def _frame_columns(data: Any) -> dict[str, NDArray[Any]] | None:
    try:
        return columns_of(data)
    except ValueError as error:
        raise TableError(str(error)) from None


def _is_gone(entry: Any) -> bool:
    # pandas.NA compares as neither true nor false
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(entry, float) and entry != entry
