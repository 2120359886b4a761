"""A classifier of tables: encoder and estimator as one model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import Array, BoolArray
from buttress._documented import DocumentedMixin
from buttress.metrics.scorer import final_classifier, final_step
from buttress.tables.encoder import TableEncoder
from buttress.tables.grammar import class_labels
from buttress.tables.table import Table, TableError, as_table, is_missing, is_number


class TableClassifier(DocumentedMixin, ClassifierMixin, BaseEstimator):
    """Any classifier, on tables of numbers and categories.

    Everything that a prediction needs is inside: the columns, categories, means and scales,
    the fitted estimator and the labels.

    Parameters
    ----------
    estimator : classifier
        Fitted on the encoded rows.
    target : str, optional
        The column of the labels. It may be in the table given to `fit` (with ``y=None``), and
        is ignored in tables to predict.
    missing : {"error", "impute", "drop-rows"}, default="error"
        What a missing value does: raise with a count per column; be replaced by the median or
        the most frequent value; or take its row out of `fit` (in `predict` it raises).
    new_categories, extra_columns : {"error", "ignore"}, default="error"
        As in `TableEncoder`.
    standardize : bool, default=True
        Whether numeric columns are brought to mean 0 and variance 1.
    ignore : list of str, default=None
        Columns that are no features, such as an identifier: left out of `fit`, and not looked
        at in tables to predict.

    Attributes
    ----------
    encoder_ : TableEncoder
        From columns to numbers.
    estimator_ : classifier
        The fitted estimator.
    classes_ : ndarray
        The labels.
    rows_ : ndarray of int
        The rows used by `fit`: all of them, except with ``missing="drop-rows"``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> table = {"age": [20, 40, 60, 80], "city": ["a", "b", "a", "b"], "y": ["n", "n", "p", "p"]}
    >>> model = TableClassifier(SVC(), target="y").fit(table)
    >>> model.predict({"city": ["b"], "age": [75]})
    array(['p'], dtype='<U1')
    """

    def __init__(
        self,
        estimator: Any,
        target: str | None = None,
        *,
        missing: str = "error",
        new_categories: str = "error",
        extra_columns: str = "error",
        standardize: bool = True,
        ignore: list[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.target = target
        self.missing = missing
        self.new_categories = new_categories
        self.extra_columns = extra_columns
        self.standardize = standardize
        self.ignore = ignore

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def fit(self, X: Any, y: Any = None) -> TableClassifier:
        """Fit encoder and estimator.

        Parameters
        ----------
        X : Table, data frame, mapping of columns, or matrix
        y : array-like, optional
            The labels; when not given, the column `target` of `X`.
        """
        table, labels = split_target(as_table(X).without(*(self.ignore or ())), self.target, y)
        rows = np.arange(len(table))
        if self.missing == "drop-rows":
            rows = np.flatnonzero(table.complete() & ~_no_label(labels))
            if len(rows) == 0:
                raise TableError("no row is left once those with a missing value are dropped")
            table, labels = table.take(rows), labels[rows]
        n_without = int(_no_label(labels).sum())
        if n_without:
            raise TableError(
                f"{n_without} rows have no label in {self.target or 'y'!r}; "
                "choose missing='drop-rows' to leave them out"
            )
        encoder = TableEncoder(
            missing=self.missing,
            new_categories=self.new_categories,
            extra_columns=self.extra_columns,
            standardize=self.standardize,
        )
        encoded = encoder.fit_transform(table)
        estimator = clone(self.estimator).fit(encoded, class_labels(labels))
        self.encoder_, self.estimator_, self.rows_ = encoder, estimator, rows
        self.classes_ = estimator.classes_
        self.n_features_in_ = encoder.n_features_in_
        self.feature_names_in_ = encoder.feature_names_in_
        return self

    def encode(self, X: Any) -> Array:
        """The rows as the estimator sees them.

        Parameters
        ----------
        X : Table, data frame, mapping of columns, or matrix
            Columns by name, in any order; the column `target`, if present, is not looked at.
        """
        check_is_fitted(self)
        table = as_table(X, names=self.feature_names_in_)
        return self.encoder_.transform(table.without(*self.known_extras()))

    def known_extras(self) -> list[str]:
        """Columns that may stand in a table to predict and are not looked at."""
        check_is_fitted(self)
        named = [*([] if self.target is None else [self.target]), *(self.ignore or ())]
        return [name for name in named if name not in self.feature_names_in_]

    def decision_function(self, X: Any) -> Array:
        """Scores of the estimator for every row; see `encode` for `X`."""
        return np.asarray(self.estimator_.decision_function(self.encode(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of every row; see `encode` for `X`."""
        return np.asarray(self.estimator_.predict(self.encode(X)))

    @property
    def rejects(self) -> bool:
        """Whether the estimator can abstain."""
        check_is_fitted(self)
        return hasattr(final_classifier(self.estimator_), "reject")

    def reject(self, X: Any) -> BoolArray:
        """Which rows the estimator would rather not answer; see `encode` for `X`."""
        rows, last = final_step(self.estimator_, self.encode(X))
        if not hasattr(last, "reject"):
            return np.zeros(len(rows), dtype=bool)
        return np.asarray(last.reject(rows))

    def predict_or_reject(self, X: Any, reject_label: Any = None) -> NDArray[Any]:
        """The label of every row, or `reject_label` (masked when None) where it abstains."""
        labels, rejected = self.predict(X), self.reject(X)
        if reject_label is None:
            return np.ma.MaskedArray(labels, mask=rejected)
        kind = np.result_type(labels, np.asarray(reject_label))
        if labels.dtype.kind != np.asarray(reject_label).dtype.kind:
            kind = np.dtype(object)
        return np.where(rejected, np.asarray(reject_label, dtype=kind), labels.astype(kind))


def split_target(table: Table, target: str | None, y: Any = None) -> tuple[Table, NDArray[Any]]:
    """Features and labels of a table; the labels may be one of its columns.

    Returns
    -------
    Table
        Without the column `target`.
    ndarray
    """
    if y is None:
        if target is None:
            raise ValueError("y is None: give the labels, or name their column with target=")
        labels = table[target]
    else:
        labels = np.asarray(y)
    features = table.without(target) if target is not None else table
    if len(labels) != len(features):
        raise ValueError(f"y has {len(labels)} labels, X has {len(features)} rows.")
    return features, labels


def _no_label(labels: NDArray[Any]) -> BoolArray:
    if is_number(labels) or labels.dtype.kind == "O":
        return is_missing(labels)
    return np.zeros(len(labels), dtype=bool)
