"""The error among the surest rows, at a coverage that is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress._numbers import check_number
from buttress.metrics.bootstrap import ranked_value
from buttress.metrics.counts import Estimate
from buttress.metrics.ranking import RankedRows


def selective_risk(
    y: Any,
    pred: Any,
    score: Any,
    coverage: float,
    *,
    sample_weight: Any = None,
    confidence: float | None = None,
    random_state: Any = 0,
) -> float | Estimate:
    """Error rate among the surest rows that make up a share `coverage` of all.

    Parameters
    ----------
    y, pred, score, sample_weight
        As in `risk_coverage_curve`.
    coverage : float in (0, 1]
        Share of the rows that are answered.
    confidence : float in (0, 1), optional
        Level of a bootstrap interval; no interval when None.
    random_state : int, RandomState or None, default=0
        For the bootstrap.

    Returns
    -------
    float or Estimate

    Notes
    -----
    Of rows with equal confidence, and of the row at which the coverage is reached, a part is
    taken, with the same part of the errors.

    Examples
    --------
    >>> selective_risk([1, 1, 1, 1], [1, 1, 0, 0], [4.0, 3.0, 2.0, 1.0], coverage=0.75)
    0.3333333333333333
    """
    check_number("coverage", coverage, "(0, 1]")
    rows = RankedRows.of(y, pred, score, sample_weight)

    def risk(weight: Array, wrong: Array) -> float:
        reached = np.concatenate([[0.0], np.cumsum(weight)])
        errors = np.concatenate([[0.0], np.cumsum(wrong)])
        wanted = coverage * reached[-1]
        return float(np.interp(wanted, reached, errors) / wanted)

    return ranked_value(risk, rows, confidence, random_state)
