"""Tables as models see them: every fold encoded by what its own training part shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import IntArray
from buttress.tables.classifier import TableClassifier
from buttress.tables.encoder import TableEncoder
from buttress.tables.table import Table, is_number


def assemble(empty: TableClassifier, encoder: TableEncoder, estimator: Any) -> TableClassifier:
    """Make `empty` the model that its `fit` would, from a fitted encoder and estimator."""
    empty.encoder_, empty.estimator_, empty.classes_ = encoder, estimator, estimator.classes_
    empty.n_features_in_ = encoder.n_features_in_
    empty.feature_names_in_ = encoder.feature_names_in_
    empty.rows_ = np.arange(0)
    return empty


def as_table_classifier(model: Any) -> TableClassifier:
    """Any fitted classifier of numbers as a model of tables; a model of tables as it is.

    Columns have the names that the classifier was fitted with; x0, x1, ... when it knows none.
    """
    if isinstance(model, TableClassifier):
        return model
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [f"x{i}" for i in range(model.n_features_in_)]
    encoder = TableEncoder(standardize=False).fit({str(name): [0.0] for name in names})
    return assemble(TableClassifier(model, standardize=False), encoder, model)


def encoded_width(table: Table) -> int:
    """Features that the encoder makes of a table: one per number, one per category.

    Examples
    --------
    >>> from buttress.tables import as_table
    >>> encoded_width(as_table({"age": [20, 40, 60], "city": ["a", "b", "a"]}))
    3
    """
    return sum(
        1 if is_number(values) else len(set(values) - {None}) for values in table.columns.values()
    )


class Encoding:
    """Encodes folds of a table, each with what its training part shows.

    Parameters
    ----------
    table : Table
    missing : str
        As in `TableEncoder`.

    Examples
    --------
    >>> from buttress.tables import as_table
    >>> encode = Encoding(as_table({"x": [0.0, 2.0, 5.0]}))
    >>> encode(np.array([0, 1]), np.array([2]))[1]
    array([[4.]])
    """

    def __init__(self, table: Table, missing: str = "error") -> None:
        self.table, self.missing = table, missing

    def encoder(self, rows: IntArray) -> TableEncoder:
        """The encoder of a model that learns from `rows`."""
        return TableEncoder(missing=self.missing).fit(self._take(rows))

    def __call__(self, train: IntArray, test: IntArray) -> tuple[Any, Any]:
        encoder = TableEncoder(missing=self.missing, new_categories="ignore")
        first = encoder.fit_transform(self._take(train))
        return first, encoder.transform(self._take(test)) if len(test) else first[:0]

    def _take(self, rows: IntArray) -> Table:
        whole = len(rows) == len(self.table) and bool((rows == np.arange(len(rows))).all())
        return self.table if whole else self.table.take(rows)
