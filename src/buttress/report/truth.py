"""The section that sets what was measured on labels as given beside an estimate on true ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from buttress import noise
from buttress._arrays import Array, BoolArray
from buttress.model_selection import Judged, Measure
from buttress.noise.core.fitting import FEWEST_ROWS
from buttress.report.sections import TrueLabels

# The measures that can be carried over, by the name that `clean_score` has for them.
_CARRIED = {
    "accuracy": "accuracy",
    "balanced-accuracy": "balanced_accuracy",
    "cost": "reject_risk",
}


def true_labels_section(judged: Judged, measure: Measure) -> TrueLabels | None:
    """The loss of held-out answers on the labels as given, and on true labels as estimated.

    Parameters
    ----------
    judged : Judged
        Every row once.
    measure : Measure

    Returns
    -------
    TrueLabels or None
        None for a measure that is not a mean over rows or classes, and when a class has too few
        rows for an estimate of its noise.
    """
    if measure.name not in _CARRIED or not hasattr(noise, "clean_score"):
        return None
    if np.unique(judged.true, return_counts=True)[1].min() < FEWEST_ROWS:
        return None
    replay = _Replay(np.asarray(judged.scores), judged.answers, judged.rejected)
    found = noise.clean_score(
        replay,
        np.arange(len(judged.true))[:, None],
        judged.true,
        metric=_CARRIED[measure.name],
        d=measure.d,
        random_state=0,
    )
    value, low, high = float(found), float(found.low), float(found.high)
    if measure.name != "cost":
        value, low, high = 1.0 - value, 1.0 - high, 1.0 - low
    given = measure.estimate(judged)
    rates = found.noise.rates_
    return TrueLabels(
        measure=measure.title,
        given=(given.value, given.low, given.high),
        estimated=(max(0.0, value), max(0.0, low), min(1.0, high)),
        rates={
            str(label): (float(rate), float(rate.low), float(rate.high))
            for label, rate in rates.items()
        },
        model=judged.title,
    )


class _Replay(ClassifierMixin, BaseEstimator):
    """Repeats held-out answers: row number in, what was said of the row out."""

    def __init__(self, scores: Array, answers: NDArray[Any], rejected: BoolArray) -> None:
        self.scores, self.answers, self.rejected = scores, answers, rejected

    def fit(self, X: Any, y: Any) -> _Replay:
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Any) -> Array:
        return np.asarray(self.scores[_numbers(X)])

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.answers[_numbers(X)])

    def reject(self, X: Any) -> BoolArray:
        return np.asarray(self.rejected[_numbers(X)])


def _numbers(X: Any) -> NDArray[np.int64]:
    return np.asarray(X)[:, 0].astype(np.int64)
