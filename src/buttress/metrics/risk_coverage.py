"""The risk at every coverage that a score of confidence allows."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.metrics.bootstrap import RANKED, ranked_value
from buttress.metrics.counts import Estimate
from buttress.metrics.ranking import RankedRows


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
    rows = RankedRows.of(y, pred, score, sample_weight)
    weight, wrong = rows.counts()
    seen = weight > 0
    covered = np.cumsum(weight[seen])
    return covered / covered[-1], np.cumsum(wrong[seen]) / covered, rows.levels[seen]


def area_under_risk_coverage(
    y: Any,
    pred: Any,
    score: Any,
    *,
    sample_weight: Any = None,
    confidence: float | None = None,
    random_state: Any = 0,
) -> float | Estimate:
    """The area under the risk-coverage curve; smaller is better.

    Parameters
    ----------
    y, pred, score, sample_weight
        As in `risk_coverage_curve`.
    confidence : float in (0, 1), optional
        Level of a bootstrap interval; no interval when None.
    random_state : int, RandomState or None, default=0
        For the bootstrap.

    Returns
    -------
    float or Estimate
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
    rows = RankedRows.of(y, pred, score, sample_weight)
    return ranked_value(_area, rows, confidence, random_state)


def _area(weight: Array, wrong: Array) -> float:
    seen = weight > 0
    weight, wrong = weight[seen], wrong[seen]
    before = np.cumsum(weight) - weight
    wrong_before = np.cumsum(wrong) - wrong
    area = float(wrong.sum())
    k, m = before[1:], weight[1:]
    area += float((wrong_before[1:] - wrong[1:] * k / m) @ np.log1p(m / k))
    return float(np.clip(area / weight.sum(), 0.0, 1.0))


RANKED[area_under_risk_coverage] = _area
