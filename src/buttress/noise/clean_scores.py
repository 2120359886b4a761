"""How good a model is on true labels, estimated from labels that are partly wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from buttress._arrays import Array, BoolArray
from buttress._frames import collected
from buttress.classifiers.parameters import check_number, check_splits
from buttress.metrics.scorer import answers
from buttress.noise.core.crossfit import PartFits, make_folds, model_scores, weight_params
from buttress.noise.core.estimate import Estimate, check_weight, encode
from buttress.noise.core.fitting import estimate_label_noise
from buttress.noise.core.label_noise import LabelNoise

_METRICS = ("accuracy", "balanced_accuracy", "reject_risk")
# Every draw of the noise model meets so many reweightings of the rows.
_WEIGHTINGS = 5


class CleanScore(Estimate):
    """A score on true labels with its interval, and the same score on the labels as given.

    Attributes
    ----------
    given : float
        The score when the labels are believed.
    noise : LabelNoise
        The noise model that it rests on.
    """

    given: float
    noise: LabelNoise

    def __repr__(self) -> str:
        return f"{super().__repr__()} on true labels, {self.given:.3g} on the labels as given"

    def __reduce__(self) -> Any:
        return (_rebuilt, (float(self), self.low, self.high, self.level, self.given, self.noise))


def clean_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    metric: str = "accuracy",
    cv: Any = 5,
    d: float = 0.2,
    sample_weight: Any = None,
    groups: Any = None,
    level: float = 0.95,
    random_state: Any = None,
) -> CleanScore:
    """Cross-validated score on true labels, estimated from the given ones.

    Parameters
    ----------
    estimator : classifier
        Anything with ``decision_function`` or ``predict_proba``; cloned and fitted fold by fold.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels as given.
    metric : {"accuracy", "balanced_accuracy", "reject_risk"}, default="accuracy"
        "reject_risk" is the 0-d-1 risk of a classifier that may refuse.
    cv : int, splitter or iterable of index pairs, default=5
        Every row must be held out exactly once.
    d : float in (0, 0.5], default=0.2
        Cost of no answer, for "reject_risk".
    sample_weight : array-like of shape (n_samples,), optional
    groups : array-like of shape (n_samples,), optional
    level : float, default=0.95
        Level of the interval.
    random_state : int, RandomState or None, default=None
        For shuffled folds.

    Returns
    -------
    CleanScore
        A float with ``low``, ``high``, ``given`` and ``noise``.

    Notes
    -----
    The held-out scores of the estimator carry a noise model (`fit_label_noise`), which says how
    probable every true label is at a score. The score is the mean over these labels; its
    interval is that of draws from the model's posterior, each with its own random weights of the
    rows (the Bayesian bootstrap), so that it holds both what the noise hides and what another
    sample would change. With uniform noise at rate r the result is close to
    ``1 - (e - r) / (1 - 2 r)``, e the error on the labels as given.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_blobs(400, centers=2, cluster_std=2.0, random_state=3)
    >>> given = np.where(np.random.default_rng(1).random(400) < 0.2, 1 - y, y)
    >>> score = clean_score(LogisticRegression(), X, given, random_state=0)
    >>> bool(score.given < 0.85 < score)
    True
    """
    if metric not in _METRICS:
        raise ValueError(f"metric={metric!r} is not accepted: expected one of {list(_METRICS)}.")
    check_number("d", d, "(0, 0.5]")
    check_number("level", level, "(0, 1)")
    check_splits(cv)
    X, labels = collected(X), column_or_1d(y, warn=True)
    check_classification_targets(labels)
    check_consistent_length(X, labels)
    weight = check_weight(sample_weight, len(labels))
    sample_weight = None if sample_weight is None else weight
    folds = make_folds(cv, 1, X, labels, groups, random_state)
    held = _held_out(estimator, X, labels, folds, sample_weight, metric == "reject_risk")
    used = np.flatnonzero(weight)
    noise = estimate_label_noise(
        held.scores[used, None],
        labels[used],
        sample_weight=weight[used],
        level=level,
        row_share=1.0,
        held_out=True,
    )
    codes = encode(labels, noise.classes)
    answered = encode(held.labels, noise.classes)
    score = _Score(metric, d, answered[used], held.rejected[used], weight[used])
    believed = np.eye(len(noise.classes))[codes[used]]
    draws = _draws(score, noise, held.scores[used, None])
    value = score.of(noise.clean_proba(held.scores[used, None]))
    tail = 0.5 * (1.0 - level)
    low, high = np.quantile(draws, [tail, 1.0 - tail])
    return _rebuilt(value, min(low, value), max(high, value), level, score.of(believed), noise)


def clean_scorer(noise: LabelNoise, *, metric: str = "accuracy", d: float = 0.2) -> CleanScorer:
    """A scikit-learn scorer of true labels, for noise that is known.

    Parameters
    ----------
    noise : LabelNoise
        From `fit_label_noise`, `LabelAudit` or ``NoiseAwareClassifier.noise_``.
    metric : {"accuracy", "balanced_accuracy", "reject_risk"}, default="accuracy"
        Risks are returned with a minus sign, so that larger is better.
    d : float in (0, 0.5], default=0.2
        Cost of no answer, for "reject_risk".

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``, for ``GridSearchCV``, ``cross_val_score`` and others.

    Notes
    -----
    With the counts ``N[answer, given label]`` and the transition matrix T, counts of true labels
    are ``N T^-1``: the score is a linear function of those, without bias when T is right.

    Examples
    --------
    >>> from buttress.noise import fit_label_noise
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 1))
    >>> y = np.where(rng.random(1000) < 0.2, X[:, 0] < 0, X[:, 0] > 0).astype(int)
    >>> model = LogisticRegression().fit(X[:500], y[:500])
    >>> noise = fit_label_noise(model.decision_function(X[500:]), y[500:])
    >>> bool(clean_scorer(noise)(model, X[500:], y[500:]) > 0.9)
    True
    """
    if metric not in _METRICS:
        raise ValueError(f"metric={metric!r} is not accepted: expected one of {list(_METRICS)}.")
    check_number("d", d, "(0, 0.5]")
    return CleanScorer(noise.classes, noise.transition_, metric, float(d))


@dataclass(frozen=True, eq=False)
class CleanScorer:
    """What `clean_scorer` returns."""

    classes: NDArray[Any]
    transition: Array
    metric: str
    d: float

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of a fitted classifier on true labels."""
        X, codes = collected(X), encode(column_or_1d(y), self.classes)
        weight = check_weight(sample_weight, len(codes))
        rejected = np.zeros(len(codes), dtype=bool)
        given = np.asarray(estimator.predict(X))
        if self.metric == "reject_risk":
            given, rejected = answers(estimator, X)
        k = len(self.classes)
        counts = np.zeros((k, k))
        np.add.at(counts, (encode(given, self.classes), codes), weight * ~rejected)
        true = counts @ np.linalg.inv(self.transition)
        totals = np.bincount(codes, weights=weight, minlength=k) @ np.linalg.inv(self.transition)
        right = np.diag(true)
        if self.metric == "accuracy":
            return float(np.clip(right.sum() / weight.sum(), 0.0, 1.0))
        if self.metric == "balanced_accuracy":
            return float(np.clip(np.mean(right / np.maximum(totals, 1e-12)), 0.0, 1.0))
        wrong = true.sum() - right.sum()
        return -float((wrong + self.d * (weight @ rejected)) / weight.sum())


