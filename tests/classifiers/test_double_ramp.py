"""DoubleRampClassifier: estimator contract, limits, symmetries and the paper's numbers."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress.classifiers import DoubleRampClassifier, RampClassifier
from buttress.classifiers.double_ramp import margin_kinds
from buttress.losses import DoubleRamp
from buttress.metrics import reject_scorer
from buttress.solvers.hinge.reject import DoubleRampTerms, solve_double_ramp


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.35, random_state=0)


@parametrize_with_checks([DoubleRampClassifier()])
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.smoke
def test_learns_a_band_around_the_boundary(moons):
    X, y = moons
    model = DoubleRampClassifier(d=0.1, C=10.0).fit(X, y)
    rejected = model.reject(X)
    right = model.predict(X) == y
    assert 0.05 < rejected.mean() < 0.6
    assert right[~rejected].mean() > right.mean()
    assert model.thresholds_.tolist() == [-model.rho_, model.rho_]
    assert np.array_equal(rejected, np.abs(model.decision_function(X)) <= model.rho_)
    assert model.kkt_residual_ <= 1e-8
    assert (np.diff(model.objective_path_) <= 1e-9 * model.objective_path_[0]).all()


def test_objective_is_the_stated_problem(moons):
    X, y = moons
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = DoubleRampClassifier(d=0.2, mu=0.5, C=3.0).fit(X, y, weight)
    K = model.kernel_(model.support_vectors_)
    norm = (model.dual_coef_ @ K @ model.dual_coef_.T).item()
    t = np.where(y == 1, 1, -1) * model.decision_function(X)
    loss = DoubleRamp(d=0.2, mu=0.5, rho=model.rho_).value(t)
    assert model.objective_ == pytest.approx(0.5 * norm + 3.0 * weight @ loss, rel=1e-9)


def test_label_swap_negates_and_order_does_not_matter(moons):
    X, y = moons
    model = DoubleRampClassifier(C=2.0).fit(X, y)
    swapped = DoubleRampClassifier(C=2.0).fit(X, 1 - y)
    assert np.allclose(model.decision_function(X), -swapped.decision_function(X), atol=1e-7)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = DoubleRampClassifier(C=2.0).fit(X[order], y[order])
    assert np.allclose(model.decision_function(X), shuffled.decision_function(X), atol=1e-7)
    assert model.rho_ == pytest.approx(shuffled.rho_, abs=1e-7)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weights_equal_copies(moons, fit_intercept):
    X, y = moons
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    options = {"C": 1.5, "gamma": 1.0, "fit_intercept": fit_intercept}
    weighted = DoubleRampClassifier(**options).fit(X, y, sample_weight=weight)
    copied = DoubleRampClassifier(**options).fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    assert np.allclose(weighted.decision_function(X), copied.decision_function(X), atol=1e-7)
    assert weighted.rho_ == pytest.approx(copied.rho_, abs=1e-7)
    if not fit_intercept:
        assert weighted.intercept_.tolist() == [0.0]


def test_one_half_answers_everything(moons):
    X, y = moons
    model = DoubleRampClassifier(d=0.5, C=10.0).fit(X, y)
    assert model.rho_ == 0.0
    assert not model.reject(X).any()
    assert model.rejection_rate_ == 0.0
    ramp = RampClassifier(s=-1.0, C=10.0).fit(X, y)
    assert np.allclose(model.decision_function(X), ramp.decision_function(X), atol=1e-6)
    assert model.objective_ == pytest.approx(ramp.objective_, rel=1e-8)


def test_reject_everything_is_reported_not_raised(moons):
    X, y = moons
    model = DoubleRampClassifier(d=0.05, C=1e-4).fit(X, y)
    assert model.rejection_rate_ == 1.0
    assert model.reject(X).all()
    assert model.objective_ == pytest.approx(len(y) * 1e-4 * 0.05 * 2.0, rel=1e-3)
    assert model.predict_or_reject(X).mask.all()


def test_starts_and_the_best_of_them(moons):
    X, y = moons
    objectives = {
        init: DoubleRampClassifier(d=0.2, C=20.0, init=init).fit(X, y).objective_
        for init in ("zero", "svm", "best")
    }
    assert objectives["best"] == min(objectives.values())


def test_kinds_follow_the_margins(moons):
    X, y = moons
    model = DoubleRampClassifier(d=0.1, C=10.0).fit(X, y)
    t = np.where(y == 1, 1, -1) * model.decision_function(X)
    kinds = model.support_kind_
    assert kinds.shape == y.shape
    assert (t[kinds == "safe"] > model.rho_ + 1).all()
    assert np.allclose(t[kinds == "outer_margin"], model.rho_ + 1, atol=1e-5)
    assert (t[kinds == "outlier"] < -model.rho_ - 1).all()
    idle = np.isin(kinds, ["safe", "inside", "outlier"])
    assert not np.isin(model.support_, np.flatnonzero(idle)).any()
    full = np.isin(kinds, ["outer", "inner", "both"])
    assert np.isin(np.flatnonzero(full), model.support_).all()


def test_kinds_at_every_place_of_the_table():
    rho, mu = 2.0, 1.0
    t = np.array([4.0, 3.0, 2.0, 1.0, 0.0, -1.0, -1.5, -3.0, -3.5])
    names = ["safe", "outer_margin", "outer", "outer", "inside",
             "inner_margin", "inner", "inner", "outlier"]  # fmt: skip
    assert margin_kinds(t, rho, mu).tolist() == names
    assert margin_kinds(np.array([0.0]), 0.5, 1.0).tolist() == ["both"]


def test_dual_variables_behave_as_in_table_2():
    """gamma' and gamma'' are full, free or zero according to the margin."""
    X, y = make_classification(80, 4, flip_y=0.2, random_state=3)
    y = np.where(y == 1, 1.0, -1.0)
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
    C, d, mu = 5.0, 0.15, 0.6
    found = solve_double_ramp(K, y, DoubleRampTerms(d=d, mu=mu), C=C, tol=1e-11)
    t = y * (found.g + found.b)
    both = 0
    for gamma, beta, cost, side in (
        (found.gamma1, found.beta1, C * d / mu, found.rho),
        (found.gamma2, found.beta2, C * (1 - d) / mu, -found.rho),
    ):
        near = 1e-6
        full = (t > side - mu**2 + near) & (t < side + mu - near)
        idle = (t > side + mu + near) | (t < side - mu**2 - near)
        assert np.allclose(gamma[full], cost)
        assert np.allclose(gamma[idle], 0.0)
        assert ((beta > 0) == (t < side - mu**2 - near)).all()
        both = both + full
    # the paper's "only one of them" needs a wide band
    assert (both <= 1).all() or 2 * found.rho < mu + mu**2


