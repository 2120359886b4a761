"""Which labels are probably wrong: cross-fitted scores and a list with few false alarms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, check_cv
from sklearn.utils import check_random_state

from buttress._arrays import Array, BoolArray, IntArray
from buttress.classifiers.label_noise import NoiseRates, noise_rates
from buttress.classifiers.parameters import check_number
from buttress.classifiers.training import validate_training_set

# Cross-fits are repeated and averaged while that is cheap.
_MOST_REPEATS = 10
_ROWS_FOR_REPEATS = 5000
# Rows, in the order of confidence, over which a share of differing labels is averaged.
_ROWS_PER_BIN, _MOST_BINS = 40, 5


@dataclass(frozen=True, eq=False)
class LabelSuspects:
    """What the search for wrong labels found.

    Attributes
    ----------
    scores : ndarray of shape (n_samples,)
        Evidence against each row's label from models that were not trained on it, averaged over
        the repeated cross-fits; larger is more suspicious, above 0 another label is favoured.
    probabilities : ndarray of shape (n_samples,)
        Estimated probability that the label is wrong, on the cautious side where the classes
        overlap.
    noise_rate : float
        Estimated share of wrong labels.
    noise_rates : dict
        Estimated share of wrong labels among the rows that truly belong to each class.
    selected : ndarray of int
        Positions of the rows named, the most suspicious first.
    fdr : float
        Estimated share of correct labels among the rows named (0 when none is).
    """

    scores: Array
    probabilities: Array
    noise_rate: float
    noise_rates: dict[Any, float]
    selected: IntArray
    fdr: float

    @property
    def mask(self) -> BoolArray:
        """The rows named, as a mask."""
        mask = np.zeros(len(self.scores), dtype=bool)
        mask[self.selected] = True
        return mask


def disagreement(scores: Array, codes: IntArray) -> Array:
    """Evidence of decision values against the labels.

    ``-y f(x)`` for one column, half the best other score minus the own for several.

    Examples
    --------
    >>> disagreement(np.array([[2.0], [-1.0]]), np.array([1, 1]))
    array([-2.,  1.])
    """
    if scores.shape[1] == 1:
        return np.asarray(np.where(codes == 1, -scores[:, 0], scores[:, 0]))
    rows = np.arange(len(codes))
    own = scores[rows, codes]
    others = scores.copy()
    others[rows, codes] = -np.inf
    return np.asarray(0.5 * (others.max(axis=1) - own))


def predictions(scores: Array) -> tuple[IntArray, Array]:
    """The class that decision values favour, and their distance to the next class."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.intp), np.abs(scores[:, 0])
    favoured = scores.argmax(axis=1)
    return favoured, -disagreement(scores, favoured)


def find_suspects(estimator: Any, X: Any, y: Any, *, cv: Any, fdr: float) -> LabelSuspects:
    """Cross-fit clones of `estimator` and judge the labels; see `RampClassifier.suspects`.

    Notes
    -----
    For the rows predicted as class c with confidence m, let q(m) be the share whose given label
    differs, a decreasing function of m (isotonic regression of binned shares). Its level among
    the most confident rows estimates the rate r_c at which labels of class c were changed. Under
    noise that depends on the true class only, a row predicted as c truly belongs there with
    probability ``a = (1 - r - q) / (1 - r - r_c)``, r the rate of the other classes, and a
    differing label is wrong with probability ``a r_c / q``. Rows are named in the order of these
    probabilities as long as one plus the sum of one minus them is at most `fdr` times their
    number.

    Classes that overlap also make labels differ, and no method can tell the two apart without a
    clean sample. Overlap fades as the confidence grows, noise does not; so the probabilities use
    rates from which the slope of q between the two most confident quarters is taken off.
    """
    check_number("fdr", fdr, "(0, 1)")
    probe = clone(estimator)
    precomputed = probe.kernel == "precomputed"
    data = validate_training_set(probe, X, y, precomputed=precomputed)
    labels = data.classes[data.codes]
    folds = _folds(cv, data.X, labels, estimator.random_state)

    def held_out(train: IntArray, test: IntArray) -> Array:
        model = clone(estimator)
        rows, others = (
            (data.X[np.ix_(train, train)], data.X[np.ix_(test, train)])
            if precomputed
            else (data.X[train], data.X[test])
        )
        values = model.fit(rows, labels[train]).decision_function(others)
        return np.asarray(values[:, None] if values.ndim == 1 else values, dtype=np.float64)

    parts = Parallel(n_jobs=estimator.n_jobs, prefer="threads")(
        delayed(held_out)(train, test) for train, test in folds
    )
    scores = np.zeros((len(labels), data.n_problems))
    seen = np.zeros(len(labels))
    for (_, test), part in zip(folds, parts, strict=True):
        scores[test] += part
        seen[test] += 1
    if (seen == 0).any():
        raise ValueError(
            f"cv={cv!r} leaves {int((seen == 0).sum())} rows without a held-out score."
        )
    scores /= seen[:, None]
    return judge_labels(scores, data.codes, data.classes, fdr)


