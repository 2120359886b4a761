"""A model file as the service uses it: rows to numbers, numbers to answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray
from buttress.classifiers.base import BaseMarginClassifier
from buttress.classifiers.reject import RejectMixin
from buttress.persistence import describe
from buttress.serve.errors import RequestError
from buttress.serve.rows import Rows
from buttress.tables import TableClassifier, TableError
from buttress.tables.grammar import to_number
from buttress.tables.table import listed, text_of


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says of some rows.

    Attributes
    ----------
    labels : ndarray
        Also for rows that are refused: what the model would say.
    margins : ndarray of shape (n,) or (n, n_classes), or None
    probabilities : ndarray of shape (n, n_classes), or None
    refused : ndarray of bool
    """

    labels: NDArray[Any]
    margins: Array | None
    probabilities: Array | None
    refused: BoolArray

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, rows: slice) -> Answers:
        """Some of the rows."""
        return Answers(
            self.labels[rows],
            None if self.margins is None else self.margins[rows],
            None if self.probabilities is None else self.probabilities[rows],
            self.refused[rows],
        )


class Columns:
    """From the values of a request to the matrix that an estimator sees.

    It does what `TableEncoder.transform` does, to the last bit, without building a table:
    a request has one row more often than a thousand.

    Parameters
    ----------
    names : sequence of str
    numeric : sequence of str
    categories : dict of str to list of str
    fill : dict
        What replaces a missing value, by column; a column without one refuses it.
    usual : dict
        A usual value of every column.
    mean, scale : ndarray or None
        Of the numeric columns.
    target : str, optional
        May be among the columns of a request, and is not looked at.
    lenient : bool
        Extra columns are ignored, new categories are none of the known ones.
    derived : dict of str to function
        Columns of dates and free text, and what turns their values into numbers.
    """

    def __init__(
        self,
        names: Sequence[str],
        numeric: Sequence[str],
        categories: dict[str, list[str]],
        fill: dict[str, Any],
        usual: dict[str, Any],
        mean: Array | None = None,
        scale: Array | None = None,
        target: str | None = None,
        lenient: bool = False,
        derived: dict[str, Callable[[list[str | None]], Array]] | None = None,
    ) -> None:
        self.derived = derived or {}
        self.names = [str(name) for name in names]
        self.numeric = [str(name) for name in numeric]
        self.categories = categories
        self.fill = fill
        self.usual = usual
        self.mean, self.scale = mean, scale
        self.target = target
        self.lenient = lenient
        self._codes = {
            name: {value: code for code, value in enumerate(values)}
            for name, values in categories.items()
        }
        self._known = set(self.names)
        self._layouts: dict[tuple[str, ...], dict[str, int]] = {}

    def encode(self, rows: Rows) -> Array:
        """The matrix of some rows; what does not fit is named."""
        place = self._layouts.get(rows.names) or self._layout(rows.names)
        parts = []
        if self.numeric:
            parts.append(self._numbers(rows, [place[name] for name in self.numeric]))
        for name, codes in self._codes.items():
            parts.append(self._one_hot(rows, name, place[name], codes))
        for name, derive in self.derived.items():
            parts.append(self._derived(rows, name, place[name], derive))
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def _layout(self, names: tuple[str, ...]) -> dict[str, int]:
        """Where the model's columns stand in the rows of a request."""
        place = {name: index for index, name in enumerate(names)}
        absent = [name for name in self.names if name not in place]
        if absent:
            raise RequestError(f"the column {listed(absent, 3)} of the model is missing")
        extra = [name for name in names if name not in self._known and name != self.target]
        if extra and not self.lenient:
            raise RequestError(f"the model has no column {listed(extra, 3)}")
        if len(self._layouts) < 64:  # clients have few; an attacker may have many
            self._layouts[names] = place
        return place

    def _numbers(self, rows: Rows, places: list[int]) -> Array:
        values = rows.values
        if rows.form == "csv":
            table = [self._parsed(row, number, places) for number, row in enumerate(values, 1)]
        else:
            table = [[row[place] for place in places] for row in values]
            for entries in table:
                for entry in entries:
                    if type(entry) is not float and type(entry) is not int:
                        self._check_number(table)
                        break
        try:
            matrix: Array = np.array(table, dtype=np.float64)
        except OverflowError:
            raise RequestError("a number is too large") from None
        if not np.isfinite(matrix).all():
            matrix = self._filled(matrix)
        if self.mean is not None and self.scale is not None:
            return np.asarray((matrix - self.mean) / self.scale)
        return matrix

    def _parsed(self, row: Sequence[Any], number: int, places: list[int]) -> list[Any]:
        try:
            return [None if row[place] is None else to_number(row[place]) for place in places]
        except ValueError:
            for name, place in zip(self.numeric, places, strict=True):
                try:
                    to_number(row[place] or "0")
                except ValueError:
                    raise RequestError(
                        f"row {number}: column {name!r} is numeric, but holds {_short(row[place])}"
                    ) from None
            raise

    def _check_number(self, table: list[list[Any]]) -> None:
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
            if np.isinf(values).any():
                row = int(np.flatnonzero(np.isinf(values))[0]) + 1
                raise RequestError(f"row {row}: column {name!r} is too large a number")
            if missing.any():
                if name not in self.fill:
                    row = int(np.flatnonzero(missing)[0]) + 1
                    raise RequestError(f"row {row}: column {name!r} has no value")
                matrix[missing, column] = self.fill[name]
        return matrix

    def _one_hot(self, rows: Rows, name: str, place: int, codes: dict[str, int]) -> Array:
        matrix = np.zeros((len(rows), len(codes)))
        for number, row in enumerate(rows.values):
            value = row[place]
            if value is None:
                if name not in self.fill:
                    raise RequestError(f"row {number + 1}: column {name!r} has no value")
                value = self.fill[name]
            elif isinstance(value, (list, dict)):
                raise RequestError(f"row {number + 1}: column {name!r} is text, not a list")
            text = value.strip() if type(value) is str else text_of(value)
            code = codes.get(text)
            if code is not None:
                matrix[number, code] = 1.0
            elif not self.lenient:
                raise RequestError(
                    f"row {number + 1}: column {name!r} has the new category {_short(text)}"
                )
        return matrix

    def _derived(
        self, rows: Rows, name: str, place: int, derive: Callable[[list[str | None]], Array]
    ) -> Array:
        values: list[str | None] = []
        for number, row in enumerate(rows.values, start=1):
            value = row[place]
            if value is None and name not in self.fill:
                raise RequestError(f"row {number}: column {name!r} has no value")
            if isinstance(value, (list, dict)):
                raise RequestError(f"row {number}: column {name!r} is text, not a list")
            values.append(None if value is None else text_of(value))
        try:
            return derive(values)
        except TableError as error:
            raise RequestError(str(error)) from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class ServedModel:
    """A fitted model, ready to answer.

    Parameters
    ----------
    model : estimator
        A `TableClassifier` or any fitted classifier of numbers.
    version : str
        Goes with every answer.
    lenient : bool
        As in `Columns`.
    refuse_below : float, optional
        Refuse rows whose margin is smaller, for models that do not refuse by themselves.
    """

    def __init__(
        self,
        model: Any,
        version: str,
        *,
        lenient: bool = False,
        refuse_below: float | None = None,
        about: dict[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.version = version
        self.about = about or {}
        self.refuse_below = refuse_below
        table = isinstance(model, TableClassifier)
        self.target = model.target if table else None
        self.columns = _table_columns(model, lenient) if table else _plain_columns(model, lenient)
        found = model.estimator_ if table else model
        # A search by scikit-learn hands every call on; go to the winner at once.
        own = isinstance(found, BaseMarginClassifier)
        self.estimator = found if own else getattr(found, "best_estimator_", found)
        self.classes = self.estimator.classes_
        self._margin = isinstance(self.estimator, BaseMarginClassifier)
        self._band = isinstance(self.estimator, RejectMixin)
        self.has_margin = hasattr(self.estimator, "decision_function")
        self.has_probability = hasattr(self.estimator, "predict_proba")
        if not (self.has_margin or self.has_probability):
            raise ValueError(
                f"{type(self.estimator).__name__} has neither margins nor probabilities"
            )
        self.rejects = refuse_below is not None or hasattr(self.estimator, "reject")

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        lenient: bool = False,
        refuse_below: float | None = None,
    ) -> ServedModel:
        """The model in a file; its version is the beginning of the file's checksum."""
        model, about = describe(path)
        return cls(
            model, about["sha256"][:16], lenient=lenient, refuse_below=refuse_below, about=about
        )

    def margins(self, X: Array) -> Array:
        """Scores of encoded rows."""
        return np.asarray(self.estimator.decision_function(X))

    def answer(self, X: Array) -> Answers:
        """Labels, margins, probabilities and refusals of encoded rows."""
        estimator = self.estimator
        margins = self.margins(X) if self.has_margin else None
        probabilities = np.asarray(estimator.predict_proba(X)) if self.has_probability else None
        if self._margin and self._band and margins is not None:
            labels, refused = estimator._labels(margins), estimator._rejected(margins)
        else:
            if self._margin and margins is not None:
                best = (margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)
                labels = self.classes[best]
            else:
                labels = np.asarray(estimator.predict(X))
            own = hasattr(estimator, "reject")
            refused = np.asarray(estimator.reject(X)) if own else np.zeros(len(X), dtype=bool)
        if self.refuse_below is not None and margins is not None:
            refused = refused | (clearness(margins) < self.refuse_below)
        return Answers(labels, margins, probabilities, refused)

    def explain(self, X: Array) -> Array:
        """For every row and column, what the value adds to the margin of the answer.

        It is the margin minus the margin with the column at its usual value.
        """
        usual = self.columns.encode(
            Rows(
                tuple(self.columns.names), [[self.columns.usual[n] for n in self.columns.names]], ""
            )
        )
        groups = self._groups()
        n, p = len(X), len(groups)
        changed = np.repeat(X[:, None, :], p + 1, axis=1)
        for index, (start, end) in enumerate(groups):
            changed[:, index + 1, start:end] = usual[0, start:end]
        margins = self.margins(changed.reshape(n * (p + 1), -1)).reshape(n, p + 1, -1)
        if margins.shape[2] == 1:
            told = margins[:, :, 0]
            signs = np.where(told[:, 0] > 0, 1.0, -1.0)
        else:
            best = margins[:, 0].argmax(axis=1)
            told, signs = margins[np.arange(n), :, best], np.ones(n)
        return np.asarray(signs[:, None] * (told[:, :1] - told[:, 1:]))

    def _groups(self) -> list[tuple[int, int]]:
        """Where every column of a request stands in the encoded matrix."""
        place, position = {}, 0
        for name in self.columns.numeric:
            place[name], position = (position, position + 1), position + 1
        for name, values in self.columns.categories.items():
            place[name], position = (position, position + len(values)), position + len(values)
        return [place[name] for name in self.columns.names]


def clearness(margins: Array) -> Array:
    """How far a margin is from a tie: its size, or the gap of the two largest.

    Examples
    --------
    >>> clearness(np.array([-2.0, 1.0])), clearness(np.array([[0.5, 2.0, 1.5]]))
    (array([2., 1.]), array([0.5]))
    """
    if margins.ndim == 1:
        return np.abs(margins)
    two = np.sort(margins, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


def _table_columns(model: TableClassifier, lenient: bool) -> Columns:
    encoder = model.encoder_
    scaler = encoder.scaler_
    return Columns(
        list(encoder.feature_names_in_),
        encoder.numeric_,
        encoder.categories_,
        encoder.fill_ if encoder.missing == "impute" else {},
        encoder.fill_,
        None if scaler is None else scaler.mean_,
        None if scaler is None else scaler.scale_,
        model.target,
        lenient or encoder.extra_columns == "ignore",
        {name: partial(encoder.derive, name) for name in encoder.derived_columns()},
    )


def _plain_columns(model: Any, lenient: bool) -> Columns:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [f"x{i}" for i in range(model.n_features_in_)]
    return Columns(names, names, {}, {}, dict.fromkeys(map(str, names), 0.0), lenient=lenient)
