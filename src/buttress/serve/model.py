"""A model file as the service uses it: rows to numbers, numbers to answers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray
from buttress.classifiers.approximation import ApproximationMixin
from buttress.classifiers.base import BaseMarginClassifier
from buttress.classifiers.reject import RejectMixin, may_refuse
from buttress.metrics.scorer import final_step
from buttress.persistence import describe
from buttress.serve.columns import RequestColumns
from buttress.serve.rows import RequestRows
from buttress.tables.row_encoding import as_table_classifier
from buttress.tables.table import Table


@dataclass(frozen=True, eq=False)
class ServedAnswers:
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

    def part(self, rows: slice) -> ServedAnswers:
        """Some of the rows."""
        return ServedAnswers(
            self.labels[rows],
            None if self.margins is None else self.margins[rows],
            None if self.probabilities is None else self.probabilities[rows],
            self.refused[rows],
        )


class ServedModel:
    """A fitted model, ready to answer.

    Parameters
    ----------
    model : estimator
        A `TableClassifier` or any fitted classifier of numbers.
    version : str
        Goes with every answer.
    lenient : bool
        As in `RequestColumns`.
    refuse_below : float, optional
        Refuse rows whose margin is smaller, for models that do not refuse by themselves.
    kept : sequence of str
        As in `RequestColumns`.
    """

    def __init__(
        self,
        model: Any,
        version: str,
        *,
        lenient: bool = False,
        refuse_below: float | None = None,
        kept: Sequence[str] = (),
        about: dict[str, Any] | None = None,
    ) -> None:
        self.model = as_table_classifier(model)
        self.version = version
        self.about = about or {}
        self.refuse_below = refuse_below
        self.target = self.model.target
        self.columns = RequestColumns(self.model.encoder_, self.target, lenient, kept)
        inner = self.model.estimator_
        # A search by scikit-learn hands every call on; go to the winner at once.
        is_ours = isinstance(inner, BaseMarginClassifier)
        self.estimator = inner if is_ours else getattr(inner, "best_estimator_", inner)
        self.classes = self.estimator.classes_
        self._margin = isinstance(self.estimator, BaseMarginClassifier)
        # Rows of a request are checked when they are encoded; a second time costs 0.1 ms each.
        inherited = getattr(type(self.estimator), "decision_function", None)
        usual = (BaseMarginClassifier.decision_function, ApproximationMixin.decision_function)
        self._checked = self._margin and inherited in usual
        self._band = isinstance(self.estimator, RejectMixin)
        self.has_margin = hasattr(self.estimator, "decision_function")
        self.has_probability = hasattr(self.estimator, "predict_proba")
        if not (self.has_margin or self.has_probability):
            raise ValueError(
                f"{type(self.estimator).__name__} has neither margins nor probabilities"
            )
        self.rejects = refuse_below is not None or may_refuse(self.estimator)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **settings: Any) -> ServedModel:
        """The model in a file; its version is the beginning of the file's checksum."""
        model, about = describe(path)
        return cls(model, about["sha256"][:16], about=about, **settings)

    def margins(self, X: Array) -> Array:
        """Scores of encoded rows."""
        if self._checked:
            return np.asarray(self.estimator._decide(X))
        return np.asarray(self.estimator.decision_function(X))

    def encoded(self, table: Table) -> Array:
        """The rows of a table that has the model's columns."""
        return np.asarray(self.model.encode(table))

    @property
    def band(self) -> tuple[float, float] | None:
        """The ends of the margins that are refused; None where these are no interval."""
        if self.refuse_below is not None and len(self.classes) == 2:
            return -self.refuse_below, self.refuse_below
        ends = getattr(self.estimator, "thresholds_", None)
        if not self._band or ends is None or np.shape(ends) != (2,):
            return None
        return float(ends[0]), float(ends[1])

    def chance_of_error(self, answers: ServedAnswers) -> Array:
        """How probable it is that the answers are wrong.

        By the model's probabilities where it has some. A machine that refuses at a cost d is
        wrong with probability d at the ends of its band and 1/2 where both classes are equally
        near; between, a straight line. Other margins are read as log odds.
        """
        if answers.probabilities is not None:
            return np.asarray(1.0 - answers.probabilities.max(axis=1))
        assert answers.margins is not None
        band, cost = self.band, getattr(self.estimator, "d", None)
        if band is not None and self.refuse_below is None and isinstance(cost, float):
            middle, half = sum(band) / 2, max((band[1] - band[0]) / 2, 1e-300)
            nearness = np.minimum(np.abs(answers.margins - middle) / half, 1.0)
            return np.asarray(0.5 - (0.5 - cost) * nearness)
        return np.asarray(1.0 / (1.0 + np.exp(np.minimum(clearness(answers.margins), 500.0))))

    def answer(self, X: Array) -> ServedAnswers:
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
            refused = np.zeros(len(X), dtype=bool)
            if may_refuse(estimator):
                rows, last = final_step(estimator, X)
                refused = np.asarray(last.reject(rows))
        if self.refuse_below is not None and margins is not None:
            refused = refused | (clearness(margins) < self.refuse_below)
        return ServedAnswers(labels, margins, probabilities, refused)

    def explain(self, X: Array) -> Array:
        """For every row and column, what the value adds to the margin of the answer.

        It is the margin minus the margin with the column at its usual value.
        """
        usual = self.columns.encode(
            RequestRows(
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
        span_of, position = {}, 0
        for name in self.columns.numeric:
            span_of[name], position = (position, position + 1), position + 1
        for name, values in self.columns.categories.items():
            span_of[name], position = (position, position + len(values)), position + len(values)
        for name, derive in self.columns.derived.items():
            width = derive([None]).shape[1]
            span_of[name], position = (position, position + width), position + width
        return [span_of[name] for name in self.columns.names]


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
