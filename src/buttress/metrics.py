"""How good a classifier is that may give no answer.

Every row ends in one of three ways: answered rightly (cost 0), answered wrongly (cost 1), or
not answered (cost `d`). The 0-d-1 risk is the mean of these costs; the rejection rate and the
accuracy on the accepted rows say where it comes from; the risk-coverage curve shows every
trade-off that a score of confidence allows.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.metadata_routing import UNUSED

from buttress._arrays import Array, BoolArray

__all__ = [
    "Estimate",
    "RejectScorer",
    "accepted_accuracy",
    "area_under_risk_coverage",
    "reject_risk",
    "reject_scorer",
    "rejection_rate",
    "risk_coverage_curve",
]


class Estimate(NamedTuple):
    """A measured value and the ends of its confidence interval."""

    value: float
    low: float
    high: float


def reject_risk(
    y: Any,
    pred: Any,
    rejected: Any,
    d: float,
    *,
    sample_weight: Any = None,
    confidence: float | None = None,
) -> float | Estimate:
    """The 0-d-1 risk: ``(errors among the accepted rows + d * rejected rows) / rows``.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels.
    pred : array-like of shape (n,)
        Answers; what stands in rejected rows does not count.
    rejected : array-like of bool of shape (n,), or None
        Rows without an answer; None takes the mask of `pred` (a masked array as
        ``predict_or_reject`` returns it), or none.
    d : float in [0, 0.5]
        Cost of giving no answer.
    sample_weight : array-like of shape (n,), optional
        An integer weight counts as that many copies of the row in the value. The interval
        treats weighted rows as ``(sum w)^2 / sum w^2`` independent ones.
    confidence : float in (0, 1), optional
        Level of the confidence interval; no interval when None.

    Returns
    -------
    float or Estimate
        The risk, or ``(value, low, high)`` when `confidence` is given.

    Notes
    -----
    With ``A`` the rows that are rejected or wrong and ``E`` the wrong ones, the risk is
    ``d P(A) + (1 - d) P(E)``. The interval adds the Clopper-Pearson intervals of the two
    shares, each at half of the error allowed, so it holds with at least the stated
    probability at every sample size.

    Examples
    --------
    >>> reject_risk([1, 1, 0, 0], [1, 0, 0, 0], [False, False, False, True], d=0.2)
    0.3
    >>> estimate = reject_risk([1, 1, 0, 0], [1, 0, 0, 0], None, d=0.2, confidence=0.9)
    >>> estimate.low < estimate.value < estimate.high
    True
    """
    if not 0 <= d <= 0.5:
        raise ValueError(f"d={d!r} is out of range: expected a number in [0, 0.5].")
    outcome = _outcome(y, pred, rejected, sample_weight)
    w = outcome.weight
    worse = outcome.rejected | outcome.wrong
    value = float(w @ (d * worse + (1 - d) * outcome.wrong) / w.sum())
    if confidence is None:
        return value
    level = 0.5 + 0.5 * _checked_confidence(confidence)
    low_a, high_a = _interval(worse, w, level)
    low_e, high_e = _interval(outcome.wrong, w, level)
    return Estimate(value, d * low_a + (1 - d) * low_e, d * high_a + (1 - d) * high_e)


def rejection_rate(
    rejected: Any, *, sample_weight: Any = None, confidence: float | None = None
) -> float | Estimate:
    """The share of rows without an answer.

    Parameters
    ----------
    rejected : array-like of bool of shape (n,)
        Rows without an answer, or the masked array of ``predict_or_reject``.
    sample_weight : array-like of shape (n,), optional
        An integer weight counts as that many copies of the row.
    confidence : float in (0, 1), optional
        Level of the Clopper-Pearson interval; no interval when None.

    Returns
    -------
    float or Estimate

    Examples
    --------
    >>> rejection_rate([True, False, False, False])
    0.25
    """
    if isinstance(rejected, np.ma.MaskedArray):
        rejected = np.ma.getmaskarray(rejected)
    rejected = _booleans(rejected)
    return _share(rejected, _weights(sample_weight, len(rejected)), confidence)


def accepted_accuracy(
    y: Any,
    pred: Any,
    rejected: Any,
    *,
    sample_weight: Any = None,
    confidence: float | None = None,
) -> float | Estimate:
    """The share of right answers among the rows that were answered.

    Parameters
    ----------
    y, pred, rejected, sample_weight
        As in `reject_risk`.
    confidence : float in (0, 1), optional
        Level of the Clopper-Pearson interval; no interval when None.

    Returns
    -------
    float or Estimate
        NaN, with an `UndefinedMetricWarning` and the interval (0, 1), when every row is
        rejected.

    Examples
    --------
    >>> accepted_accuracy([1, 1, 0, 0], [1, 0, 0, 1], [False, True, False, False])
    0.6666666666666666
    """
    outcome = _outcome(y, pred, rejected, sample_weight)
    kept = ~outcome.rejected
    if not (outcome.weight[kept] > 0).any():
        warnings.warn(
            "Accuracy on accepted rows is undefined: every row was rejected.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
        if confidence is None:
            return float("nan")
        _checked_confidence(confidence)
        return Estimate(float("nan"), 0.0, 1.0)
    return _share(~outcome.wrong[kept], outcome.weight[kept], confidence)


def risk_coverage_curve(
    y: Any, pred: Any, score: Any, *, sample_weight: Any = None
) -> tuple[Array, Array, Array]:
    """Error rate among the accepted rows for every share of rows accepted.

    Parameters
    ----------
    y, pred : array-like of shape (n,)
        True labels and answers.
    score : array-like of shape (n,)
        Confidence of every answer, larger is surer: ``abs(decision_function(X))`` for two
        classes, or the largest probability. Rows are accepted from the surest down; rows of
        equal confidence come in together.
    sample_weight : array-like of shape (n,), optional
        An integer weight counts as that many copies of the row.

    Returns
    -------
    coverage : ndarray
        Share of rows accepted, increasing to 1.
    risk : ndarray
        Error rate among them.
    thresholds : ndarray
        Smallest confidence accepted, decreasing.

    Notes
    -----
    Costs O(n log n).

    References
    ----------
    El-Yaniv and Wiener, On the foundations of noise-free selective classification, JMLR 2010.

    Examples
    --------
    >>> coverage, risk, thresholds = risk_coverage_curve([1, 0, 1], [1, 0, 0], [0.9, 0.8, 0.1])
    >>> coverage.round(2).tolist(), risk.round(2).tolist()
    ([0.33, 0.67, 1.0], [0.0, 0.0, 0.33])
    """
    thresholds, weight, wrong = _levels(y, pred, score, sample_weight)
    covered = np.cumsum(weight)
    return covered / covered[-1], np.cumsum(wrong) / covered, thresholds


def area_under_risk_coverage(y: Any, pred: Any, score: Any, *, sample_weight: Any = None) -> float:
    """The area under the risk-coverage curve; smaller is better.

    Parameters
    ----------
    y, pred, score, sample_weight
        As in `risk_coverage_curve`.

    Returns
    -------
    float
        The mean over all coverages of the error rate among the accepted rows, between 0 and
        1; it equals the error rate when the confidence says nothing.

    Notes
    -----
    Rows of equal confidence are taken in at an even pace, their errors spread evenly: the
    mean over all orders of such rows as their number grows. So copies of a row equal its
    weight, and the integral over one level, with ``k`` rows and ``E`` errors before it and
    ``m`` rows and ``e`` errors in it, is ``e + (E - e k / m) log((k + m) / k)``.

    Examples
    --------
    >>> area_under_risk_coverage([1, 1, 1, 1], [1, 1, 0, 0], [3.0, 3.0, 3.0, 3.0])
    0.5
    """
    _, weight, wrong = _levels(y, pred, score, sample_weight)
    before = np.cumsum(weight) - weight
    wrong_before = np.cumsum(wrong) - wrong
    area = float(wrong.sum())
    k, m = before[1:], weight[1:]
    area += float((wrong_before[1:] - wrong[1:] * k / m) @ np.log1p(m / k))
    return float(np.clip(area / weight.sum(), 0.0, 1.0))


class RejectScorer(BaseEstimator):
    """A scikit-learn scorer: minus the 0-d-1 risk, so that larger is better.

    Made by `reject_scorer`. A classifier (or a pipeline or search that ends in one) with a
    `reject` method is charged `d` for every row it rejects; any other always answers.

    Parameters
    ----------
    d : float in (0, 0.5]
        Cost of giving no answer.
    """

    # the routing of sample_weight to this scorer is switched by `set_score_request`
    __metadata_request__score = {"estimator": UNUSED, "sample_weight": None}  # noqa: RUF012

    def __init__(self, d: float = 0.2) -> None:
        self.d = d

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score a fitted `estimator` on the rows `X` with labels `y`."""
        pred, rejected = answers(estimator, X)
        risk = reject_risk(y, pred, rejected, self.d, sample_weight=sample_weight)
        return -float(np.asarray(risk))

    def score(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The same as a call."""
        return self(estimator, X, y, sample_weight)


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
    if isinstance(d, bool) or not 0 < d <= 0.5:
        raise ValueError(f"d={d!r} is out of range: expected a number in (0, 0.5].")
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
    while not hasattr(estimator, "reject"):
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            if len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator.steps[-1][1]
        else:
            break
    return X, estimator


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


class _Outcome(NamedTuple):
    wrong: BoolArray  # answered, and wrongly
    rejected: BoolArray
    weight: Array


def _outcome(y: Any, pred: Any, rejected: Any, sample_weight: Any) -> _Outcome:
    if rejected is None:
        rejected = np.ma.getmaskarray(pred) if isinstance(pred, np.ma.MaskedArray) else None
    y = column_or_1d(y)
    pred = column_or_1d(np.ma.getdata(pred) if isinstance(pred, np.ma.MaskedArray) else pred)
    rejected = np.zeros(len(pred), dtype=bool) if rejected is None else _booleans(rejected)
    check_consistent_length(y, pred, rejected)
    wrong = np.asarray(y != pred, dtype=bool) & ~rejected
    return _Outcome(wrong, rejected, _weights(sample_weight, len(y)))


def _booleans(rejected: Any) -> BoolArray:
    values = column_or_1d(rejected)
    if values.dtype != bool and not np.isin(values, (0, 1)).all():
        raise ValueError("rejected must hold booleans: True where the row has no answer.")
    if len(values) == 0:
        raise ValueError("rejected is empty: at least one row is needed.")
    return np.asarray(values, dtype=bool)


def _weights(sample_weight: Any, n: int) -> Array:
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(column_or_1d(sample_weight), dtype=np.float64)
    if len(weight) != n:
        raise ValueError(f"sample_weight has {len(weight)} entries, expected {n}: one per row.")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.sum() > 0):
        raise ValueError("sample_weight must be finite and non-negative with a positive sum.")
    return weight


def _checked_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} is out of range: expected a number in (0, 1).")
    return float(confidence)


def _share(hit: BoolArray, weight: Array, confidence: float | None) -> float | Estimate:
    value = float(weight @ hit / weight.sum())
    if confidence is None:
        return value
    return Estimate(value, *_interval(hit, weight, _checked_confidence(confidence)))


def _interval(hit: BoolArray, weight: Array, level: float) -> tuple[float, float]:
    """Clopper-Pearson; weighted rows count as Kish's effective number of them."""
    n = float(weight.sum() ** 2 / (weight @ weight))
    k = n * float(weight @ hit / weight.sum())
    tail = 0.5 * (1.0 - level)
    low = float(stats.beta.ppf(tail, k, n - k + 1)) if hit.any() else 0.0
    high = float(stats.beta.ppf(1 - tail, k + 1, n - k)) if not hit.all() else 1.0
    return low, high


def _levels(y: Any, pred: Any, score: Any, sample_weight: Any) -> tuple[Array, Array, Array]:
    """The distinct confidences from the largest down, with their weight and their errors."""
    outcome = _outcome(y, np.ma.getdata(pred), None, sample_weight)
    score = np.asarray(column_or_1d(score), dtype=np.float64)
    check_consistent_length(outcome.wrong, score)
    if len(score) == 0 or np.isnan(score).any():
        raise ValueError("score must hold at least one number and no NaN.")
    kept = outcome.weight > 0
    values, level = np.unique(-score[kept], return_inverse=True)
    weight = np.bincount(level, weights=outcome.weight[kept])
    wrong = np.bincount(level, weights=(outcome.weight * outcome.wrong)[kept])
    return -values, np.asarray(weight, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
