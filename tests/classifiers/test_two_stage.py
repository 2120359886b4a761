"""TwoStageRejector: where the predictor errs, learned apart from it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import ChowRejector, TwoStageRejector, load, save
from buttress.metrics import reject_risk


class Stubborn(ClassifierMixin, BaseEstimator):
    """Always answers 1, and is not sure of anything."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[1])

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


@parametrize_with_checks(
    [TwoStageRejector(LogisticRegression(), Cs=[0.5, 2.0], cv=2, random_state=0)]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_the_rejector_finds_where_a_stubborn_predictor_errs():
    """The error is a step in x: the refusals must be that step, at every cost."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 1))
    error = np.where(X[:, 0] > 0.0, 0.45, 0.05)
    y = (rng.uniform(size=600) > error).astype(int)
    new = np.linspace(-0.9, 0.9, 200)[:, None]
    model = TwoStageRejector(Stubborn(), d=0.2, random_state=0).fit(X, y)
    expected = new[:, 0] > 0.0
    assert np.mean(model.reject(new) == expected) > 0.9
    assert (model.predict(new) == 1).all()  # the predictor is left as it is
    assert np.array_equal(model.reject(new), model.rejection_score(new) <= 0)
    # at a cost below both errors nothing is answered, above both everything
    assert TwoStageRejector(Stubborn(), d=0.02, random_state=0).fit(X, y).reject(new).mean() > 0.9
    assert TwoStageRejector(Stubborn(), d=0.5).fit(X, y).reject(new).sum() == 0


def test_a_predictor_that_misses_the_shape_gains_most():
    """Chow's rule believes a linear model of moons; the rejector sees where it is wrong."""
    X, y = make_moons(500, noise=0.15, random_state=0)
    X_new, y_new = make_moons(2000, noise=0.15, random_state=1)
    risks = []
    for model in (
        TwoStageRejector(LogisticRegression(), d=0.1, random_state=0),
        ChowRejector(LogisticRegression(), d=0.1),
    ):
        model.fit(X, y)
        risks.append(reject_risk(y_new, model.predict(X_new), model.reject(X_new), 0.1))
    assert risks[0] < 0.8 * risks[1]


def test_predictors_without_errors_refuse_nothing():
    X, y = make_blobs(60, centers=[[-9, 0], [9, 0]], random_state=0)
    model = TwoStageRejector(LogisticRegression(), random_state=0).fit(X, y)
    assert model.rejector_ is None
    assert not model.reject(X).any()


def test_more_classes_and_predictors_without_probabilities():
    X, y = make_blobs(300, centers=3, cluster_std=1.5, random_state=0)
    model = TwoStageRejector(SVC(), d=0.2, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (300, 3)
    assert np.array_equal(model.predict(X), model.estimator_.predict(X))
    assert 0.0 < model.reject(X).mean() < 0.6


@pytest.mark.long
def test_a_coverage_and_a_promised_error():
    rates, broken = [], 0
    for seed in range(6):
        X, y = make_moons(500, noise=0.35, random_state=seed)
        X_new, y_new = make_moons(1500, noise=0.35, random_state=1000 + seed)
        covered = TwoStageRejector(LogisticRegression(), Cs=[1.0], target_coverage=0.8)
        covered.set_params(random_state=seed).fit(X, y)
        rates.append(1 - covered.reject(X_new).mean())
        sure = TwoStageRejector(LogisticRegression(), Cs=[1.0], target_risk=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            sure.set_params(random_state=seed).fit(X, y)
        kept = ~sure.reject(X_new)
        broken += kept.any() and (sure.predict(X_new) != y_new)[kept].mean() > 0.1
    assert 0.74 < np.mean(rates) < 0.87
    assert broken <= 2
    assert sure.risk_certificate_.n_rows == 125


def test_it_survives_saving(tmp_path):
    pytest.importorskip("skops")
    X, y = make_moons(120, noise=0.3, random_state=0)
    model = TwoStageRejector(LogisticRegression(), random_state=0).fit(X, y)
    save(model, tmp_path / "model.buttress")
    assert np.array_equal(load(tmp_path / "model.buttress").reject(X), model.reject(X))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"d": 0.0}, "d=0.0"),
        ({"cv": 1}, "cv=1"),
        ({"Cs": []}, "Cs is empty"),
        ({"use_confidence": "yes"}, "use_confidence='yes'"),
        ({"kernel": "precomputed"}, "the rejector maps new rows"),
    ],
)
def test_bad_parameters_are_named(params, message):
    X, y = make_moons(40, random_state=0)
    with pytest.raises(ValueError, match=message):
        TwoStageRejector(LogisticRegression(), **params).fit(X, y)
