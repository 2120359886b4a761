"""DoubleRampClassifierCV: penalty and width by the 0-d-1 risk."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import DoubleRampClassifier, DoubleRampClassifierCV
from buttress.metrics import reject_risk, reject_scorer


@pytest.fixture(scope="module")
def moons():
    return make_moons(100, noise=0.35, random_state=0)


@parametrize_with_checks([DoubleRampClassifierCV(Cs=[0.3, 3.0], gammas=None, cv=3)])
def test_estimator_checks(estimator, check):
    check(estimator)


def test_equals_a_grid_search_by_risk(moons):
    X, y = moons
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    Cs, gammas = [0.3, 3.0, 30.0], [0.3, 3.0]
    ours = DoubleRampClassifierCV(d=0.15, Cs=Cs, gammas=gammas, cv=folds).fit(X, y)
    search = GridSearchCV(
        DoubleRampClassifier(d=0.15),
        {"gamma": gammas, "C": Cs},
        scoring=reject_scorer(0.15),
        cv=folds,
    ).fit(X, y)
    assert ours.best_score_ == pytest.approx(search.best_score_)
    assert np.allclose(
        np.sort(ours.cv_results_["mean_test_score"]), np.sort(search.cv_results_["mean_test_score"])
    )
    same = DoubleRampClassifier(d=0.15, C=ours.C_, gamma=ours.gamma_).fit(X, y)
    assert np.allclose(ours.decision_function(X), same.decision_function(X), atol=1e-7)
    assert np.array_equal(ours.reject(X), same.reject(X))
    assert ours.rho_ == pytest.approx(same.rho_, abs=1e-7)
    assert np.array_equal(ours.best_estimator_.predict(X), same.predict(X))
    assert ours.predict_or_reject(X, reject_label=-1).shape == y.shape


@pytest.mark.smoke
def test_penalty_and_width_are_tuned(moons):
    X, y = moons
    model = DoubleRampClassifierCV(Cs=[1.0, 10.0], gammas="auto", cv=3).fit(X, y)
    widths = {p["gamma"] for p in model.cv_results_["params"]}
    assert len(widths) == 3
    assert model.best_params_ == {"C": model.C_, "gamma": model.gamma_}
    assert model.scoring == "reject_risk"
    linear = DoubleRampClassifierCV(Cs=2.0, kernel="linear", cv=3).fit(X, y)
    assert len(linear.cv_results_["params"]) == 1


def test_other_scores_and_three_classes():
    X, y = load_iris(return_X_y=True)
    model = DoubleRampClassifierCV(Cs=[1.0, 10.0], gammas=None, scoring="accuracy", cv=3).fit(X, y)
    assert model.best_score_ > 0.9
    assert model.thresholds_.shape == (3, 2)


def test_a_coverage_can_be_asked_for(moons):
    X, y = moons
    model = DoubleRampClassifierCV(
        Cs=[1.0], gammas=None, target_coverage=0.7, random_state=0, cv=3
    ).fit(X, y)
    assert 0.0 < model.reject(X).mean() < 0.6


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"Cs": []}, "Cs is empty"),
        ({"Cs": [0.0]}, r"Cs=0.0.*\(0, inf\)"),
        ({"gammas": "many"}, "gammas='many'"),
        ({"d": 0.9}, r"\(0, 0.5\]"),
        ({"mu": 2.0}, r"\(0, 1\]"),
    ],
)
def test_bad_parameters_are_named(moons, params, message):
    with pytest.raises(ValueError, match=message):
        DoubleRampClassifierCV(**params).fit(*moons)


@pytest.mark.parametrize("d", [0.05, 0.3])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_along_the_penalties_are_those_of_exact_fits_from_nothing(d, classes, weighted):
    X, y = make_classification(
        240, 5, n_informative=4, n_redundant=0, n_classes=classes, flip_y=0.2, random_state=1
    )
    weight = np.random.default_rng(0).uniform(0.2, 3.0, len(y)) if weighted else None
    folds = list(StratifiedKFold(3).split(X, y))
    Cs = [0.1, 1.0, 10.0]
    search = DoubleRampClassifierCV(d=d, Cs=Cs, gammas=[0.2], cv=folds)
    search.fit(X, y, sample_weight=weight)
    for k, (train, test) in enumerate(folds):
        for C, found in zip(Cs, search.cv_results_[f"split{k}_test_score"], strict=True):
            alone = DoubleRampClassifier(d=d, C=C, gamma=0.2, tol=1e-10)
            inside, outside = (None, None) if weight is None else (weight[train], weight[test])
            alone.fit(X[train], y[train], sample_weight=inside)
            risk = reject_risk(
                y[test], alone.predict(X[test]), alone.reject(X[test]), d, sample_weight=outside
            )
            assert found == pytest.approx(-risk, abs=1e-12)
