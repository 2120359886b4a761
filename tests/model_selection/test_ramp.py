"""The self-tuning ramp classifier."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import buttress.model_selection.ramp as ramp_search
from buttress import RampClassifier, RampClassifierCV
from buttress.noise.core.class_noise import ClassNoise
from buttress.solvers.hinge.ramp import RampTerms, solve_ramp


@parametrize_with_checks([RampClassifierCV(Cs=[1.0], ss=[-1.0], gammas=None, cv=3)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def moons(n=240, rate=0.1, seed=0, one_sided=False):
    X, y = make_moons(n, noise=0.2, random_state=seed)
    rng = np.random.default_rng(seed)
    pool = np.flatnonzero(y == 1) if one_sided else np.arange(n)
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.choice(pool, round(rate * len(pool)), replace=False)] = True
    return X, np.where(wrong, 1 - y, y), wrong


@pytest.mark.smoke
def test_scores_equal_a_plain_grid_search():
    X, y, _ = moons(120)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    grid = {"C": [1.0, 10.0], "s": [-1.0, -0.3], "gamma": [0.5, 2.0]}
    ours = RampClassifierCV(
        Cs=grid["C"], ss=grid["s"], gammas=grid["gamma"], cv=folds, class_noise=None
    ).fit(X, y)
    theirs = GridSearchCV(RampClassifier(), grid, cv=folds).fit(X, y)
    reference = {
        (p["C"], p["s"], p["gamma"]): score
        for p, score in zip(
            theirs.cv_results_["params"], theirs.cv_results_["mean_test_score"], strict=True
        )
    }
    for p, score in zip(
        ours.cv_results_["params"], ours.cv_results_["mean_test_score"], strict=True
    ):
        assert score == pytest.approx(reference[p["C"], p["s"], p["gamma"]])
    # as good as the best, and no rougher than it
    spread = 0.5 * np.sqrt(theirs.best_score_ * (1 - theirs.best_score_) / 120)
    assert ours.best_score_ >= theirs.best_score_ - spread - 1e-12
    assert ours.gamma_ <= theirs.best_params_["gamma"]
    refit = RampClassifier(C=ours.C_, s=ours.s_, gamma=ours.gamma_).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), refit.decision_function(X), atol=1e-7)
    np.testing.assert_array_equal(ours.ignored_, refit.ignored_)
    np.testing.assert_allclose(
        ours.best_estimator_.decision_function(X), ours.decision_function(X), atol=1e-10
    )


def test_other_scorers_take_the_best_score():
    X, y, _ = moons(100)
    model = RampClassifierCV(
        Cs=[0.1, 10.0], ss=[-1.0], gammas=[0.2, 2.0], cv=3, scoring="roc_auc"
    ).fit(X, y)
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()


def test_weights_that_raise_the_error_they_should_lower_are_dropped(monkeypatch):
    """With so small a penalty the heavier label would take every row."""
    X, y = make_moons(200, noise=0.1, random_state=0)
    wrong = ClassNoise(np.array([0.0, 0.3]), log_bayes_factor=20.0)
    monkeypatch.setattr(ramp_search, "class_noise", lambda *_: wrong)
    options = {"ss": [-np.inf], "gammas": [1.0], "random_state": 0}
    small = RampClassifierCV(Cs=[1e-3], **options).fit(X, y)
    assert small.noise_weights_ == {0: 1.0, 1: 1.0}
    assert small.noise_rates_ == {0: 0.0, 1: 0.3}
    assert small.score(X, y) > 0.8
    large = RampClassifierCV(Cs=[10.0], **options).fit(X, y)
    assert large.noise_weights_ == pytest.approx({0: 0.7, 1: 1.3})


def test_one_sided_noise_moves_the_weights():
    X, y, wrong = moons(500, 0.35, 1, one_sided=True)
    clean = np.where(wrong, 1, y)
    options = {"Cs": [1.0, 10.0], "ss": [-1.0], "gammas": [1.0], "cv": 5}
    plain = RampClassifierCV(class_noise=None, **options).fit(X, y)
    model = RampClassifierCV(**options).fit(X, y)
    assert plain.noise_weights_ == {0: 1.0, 1: 1.0}
    assert model.noise_rates_[1] > model.noise_rates_[0] + 0.1
    assert model.noise_weights_[1] > 1.0 > model.noise_weights_[0]
    assert model.score(X, clean) > plain.score(X, clean)


def test_uniform_noise_leaves_the_weights_alone():
    X, y, _ = moons(300, 0.15, 2)
    model = RampClassifierCV(Cs=[1.0, 10.0], ss=[-1.0], gammas=[1.0]).fit(X, y)
    assert model.noise_weights_ == {0: 1.0, 1: 1.0}
    assert model.noise_rates_[0] == pytest.approx(0.15, abs=0.1)


def test_suspects_use_the_chosen_parameters():
    X, y, wrong = moons(240, 0.15, 3)
    model = RampClassifierCV(Cs=[1.0, 10.0], ss=[-1.0], cv=3, random_state=0)
    with pytest.raises(NotFittedError):
        model.suspects(X, y)
    found = model.fit(X, y).suspects(X, y)
    assert average_precision_score(wrong, found.scores) > 0.75


def test_three_classes():
    X, y = load_iris(return_X_y=True)
    model = RampClassifierCV(Cs=[1.0, 10.0], ss=[-1.0], cv=3).fit(X, y)
    assert model.score(X, y) > 0.94
    assert set(model.noise_rates_) == {0, 1, 2}
    assert set(model.noise_weights_.values()) == {1.0}


def test_kernels_without_width_and_automatic_widths():
    X, y, _ = moons(90)
    linear = RampClassifierCV(Cs=1.0, ss=-1.0, kernel="linear", cv=3).fit(X, y)
    assert linear.gamma_ is None
    assert len(linear.cv_results_["params"]) == 1
    automatic = RampClassifierCV(Cs=[1.0], ss=[-1.0], gammas="auto", cv=3).fit(X, y)
    widths = [p["gamma"] for p in automatic.cv_results_["params"]]
    np.testing.assert_allclose(np.array(widths) / widths[0], [1, 4, 16])


def test_approximate_kernel():
    X, y, _ = moons(300)
    model = RampClassifierCV(
        Cs=[1.0, 10.0], ss=[-1.0], cv=3, approximation="nystroem", n_components=60, random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.noise_rates_ == {}


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"Cs": []}, "Cs is empty"),
        ({"Cs": [0.0]}, r"Cs=0\.0.*\(0, inf\)"),
        ({"ss": [0.5]}, r"ss=0\.5.*\[-inf, 0\]"),
        ({"gammas": "many"}, "gammas='many'"),
        ({"class_noise": "always"}, "class_noise='always'"),
    ],
)
def test_bad_parameters_are_named(parameters, named):
    X, y, _ = moons(40)
    with pytest.raises(ValueError, match=named):
        RampClassifierCV(**parameters).fit(X, y)


@pytest.mark.parametrize("s", [-np.inf, -1.0, -0.2])
@pytest.mark.parametrize("other", [0.05, 50.0])
def test_a_warm_start_ends_where_a_cold_one_does(s, other):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=80) > 0, 1.0, -1.0)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    cold = solve_ramp(K, y, RampTerms(s=s), C=2.0, tol=1e-10)
    warm = solve_ramp(
        K, y, RampTerms(s=s), C=2.0, tol=1e-10, warm=solve_ramp(K, y, RampTerms(s=-0.5), C=other)
    )
    np.testing.assert_allclose(warm.g + warm.b, cold.g + cold.b, atol=1e-7)
    np.testing.assert_array_equal(warm.clipped, cold.clipped)
    np.testing.assert_allclose(warm.objective_path, cold.objective_path, rtol=1e-9)
