"""From the values of a request to the matrix that an estimator sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.serve.errors import RequestError
from buttress.serve.rows import OptionalColumns, RequestRows, picker
from buttress.tables import TableEncoder, TableError
from buttress.tables.grammar import LARGEST, to_number
from buttress.tables.table import listed, text_of

_NUMBERS = frozenset({float, int})
# Readers of JSON keep integers up to here exactly, and round larger ones or not as they like.
_NOT_EXACT = 2**63


class RequestColumns:
    """From the values of a request to the matrix that an estimator sees.

    It does what `TableEncoder.transform` does, to the last bit, without building a table:
    a request has one row more often than a thousand.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.
    target : str, optional
        May be among the columns of a request, and is not looked at.
    lenient : bool
        Extra columns are ignored, new categories are none of the known ones.
    kept : sequence of str
        Extra columns that requests may have, for people who review the rows.

    Attributes
    ----------
    names, numeric : list of str
    categories : dict of str to list of str
    fill : dict
        What replaces a missing value, by column; a column without one refuses it.
    usual : dict
        A usual value of every column.
    mean, scale : ndarray or None
        Of the numeric columns.
    optional : OptionalColumns
        Columns in which the rows of a request may differ.
    derived : dict of str to function
        Columns of dates and free text, and what turns their values into numbers.
    """

    def __init__(
        self,
        encoder: TableEncoder,
        target: str | None = None,
        lenient: bool = False,
        kept: Sequence[str] = (),
    ) -> None:
        self.names = [str(name) for name in encoder.feature_names_in_]
        self.numeric = [str(name) for name in encoder.numeric_]
        self.categories = encoder.categories_
        self.usual = encoder.fill_
        self.fill = encoder.fill_ if encoder.missing == "impute" else {}
        scaler = encoder.scaler_
        self.mean: Array | None = None if scaler is None else scaler.mean_
        self.scale: Array | None = None if scaler is None else scaler.scale_
        self.derived = {name: partial(encoder.derive, name) for name in encoder.derived_columns()}
        self.target = target
        self.lenient = lenient or encoder.extra_columns == "ignore"
        self._codes = {
            name: {value: code for code, value in enumerate(values)}
            for name, values in self.categories.items()
        }
        self._known = {*self.names, *kept}
        # a row to learn that lacks its label is named by what reads the labels
        labels = [target] if self.lenient and target is not None else []
        beside = tuple(dict.fromkeys([*kept, *labels]))
        self.optional = OptionalColumns(frozenset(self.names), beside, self.lenient)
        self._layouts: dict[tuple[str, ...], dict[str, int]] = {}

    def encode(self, rows: RequestRows) -> Array:
        """The matrix of some rows; what does not fit is named."""
        position = self._layouts.get(rows.names) or self._layout(rows.names)
        blocks = []
        if self.numeric:
            blocks.append(self._numbers(rows, [position[name] for name in self.numeric]))
        for name, codes in self._codes.items():
            blocks.append(self._one_hot(rows, name, position[name], codes))
        for name, derive in self.derived.items():
            blocks.append(self._derived(rows, name, position[name], derive))
        return blocks[0] if len(blocks) == 1 else np.hstack(blocks)

    def _layout(self, names: tuple[str, ...]) -> dict[str, int]:
        """Where the model's columns stand in the rows of a request."""
        position = {name: index for index, name in enumerate(names)}
        absent = [name for name in self.names if name not in position]
        if absent:
            raise RequestError(f"the column {listed(absent, 3)} of the model is missing")
        extra = [name for name in names if name not in self._known and name != self.target]
        if extra and not self.lenient:
            raise RequestError(f"the model has no column {listed(extra, 3)}")
        if len(self._layouts) < 64:  # clients have few; an attacker may have many
            self._layouts[names] = position
        return position

    def _numbers(self, rows: RequestRows, positions: list[int]) -> Array:
        table: Sequence[Sequence[Any]] = rows.values
        if rows.form == "csv":
            table = [self._parsed(row, number, positions) for number, row in enumerate(table, 1)]
        elif positions != list(range(len(rows.names))):
            table = list(map(picker(positions), table))
        kinds = set(map(type, chain.from_iterable(table)))
        try:
            if kinds <= _NUMBERS:
                size = len(table) * len(positions)
                flat = np.fromiter(chain.from_iterable(table), np.float64, size)
                matrix: Array = flat.reshape(len(table), len(positions))
            else:
                self._check_number(table)
                matrix = np.array(table, dtype=np.float64)
        except OverflowError:
            raise RequestError("a number is too large") from None
        # false for NaN too
        if not np.abs(matrix).max(initial=0.0) <= LARGEST:
            matrix = self._filled(matrix)
        if self.mean is not None and self.scale is not None:
            return np.asarray((matrix - self.mean) / self.scale)
        return matrix

    def _parsed(self, row: Sequence[Any], number: int, positions: list[int]) -> list[Any]:
        try:
            cells = [row[position] for position in positions]
            return [None if cell is None else to_number(cell) for cell in cells]
        except ValueError:
            for name, position in zip(self.numeric, positions, strict=True):
                try:
                    to_number(row[position] or "0")
                except ValueError:
                    cell = _short(row[position])
                    raise RequestError(
                        f"row {number}: column {name!r} is numeric, but holds {cell}"
                    ) from None
            raise

    def _check_number(self, table: Sequence[Sequence[Any]]) -> None:
        """Name the first value that is neither a number nor missing."""
        for number, entries in enumerate(table, start=1):
            for name, entry in zip(self.numeric, entries, strict=True):
                if entry is not None and type(entry) not in (int, float):
                    raise RequestError(
                        f"row {number}: column {name!r} is numeric, but holds {_short(entry)}"
                    )

    def _filled(self, matrix: Array) -> Array:
        """Missing values replaced; infinite ones, and missing ones where none may be, refused."""
        for column, name in enumerate(self.numeric):
            values = matrix[:, column]
            missing = np.isnan(values)
            if (above := np.abs(values) > LARGEST).any():
                row = int(above.argmax()) + 1
                raise RequestError(f"row {row}: column {name!r} is too large to compute with")
            if missing.any():
                if name not in self.fill:
                    row = int(np.flatnonzero(missing)[0]) + 1
                    raise RequestError(f"row {row}: column {name!r} has no value")
                matrix[missing, column] = self.fill[name]
        return matrix

    def _one_hot(self, rows: RequestRows, name: str, position: int, codes: dict[str, int]) -> Array:
        matrix = np.zeros((len(rows), len(codes)))
        for number, text in enumerate(self._texts(rows, name, position)):
            code = codes.get(self.fill[name] if text is None else text)
            if code is not None:
                matrix[number, code] = 1.0
            elif not self.lenient:
                raise RequestError(
                    f"row {number + 1}: column {name!r} has the new category {_short(text)}"
                )
        return matrix

    def _derived(
        self,
        rows: RequestRows,
        name: str,
        position: int,
        derive: Callable[[list[str | None]], Array],
    ) -> Array:
        try:
            return derive(list(self._texts(rows, name, position)))
        except TableError as error:
            raise RequestError(str(error)) from None

    def _texts(self, rows: RequestRows, name: str, position: int) -> Iterator[str | None]:
        """The values of a column of text; None where one is missing, and may be."""
        for number, row in enumerate(rows.values, start=1):
            value = row[position]
            if type(value) is str:
                yield value.strip()
            elif value is None:
                if name not in self.fill:
                    raise RequestError(f"row {number}: column {name!r} has no value")
                yield None
            elif isinstance(value, (list, dict)):
                raise RequestError(f"row {number}: column {name!r} is text, not a list")
            else:
                # dates and texts without categories take any number
                as_category = isinstance(value, (int, float)) and name in self.categories
                if as_category and abs(value) >= _NOT_EXACT:
                    raise RequestError(
                        f"row {number}: column {name!r} is text: write the number in quotes"
                    )
                yield text_of(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
