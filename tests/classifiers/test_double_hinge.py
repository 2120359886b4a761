"""DoubleHingeClassifier: estimator contract, threshold, limits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress.classifiers import DoubleHingeClassifier
from buttress.losses import DoubleHinge


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.35, random_state=0)


@parametrize_with_checks([DoubleHingeClassifier()])
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.smoke
def test_rejects_up_to_its_threshold(moons):
    X, y = moons
    for d in (0.1, 0.3):
        model = DoubleHingeClassifier(d=d, C=5.0).fit(X, y)
        assert model.thresholds_[1] == pytest.approx(np.log((1 - d) / d))
        rejected = np.abs(model.decision_function(X)) <= np.log((1 - d) / d)
        assert np.array_equal(model.reject(X), rejected)
        assert model.rejection_rate_ == pytest.approx(rejected.mean())
        assert model.duality_gap_ <= 1e-6


def test_objective_is_the_stated_problem(moons):
    X, y = moons
    model = DoubleHingeClassifier(d=0.2, C=3.0).fit(X, y)
    K = model.kernel_(model.support_vectors_)
    norm = (model.dual_coef_ @ K @ model.dual_coef_.T).item()
    loss = DoubleHinge(0.2).value(np.where(y == 1, 1, -1) * model.decision_function(X))
    assert model.objective_ == pytest.approx(0.5 * norm + 3.0 * loss.sum(), rel=1e-9)


def test_one_half_rejects_nothing_and_a_given_threshold_is_used(moons):
    X, y = moons
    assert not DoubleHingeClassifier(d=0.5).fit(X, y).reject(X).any()
    model = DoubleHingeClassifier(d=0.2, threshold=0.25).fit(X, y)
    assert model.thresholds_.tolist() == [-0.25, 0.25]
    assert not DoubleHingeClassifier(threshold=0).fit(X, y).reject(X).any()


def test_without_intercept(moons):
    X, y = moons
    model = DoubleHingeClassifier(fit_intercept=False).fit(X, y)
    assert model.intercept_.tolist() == [0.0]


@pytest.mark.parametrize("threshold", [-1.0, "half", None])
def test_bad_thresholds_are_named(moons, threshold):
    with pytest.raises(ValueError, match="threshold="):
        DoubleHingeClassifier(threshold=threshold).fit(*moons)