def judge_labels(
    scores: Array, codes: IntArray, classes: NDArray[Any], fdr: float
) -> LabelSuspects:
    """Noise rates, probabilities and the list of rows from held-out decision values."""
    predicted, confidence = predictions(scores)
    differs = predicted != codes
    found = noise_rates(confidence, predicted, codes, len(classes))
    evidence = disagreement(scores, codes)
    if found.one_sided:
        evidence = evidence + _label_offsets(scores[:, 0], codes, found)
    share = np.zeros(len(codes))
    level = np.zeros(len(classes))
    for c in np.unique(predicted):
        mine = np.flatnonzero(predicted == c)
        share[mine] = _differing_share(confidence[mine], differs[mine])
        level[c] = min(share[mine].min(), 0.49)
    likely = _probability_wrong(share, differs, predicted, level)
    wrong = _probability_wrong(share, differs, predicted, np.maximum(level - found.overlap, 0.0))
    order = np.lexsort((-evidence, -wrong))
    order = order[wrong[order] > 0]
    # One more false alarm than expected: short lists would else be too bold.
    false_share = (1.0 + np.cumsum(1.0 - wrong[order])) / np.arange(1, len(order) + 1)
    within = np.flatnonzero(false_share <= fdr)
    count = int(within[-1]) + 1 if len(within) else 0
    return LabelSuspects(
        scores=evidence,
        probabilities=wrong,
        noise_rate=float(likely.mean()),
        noise_rates=dict(zip(classes.tolist(), found.rates.tolist(), strict=True)),
        selected=order[:count],
        fdr=float(false_share[count - 1]) if count else 0.0,
    )


def _label_offsets(scores: Array, codes: IntArray, found: NoiseRates) -> Array:
    """What a given label adds to the evidence when one class has more wrong labels.

    In log-odds, a label k is wrong with ``log r_j - log(1 - r_k)`` more than the scores say, r_j
    the rate of the other class; a logistic regression of the labels gives the scores' unit.
    """
    slope = abs(float(LogisticRegression(C=np.inf).fit(scores[:, None], codes).coef_[0, 0]))
    rates = np.clip(found.rates, 0.5 * found.standard_errors, 0.49)
    offsets = np.log(rates[::-1]) - np.log1p(-rates)
    return np.asarray((offsets - offsets.max())[codes] / max(slope, 1e-6))


def _folds(cv: Any, X: Any, labels: NDArray[Any], random_state: Any) -> list[tuple[Any, Any]]:
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        check_number("cv", cv, "[2, inf)", integer=True)
        repeats = int(np.clip(_ROWS_FOR_REPEATS // len(labels), 1, _MOST_REPEATS))
        cv = RepeatedStratifiedKFold(
            n_splits=int(cv), n_repeats=repeats, random_state=check_random_state(random_state)
        )
    return list(check_cv(cv, labels, classifier=True).split(X, labels))


def _differing_share(confidence: Array, differs: BoolArray) -> Array:
    """The share of differing labels at every row's confidence, falling as it grows."""
    n = len(confidence)
    order = np.argsort(-confidence, kind="stable")
    bins = np.array_split(order, int(np.clip(n // _ROWS_PER_BIN, 1, _MOST_BINS)))
    rates = IsotonicRegression().fit_transform(
        np.arange(len(bins)),
        [differs[rows].mean() for rows in bins],
        sample_weight=[len(rows) for rows in bins],
    )
    share = np.empty(n)
    for rows, rate in zip(bins, rates, strict=True):
        share[rows] = rate
    return share


def _probability_wrong(
    share: Array, differs: BoolArray, predicted: IntArray, rates: Array
) -> Array:
    """P(label wrong) from the share of differing labels and the noise rates of the classes."""
    others = (rates.sum() - rates) / (len(rates) - 1)
    rate, other = rates[predicted], others[predicted]
    belongs = np.clip((1.0 - other - share) / np.maximum(1.0 - rate - other, 1e-3), 0.0, 1.0)
    if_differs = belongs * rate / np.maximum(share, 1e-12)
    if_agrees = (1.0 - belongs) * other / np.maximum(1.0 - share, 1e-12)
    return np.asarray(np.clip(np.where(differs, if_differs, if_agrees), 0.0, 1.0))
