"""The leaky hockey stick classifier against independent solutions and its own invariants."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import LeakyHockeyStickClassifier
from buttress.solvers.smooth.duality import constrained_form


@parametrize_with_checks(
    [
        LeakyHockeyStickClassifier(),
        LeakyHockeyStickClassifier(kernel="linear", r=2.0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def noisy(n=60, p=3, seed=0, imbalance=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=n) > np.quantile(X[:, 0], 1 - imbalance), 1, -1)
    return X, y


def rbf(X, gamma=0.5):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def reference(K, y, alpha, r):
    """An independent conic solution: objective value and decision values."""
    import cvxpy as cp

    n = len(y)
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    w, b, beyond, slack = cp.Variable(n), cp.Variable(), cp.Variable(n), cp.Variable(n)
    f = root @ w + b
    # L(u) = min over u <= v + slack, v >= 1, slack >= 0 of leak(v) + slack
    leak = -cp.log(beyond) if math.isinf(r) else r * (1 - cp.power(beyond, 1 / r))
    problem = cp.Problem(
        cp.Minimize(cp.sum(leak + slack) / n + alpha * cp.sum_squares(w)),
        [cp.multiply(y, f) + slack >= beyond, beyond >= 1, slack >= 0],
    )
    options = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    problem.solve(solver="CLARABEL", **options)
    return problem.value, f.value


@pytest.mark.parametrize("r", [math.inf, 2.0, 1.5])
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
def test_equals_a_conic_solution(r, alpha):
    X, y = noisy(40, seed=1)
    K = rbf(X)
    value, f = reference(K, y, alpha, r)
    model = LeakyHockeyStickClassifier(alpha, r=r, kernel="precomputed").fit(K, y)
    assert model.objective_ == pytest.approx(value, rel=1e-6, abs=1e-7)
    if model.intercept_interval_[0] == model.intercept_interval_[1]:
        np.testing.assert_allclose(model.decision_function(K), f, atol=2e-4 * np.abs(f).max())
    assert model.duality_gap_ <= 1e-8 * (1 + abs(value))


@pytest.mark.parametrize("name", ["lhs_rbf_a", "lhs_linear_a"])
@pytest.mark.parametrize("solver", ["newton", "batched"])
def test_equals_the_oracle(oracle, name, solver):
    arrays, description = oracle(name)
    K, y = arrays["K"], arrays["y"]
    for case in description["cases"]:
        model = LeakyHockeyStickClassifier(
            case["lam"], r=float(case["r"]), kernel="precomputed", solver=solver
        ).fit(K, y)
        expected = arrays[case["key"] + "_g"] + np.mean(case["intercept_interval"])
        scale = np.abs(expected).max()
        np.testing.assert_allclose(model.decision_function(K), expected, atol=1e-6 * scale)
        assert model.objective_ == pytest.approx(case["objective"], rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(
            model.intercept_interval_, case["intercept_interval"], atol=1e-6 * scale
        )


@pytest.mark.parametrize("alpha", [1.0, 1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("r", [math.inf, 3.0])
@pytest.mark.parametrize(
    "case", ["plain", "duplicates", "imbalanced", "separable", "conflicting", "low rank", "zero"]
)
def test_certificate_is_small_everywhere(case, r, alpha):
    X, y = noisy(66, seed=3, imbalance=1 / 11 if case == "imbalanced" else 0.5)
    if case == "separable":
        y = np.where(X[:, 0] > 0, 1, -1)
    if case in ("duplicates", "conflicting"):
        X = np.repeat(X[:22], 3, axis=0)
        if case == "duplicates":
            y = np.repeat(y[:22], 3)
    K = X @ X.T if case == "low rank" else rbf(X)
    if case == "zero":
        K = np.zeros_like(K)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = LeakyHockeyStickClassifier(alpha, r=r, kernel="precomputed").fit(K, y)
    assert model.duality_gap_ <= 1e-7 * (1 + abs(model.objective_))


def test_equal_classes_at_a_large_penalty_have_an_interval_of_intercepts():
    X = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    y = np.array([-1, -1, 1, 1])
    model = LeakyHockeyStickClassifier(1.0, kernel="linear").fit(X, y)
    np.testing.assert_allclose(model.intercept_interval_, [-1, 1], atol=1e-12)
    assert model.intercept_[0] == pytest.approx(0)
    assert model.objective_ == pytest.approx(1)


@pytest.mark.parametrize(("r", "ratio"), [(math.inf, 3.0), (2.0, 9.0)])
def test_intercept_of_unequal_classes_at_a_huge_penalty(r, ratio):
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.array([1] * 15 + [-1] * 5)
    model = LeakyHockeyStickClassifier(1e6, r=r).fit(X, y)
    assert model.intercept_[0] == pytest.approx(ratio, rel=1e-4)


@settings(max_examples=10)
@given(st.integers(0, 50), st.sampled_from([1e-1, 1e-3]))
def test_swapping_labels_negates_and_order_does_not_matter(seed, alpha):
    X, y = noisy(30, seed=seed)
    if len(np.unique(y)) < 2:
        return
    model = LeakyHockeyStickClassifier(alpha).fit(X, y)
    f = model.decision_function(X)
    swapped = LeakyHockeyStickClassifier(alpha).fit(X, -y)
    np.testing.assert_allclose(swapped.decision_function(X), -f, atol=1e-6)
    order = np.random.default_rng(seed).permutation(30)
    shuffled = LeakyHockeyStickClassifier(alpha).fit(X[order], y[order])
    np.testing.assert_allclose(shuffled.decision_function(X), f, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_integer_weights_equal_copies(kernel):
    X, y = noisy(30, seed=5)
    weight = np.random.default_rng(0).integers(0, 4, size=30)
    weight[:2] = 1
    weighted = LeakyHockeyStickClassifier(1e-3, kernel=kernel).fit(X, y, sample_weight=weight)
    copies = LeakyHockeyStickClassifier(1e-3, kernel=kernel).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(
        weighted.decision_function(X), copies.decision_function(X), atol=1e-6
    )
    assert weighted.objective_ == pytest.approx(copies.objective_)
    assert set(weighted.support_) == set(np.flatnonzero(weight))


def test_without_intercept_the_solution_is_stationary():
    X, y = noisy(40)
    model = LeakyHockeyStickClassifier(1e-3, fit_intercept=False).fit(X, y)
    assert model.intercept_[0] == 0
    assert model.duality_gap_ <= 1e-8


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_single_precision_in_single_precision_out(kernel):
    X, y = noisy(50)
    double = LeakyHockeyStickClassifier(1e-3, kernel=kernel).fit(X, y)
    single = LeakyHockeyStickClassifier(1e-3, kernel=kernel).fit(X.astype(np.float32), y)
    assert single.dual_coef_.dtype == single.intercept_.dtype == np.float32
    f = single.decision_function(X.astype(np.float32))
    assert f.dtype == np.float32
    np.testing.assert_allclose(f, double.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_sparse_rows_give_the_same_model(kernel):
    X, y = make_classification(40, 60, random_state=0)
    X[np.abs(X) < 0.8] = 0
    for rows in (X, X[:, :10]):
        dense = LeakyHockeyStickClassifier(1e-2, kernel=kernel, gamma=0.01).fit(rows, y)
        thin = LeakyHockeyStickClassifier(1e-2, kernel=kernel, gamma=0.01).fit(
            sparse.csr_matrix(rows), y
        )
        np.testing.assert_allclose(
            thin.decision_function(sparse.csr_matrix(rows)),
            dense.decision_function(rows),
            atol=1e-6,
        )


def test_one_versus_rest_equals_its_binary_problems():
    X, y = load_iris(return_X_y=True)
    model = LeakyHockeyStickClassifier(1e-2, gamma=0.5, n_jobs=2).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (150, 3)
    assert model.duality_gaps_.shape == (3,)
    for label in range(3):
        binary = LeakyHockeyStickClassifier(1e-2, gamma=0.5).fit(X, y == label)
        np.testing.assert_allclose(scores[:, label], binary.decision_function(X), atol=1e-6)
    assert model.score(X, y) > 0.95


class Logistic:
    """A user's own loss, with and without its conjugate."""

    curvature_bound = 0.25

    def value(self, u):
        return np.logaddexp(0, -u)

    def derivative(self, u):
        return -1 / (1 + np.exp(np.clip(u, -500, 500)))

    def curvature(self, u):
        s = -self.derivative(u)
        return s * (1 - s)


