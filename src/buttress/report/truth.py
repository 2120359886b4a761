"""The section that sets what was measured on labels as given beside an estimate on true ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from buttress._arrays import Array, BoolArray
from buttress.model_selection import Judged, Measure
from buttress.noise import CleanScore, clean_score
from buttress.noise.core.fitting import FEWEST_ROWS
from buttress.report.sections import Interval, TrueLabels

# The measures that can be carried over, by the name that `clean_score` has for them.
_CARRIED = {
    "accuracy": "accuracy",
    "balanced-accuracy": "balanced_accuracy",
    "cost": "reject_risk",
}


def score_on_true_labels(judged: Judged, measure: Measure) -> CleanScore | None:
    """What held-out answers say of true labels: their score, and how many labels are wrong.

    Parameters
    ----------
    judged : Judged
        Every row once.
    measure : Measure
        One that is no mean over rows or classes leaves the accuracy to be scored.

    Returns
    -------
    CleanScore or None
        None when a class has too few rows for an estimate of its noise.
    """
    if np.unique(judged.true, return_counts=True)[1].min() < FEWEST_ROWS:
        return None
    replay = _Replay(np.asarray(judged.scores), judged.answers, judged.rejected)
    with warnings.catch_warnings():
        # That scores agree with every label is no sign of cheating: these rows were held out.
        warnings.filterwarnings("ignore", "The scores agree with every label")
        return clean_score(
            replay,
            np.arange(len(judged.true))[:, None],
            judged.true,
            metric=_CARRIED.get(measure.name, "accuracy"),
            d=measure.d,
            random_state=0,
        )


def wrong_label_shares(score: CleanScore | None) -> dict[str, Interval]:
    """The share of wrong labels among the rows of every true class, with its interval."""
    if score is None:
        return {}
    return {
        str(label): (float(rate), float(rate.low), float(rate.high))
        for label, rate in score.noise.rates_.items()
    }


def true_labels_section(
    judged: Judged, measure: Measure, score: CleanScore | None
) -> TrueLabels | None:
    """The loss of held-out answers on the labels as given, and on true labels as estimated.

    Parameters
    ----------
    judged : Judged
        Every row once.
    measure : Measure
    score : CleanScore or None
        From `score_on_true_labels`.

    Returns
    -------
    TrueLabels or None
        None without a score, and for a measure that cannot be carried over.
    """
    if measure.name not in _CARRIED or score is None:
        return None
    value, low, high = float(score), float(score.low), float(score.high)
    if measure.name != "cost":
        value, low, high = 1.0 - value, 1.0 - high, 1.0 - low
    given = measure.estimate(judged)
    return TrueLabels(
        measure=measure.title,
        given=(given.value, given.low, given.high),
        estimated=(max(0.0, value), max(0.0, low), min(1.0, high)),
        rates=wrong_label_shares(score),
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
