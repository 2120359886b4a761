"""Why a label is doubted: nearest rows of other classes, features that speak against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, IntArray
from buttress.tables.encoder import TableEncoder
from buttress.tables.grammar import to_number
from buttress.tables.table import Table, as_table, as_text, is_missing, is_number, text_of

# Text columns with more values than this are shown, and take no part in distances.
_MOST_CATEGORIES = 50
# Signs from which a value is shown as a text of its own, below the tables.
_LONG_TEXT = 80
# Rows drawn for class medians of large tables; a median of 20 000 rows is exact enough to show.
_MEDIAN_ROWS = 20_000


@dataclass(frozen=True)
class Feature:
    """One column of a row, beside what is usual.

    Attributes
    ----------
    name, value : str
        The value as text; empty when it is missing.
    usual : dict of str to str
        For every class the median, or the most frequent value.
    against : float
        How much the value speaks against the given label and for the suggested one, in units of
        the column's spread (numbers) or as a log ratio of shares (categories).
    """

    name: str
    value: str
    usual: dict[str, str]
    against: float

    @property
    def long(self) -> bool:
        """Whether the value is a text that needs room of its own."""
        return len(self.value) > _LONG_TEXT


@dataclass(frozen=True)
class Neighbour:
    """A row that lies near.

    Attributes
    ----------
    row : int
        What it is called: its number, counted from 1.
    label : str
    distance : float
        Between the standardised rows.
    values : dict of str to str
    """

    row: int
    label: str
    distance: float
    values: dict[str, str]


@dataclass(frozen=True, eq=False)
class _OfClass:
    """What is known of a class: its rows, usual values, and how often others occur."""

    rows: IntArray
    usual: dict[str, Any]
    counts: dict[str, Counter[Any]]

    def share(self, name: str, value: Any) -> float:
        """Share of its rows with a value, one imagined row with and one without it added."""
        return float((self.counts[name][value] + 1) / (len(self.rows) + 2))


class Evidence:
    """What stands beside a row when a person judges its label.

    Parameters
    ----------
    table : Table
        All columns but the labels.
    labels : ndarray of object
        As written, one per row; None where missing.
    features : list of str
        The columns that a model may learn from; the others are only shown.
    numbers : ndarray of int, optional
        What the rows are called; 1, 2, ... when not given.

    Examples
    --------
    >>> table = Table({"age": np.array([20.0, 22.0, 70.0, 71.0])})
    >>> evidence = Evidence(table, np.array(["no", "no", "yes", "no"], dtype=object), ["age"])
    >>> [n.row for n in evidence.neighbours(3, "yes", 1)]
    [3]
    >>> evidence.reason(3, "no", "yes")
    "nearest 'yes': row 3 (0.04); against 'no': age 71 (usual 22, of 'yes' 70)"
    """

    def __init__(
        self,
        table: Table,
        labels: NDArray[Any],
        features: list[str],
        numbers: IntArray | None = None,
    ) -> None:
        self.table = table
        self._numbers = np.arange(1, len(table) + 1) if numbers is None else numbers
        self.features = features
        near = _with_values(Table({n: table[n] for n in features if _few_values(table[n])}))
        self._encoded: Array = np.zeros((len(table), 1), dtype=np.float32)
        self._encoder: TableEncoder | None = None
        if near.names:
            self._encoder = TableEncoder(missing="impute", new_categories="ignore").fit(near)
            self._encoded = np.asarray(self._encoder.transform(near), dtype=np.float32)
        self._spread = {n: _spread(table[n]) for n in features if is_number(table[n])}
        self.update(labels)

    def update(self, labels: NDArray[Any]) -> None:
        """Take the labels as corrected so far.

        Others may be reading at the same time: they see the old classes or the new ones, whole.
        """
        self.labels = labels
        classes = sorted({label for label in labels if label is not None})
        self._of = {label: self._described(np.flatnonzero(labels == label)) for label in classes}

    def _described(self, rows: IntArray) -> _OfClass:
        drawn = rows[:: max(1, len(rows) // _MEDIAN_ROWS)]
        return _OfClass(
            rows,
            {n: _usual(self.table[n][drawn]) for n in self.features},
            {n: Counter(self.table[n][rows]) for n in self.features if n not in self._spread},
        )

    @property
    def classes(self) -> list[str]:
        """The labels that there are."""
        return list(self._of)

    def values(self, row: int) -> dict[str, str]:
        """Every column of a row, as text."""
        return {name: shown(values[row]) for name, values in self.table.columns.items()}

    def row(self, row: int, given: str | None, suggested: str | None) -> list[Feature]:
        """The columns of a row, those that speak against its label first."""
        values = {name: values[row] for name, values in self.table.columns.items()}
        return self.features_of(values, given, suggested)

    def features_of(
        self, values: Mapping[str, Any], given: str | None, suggested: str | None
    ) -> list[Feature]:
        """The same for the values of any row, by column; those that are no features are shown."""
        features = []
        of = self._of
        given_class = None if given is None else of.get(given)
        suggested_class = None if suggested is None else of.get(suggested)
        for name, value in values.items():
            known = name in self.features
            usual = {label: shown(its.usual[name]) if known else "" for label, its in of.items()}
            against = 0.0
            if (
                known
                and given_class is not None
                and suggested_class is not None
                and given_class is not suggested_class
            ):
                against = self._against(name, value, given_class, suggested_class)
            features.append(Feature(name, shown(value), usual, against))
        return sorted(features, key=lambda feature: -feature.against)

    def as_columns(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values of a row from elsewhere, as numbers or text like the table's columns."""
        converted: dict[str, Any] = dict(values)
        for name in converted.keys() & self.table.columns.keys():
            column = as_table({name: [converted[name]]})[name]
            if is_number(self.table[name]) and not is_number(column):
                column = np.array([np.nan if text is None else to_number(text) for text in column])
            elif not is_number(self.table[name]):
                column = as_text(column)
            converted[name] = column[0]
        return converted

    def _against(self, name: str, value: Any, given: _OfClass, suggested: _OfClass) -> float:
        if shown(value) == "":
            return 0.0
        if name in self._spread:
            if not np.isfinite(value):
                return 0.0
            usual_given, usual_suggested = given.usual[name], suggested.usual[name]
            if not np.isfinite([value, usual_given, usual_suggested]).all():
                return 0.0
            return float(
                (abs(value - usual_given) - abs(value - usual_suggested)) / self._spread[name]
            )
        return float(np.log(suggested.share(name, value) / given.share(name, value)))

    def neighbours(self, row: int, label: str, k: int = 3) -> list[Neighbour]:
        """The nearest rows of a class."""
        among = self._rows_of(label)
        return self._nearest(self._encoded[row], label, among[among != row], k)

    def neighbours_of(self, values: Mapping[str, Any], label: str, k: int = 3) -> list[Neighbour]:
        """The nearest rows of a class to a row that is not in the table."""
        point: Array = np.zeros(1, dtype=np.float32)
        if self._encoder is not None:
            names = self._encoder.feature_names_in_
            table = as_table({name: [values.get(name)] for name in names})
            point = np.asarray(self._encoder.transform(table)[0], dtype=np.float32)
        return self._nearest(point, label, self._rows_of(label), k)

    def _rows_of(self, label: str) -> IntArray:
        its = self._of.get(label)
        return np.empty(0, dtype=np.intp) if its is None else its.rows

    def _nearest(self, point: Array, label: str, among: IntArray, k: int) -> list[Neighbour]:
        squares = ((self._encoded[among] - point) ** 2).sum(axis=1)
        nearest: IntArray = np.argsort(squares, kind="stable")[:k]
        chosen = among[nearest]
        return [
            Neighbour(int(self._numbers[row]), label, float(distance), self.values(int(row)))
            for row, distance in zip(chosen, np.sqrt(squares[nearest]), strict=True)
        ]

    def reason(self, row: int, given: str, suggested: str, k: int = 3) -> str:
        """In one line: the nearest rows of the suggested class, and what speaks for it."""
        near = self.neighbours(row, suggested, k)
        terms = []
        if near:
            rows = ", ".join(f"{n.row} ({n.distance:.2g})" for n in near)
            terms.append(f"nearest {suggested!r}: row{'s' if len(near) > 1 else ''} {rows}")
        speaking = [f for f in self.row(row, given, suggested) if f.against > 0][:k]
        if speaking:
            told = "; ".join(
                f"{f.name} {f.value} (usual {f.usual[given]}, "
                f"of {suggested!r} {f.usual[suggested]})"
                for f in speaking
            )
            terms.append(f"against {given!r}: {told}")
        return "; ".join(terms)


def shown(value: Any) -> str:
    """A value as people read it: six digits, nothing when it is missing."""
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return ""
        return text_of(float(value)) if float(value).is_integer() else f"{value:.6g}"
    return str(value)


def _usual(values: NDArray[Any]) -> Any:
    if is_number(values):
        return np.nanmedian(values) if not np.isnan(values).all() else np.nan
    counts = Counter(value for value in values if value is not None)
    # Of equally frequent values the first in the alphabet, whatever the order of the rows.
    return min(counts, key=lambda value: (-counts[value], value)) if counts else None


def _spread(values: NDArray[Any]) -> float:
    known = values[np.isfinite(values)]
    if not len(known):
        return 1.0
    low, high = np.quantile(known, [0.25, 0.75])
    return float(high - low) or float(known.std()) or 1.0


def _few_values(values: NDArray[Any]) -> bool:
    return is_number(values) or len(set(values)) <= _MOST_CATEGORIES


def _with_values(table: Table) -> Table:
    """Without the columns that hold nothing, or an infinite number."""
    kept = {
        name: values
        for name, values in table.columns.items()
        if not is_missing(values).all() and not (is_number(values) and np.isinf(values).any())
    }
    return Table(kept)
