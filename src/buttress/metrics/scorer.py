"""The 0-d-1 risk as a scikit-learn scorer, and what any classifier answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from buttress._arrays import Array, BoolArray
from buttress._numbers import check_number
from buttress.metrics.counts import reject_risk


class AnswerScorer(BaseEstimator):
    """A scikit-learn scorer of answers and refusals: minus a risk, so that larger is better."""

    # the routing of sample_weight to this scorer is switched by `set_score_request`
    __metadata_request__score = {"estimator": UNUSED, "sample_weight": None}  # noqa: RUF012

    # What a subclass calls risk, of a fitted estimator, labels, answers, refusals and weights.
    _risk: Callable[..., Any]

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score a fitted `estimator` on the rows `X` with labels `y`."""
        pred, rejected = answers(estimator, X)
        return -float(np.asarray(self._risk(estimator, y, pred, rejected, sample_weight)))

    def score(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The same as a call."""
        return self(estimator, X, y, sample_weight)


class RejectScorer(AnswerScorer):
    """A scikit-learn scorer: minus the 0-d-1 risk, so that larger is better.

    Made by `reject_scorer`. A classifier (or a pipeline or search that ends in one) with a
    `reject` method is charged `d` for every row it rejects; any other always answers.

    Parameters
    ----------
    d : float in (0, 0.5]
        Cost of giving no answer.
    """

    def __init__(self, d: float = 0.2) -> None:
        self.d = d

    def _risk(self, estimator: Any, y: Any, pred: Any, rejected: Any, weight: Any) -> Any:
        return reject_risk(y, pred, rejected, self.d, sample_weight=weight)


def reject_scorer(d: float) -> RejectScorer:
    """A scorer of the 0-d-1 risk for ``GridSearchCV``, ``cross_val_score`` and the like.

    Parameters
    ----------
    d : float in (0, 0.5]
        Cost of giving no answer.

    Returns
    -------
    RejectScorer
        Called with ``(estimator, X, y)``; returns minus the risk.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> always = DummyClassifier(strategy="constant", constant=1).fit([[0], [0]], [0, 1])
    >>> reject_scorer(0.2)(always, [[0], [0], [0], [0]], [1, 1, 1, 0])
    -0.25
    """
    check_number("d", d, "(0, 0.5]")
    return RejectScorer(d)


def answers(estimator: Any, X: Any) -> tuple[NDArray[Any], BoolArray]:
    """Labels and rejections of a fitted estimator, through pipelines and searches."""
    X, last = final_step(estimator, X)
    pred = np.asarray(last.predict(X))
    if hasattr(last, "reject"):
        return pred, np.asarray(last.reject(X), dtype=bool)
    return pred, np.zeros(len(pred), dtype=bool)


def final_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The classifier inside a pipeline or a search, and the rows as it sees them."""
    for before, last in _inwards(estimator):
        if before is not None:
            X = before.transform(X)
        estimator = last
    return X, estimator


def final_classifier(estimator: Any) -> Any:
    """The classifier inside a pipeline or a search: the one whose rule for refusing counts."""
    for _, last in _inwards(estimator):
        estimator = last
    return estimator


def _inwards(estimator: Any) -> Iterator[tuple[Any, Any]]:
    """What is inside of what, until one refuses or is the last: steps before it, and itself."""
    while not hasattr(estimator, "reject"):
        before = None
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            before = estimator[:-1] if len(estimator.steps) > 1 else None
            estimator = estimator.steps[-1][1]
        else:
            return
        yield before, estimator


def confidence_scores(estimator: Any, X: Any) -> Array:
    """How sure a fitted estimator is of each answer, larger is surer.

    Half the distance between the two largest scores (the absolute score for two classes); the
    largest probability when the estimator has no ``decision_function``.
    """
    X, last = final_step(estimator, X)
    if not hasattr(last, "decision_function"):
        return np.asarray(np.max(last.predict_proba(X), axis=1))
    scores = np.asarray(last.decision_function(X))
    return half_gap(scores)


def half_gap(scores: Array) -> Array:
    """``abs(f)`` for two classes, else half the distance of the two largest columns."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        return np.abs(scores.reshape(len(scores)))
    top = np.partition(scores, -2, axis=1)[:, -2:]
    return np.asarray(0.5 * (top[:, 1] - top[:, 0]))
