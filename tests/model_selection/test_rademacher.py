"""The selector by Rademacher penalties: contract, choice, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import RademacherSelector, RampClassifier
from buttress.losses import GeneralizedRamp
from buttress.theory import rademacher_penalty

QUICK = {"n_draws": 2, "n_starts": 1, "random_state": 0}


@parametrize_with_checks(
    [RademacherSelector(RampClassifier(), Cs=(1.0,), gammas=None, n_draws=2, n_starts=1)]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.smoke
def test_it_chooses_the_smallest_score():
    X, y = make_moons(60, noise=0.2, random_state=0)
    model = RademacherSelector(Cs=[0.1, 1.0, 10.0], gammas="auto", **QUICK).fit(X, y)
    results = model.results_
    assert len(results["params"]) == 9
    best = int(np.argmin(results["score"]))
    assert results["params"][best] == model.best_params_
    assert model.best_params_ == {"C": model.C_, "gamma": model.gamma_}
    assert model.best_score_ == results["score"][best]
    np.testing.assert_allclose(results["score"], results["risk"] + results["penalty"])
    assert (results["deviation"] == 0).all()
    assert model.score(X, y) > 0.85


def test_the_score_is_the_papers():
    """Risk, norm and penalty recomputed from the fitted machine alone."""
    X, y = make_moons(40, noise=0.3, random_state=1)
    model = RademacherSelector(
        RampClassifier(gamma=0.7), Cs=[2.0], gammas=None, slope=0.4, concentration=True, **QUICK
    ).fit(X, y)
    machine = RampClassifier(C=2.0, gamma=0.7).fit(X, y)
    K = np.exp(-0.7 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    f = machine.decision_function(X)
    g = f - machine.intercept_[0]
    dual = np.zeros(40)
    dual[machine.support_] = machine.dual_coef_[0]
    W = dual @ g + machine.intercept_[0] ** 2
    signed = np.where(y == 1, 1.0, -1.0)
    curve = model.curves_[0]
    again = rademacher_penalty(
        K + 1.0, signed, gamma=0.4, betas=curve.betas, sigmas=curve.sigmas, n_starts=1
    )
    reach = np.sqrt(2.0 * W)
    expected = (1 + 2 * np.sqrt(1.5)) * (0.4 * reach + min(1, reach))
    expected *= np.sqrt(np.log(2 / 0.05) / 80)
    np.testing.assert_allclose(model.results_["norm"], W, rtol=1e-6)
    np.testing.assert_allclose(
        model.results_["risk"], GeneralizedRamp(0.4).value(signed * f).mean(), rtol=1e-6
    )
    np.testing.assert_allclose(model.results_["penalty"], again.at(W).mean, rtol=1e-6)
    np.testing.assert_allclose(model.results_["deviation"], expected, rtol=1e-6)


def test_a_lighter_penalty_allows_larger_norms():
    X, y = make_moons(60, noise=0.2, random_state=0)
    full = RademacherSelector(gammas=None, penalty_weight=1.0, **QUICK).fit(X, y)
    light = RademacherSelector(gammas=None, penalty_weight=1e-3, **QUICK).fit(X, y)
    results = light.results_
    np.testing.assert_allclose(results["score"], results["risk"] + 1e-3 * results["penalty"])
    np.testing.assert_array_equal(results["penalty"], full.results_["penalty"])
    assert light.C_ > full.C_


def test_more_classes_and_kernels_without_a_width():
    X, y = load_iris(return_X_y=True)
    model = RademacherSelector(
        RampClassifier(kernel="linear", fit_intercept=False), Cs=[1.0], **QUICK
    ).fit(X[::3], y[::3])
    assert len(model.curves_) == 3
    assert model.gamma_ is None
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, y) > 0.6


def test_precomputed_kernel_equals_rows():
    X, y = make_moons(40, noise=0.2, random_state=0)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    rows = RademacherSelector(RampClassifier(gamma=1.0), gammas=None, **QUICK).fit(X, y)
    ready = RademacherSelector(RampClassifier(kernel="precomputed"), **QUICK).fit(K, y)
    assert rows.C_ == ready.C_
    np.testing.assert_allclose(rows.results_["score"], ready.results_["score"], rtol=1e-7)
    np.testing.assert_allclose(rows.decision_function(X), ready.decision_function(K), atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"slope": 0.0}, "slope=0.0"),
        ({"n_draws": 0}, "n_draws=0"),
        ({"n_starts": 1.5}, "n_starts=1.5"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"penalty_weight": 0.0}, "penalty_weight=0.0"),
        ({"Cs": [-1.0]}, "Cs=-1.0"),
        ({"Cs": []}, "Cs is empty"),
        ({"gammas": "wide"}, "gammas='wide'"),
        ({"gammas": []}, "gammas is empty"),
        ({"estimator": RampClassifier(radius=1.0)}, "estimator.radius=1.0"),
        ({"estimator": RampClassifier(approximation="nystroem")}, "estimator.approximation"),
        ({"estimator": RademacherSelector()}, "expected a RampClassifier"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = make_moons(20, random_state=0)
    with pytest.raises(ValueError, match=message):
        RademacherSelector(**parameters).fit(X, y)