class LogisticWithConjugate(Logistic):
    def conjugate(self, s):
        s = np.clip(-s, 1e-300, 1 - 1e-16)
        return s * np.log(s) + (1 - s) * np.log1p(-s)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_loss_of_the_users_own(kernel):
    X, y = noisy(50)
    alpha = 1e-2
    own = LeakyHockeyStickClassifier(alpha, loss=Logistic(), kernel=kernel).fit(X, y)
    assert own.kkt_residual_ < 1e-8
    assert not hasattr(own, "duality_gap_")
    certified = LeakyHockeyStickClassifier(alpha, loss=LogisticWithConjugate(), kernel=kernel).fit(
        X, y
    )
    assert certified.duality_gap_ < 1e-8
    np.testing.assert_allclose(own.decision_function(X), certified.decision_function(X), atol=1e-7)
    if kernel == "linear":
        peer = LogisticRegression(C=1 / (2 * alpha * 50), tol=1e-12, max_iter=10000).fit(X, y)
        np.testing.assert_allclose(own.coef_, peer.coef_, atol=1e-5)
    assert not hasattr(own, "implied_proba")


def test_a_loss_that_lacks_a_method_is_named():
    X, y = noisy(20)
    with pytest.raises(TypeError, match="object has no"):
        LeakyHockeyStickClassifier(loss=object()).fit(X, y)
    with pytest.raises(ValueError, match="solver='mm' serves the leaky hockey stick family"):
        LeakyHockeyStickClassifier(loss=Logistic(), solver="mm").fit(X, y)


