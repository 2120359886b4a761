"""The cross-validated uncertainty-set classifier: contract, paths, choices."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import UncertaintySetClassifier, UncertaintySetClassifierCV


@parametrize_with_checks([UncertaintySetClassifierCV(radii=[1.0, 10.0], cv=3)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def moons(n=120, seed=0):
    return make_moons(n, noise=0.3, random_state=seed)


@pytest.mark.smoke
def test_scores_are_those_of_single_fits():
    X, y = moons()
    radii, gammas = [0.5, 5.0, 50.0], [0.3, 3.0]
    model = UncertaintySetClassifierCV(radii, gammas=gammas, cv=3).fit(X, y)
    assert model.cv_mean_.shape == (2, 3)
    for i, gamma in enumerate(gammas):
        for j, radius in enumerate(radii):
            scores = [
                UncertaintySetClassifier(radius=radius, gamma=gamma)
                .fit(X[train], y[train])
                .score(X[test], y[test])
                for train, test in StratifiedKFold(3).split(X, y)
            ]
            assert model.cv_mean_[i, j] == pytest.approx(np.mean(scores), abs=1e-12)
            assert model.cv_std_[i, j] == pytest.approx(np.std(scores, ddof=1) / np.sqrt(3))
    assert model.cv_mean_.max() == model.best_score_


def test_refit_is_the_single_fit():
    X, y = moons()
    model = UncertaintySetClassifierCV([1.0, 30.0], gammas=[0.5, 5.0], h=1.0).fit(X, y)
    single = UncertaintySetClassifier(h=1.0, radius=model.radius_, gamma=model.gamma_).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), single.decision_function(X), atol=1e-8)
    np.testing.assert_allclose(
        model.best_estimator_.decision_function(X), single.decision_function(X), atol=1e-8
    )
    assert model.rho_ == pytest.approx(single.rho_, abs=1e-8)
    assert model.uncertainty_sets_[0].level == pytest.approx(
        single.uncertainty_sets_[0].level, abs=1e-8
    )


def test_ties_go_to_the_widest_kernel_and_the_smallest_radius():
    X, y = make_blobs(60, centers=[[0, 0], [9, 9]], random_state=0)
    model = UncertaintySetClassifierCV([10.0, 1.0], gammas=[0.2, 0.05]).fit(X, y)
    assert model.best_score_ == 1.0
    assert model.gamma_ == 0.05
    assert model.radius_ == 1.0


def test_any_scorer_and_more_classes():
    X, y = make_blobs(90, centers=3, cluster_std=3.0, random_state=0)
    by_name = UncertaintySetClassifierCV([1.0, 10.0], scoring="accuracy").fit(X, y)

    def scorer(estimator, X, y, **options):
        return accuracy_score(y, estimator.predict(X), **options)

    by_hand = UncertaintySetClassifierCV([1.0, 10.0], scoring=scorer).fit(X, y)
    np.testing.assert_allclose(by_name.cv_mean_, by_hand.cv_mean_)
    balanced = UncertaintySetClassifierCV([1.0], scoring="balanced_accuracy").fit(X, y)
    assert 0 < balanced.best_score_ <= 1


def test_weights_count_in_fits_and_scores():
    X, y = moons(60)
    w = np.ones(60)
    w[::7] = 0.0
    w[1::7] = 3.0
    model = UncertaintySetClassifierCV([1.0, 10.0], cv=3, gamma=1.0).fit(X, y, sample_weight=w)
    assert model.set_weights_.shape == (60,)
    assert np.all(model.set_weights_[w == 0] == 0)
    by_scorer = UncertaintySetClassifierCV(
        [1.0, 10.0], cv=3, gamma=1.0, scoring=lambda e, X, y, **kw: e.score(X, y, **kw)
    ).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.cv_mean_, by_scorer.cv_mean_)


def test_number_of_radii_makes_a_grid():
    X, y = moons(60)
    model = UncertaintySetClassifierCV(6, cv=3).fit(X, y)
    assert len(model.radii_) == 6
    np.testing.assert_allclose(np.diff(np.log(model.radii_), 2), 0.0, atol=1e-12)
    linear = UncertaintySetClassifierCV(6, cv=3, kernel="linear").fit(100 * X, y)
    assert linear.radii_[0] < 0.1 * model.radii_[0]
    assert np.isnan(linear.gammas_).all()
    gram = UncertaintySetClassifierCV(3, cv=3, kernel="precomputed").fit(X @ X.T, y)
    assert len(gram.radii_) == 3
    flat = UncertaintySetClassifierCV(2, cv=3, kernel="linear").fit(np.ones((30, 1)), y[:30])
    assert np.isfinite(flat.radii_).all()


def test_a_radius_that_is_given_twice_is_one():
    twice = UncertaintySetClassifierCV(radii=[2.0, 1.0, 2.0], cv=3).fit(*moons())
    assert twice.radii_.tolist() == [1.0, 2.0]
    assert len(twice.cv_results_["params"]) == 2


def test_hinge_shaped_sets_share_one_solution_over_the_radii():
    X, y = moons(60)
    model = UncertaintySetClassifierCV([1.0, 10.0], loss="reduced_hull", nu=0.3, cv=3).fit(X, y)
    np.testing.assert_allclose(model.cv_mean_[0, 0], model.cv_mean_[0, 1])


def test_sets_need_a_fit():
    with pytest.raises(AttributeError, match="fitted"):
        UncertaintySetClassifierCV().uncertainty_sets_


@pytest.mark.parametrize("radii", [[], [-1.0], [np.inf], "many", 0])
def test_bad_radii_are_named(radii):
    X, y = moons(40)
    with pytest.raises(ValueError, match="radii"):
        UncertaintySetClassifierCV(radii).fit(X, y)


def test_failed_fit_leaves_the_model_as_it_was():
    X, y = moons(60)
    model = UncertaintySetClassifierCV([1.0], cv=3).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="bias"):
        model.set_params(bias="none").fit(X, y)
    np.testing.assert_array_equal(
        clone(model).set_params(bias="error_rate").fit(X, y).decision_function(X), before
    )
    np.testing.assert_array_equal(model.decision_function(X), before)
