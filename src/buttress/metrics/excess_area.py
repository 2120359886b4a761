"""How far the order of the rows is from the best one: normalised excess areas."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.metrics.bootstrap import RANKED, ranked_value
from buttress.metrics.counts import Estimate
from buttress.metrics.generalized_risk import area_under_generalized_risk
from buttress.metrics.ranking import RankedRows
from buttress.metrics.risk_coverage import area_under_risk_coverage

_AREAS = {"risk": area_under_risk_coverage, "generalized": area_under_generalized_risk}


def excess_area(
    y: Any,
    pred: Any,
    score: Any,
    *,
    curve: str = "risk",
    sample_weight: Any = None,
    confidence: float | None = None,
    random_state: Any = 0,
) -> float | Estimate:
    """The excess of an area over the ideal ranking, as a share of what ranking can gain.

    Parameters
    ----------
    y, pred, score, sample_weight
        As in `risk_coverage_curve`.
    curve : {"risk", "generalized"}, default="risk"
        Of `area_under_risk_coverage` or of `area_under_generalized_risk`.
    confidence : float in (0, 1), optional
        Level of a bootstrap interval; no interval when None.
    random_state : int, RandomState or None, default=0
        For the bootstrap.

    Returns
    -------
    float or Estimate
        0 when every wrong answer is less confident than every right one, 1 when the confidence
        says nothing, more when it misleads; 0 when all answers are right or all are wrong, where
        no order is better than another.

    Notes
    -----
    With error rate e the ideal area is ``e + (1 - e) log(1 - e)`` for the risk and ``e^2 / 2``
    for the generalised risk, and the area without a ranking ``e`` and ``e / 2``. So two
    classifiers of different accuracy can be compared by how well they know their errors.

    Examples
    --------
    >>> y, pred = [1, 1, 1, 1], [1, 1, 1, 0]
    >>> round(excess_area(y, pred, [4, 3, 2, 1]), 6), round(excess_area(y, pred, [1, 1, 1, 1]), 6)
    (0.0, 1.0)
    """
    if curve not in _AREAS:
        raise ValueError(f"curve={curve!r} is not accepted: expected one of {sorted(_AREAS)}.")
    rows = RankedRows.of(y, pred, score, sample_weight)
    return ranked_value(partial(_excess, curve), rows, confidence, random_state)


def _excess(curve: str, weight: Array, wrong: Array) -> float:
    area = float(RANKED[_AREAS[curve]](weight, wrong))
    error = float(wrong.sum() / weight.sum())
    if curve == "risk":
        right = 1.0 - error
        ideal, blind = error + (right * np.log(right) if right > 0 else 0.0), error
    else:
        ideal, blind = 0.5 * error**2, 0.5 * error
    room = blind - ideal
    # all right or all wrong: rounding decides the ratio
    return float((area - ideal) / room) if room > 1e-12 else 0.0


RANKED[excess_area] = partial(_excess, "risk")
