"""From mixed columns to standardised numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import Array
from buttress.tables.table import (
    Table,
    TableError,
    as_table,
    as_text,
    is_missing,
    is_number,
    listed,
)


class TableEncoder(TransformerMixin, BaseEstimator):
    """Standardise numeric columns and one-hot encode text columns.

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

    Examples
    --------
    >>> table = {"age": [20, 40, 60], "city": ["Oslo", "Bergen", "Oslo"]}
    >>> TableEncoder().fit_transform(table)
    array([[-1.22474487,  0.        ,  1.        ],
           [ 0.        ,  1.        ,  0.        ],
           [ 1.22474487,  0.        ,  1.        ]])
    """

    def __init__(
        self,
        missing: str = "error",
        new_categories: str = "error",
        extra_columns: str = "error",
        standardize: bool = True,
    ) -> None:
        self.missing = missing
        self.new_categories = new_categories
        self.extra_columns = extra_columns
        self.standardize = standardize

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
            raise TableError("the table has no columns to learn from")
        if self.missing != "impute":
            refuse_missing(table)
        self.numeric_ = [name for name in table.names if is_number(table[name])]
        self.categories_ = {
            name: sorted({value for value in table[name] if value is not None})
            for name in table.names
            if not is_number(table[name])
        }
        self.fill_ = {name: _fill_value(name, table[name]) for name in table.names}
        for name in self.numeric_:
            if np.isinf(table[name]).any():
                raise TableError(f"column {name!r} holds an infinite value")
        self.feature_names_in_ = np.array(table.names, dtype=object)
        self.n_features_in_ = len(table.names)
        scaled = self.standardize and self.numeric_
        self.scaler_ = self._scaler(table) if scaled else None
        return self

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
        table = as_table(X, names=self.feature_names_in_)
        table = self._checked(table)
        parts = []
        if self.numeric_:
            numbers = self._numbers(table)
            parts.append(numbers if self.scaler_ is None else self.scaler_.transform(numbers))
        for name, categories in self.categories_.items():
            parts.append(self._one_hot(name, table[name], categories))
        return np.hstack(parts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of the result: ``column``, or ``column=category``."""
        check_is_fitted(self)
        encoded = [f"{name}={value}" for name, each in self.categories_.items() for value in each]
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
        ):
            if getattr(self, name) not in accepted:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is not accepted: expected one of "
                    f"{', '.join(map(repr, accepted))}."
                )

    def _checked(self, table: Table) -> Table:
        """The columns of `fit`, of the kinds of `fit`."""
        absent = [name for name in self.feature_names_in_ if name not in table.columns]
        if absent:
            raise TableError(f"the column {listed(absent)} of the model is missing in the data")
        extra = [name for name in table.names if name not in set(self.feature_names_in_)]
        if extra and self.extra_columns == "error":
            raise TableError(f"the data have an extra column {listed(extra)}, unknown to the model")
        columns = {}
        for name in self.feature_names_in_:
            values = table[name]
            if name in self.categories_:
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
            )
        block = np.zeros((len(codes), len(categories)))
        rows = np.flatnonzero(codes >= 0)
        block[rows, codes[rows]] = 1.0
        return block


def refuse_missing(table: Table) -> None:
    """Raise when a value is missing, with a count for every column.

    Examples
    --------
    >>> refuse_missing(as_table({"age": [31.0, float("nan")], "city": ["Oslo", None]}))
    Traceback (most recent call last):
    ...
    buttress.tables.table.TableError: missing values: 'age' 1, 'city' 1; ...
    """
    counts = table.missing()
    if counts:
        each = ", ".join(f"{name!r} {count}" for name, count in counts.items())
        raise TableError(f"missing values: {each}; choose missing='impute' or missing='drop-rows'")


def _fill_value(name: str, values: NDArray[Any]) -> Any:
    present = values[~is_missing(values)]
    if len(present) == 0:
        raise TableError(f"column {name!r} has no value at all: leave it out")
    if is_number(values):
        return float(np.median(present))
    found, counts = np.unique(present.astype(str), return_counts=True)
    return str(found[counts.argmax()])
