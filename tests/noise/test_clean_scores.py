"""Scores on true labels from wrong ones: against the truth, and their intervals' coverage."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import (
    KFold,
    RepeatedKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)

from buttress import ChowRejector
from buttress.metrics import reject_risk
from buttress.noise import clean_score, clean_scorer, fit_label_noise


class Fixed(LogisticRegression):
    """A classifier that learns nothing: the first feature is its score."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        return self

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


def problem(n, rates, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.5).astype(int)
    X = (1.5 * rng.standard_normal(n) + np.where(truth == 1, 2.0, -2.0) + shift)[:, None]
    given = np.where(rng.random(n) < np.asarray(rates)[truth], 1 - truth, truth)
    return X, truth, given


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy"])
def test_the_score_is_that_of_true_labels(metric):
    X, truth, given = problem(1500, (0.05, 0.3), 0)
    cv = KFold(3, shuffle=True, random_state=0)
    found = clean_score(Fixed(), X, given, metric=metric, cv=cv)
    answers = (X[:, 0] > 0).astype(int)
    true = {"accuracy": np.mean(answers == truth)}
    true["balanced_accuracy"] = balanced_accuracy_score(truth, answers)
    assert found.low <= true[metric] <= found.high
    assert found == pytest.approx(true[metric], abs=0.03)
    assert found.given < true[metric] - 0.08
    assert "as given" in repr(found)


def test_uniform_noise_agrees_with_the_linear_formula():
    X, _, given = problem(1500, (0.2, 0.2), 1)
    found = clean_score(Fixed(), X, given, cv=3)
    rate = float(found.noise.rates_[0])
    linear = 1 - ((1 - found.given) - rate) / (1 - 2 * rate)
    assert found == pytest.approx(linear, abs=0.015)


def test_risk_of_a_classifier_that_refuses():
    X, truth, given = problem(600, (0.15, 0.15), 2)
    model = ChowRejector(LogisticRegression(), d=0.2)
    cv = StratifiedKFold(3)
    found = clean_score(model, X, given, metric="reject_risk", d=0.2, cv=cv)
    answers, refused = np.empty(600, dtype=int), np.zeros(600, dtype=bool)
    for train, test in cv.split(X, given):
        fold = ChowRejector(LogisticRegression(), d=0.2).fit(X[train], given[train])
        answers[test], refused[test] = fold.predict(X[test]), fold.reject(X[test])
    true = reject_risk(truth, answers, refused, d=0.2)
    assert found.low <= true <= found.high


def test_three_classes():
    rng = np.random.default_rng(0)
    X, truth = make_blobs(600, centers=[[-2, 0], [2, 0], [0, 3]], random_state=0)
    given = np.where(rng.random(600) < 0.2, (truth + rng.integers(1, 3, 600)) % 3, truth)
    found = clean_score(LogisticRegression(), X, given, cv=3)
    held_out = cross_val_predict(LogisticRegression(), X, given, cv=3)
    assert found == pytest.approx(np.mean(held_out == truth), abs=0.04)


def test_the_scorer_inverts_the_noise():
    X, truth, given = problem(4000, (0.1, 0.3), 3)
    noise = fit_label_noise(X[:2000, 0], given[:2000])
    answers = (X[:, 0] > 0).astype(int)
    fitted = Fixed().fit(X, given)
    accuracy = clean_scorer(noise)(fitted, X, given)
    assert accuracy == pytest.approx(np.mean(answers == truth), abs=0.04)
    balanced = clean_scorer(noise, metric="balanced_accuracy")(fitted, X, given)
    assert balanced == pytest.approx(balanced_accuracy_score(truth, answers), abs=0.05)
    rejecting = ChowRejector(LogisticRegression(), d=0.1).fit(X, given)
    risk = clean_scorer(noise, metric="reject_risk", d=0.1)(rejecting, X, given)
    true = reject_risk(truth, rejecting.predict(X), rejecting.reject(X), d=0.1)
    assert -risk == pytest.approx(true, abs=0.04)
    scores = cross_val_score(LogisticRegression(), X, given, scoring=clean_scorer(noise), cv=3)
    held_out = cross_val_predict(LogisticRegression(), X, given, cv=3)
    assert scores.mean() == pytest.approx(np.mean(held_out == truth), abs=0.04)


def test_files_keep_everything():
    X, _, given = problem(200, (0.1, 0.1), 4)
    found = clean_score(Fixed(), X, given, cv=3)
    again = pickle.loads(pickle.dumps(found))
    assert (again, again.interval, again.given) == (found, found.interval, found.given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "auc"}, "metric='auc'"),
        ({"d": 0.7}, "d=0.7"),
        ({"level": 1.0}, "level=1.0"),
        ({"cv": 1}, "cv=1"),
        ({"cv": RepeatedKFold(n_splits=2, n_repeats=2)}, "exactly once"),
    ],
)
def test_bad_arguments_are_named(options, message):
    X, _, given = problem(60, (0.1, 0.1), 0)
    with pytest.raises(ValueError, match=message):
        clean_score(Fixed(), X, given, **options)
    if "metric" in options:
        with pytest.raises(ValueError, match=message):
            clean_scorer(fit_label_noise(X[:, 0], given), **options)


def test_scores_that_say_nothing_are_refused():
    X, _, given = problem(60, (0.1, 0.1), 0)
    with pytest.raises(ValueError, match="constant"):
        clean_score(DummyClassifier(strategy="prior"), X, given, cv=StratifiedKFold(2))


@pytest.mark.slow
@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.25, 0.25), (0.05, 0.3)])
def test_intervals_cover(rates):
    """The accuracy of a fixed rule is known: 95 % intervals cover it in 93 to 97 % of draws."""
    from scipy.stats import norm

    truth = norm.cdf(2.0 / 1.5)
    covered = 0
    for seed in range(400):
        X, _, given = problem(500, rates, 1000 + seed)
        found = clean_score(Fixed(), X, given, cv=2)
        covered += found.low <= truth <= found.high
    # two standard errors of 400 draws beyond the promise
    assert 0.93 - 0.022 <= covered / 400 <= 0.97 + 0.017
