"""The mean cost of answers and refusals whose costs depend on the class."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.metrics.bootstrap import bootstrap_estimate
from buttress.metrics.counts import Estimate, any_missing, column, row_outcomes
from buttress.metrics.scorer import AnswerScorer


def cost_risk(
    y: Any,
    pred: Any,
    rejected: Any,
    costs: Any,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    confidence: float | None = None,
    random_state: Any = 0,
) -> float | Estimate:
    """The mean cost per row of what was answered, or refused, given the true classes.

    Parameters
    ----------
    y, pred, rejected
        As in `reject_risk`; refused rows need a label too.
    costs : array-like of shape (n_classes, n_classes + 1)
        ``costs[j, k]`` is paid for answering the k-th label on a row of the j-th, and
        ``costs[j, n_classes]`` for not answering it.
    labels : array-like of shape (n_classes,), optional
        The labels in the order of `costs`; default is the sorted labels of `y` and of the
        answers.
    sample_weight : array-like of shape (n,), optional
        An integer weight counts as that many copies of the row.
    confidence : float in (0, 1), optional
        Level of a bootstrap interval; no interval when None.
    random_state : int, RandomState or None, default=0
        For the bootstrap.

    Returns
    -------
    float or Estimate

    Examples
    --------
    A missed case costs five false alarms, and a second look half a false alarm:

    >>> costs = [[0.0, 1.0, 0.5], [5.0, 0.0, 0.5]]
    >>> cost_risk([0, 0, 1, 1], [0, 1, 0, 1], [False, False, False, True], costs)
    1.625
    """
    y = column(y, "y")
    if any_missing(y):
        raise ValueError(
            "y holds NaN or None: leave rows without a label out. What a refusal costs depends on "
            "the class too."
        )
    outcome = row_outcomes(y, pred, rejected, sample_weight)
    pred = column(np.ma.getdata(pred), "pred")
    known = np.unique(np.concatenate([y, pred[~outcome.rejected]])) if labels is None else labels
    known = column(known, "labels")
    matrix = checked_costs(costs, len(known))
    paid = matrix[_places(known, y), _places(known, np.where(outcome.rejected, known[0], pred))]
    paid = np.where(outcome.rejected, matrix[_places(known, y), -1], paid)

    def mean(weight: Array) -> float:
        return float(weight @ paid / weight.sum())

    if confidence is None:
        return mean(outcome.weight)
    return bootstrap_estimate(
        mean, len(paid), confidence, sample_weight=outcome.weight, random_state=random_state
    )


def checked_costs(costs: Any, n_classes: int | None) -> Array:
    """The matrix of costs as numbers, or an error that says what is wrong with it.

    None is as many classes as it has rows.

    Examples
    --------
    >>> checked_costs([[0, 1], [1, 0]], 2)
    Traceback (most recent call last):
    ...
    ValueError: costs has shape (2, 2): expected (2, 3), one row per true class, and one column ...
    """
    try:
        matrix = np.asarray(costs, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"costs={costs!r} is not accepted: expected numbers.") from None
    if n_classes is None:
        n_classes = max(len(np.atleast_1d(matrix)), 2)
    if matrix.shape != (n_classes, n_classes + 1):
        raise ValueError(
            f"costs has shape {matrix.shape}: expected {(n_classes, n_classes + 1)}, one row per "
            "true class, and one column per answer with that of no answer as the last."
        )
    if not np.isfinite(matrix).all():
        raise ValueError("costs must be finite numbers.")
    return matrix


def _places(known: Any, labels: Any) -> Any:
    """Where each label stands among the known ones."""
    order = np.argsort(known)
    index = order[np.minimum(np.searchsorted(known[order], labels), len(known) - 1)]
    strange = known[index] != labels
    if strange.any():
        raise ValueError(
            f"Labels {np.unique(labels[strange]).tolist()} are not among {known.tolist()}, the "
            "labels that costs are given for."
        )
    return index


class CostScorer(AnswerScorer):
    """A scikit-learn scorer: minus the mean cost, so that larger is better.

    Made by `cost_scorer`.

    Parameters
    ----------
    costs : array-like of shape (n_classes, n_classes + 1)
        As in `cost_risk`, in the order of the classifier's ``classes_``.
    """

    def __init__(self, costs: Any) -> None:
        self.costs = costs

    def _risk(self, estimator: Any, y: Any, pred: Any, rejected: Any, weight: Any) -> Any:
        labels = estimator.classes_
        return cost_risk(y, pred, rejected, self.costs, labels=labels, sample_weight=weight)


def cost_scorer(costs: Any) -> CostScorer:
    """A scorer of the mean cost for ``GridSearchCV``, ``cross_val_score`` and the like.

    Parameters
    ----------
    costs : array-like of shape (n_classes, n_classes + 1)
        As in `cost_risk`, in the order of the classifier's ``classes_``. A classifier without a
        `reject` method always answers.

    Returns
    -------
    CostScorer
        Called with ``(estimator, X, y)``; returns minus the mean cost.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> always = DummyClassifier(strategy="constant", constant=1).fit([[0], [0]], [0, 1])
    >>> cost_scorer([[0, 1, 0.5], [5, 0, 0.5]])(always, [[0], [0], [0], [0]], [1, 1, 1, 0])
    -0.25
    """
    checked_costs(costs, None)
    return CostScorer(costs)