def test_the_papers_algorithm_reaches_the_same_solution():
    X, y = noisy(40)
    weight = np.random.default_rng(0).uniform(0.5, 2, size=40)
    for r in (math.inf, 1.5):
        for intercept in (True, False):
            exact = LeakyHockeyStickClassifier(1e-2, r=r, fit_intercept=intercept)
            slow = LeakyHockeyStickClassifier(
                1e-2, r=r, fit_intercept=intercept, solver="mm", tol=1e-20, max_iter=100_000
            )
            exact.fit(X, y, sample_weight=weight)
            slow.fit(X, y, sample_weight=weight)
            np.testing.assert_allclose(
                slow.decision_function(X), exact.decision_function(X), atol=1e-6
            )
            assert slow.solver_ == "mm"
            assert slow.n_iter_ > exact.n_iter_


def test_stopping_short_is_said_and_measured():
    X, y = noisy(40)
    with pytest.warns(ConvergenceWarning, match="stopped before reaching its tolerance"):
        model = LeakyHockeyStickClassifier(1e-6, solver="mm", tol=1e-12, max_iter=20).fit(X, y)
    assert model.duality_gap_ > 1e-3


def test_implied_probabilities_follow_the_odds_of_the_score():
    X, y = noisy(80)
    model = LeakyHockeyStickClassifier(1e-4, r=2.0).fit(X, y)
    f, proba = model.decision_function(X), model.implied_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.all(proba[np.abs(f) <= 1] == 0.5)
    sure = f > 1
    np.testing.assert_allclose(proba[sure, 1] / proba[sure, 0], np.sqrt(f[sure]))
    mirrored = LeakyHockeyStickClassifier(1e-4, r=2.0).fit(X, -y).implied_proba(X)
    np.testing.assert_allclose(mirrored[:, 0], proba[:, 1], atol=1e-5)
    X, y = load_iris(return_X_y=True)
    several = LeakyHockeyStickClassifier(1e-3).fit(X, y).implied_proba(X)
    np.testing.assert_allclose(several.sum(axis=1), 1)


def test_works_inside_calibration():
    X, y = noisy(90)
    calibrated = CalibratedClassifierCV(LeakyHockeyStickClassifier(1e-2), cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (90, 2)
    assert calibrated.score(X, y) > 0.6


def test_constrained_form_of_the_paper():
    X, y = noisy(30)
    model = LeakyHockeyStickClassifier(0.02, kernel="linear").fit(X, y)
    beta = model.coef_[0]
    form = constrained_form(y, X @ beta, float(model.intercept_[0]), float(beta @ beta), X @ X.T)
    assert form.C == pytest.approx(np.linalg.norm(beta))
    assert form.alpha == pytest.approx(0.02, rel=1e-6)
    assert form.primal == pytest.approx(form.dual, rel=1e-7)
    assert np.all((form.sigma > 0) & (form.sigma <= form.C * (1 + 1e-12)))
    assert y @ form.sigma == pytest.approx(0, abs=1e-6)
    direction = X.T @ (y * form.sigma) / form.resultant
    np.testing.assert_allclose(direction, beta / form.C, atol=1e-6)
    inside = np.flatnonzero(form.sigma < form.C * (1 - 1e-6))[0]
    assert y[inside] / form.sigma[inside] - X[inside] @ direction == pytest.approx(
        form.offset, abs=1e-6
    )
    with pytest.raises(ValueError, match="no direction"):
        constrained_form(y, np.zeros(30), 0.0, 0.0, X @ X.T)


def test_scalar_weights_and_class_weights():
    X, y = noisy(40, imbalance=0.25)
    plain = LeakyHockeyStickClassifier(1e-2).fit(X, y)
    scaled = LeakyHockeyStickClassifier(1e-2).fit(X, y, sample_weight=2.0)
    np.testing.assert_allclose(scaled.decision_function(X), plain.decision_function(X), atol=1e-6)
    balanced = LeakyHockeyStickClassifier(1e-2, class_weight="balanced").fit(X, y)
    counts = {label: 40 / (2 * np.sum(y == label)) for label in (-1, 1)}
    by_hand = LeakyHockeyStickClassifier(1e-2, class_weight=counts).fit(X, y)
    np.testing.assert_allclose(
        balanced.decision_function(X), by_hand.decision_function(X), atol=1e-6
    )


@pytest.mark.smoke
def test_fits_and_predicts():
    X, y = noisy(40)
    model = LeakyHockeyStickClassifier(1e-3).fit(X, y)
    assert model.score(X, y) > 0.7
    assert set(model.predict(X)) <= {-1, 1}
