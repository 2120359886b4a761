"""What models are chosen by: error, cost, balanced error, F1, average precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray
from buttress.metrics import Estimate

if TYPE_CHECKING:
    from buttress.model_selection.judging import Judged

# Draws of the bootstrap: ends of a 95 % interval are then certain to about a tenth of its width.
_DRAWS = 400

_TITLES = {
    "accuracy": "error",
    "cost": "0-d-1 risk",
    "balanced-accuracy": "balanced error",
    "f1": "1 − F1",
    "average-precision": "1 − average precision",
}
_MEANINGS = {
    "accuracy": "share of wrong answers",
    "cost": "mean cost of a row: 1 for a wrong answer, d for none, 0 for a right one",
    "balanced-accuracy": "mean over the classes of the share of their rows answered wrongly",
    "f1": "one minus the mean over the classes of F1, the harmonic mean of precision and recall",
    "average-precision": "one minus the average precision of the ranking by score: of the rarer "
    "class for two classes, the mean over the classes for more",
}


@dataclass(frozen=True)
class Measure:
    """A loss of held-out answers: between 0 and 1, smaller is better.

    Parameters
    ----------
    name : {"accuracy", "cost", "balanced-accuracy", "f1", "average-precision"}
        What is measured. All but "cost" ask the model for an answer to every row, and take the
        answer that it would give where it rather gave none.
    d : float, default=0.2
        Cost of no answer, for "cost".

    Examples
    --------
    >>> Measure("cost", d=0.1).title
    '0-d-1 risk at d = 0.1'
    """

    name: str = "accuracy"
    d: float = 0.2

    def __post_init__(self) -> None:
        if self.name not in _TITLES:
            raise ValueError(
                f"name={self.name!r} is not accepted: expected one of {', '.join(_TITLES)}."
            )

    @property
    def title(self) -> str:
        """The loss's name for people."""
        return _TITLES[self.name] + (f" at d = {self.d:g}" if self.name == "cost" else "")

    @property
    def meaning(self) -> str:
        """What the number is, in words."""
        return _MEANINGS[self.name]

    def scoring(self, n_classes: int) -> str | None:
        """What the models' own searches should aim at; None for the share of right answers.

        scikit-learn's scorer of average precision takes no text labels; the area under the ROC
        curve judges the same ranking.
        """
        if self.name == "average-precision":
            return "roc_auc" if n_classes == 2 else "balanced_accuracy"
        return {"balanced-accuracy": "balanced_accuracy", "f1": "f1_macro"}.get(self.name)

    def losses(self, judged: Judged) -> Array | None:
        """The loss row by row, where the measure is a mean over rows, else None."""
        wrong = judged.true != judged.answers
        if self.name == "accuracy":
            return np.asarray(wrong, dtype=np.float64)
        if self.name == "cost":
            return np.asarray(np.where(judged.rejected, self.d, wrong.astype(np.float64)))
        return None

    def value(self, judged: Judged, weight: Array | None = None) -> float:
        """The loss, rows counted with `weight`."""
        losses = self.losses(judged)
        w = np.ones(len(judged.true)) if weight is None else weight
        if losses is not None:
            return float(w @ losses / w.sum())
        classes, true = np.unique(judged.true, return_inverse=True)
        if self.name == "average-precision":
            return 1.0 - _average_precision(true, judged.scores, len(classes), w)
        answers = np.minimum(np.searchsorted(classes, judged.answers), len(classes) - 1)
        answered = classes[answers] == judged.answers
        right = np.bincount(true, w * (answered & (answers == true)), minlength=len(classes))
        rows = np.bincount(true, w, minlength=len(classes))
        if self.name == "balanced-accuracy":
            present = rows > 0
            return float(1.0 - (right[present] / rows[present]).mean())
        given = np.bincount(answers, w * answered, minlength=len(classes))
        return float(1.0 - (2.0 * right / np.maximum(rows + given, 1e-300)).mean())

    def estimate(self, judged: Judged, seed: int = 0) -> Estimate:
        """The loss with a 95 % interval; rows judged once count as independent.

        Exact (Clopper and Pearson) or as `buttress.metrics.reject_risk` has it for means over
        rows, by a bootstrap within the classes for the others.
        """
        if self.losses(judged) is not None:
            if self.name == "cost":
                return judged.risk(self.d)
            return judged.error()
        draws = [self.value(judged, w) for w in _resampled(judged.true, _DRAWS, seed)]
        low, high = np.quantile(draws, [0.025, 0.975])
        return Estimate(self.value(judged), float(low), float(high))

    def worse(self, one: Judged, rival: Judged, seed: int = 0) -> float:
        """By how many standard errors `one` is worse than `rival`, on the rows of both."""
        _, ours, theirs = np.intersect1d(one.rows, rival.rows, return_indices=True)
        if len(ours) == 0:
            return 0.0
        one, rival = one.take(ours), rival.take(theirs)
        first, second = self.losses(one), self.losses(rival)
        if first is not None and second is not None:
            gap = first - second
            mean, deviation = float(gap.mean()), float(gap.std() / np.sqrt(max(1, len(gap))))
        else:
            draws = [
                self.value(one, w) - self.value(rival, w)
                for w in _resampled(one.true, _DRAWS // 4, seed)
            ]
            mean, deviation = self.value(one) - self.value(rival), float(np.std(draws))
        return 0.0 if deviation == 0.0 else mean / deviation


def _average_precision(
    true: NDArray[np.integer[Any]], scores: Array, n_classes: int, weight: Array
) -> float:
    if n_classes == 2:
        line = scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0]
        rare = int(np.argmin(np.bincount(true, minlength=2)[::-1]))  # of equal ones the second
        positive = 1 - rare
        towards = line if positive == 1 else -line
        return _ranking_precision(true == positive, towards, weight)
    each = [_ranking_precision(true == k, scores[:, k], weight) for k in range(n_classes)]
    return float(np.mean(each))


def _ranking_precision(positive: BoolArray, scores: Array, weight: Array) -> float:
    """Precision averaged over the recall gained at every different score, from the largest.

    As scikit-learn's, without its checks: a bootstrap calls it a thousand times.
    """
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    hits = np.cumsum(weight[order] * positive[order])[ends]
    seen = np.cumsum(weight[order])[ends]
    gained = np.diff(hits, prepend=0.0)
    return float(gained @ (hits / np.maximum(seen, 1e-300)) / max(hits[-1], 1e-300))


def _resampled(true: NDArray[Any], draws: int, seed: int) -> list[Array]:
    """Weights of bootstrap samples that keep the size of every class."""
    _, codes = np.unique(true, return_inverse=True)
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(codes == k) for k in range(int(codes.max()) + 1)]
    samples: list[Array] = []
    for _ in range(draws):
        weight = np.zeros(len(codes))
        for rows in members:
            weight[rows] = rng.multinomial(len(rows), np.full(len(rows), 1.0 / len(rows)))
        samples.append(weight)
    return samples
