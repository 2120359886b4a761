"""A band around the risk-coverage curve: what resampling the rows does to it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from buttress._arrays import Array
from buttress.metrics.bootstrap import RESAMPLES
from buttress.metrics.counts import checked_confidence
from buttress.metrics.ranking import RankedRows

# Coverages below the first hold so few rows that the band says nothing.
_POINTS = 100


def risk_coverage_band(
    y: Any,
    pred: Any,
    score: Any,
    *,
    confidence: float = 0.9,
    sample_weight: Any = None,
    random_state: Any = 0,
) -> tuple[Array, Array, Array]:
    """Bootstrap band of the error among the accepted, coverage by coverage.

    Parameters
    ----------
    y, pred, score, sample_weight
        As in `risk_coverage_curve`.
    confidence : float in (0, 1), default=0.9
        Level at each coverage; the band as a whole holds less often.
    random_state : int, RandomState or None, default=0

    Returns
    -------
    coverage, low, high : ndarrays of shape (100,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=500)
    >>> pred = (rng.uniform(size=500) < 0.5 + score / 2).astype(int)
    >>> coverage, low, high = risk_coverage_band(np.ones(500, dtype=int), pred, score)
    >>> bool((low <= high).all()), float(coverage[-1])
    (True, 1.0)
    """
    tail = 0.5 * (1.0 - checked_confidence(confidence))
    rows = RankedRows.of(y, pred, score, sample_weight)
    n = len(rows.wrong)
    grid = np.linspace(1.0 / _POINTS, 1.0, _POINTS)
    rng = check_random_state(random_state)
    curves = np.empty((RESAMPLES, _POINTS))
    for k in range(RESAMPLES):
        weight, wrong = rows.counts(np.bincount(rng.randint(n, size=n), minlength=n))
        reached = np.concatenate([[0.0], np.cumsum(weight)])
        errors = np.concatenate([[0.0], np.cumsum(wrong)])
        curves[k] = np.interp(grid * reached[-1], reached, errors) / (grid * reached[-1])
    low, high = np.quantile(curves, [tail, 1.0 - tail], axis=0)
    return grid, low, high