def test_float32_stays_float32(moons):
    X, y = moons
    model = DoubleRampClassifier(C=2.0).fit(X.astype(np.float32), y)
    assert model.decision_function(X.astype(np.float32)).dtype == np.float32
    exact = DoubleRampClassifier(C=2.0).fit(X, y)
    assert np.allclose(model.decision_function(X), exact.decision_function(X), atol=5e-3)


def test_a_small_cache_gives_the_same_model(moons):
    X, y = moons
    whole = DoubleRampClassifier(C=2.0).fit(X, y)
    rows = DoubleRampClassifier(C=2.0, cache_size=0.07).fit(X, y)
    assert np.allclose(whole.decision_function(X), rows.decision_function(X), atol=1e-7)
    with pytest.raises(ValueError, match="cache_size"):
        DoubleRampClassifier(kernel="sigmoid", cache_size=0.07).fit(X, y)


def test_linear_kernel_has_weights_and_pipelines_work(moons):
    X, y = moons
    model = DoubleRampClassifier(kernel="linear").fit(X, y)
    assert model.coef_.shape == (1, 2)
    pipeline = make_pipeline(StandardScaler(), DoubleRampClassifier(d=0.1))
    scores = cross_validate(pipeline, X, y, scoring=reject_scorer(0.1), cv=3)["test_score"]
    assert (scores > -0.2).all()


def test_grid_search_and_calibration(moons):
    X, y = moons
    search = GridSearchCV(
        DoubleRampClassifier(),
        {"C": [0.1, 10.0], "d": [0.1, 0.3]},
        scoring=reject_scorer(0.2),
        cv=3,
    ).fit(X, y)
    assert search.best_estimator_.reject(X).shape == y.shape
    calibrated = CalibratedClassifierCV(DoubleRampClassifier(C=5.0), cv=3).fit(X, y)
    assert calibrated.score(X, y) > 0.8


def test_weights_are_routed(moons):
    X, y = moons
    with sklearn.config_context(enable_metadata_routing=True):
        model = DoubleRampClassifier().set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        found = cross_validate(model, X, y, params={"sample_weight": np.ones(len(y))}, cv=3)
    assert (found["test_score"] > 0.7).all()


def test_multi_class_has_one_band_per_class():
    X, y = load_iris(return_X_y=True)
    model = DoubleRampClassifier(d=0.2, C=5.0).fit(X, y)
    assert model.rho_.shape == (3,)
    assert model.support_kind_.shape == (150, 3)
    assert len(model.objective_path_) == 3
    one = DoubleRampClassifier(d=0.2, C=5.0, gamma=model.gamma_).fit(X, y == 1)
    assert np.allclose(one.decision_function(X), model.decision_function(X)[:, 1], atol=1e-7)


def test_too_few_steps_warn(moons):
    X, y = moons
    y = y.copy()
    y[::7] = 1 - y[::7]
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        DoubleRampClassifier(C=100.0, d=0.4, max_iter=1).fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [({"mu": 0.0}, r"mu=0.0.*\(0, 1\]"), ({"mu": 1.5}, r"\(0, 1\]"), ({"init": "x"}, "'svm'")],
)
def test_bad_parameters_are_named(moons, params, message):
    with pytest.raises(ValueError, match=message):
        DoubleRampClassifier(**params).fit(*moons)


@pytest.mark.datasets
def test_ionosphere_as_in_the_paper(data_dir):
    """Raw features, gamma 0.125, C = 2, mu = 1, 10 folds: risk and rejection rate."""
    pd = pytest.importorskip("pandas")
    from buttress.model_selection import cross_validate_reject

    table = pd.read_csv(data_dir / "ionosphere.csv")
    X, y = table.drop(columns="label").to_numpy(float), (table["label"] == "g").to_numpy(int)
    d_values = [0.05, 0.1, 0.2, 0.3, 0.5]
    model = DoubleRampClassifier(C=2.0, mu=1.0, gamma=0.125)
    risk, rate = np.zeros(5), np.zeros(5)
    for seed in range(5):
        folds = StratifiedKFold(10, shuffle=True, random_state=seed)
        found = cross_validate_reject(model, X, y, d_values, cv=folds)
        risk += found.risk / 5
        rate += found.rejection_rate / 5
    assert np.abs(risk - [0.0242, 0.0301, 0.0411, 0.0472, 0.0496]).max() < 0.006
    assert np.abs(rate - [0.3470, 0.0849, 0.0348, 0.0091, 0.0]).max() < 0.02
