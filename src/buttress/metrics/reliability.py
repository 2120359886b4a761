"""Whether the answers that are given are right as often as their probabilities say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from buttress._arrays import Array, IntArray
from buttress._numbers import check_number
from buttress.metrics.counts import Estimate, column, row_outcomes, share_estimate


@dataclass(frozen=True, eq=False)
class Reliability:
    """Stated and true accuracy of the answered rows.

    Attributes
    ----------
    stated : array of shape (n_bins,)
        Mean probability of the answers in each bin, from the least to the most probable.
    accuracy : list of Estimate
        Share of right answers in each bin, with its Clopper-Pearson interval.
    count : integer array of shape (n_bins,)
        Answers in each bin.
    overconfidence : float
        Mean stated probability minus accuracy over all answers.
    calibration_error : float
        Mean absolute difference of the two over the bins, weighted by their answers.
    """

    stated: Array
    accuracy: list[Estimate]
    count: IntArray
    overconfidence: float
    calibration_error: float


def answered_reliability(
    y: Any,
    pred: Any,
    probability: Any,
    rejected: Any,
    *,
    n_bins: int = 10,
    confidence: float = 0.95,
) -> Reliability:
    """Calibration among the rows that were answered.

    Parameters
    ----------
    y, pred, rejected
        As in `reject_risk`.
    probability : array-like of shape (n,)
        What the classifier says is the probability that its answer is right.
    n_bins : int, default=10
        Bins of (nearly) equal numbers of answers; rows of equal probability stay together.
    confidence : float in (0, 1), default=0.95
        Level of each bin's interval.

    Returns
    -------
    Reliability

    Notes
    -----
    Refusing selects rows whose probability is large, by chance too, so that a classifier which
    is calibrated on all rows can be overconfident on those it answers.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, size=4000)
    >>> y = (rng.uniform(size=4000) < p).astype(int)
    >>> found = answered_reliability(y, np.ones(4000, dtype=int), p, p <= 0.8)
    >>> abs(found.overconfidence) < 0.03, int(found.count.sum()) == int((p > 0.8).sum())
    (True, True)
    """
    check_number("n_bins", n_bins, "[1, inf)", integer=True)
    outcome = row_outcomes(y, pred, rejected, None)
    p = np.asarray(column(probability, "probability"), dtype=np.float64)
    check_consistent_length(outcome.wrong, p)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("probability must hold numbers between 0 and 1.")
    answered = ~outcome.rejected
    if not answered.any():
        raise ValueError("No row is answered: there is no reliability of the answers.")
    p, right = p[answered], ~outcome.wrong[answered]
    edges = np.unique(np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)[1:-1], method="higher"))
    bin_of = np.searchsorted(edges, p, side="right")
    used = np.unique(bin_of)
    stated = np.array([float(p[bin_of == k].mean()) for k in used])
    accuracy = [share_estimate(right[bin_of == k], confidence) for k in used]
    count = np.array([int((bin_of == k).sum()) for k in used])
    gaps = np.abs(stated - np.array([one.value for one in accuracy]))
    return Reliability(
        stated, accuracy, count, float(p.mean() - right.mean()), float(gaps @ count / count.sum())
    )
