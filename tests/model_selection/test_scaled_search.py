"""Cross-validation by passes over blocks makes the choices of the exact search."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import StratifiedKFold

from buttress import (
    DoubleRampClassifierCV,
    LeakyHockeyStickClassifierCV,
    RampClassifierCV,
    UncertaintySetClassifierCV,
)

X, Y = make_moons(160, noise=0.3, random_state=0)
CV = StratifiedKFold(3)
NEAR = {"approximation": "nystroem", "n_components": 160}


@pytest.mark.smoke
@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc"])
def test_leaky_path_scores_equal_the_exact_ones(scoring: str) -> None:
    options = {"alphas": np.logspace(0, -3, 6), "cv": CV, "scoring": scoring}
    exact = LeakyHockeyStickClassifierCV(**options).fit(X, Y)
    near = LeakyHockeyStickClassifierCV(**options, **NEAR).fit(X, Y)
    assert near.alpha_ == exact.alpha_
    np.testing.assert_allclose(near.cv_mean_, exact.cv_mean_, atol=2e-2)
    np.testing.assert_allclose(near.path_.objectives, exact.path_.objectives, atol=1e-5)
    assert near.path_.gaps.max() < 1e-3
    assert near.duality_gap_ < 1e-7
    np.testing.assert_allclose(near.decision_function(X), exact.decision_function(X), atol=1e-5)


def test_leaky_search_over_widths_exponents_and_classes() -> None:
    rows, labels = load_iris(return_X_y=True)
    model = LeakyHockeyStickClassifierCV(
        alphas=[1e-1, 1e-2],
        gammas=[0.1, 0.5],
        r=[2.0, np.inf],
        cv=3,
        scoring="f1_macro",
        approximation="nystroem",
        n_components=30,
        random_state=1,
    ).fit(rows, labels)
    assert model.cv_results_["split2_test_score"].shape == (2 * 2 * 2,)
    assert len(model.path_) == 3
    assert model.score(rows, labels) > 0.9


def test_folds_given_by_number_depend_on_row_numbers_and_the_seed_only() -> None:
    da = pytest.importorskip("dask.array")
    options = {"alphas": [1e-1, 1e-2], "cv": 3, "approximation": "nystroem", "n_components": 40}
    array = LeakyHockeyStickClassifierCV(**options).fit(X, Y)
    chunked = LeakyHockeyStickClassifierCV(**options).fit(
        da.from_array(X, chunks=(33, 2)), da.from_array(Y, chunks=50)
    )
    for k in range(3):
        name = f"split{k}_test_score"
        np.testing.assert_allclose(chunked.cv_results_[name], array.cv_results_[name])
    np.testing.assert_allclose(chunked.dual_coef_, array.dual_coef_, atol=1e-7)
    other = LeakyHockeyStickClassifierCV(**options, random_state=5).fit(X, Y)
    name = "split0_test_score"
    assert (other.cv_results_[name] != array.cv_results_[name]).any()
    with pytest.raises(ValueError, match="number of folds only"):
        LeakyHockeyStickClassifierCV(**(options | {"cv": CV})).fit(
            da.from_array(X), da.from_array(Y)
        )


def test_linear_paths_from_blocks_have_weights() -> None:
    from buttress.blocks.base import ArrayBlocks

    source = ArrayBlocks(X, Y, block_size=50)
    model = LeakyHockeyStickClassifierCV(alphas=[1e-1, 1e-2], kernel="linear").fit(source, None)
    assert model.path_.coefs.shape == (2, 2)
    assert model.coef_.shape == (1, 2)
    assert model.approximation_ is None


@pytest.mark.parametrize("scoring", ["reject_risk", "accuracy", "roc_auc"])
def test_double_ramp_search(scoring: str) -> None:
    options = {"Cs": [0.1, 10.0], "gammas": None, "cv": CV, "scoring": scoring}
    exact = DoubleRampClassifierCV(**options).fit(X, Y)
    near = DoubleRampClassifierCV(**options, **NEAR).fit(X, Y)
    np.testing.assert_allclose(
        near.cv_results_["mean_test_score"], exact.cv_results_["mean_test_score"], atol=0.02
    )
    assert near.C_ == exact.C_
    assert near.best_estimator_.approximation_ == "nystroem"
    assert near.reject(X).shape == (160,)


def test_double_ramp_search_with_automatic_widths_and_three_classes() -> None:
    rows, labels = load_iris(return_X_y=True)
    options = {"gammas": "auto", "approximation": "nystroem", "n_components": 30}
    model = DoubleRampClassifierCV(Cs=[1.0], cv=3, **options).fit(rows, labels)
    assert len(model.cv_results_["params"]) == 3
    assert model.score(rows, labels) > 0.9
    with pytest.raises(ValueError, match=r"target_coverage=0\.9 needs the exact kernel"):
        DoubleRampClassifierCV(approximation="nystroem", target_coverage=0.9).fit(X, Y)


def test_ramp_search() -> None:
    options = {"Cs": [0.1, 1.0], "gammas": None, "cv": CV, "class_noise": None}
    exact = RampClassifierCV(**options).fit(X, Y)
    near = RampClassifierCV(**options, **NEAR).fit(X, Y)
    np.testing.assert_allclose(
        near.cv_results_["mean_test_score"], exact.cv_results_["mean_test_score"], atol=0.02
    )
    assert near.s_ in (-np.inf, -1.0)
    assert near.ignored_.shape == (160,)


@pytest.mark.parametrize("bias", ["error_rate", "primal", "bisect"])
def test_uncertainty_set_search(bias: str) -> None:
    options = {"radii": [1.0, 10.0], "cv": CV, "bias": bias}
    exact = UncertaintySetClassifierCV(**options).fit(X, Y)
    near = UncertaintySetClassifierCV(**options, **NEAR).fit(X, Y)
    np.testing.assert_allclose(near.cv_mean_, exact.cv_mean_, atol=0.01)
    assert near.radius_ == exact.radius_
    assert near.best_estimator_.duality_gap_ < 1e-6


def test_uncertainty_set_grid_by_number() -> None:
    exact = UncertaintySetClassifierCV(radii=3, cv=CV).fit(X, Y)
    near = UncertaintySetClassifierCV(radii=3, cv=CV, gammas=[0.5, 1.0], **NEAR).fit(X, Y)
    np.testing.assert_allclose(near.radii_, exact.radii_, rtol=1e-6)
    assert near.cv_mean_.shape == (2, 3)
