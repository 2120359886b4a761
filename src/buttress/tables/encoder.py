"""From mixed columns to standardised numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import Array
from buttress._documented import DocumentedMixin
from buttress.classifiers.parameters import check_number, check_option
from buttress.tables.derived import (
    date_names,
    date_parts,
    has_clock,
    hashed_text,
    looks_like_dates,
)
from buttress.tables.table import (
    Table,
    TableError,
    as_table,
    as_text,
    boolean_hint,
    is_missing,
    is_number,
    lacking,
    listed,
)

# Texts of a column that are categories, unless told otherwise; more are free text.
MOST_CATEGORIES = 100


class TableEncoder(DocumentedMixin, TransformerMixin, BaseEstimator):
    """Turn the columns of a table into numbers: numbers, categories, dates and free text.

    Numeric columns are standardised, text columns one-hot encoded, dates taken apart, and text
    with too many different values for categories is hashed.

    Parameters
    ----------
    missing : {"error", "impute", "drop-rows"}, default="error"
        What a missing value does: raise, with a count per column; be replaced by the column's
        median (numbers) or most frequent value (text); or, for "drop-rows", be taken out by
        whoever calls (a transformer cannot drop rows), so that here it raises too.
    new_categories : {"error", "ignore"}, default="error"
        What a category that was not seen in `fit` does in `transform`: raise, or be encoded
        as none of the known ones.
    extra_columns : {"error", "ignore"}, default="error"
        What a column that was not there in `fit` does in `transform`.
    standardize : bool, default=True
        Whether numeric columns are brought to mean 0 and variance 1.
    dates : {"parts", "categories", "error"}, default="parts"
        What becomes of a column of dates (a frame's dates and times, or ISO 8601 text):
        numbers (see Notes), categories like any other text, or an error.
    max_categories : int or None, default=100
        A text column with more different values is free text: every value becomes the counts of
        its short character sequences, hashed to `text_size` numbers, so that no value is ever new
        and misspelt ones are near. None one-hot encodes however many there are.
    text_size : int, default=64
        Numbers that free text becomes.

    Attributes
    ----------
    feature_names_in_ : ndarray of str
        The columns, in order.
    n_features_in_ : int
        Their number.
    numeric_ : list of str
        The numeric columns.
    categories_ : dict of str to list of str
        The categories of every text column, sorted.
    dates_ : dict of str to dict
        For every column of dates: whether the time of day is used (``"clock"``), ``"mean"`` and
        ``"scale"`` of the days.
    texts_ : list of str
        The columns of free text.
    fill_ : dict
        What replaces a missing value of every column.
    scaler_ : StandardScaler or None
        Mean and scale of the numeric columns; None without such columns, or when they are
        left as they are.

    Notes
    -----
    The numeric columns come first in the result, then the categories column by column. A
    numeric column has mean 0 and variance 1 over the training rows, exactly as
    `sklearn.preprocessing.StandardScaler` does it; a category is 0 or 1.

    Behind them stand the dates and then the free text. A date is the day, standardised if
    `standardize`, and sine and cosine of its place in the year and in the week, and in the day
    where any training row has a time of day.

    As a step of a scikit-learn pipeline it takes data frames of pandas, polars, pyarrow, Modin and
    DuckDB, and `set_output` decides what it gives. skrub's `TableVectorizer` does the same job with
    more ways to encode text, and can stand in its place.

    Examples
    --------
    >>> from buttress.tables import TableEncoder
    >>> table = {"age": [20, 40, 60], "city": ["Oslo", "Bergen", "Oslo"]}
    >>> TableEncoder().fit_transform(table)
    array([[-1.22474487,  0.        ,  1.        ],
           [ 0.        ,  1.        ,  0.        ],
           [ 1.22474487,  0.        ,  1.        ]])
    >>> encoder = TableEncoder().fit({"when": ["2024-02-29", "2024-03-07"]})
    >>> encoder.get_feature_names_out().tolist()
    ['when:day', 'when:year_sin', 'when:year_cos', 'when:week_sin', 'when:week_cos']
    """

    def __init__(
        self,
        *,
        missing: str = "error",
        new_categories: str = "error",
        extra_columns: str = "error",
        standardize: bool = True,
        dates: str = "parts",
        max_categories: int | None = MOST_CATEGORIES,
        text_size: int = 64,
    ) -> None:
        self.missing = missing
        self.new_categories = new_categories
        self.extra_columns = extra_columns
        self.standardize = standardize
        self.dates = dates
        self.max_categories = max_categories
        self.text_size = text_size

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self.missing == "impute"
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fill_")

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn the columns, their categories, means and scales.

        Parameters
        ----------
        X : Table, data frame, mapping of columns, or matrix
        y : ignored
        """
        self._check_parameters()
        table = as_table(X)
        if not table.names:
            raise TableError(
                f"the table has no columns to learn from: 0 feature(s) (shape=({len(table)}, 0)) "
                "while a minimum of 1 is required."
            )
        if self.missing != "impute":
            refuse_missing(table)
        self.numeric_ = [name for name in table.names if is_number(table[name])]
        self._sort_out_text(table)
        self.fill_ = {name: _fill_value(name, table[name]) for name in table.names}
        for name in self.numeric_:
            if np.isinf(table[name]).any():
                raise TableError(f"column {name!r} holds an infinite value")
        self.feature_names_in_ = np.array(table.names, dtype=object)
        self.n_features_in_ = len(table.names)
        scaled = self.standardize and self.numeric_
        self.scaler_ = self._scaler(table) if scaled else None
        return self

    def _sort_out_text(self, table: Table) -> None:
        """Which text columns are dates, which have too many values for categories."""
        categories, texts, dates = {}, [], {}
        for name in table.names:
            if name in self.numeric_:
                continue
            present = [value for value in table[name] if value is not None]
            if self.dates != "categories" and looks_like_dates(present):
                if self.dates == "error":
                    raise TableError(
                        f"column {name!r} holds dates: choose dates='parts' or 'categories', or "
                        "leave it out"
                    )
                dates[name] = self._date_scale(name, present)
                continue
            known = sorted(set(present))
            if self.max_categories is not None and len(known) > self.max_categories:
                _warn_of_identifier(name, len(known), len(table))
                texts.append(name)
            else:
                categories[name] = known
        self.categories_, self.texts_, self.dates_ = categories, texts, dates

    def _date_scale(self, name: str, present: list[str]) -> dict[str, Any]:
        days = date_parts(name, present, clock=False)[:, 0]
        scale = float(days.std()) if self.standardize else 0.0
        mean = float(days.mean()) if self.standardize else 0.0
        return {"clock": has_clock(present), "mean": mean, "scale": scale or 1.0}

    def transform(self, X: Any) -> Array:
        """The rows as numbers.

        Parameters
        ----------
        X : Table, data frame, mapping of columns, or matrix
            Columns are found by name, in any order; those of a matrix by position.

        Returns
        -------
        ndarray of shape (n_samples, n_encoded)

        Raises
        ------
        TableError
            Naming the column that is missing, extra or of another type, or the category that
            is new.
        """
        check_is_fitted(self)
        self._check_width(X)
        table = self._checked(as_table(X, names=self.feature_names_in_))
        blocks = []
        if self.numeric_:
            numbers = self._numbers(table)
            if self.scaler_ is not None:
                numbers = self.scaler_.transform(numbers, copy=False)
            blocks.append(numbers)
        for name, categories in self.categories_.items():
            blocks.append(self._one_hot(name, table[name], categories))
        blocks += [self.derive(name, table[name].tolist()) for name in self.derived_columns()]
        return blocks[0] if len(blocks) == 1 else np.hstack(blocks)

    def derived_columns(self) -> list[str]:
        """The columns that are neither numbers nor categories: dates, then free text."""
        # models saved by earlier versions have neither
        return [*getattr(self, "dates_", ()), *getattr(self, "texts_", ())]

    def derive(self, name: str, values: Sequence[str | None]) -> Array:
        """What one column of dates or of free text becomes.

        Parameters
        ----------
        name : str
            One of `derived_columns`.
        values : sequence of str
            None where a value is missing, which is replaced.
        """
        filled = [self.fill_[name] if value is None else value for value in values]
        if name in self.texts_:
            return hashed_text(filled, self.text_size)
        about = self.dates_[name]
        features = date_parts(name, filled, about["clock"])
        features[:, 0] = (features[:, 0] - about["mean"]) / about["scale"]
        return features

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of the result: ``column``, ``column=category``, ``column:part``.

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        encoded = [f"{name}={value}" for name, each in self.categories_.items() for value in each]
        for name in self.derived_columns():
            if name in self.dates_:
                encoded += date_names(name, self.dates_[name]["clock"])
            else:
                encoded += [f"{name}:{k}" for k in range(self.text_size)]
        return np.array(self.numeric_ + encoded, dtype=object)

    def _scaler(self, table: Table) -> StandardScaler:
        with np.errstate(over="ignore", invalid="ignore"):
            scaler = StandardScaler().fit(self._numbers(table))
        usable = np.isfinite(scaler.mean_) & np.isfinite(scaler.var_)
        if not usable.all():
            name = self.numeric_[int(np.flatnonzero(~usable)[0])]
            raise TableError(f"column {name!r} holds numbers too large to standardise")
        return scaler

    def _check_parameters(self) -> None:
        for name, accepted in (
            ("missing", ("error", "impute", "drop-rows")),
            ("new_categories", ("error", "ignore")),
            ("extra_columns", ("error", "ignore")),
            ("dates", ("parts", "categories", "error")),
        ):
            check_option(name, getattr(self, name), accepted)
        if self.max_categories is not None:
            check_number("max_categories", self.max_categories, "[1, inf)", integer=True)
        check_number("text_size", self.text_size, "[1, inf)", integer=True)

    def _check_width(self, X: Any) -> None:
        width = X.shape[1] if isinstance(X, np.ndarray) and X.ndim == 2 else self.n_features_in_
        if width != self.n_features_in_:
            raise TableError(
                f"X has {width} features, but TableEncoder is expecting {self.n_features_in_} "
                "features as input"
            )

    def _checked(self, table: Table) -> Table:
        """The columns of `fit`, of the kinds of `fit`."""
        absent = [name for name in self.feature_names_in_ if name not in table.columns]
        if absent:
            raise TableError(f"{lacking(absent)} in the data")
        extra = [name for name in table.names if name not in set(self.feature_names_in_)]
        if extra and self.extra_columns == "error":
            raise TableError(f"the data have an extra column {listed(extra)}, unknown to the model")
        columns = {}
        for name in self.feature_names_in_:
            values = table[name]
            if name not in self.numeric_:
                values = as_text(values)
            elif not is_number(values):
                if not is_missing(values).all():
                    example = next(value for value in values if value is not None)
                    raise TableError(f"column {name!r} is numeric, but holds {example!r}")
                values = np.full(len(values), np.nan)
            elif np.isinf(values).any():
                raise TableError(f"column {name!r} holds an infinite value")
            columns[name] = values
        known = Table(columns)
        if self.missing != "impute":
            refuse_missing(known)
        return known

    def _numbers(self, table: Table) -> Array:
        matrix = np.column_stack([table[name] for name in self.numeric_])
        for j, name in enumerate(self.numeric_):
            matrix[np.isnan(matrix[:, j]), j] = self.fill_[name]
        return matrix

    def _one_hot(self, name: str, values: NDArray[Any], categories: list[str]) -> Array:
        index = {value: position for position, value in enumerate(categories)}
        filled = [self.fill_[name] if value is None else value for value in values]
        codes = np.array([index.get(value, -1) for value in filled], dtype=int)
        if self.new_categories == "error" and (codes < 0).any():
            new = sorted({filled[row] for row in np.flatnonzero(codes < 0)})
            raise TableError(
                f"column {name!r} holds a category that the model does not know: {listed(new)}"
                f"{boolean_hint(new, categories)}"
            )
        block = np.zeros((len(codes), len(categories)))
        rows = np.flatnonzero(codes >= 0)
        block[rows, codes[rows]] = 1.0
        return block


def _warn_of_identifier(name: str, n_values: int, n_rows: int) -> None:
    if n_values == n_rows:
        warnings.warn(
            f"column {name!r} holds another text in every row and is encoded by its letters; an "
            "identifier should be left out",
            UserWarning,
            stacklevel=4,
        )


def refuse_missing(table: Table) -> None:
    """Raise when a value is missing, with a count for every column.

    Examples
    --------
    >>> refuse_missing(as_table({"age": [31.0, float("nan")], "city": ["Oslo", None]}))
    Traceback (most recent call last):
    ...
    buttress.tables.table.TableError: missing values: 'age' 1, 'city' 1 (NaN or None); ...
    """
    counts = table.missing()
    if counts:
        each = ", ".join(f"{name!r} {count}" for name, count in counts.items())
        raise TableError(
            f"missing values: {each} (NaN or None); choose missing='impute' or missing='drop-rows'"
        )


def _fill_value(name: str, values: NDArray[Any]) -> Any:
    present = values[~is_missing(values)]
    if len(present) == 0:
        raise TableError(f"column {name!r} has no value at all: leave it out")
    if is_number(values):
        return float(np.median(present))
    categories, counts = np.unique(present.astype(str), return_counts=True)
    return str(categories[counts.argmax()])
