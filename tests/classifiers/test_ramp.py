"""The ramp classifier: scikit-learn's contract, the hinge limit, label errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import RampClassifier


@parametrize_with_checks([RampClassifier(), RampClassifier(radius=2.0, fit_intercept=False)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def moons(n=200, flips=20, seed=0, noise=0.15):
    X, y = make_moons(n, noise=noise, random_state=seed)
    wrong = np.zeros(n, dtype=bool)
    wrong[np.random.default_rng(seed).choice(n, flips, replace=False)] = True
    return X, np.where(wrong, 1 - y, y), wrong


@pytest.mark.smoke
def test_flipped_rows_are_ignored():
    X, y, wrong = moons()
    model = RampClassifier(C=10.0).fit(X, y)
    assert model.ignored_[wrong].mean() > 0.5
    assert model.ignored_[~wrong].mean() < 0.02
    assert average_precision_score(wrong, model.suspect_scores_) > 0.85
    np.testing.assert_array_equal(model.ignored_, model.suspect_scores_ > 1.0)
    assert model.kkt_residual_ < 1e-7
    assert (np.diff(model.objective_path_) <= 1e-9).all()
    assert model.solver_ == "smo"


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_hinge_limit_is_the_support_vector_machine(C, kernel):
    X, y, _ = moons(150)
    options = {"C": C, "kernel": kernel, "gamma": 1.0, "coef0": 1.0, "degree": 2}
    ours = RampClassifier(s=-np.inf, **options).fit(X, y)
    theirs = SVC(tol=1e-5, **options).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=5e-3)
    assert not ours.ignored_.any()


def test_three_classes_share_the_interface():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    y = y.copy()
    y[:5] = 2
    model = RampClassifier(C=10.0).fit(X, y)
    assert model.score(X[5:], y[5:]) > 0.95
    assert model.decision_function(X).shape == (150, 3)
    assert model.C_.shape == model.ball_active_.shape == model.objective_.shape == (3,)
    assert len(model.objective_path_) == 3
    assert (model.suspect_scores_[:5] > 0).all()
    assert model.ignored_[:5].any()


def test_rows_of_weight_zero_are_left_out():
    X, y, _ = moons(80, 6)
    weight = np.ones(80)
    weight[:10] = 0.0
    model = RampClassifier(C=5.0).fit(X, y, sample_weight=weight)
    rest = RampClassifier(C=5.0, gamma=model.gamma_).fit(X[10:], y[10:])
    np.testing.assert_allclose(model.decision_function(X), rest.decision_function(X), atol=1e-7)
    assert model.ignored_.shape == (80,)
    assert not model.ignored_[:10].any()


def test_ball_form_reports_its_penalty():
    X, y, _ = moons(100, 8)
    model = RampClassifier(radius=3.0).fit(X, y)
    assert model.ball_active_
    norm = model.dual_coef_ @ model.kernel_(model.support_vectors_) @ model.dual_coef_.T
    assert float(np.sqrt(norm[0, 0])) == pytest.approx(3.0, rel=1e-6)
    assert model.objective_ <= 2.0
    hinge = RampClassifier(radius=3.0, s=-np.inf).fit(X, y)
    again = RampClassifier(C=hinge.C_, s=-np.inf).fit(X, y)
    np.testing.assert_allclose(hinge.decision_function(X), again.decision_function(X), atol=1e-5)


def test_sparse_and_float32_and_precomputed_agree():
    X, y, _ = moons(120, 10)
    reference = RampClassifier(C=3.0, gamma=1.0).fit(X, y).decision_function(X)
    as_sparse = RampClassifier(C=3.0, gamma=1.0).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        as_sparse.decision_function(sparse.csr_matrix(X)), reference, atol=1e-7
    )
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    given = RampClassifier(C=3.0, kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(given.decision_function(K), reference, atol=1e-7)
    single = RampClassifier(C=3.0, gamma=1.0).fit(X.astype(np.float32), y)
    assert single.dual_coef_.dtype == np.float32
    np.testing.assert_allclose(single.decision_function(X.astype(np.float32)), reference, atol=1e-2)


def test_row_cache_gives_the_same_model():
    X, y, _ = moons(700, 60)
    whole = RampClassifier(C=3.0).fit(X, y)
    cached = RampClassifier(C=3.0, cache_size=1.0).fit(X, y)
    np.testing.assert_allclose(cached.decision_function(X), whole.decision_function(X), atol=1e-6)


def test_works_in_searches_pipelines_and_calibration():
    X, y, _ = moons(120, 8)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), RampClassifier()),
        {"rampclassifier__C": [1.0, 10.0], "rampclassifier__s": [-1.0, -0.5]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.8
    calibrated = CalibratedClassifierCV(RampClassifier(C=5.0), cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (120, 2)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"C": 0.0}, r"C=0\.0.*\(0, inf\)"),
        ({"s": 0.5}, r"s=0\.5.*\[-inf, 0\]"),
        ({"radius": -1.0}, r"radius=-1\.0.*\(0, inf\)"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"cache_size": 0}, "cache_size=0"),
        ({"kernel": "magic"}, "magic"),
    ],
)
def test_bad_parameters_are_named(parameters, named):
    X, y, _ = moons(30, 2)
    with pytest.raises(ValueError, match=named):
        RampClassifier(**parameters).fit(X, y)


def test_cap_on_outer_steps_warns():
    X, y, _ = moons(100, 30)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = RampClassifier(C=10.0, s=0.0, max_iter=1).fit(X, y)
    assert model.n_iter_ == 1


def test_not_fitted():
    with pytest.raises(NotFittedError):
        RampClassifier().predict([[0.0]])
