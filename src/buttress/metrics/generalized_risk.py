"""AUGRC: the area under the generalised risk, errors that are let through at every coverage."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.metrics.bootstrap import RANKED, ranked_value
from buttress.metrics.counts import Estimate
from buttress.metrics.ranking import RankedRows


def area_under_generalized_risk(
    y: Any,
    pred: Any,
    score: Any,
    *,
    sample_weight: Any = None,
    confidence: float | None = None,
    random_state: Any = 0,
) -> float | Estimate:
    """The area under the generalised risk-coverage curve (AUGRC); smaller is better.

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
        The mean over all coverages of the share of *all* rows that are accepted and wrong:
        the expected share of undetected errors at a coverage drawn at random. Half the error
        rate when the confidence says nothing.

    Notes
    -----
    The risk among the accepted, which `area_under_risk_coverage` averages, divides by the
    coverage and so weighs the few surest rows heavily; this area does not. Rows of equal
    confidence are taken in at an even pace.

    References
    ----------
    J. Traub et al., "Overcoming common flaws in the evaluation of selective classification
    systems", Advances in Neural Information Processing Systems 37, 2024.

    Examples
    --------
    >>> area_under_generalized_risk([1, 1, 1, 1], [1, 1, 0, 0], [3.0, 3.0, 3.0, 3.0])
    0.25
    >>> area_under_generalized_risk([1, 1, 1, 1], [1, 1, 0, 0], [4.0, 3.0, 2.0, 1.0])
    0.125
    """
    rows = RankedRows.of(y, pred, score, sample_weight)
    return ranked_value(_area, rows, confidence, random_state)


def _area(weight: Array, wrong: Array) -> float:
    before = np.cumsum(wrong) - wrong
    return float(weight @ (before + 0.5 * wrong) / weight.sum() ** 2)


RANKED[area_under_generalized_risk] = _area