@dataclass(frozen=True, eq=False)
class _HeldOut:
    scores: Array
    labels: NDArray[Any]
    rejected: BoolArray


@dataclass(frozen=True, eq=False)
class _Score:
    """One metric of fixed answers, as a function of the probabilities of true labels."""

    metric: str
    d: float
    answered: NDArray[Any]
    rejected: BoolArray
    weight: Array

    def of(self, true: Array, factor: Any = 1.0) -> float:
        weight = self.weight * factor
        right = true[np.arange(len(true)), self.answered]
        if self.metric == "balanced_accuracy":
            total = weight @ true
            hits = np.bincount(self.answered, weights=weight * right, minlength=true.shape[1])
            return float(np.mean(hits / np.maximum(total, 1e-12)))
        if self.metric == "reject_risk":
            right = np.where(self.rejected, self.d, 1.0 - right)
        return float(weight @ right / weight.sum())


def _draws(score: _Score, noise: LabelNoise, scores: Array) -> Array:
    """The score under draws of the noise model and random weights of the rows."""
    random = np.random.default_rng(0)
    return np.array(
        [
            score.of(true, random.exponential(size=len(scores)))
            for true in noise.clean_proba_draws(scores)
            for _ in range(_WEIGHTINGS)
        ]
    )


def _held_out(
    estimator: Any, X: Any, y: NDArray[Any], folds: Any, sample_weight: Any, refusing: bool
) -> _HeldOut:
    classes = np.unique(y)
    rows = PartFits(estimator, X, y, weight_params(estimator, sample_weight))
    columns = 1 if len(classes) == 2 else len(classes)
    scores, labels = np.zeros((len(y), columns)), np.array(y)
    rejected, seen = np.zeros(len(y), dtype=bool), np.zeros(len(y), dtype=int)
    for train, test in folds:
        model, others = rows.fitted(train), rows.taken(test, train)
        scores[test] = model_scores(model, others, classes)
        labels[test] = model.predict(others)
        if refusing:
            labels[test], rejected[test] = answers(model, others)
        seen[test] += 1
    if (seen != 1).any():
        raise ValueError("cv must hold every row out exactly once, as KFold and its kin do.")
    return _HeldOut(scores, labels, rejected)


def _rebuilt(
    value: float, low: float, high: float, level: float, given: float, noise: LabelNoise
) -> CleanScore:
    score = CleanScore(value, low, high, level)
    score.given, score.noise = float(given), noise
    return score
