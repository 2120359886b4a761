"""Minimax probability machines against stored solutions, a conic solver and brute force."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import MinimaxProbabilityMachine


@parametrize_with_checks([MinimaxProbabilityMachine()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def blobs(n=80, seed=0):
    return make_blobs(n, centers=[[0, 0, 0], [2, 1, 0]], random_state=seed)


def skewed(n, share, seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1, -1)
    tilted = rng.multivariate_normal([1, 1], [[1.75, 0.8660254], [0.8660254, 0.75]], n)
    return np.where(y[:, None] > 0, rng.normal(size=(n, 2)), tilted), y


@pytest.mark.smoke
def test_guarantee_is_kept_and_balanced():
    X, y = blobs()
    model = MinimaxProbabilityMachine(kernel="linear", covariance_ridge=0.0).fit(X, y)
    f = model.decision_function(X)
    means = [f[y == 1].mean() / f[y == 1].std(), -f[y == 0].mean() / f[y == 0].std()]
    np.testing.assert_allclose(means, model.kappa_, rtol=1e-9)
    assert model.worst_case_accuracy_ == pytest.approx(model.kappa_**2 / (1 + model.kappa_**2))
    assert f[y == 1].mean() - f[y == 0].mean() == pytest.approx(1.0)
    assert model.n_iter_ == 1
    assert model.duality_gap_ < 1e-10


def test_stored_solutions(oracle):
    arrays, cases = oracle("mpm")
    case = cases["plain"]
    X, y = arrays["plain_X"], arrays["plain_y"]
    ridge = case["reg"]
    linear = MinimaxProbabilityMachine(kernel="linear", covariance_ridge=ridge).fit(X, y)
    assert linear.kappa_ == pytest.approx(case["kappa"], rel=1e-9)
    assert linear.intercept_[0] == pytest.approx(case["b"], abs=1e-9)
    assert linear.worst_case_accuracy_ == pytest.approx(case["worst_case_acc"], rel=1e-9)
    np.testing.assert_allclose(linear.coef_[0], arrays["plain_w"], atol=1e-9)
    kernel = MinimaxProbabilityMachine(gamma=case["rbf_gamma"], covariance_ridge=ridge).fit(X, y)
    assert kernel.kappa_ == pytest.approx(case["kernel_kappa"], rel=1e-9)
    f = kernel.decision_function(arrays["plain_Xtest"])
    np.testing.assert_allclose(f, arrays["plain_kernel_f_test"], atol=1e-8)
    wide = MinimaxProbabilityMachine(
        kernel="linear", covariance_ridge=ridge, margin=True, kappa=case["mm_kappa"]
    ).fit(X, y)
    assert wide.objective_ == pytest.approx(case["mm_obj"], rel=1e-8)
    np.testing.assert_allclose(wide.coef_[0], arrays["plain_mm_w"], atol=1e-5)
    assert wide.intercept_[0] == pytest.approx(case["mm_b"], abs=1e-5)


@pytest.mark.parametrize("margin", [False, True])
def test_agrees_with_a_conic_solver(margin):
    cp = pytest.importorskip("cvxpy")
    X, y = blobs(60, seed=3)
    ridge, kappa = 0.05, 0.4
    model = MinimaxProbabilityMachine(
        kernel="linear", covariance_ridge=ridge, margin=margin, kappa=kappa
    ).fit(X, y)
    roots, means = [], []
    for label in (1, 0):
        rows = X[y == label]
        covariance = np.cov(rows.T, bias=True) + ridge * np.eye(3)
        roots.append(np.linalg.cholesky(covariance).T)
        means.append(rows.mean(axis=0))
    w, b = cp.Variable(3), cp.Variable()
    s = [cp.norm(root @ w) for root in roots]
    if margin:
        goal = cp.Minimize(cp.sum_squares(w) / 2)
        rules = [
            means[0] @ w + b >= 1 + kappa * s[0],
            -(means[1] @ w + b) >= 1 + kappa * s[1],
        ]
    else:
        goal, rules = cp.Minimize(s[0] + s[1]), [(means[0] - means[1]) @ w == 1]
    problem = cp.Problem(goal, rules)
    problem.solve(solver="CLARABEL")
    assert model.objective_ == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(model.coef_[0], w.value, atol=1e-4)
    if margin:
        assert model.intercept_[0] == pytest.approx(b.value, abs=1e-4)
        assert model.solver_ == "newton"


@pytest.mark.parametrize("margin", [False, True])
def test_linear_kernel_in_kernel_form_is_the_linear_machine(margin):
    X, y = blobs()
    options = {"covariance_ridge": 1e-3, "margin": margin, "mean_error": 0.1}
    a = MinimaxProbabilityMachine(kernel="linear", **options).fit(X, y)
    b = MinimaxProbabilityMachine(kernel="precomputed", **options).fit(X @ X.T, y)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X @ X.T), atol=1e-9)
    np.testing.assert_allclose(a.dual_coef_ @ X[a.support_], a.coef_, atol=1e-9)


def test_rows_shared_by_both_classes():
    X, y = blobs(40)
    X[y == 0][:3] = X[y == 1][:3]
    X = np.r_[X, X[:6]]
    y = np.r_[y, 1 - y[:6]]
    rows = MinimaxProbabilityMachine(gamma=0.5, covariance_ridge=1e-2).fit(X, y)
    K = rbf_kernel(X, gamma=0.5)
    gram = MinimaxProbabilityMachine(kernel="precomputed", covariance_ridge=1e-2).fit(K, y)
    np.testing.assert_allclose(rows.decision_function(X), gram.decision_function(K), atol=1e-9)


def test_mean_error_lowers_the_guarantee_and_leaves_the_boundary():
    X, y = blobs()
    plain = MinimaxProbabilityMachine(kernel="linear").fit(X, y)
    robust = MinimaxProbabilityMachine(kernel="linear", mean_error=0.3).fit(X, y)
    np.testing.assert_allclose(plain.coef_, robust.coef_)
    k = plain.kappa_ - 0.3
    assert robust.worst_case_accuracy_ == pytest.approx(k**2 / (1 + k**2))
    hopeless = MinimaxProbabilityMachine(kernel="linear", mean_error=50.0).fit(X, y)
    assert hopeless.worst_case_accuracy_ == 0.0


def test_margin_machine_keeps_its_ellipsoids_apart():
    X, y = blobs()
    plain = MinimaxProbabilityMachine(kernel="linear").fit(X, y)
    half = MinimaxProbabilityMachine(kernel="linear", margin=True).fit(X, y)
    assert half.kappa_ == pytest.approx(0.5 * plain.kappa_)
    assert half.worst_case_accuracy_ <= plain.worst_case_accuracy_ + 1e-12
    f = half.decision_function(X)
    for label, sign in ((1, 1.0), (0, -1.0)):
        group = sign * f[y == label]
        assert group.mean() - half.kappa_ * group.std() == pytest.approx(1.0, abs=1e-4)
    means = MinimaxProbabilityMachine(kernel="linear", margin=True, kappa=0.0).fit(X, y)
    difference = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    np.testing.assert_allclose(
        means.coef_[0] / np.linalg.norm(means.coef_), difference / np.linalg.norm(difference)
    )


def test_infeasible_kappa_names_the_largest():
    X, y = blobs()
    largest = MinimaxProbabilityMachine(kernel="linear").fit(X, y).kappa_
    for kappa in (1.02 * largest, 10.0):
        with pytest.raises(ValueError, match=f"below {largest:.4g}"[:12]):
            MinimaxProbabilityMachine(kernel="linear", margin=True, kappa=kappa).fit(X, y)
    below = MinimaxProbabilityMachine(kernel="linear", margin=True, kappa=0.98 * largest)
    assert below.fit(X, y).duality_gap_ < 1e-5 * below.objective_
    with pytest.raises(ValueError, match="mean_error=50"):
        MinimaxProbabilityMachine(kernel="linear", margin=True, mean_error=50.0).fit(X, y)


def test_equal_means_and_singular_covariances_are_explained():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    y = np.array([1, 1, 0, 0])
    with pytest.raises(ValueError, match="means coincide"):
        MinimaxProbabilityMachine(kernel="linear").fit(X, y)
    X, y = blobs(40)
    with pytest.raises(ValueError, match="covariance_ridge"):
        MinimaxProbabilityMachine(covariance_ridge=0.0).fit(X, y)


def test_weights_equal_copies():
    X, y = blobs(40)
    w = np.random.default_rng(0).integers(0, 3, len(y))
    for options in ({}, {"bias": "error_rate"}, {"margin": True, "covariance_ridge": 1e-3}):
        a = MinimaxProbabilityMachine(gamma=0.3, **options).fit(X, y, sample_weight=w)
        b = MinimaxProbabilityMachine(gamma=0.3, **options)
        b.fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-6)


def test_more_classes():
    X, y = make_blobs(90, centers=3, random_state=1)
    model = MinimaxProbabilityMachine().fit(X, y)
    assert model.worst_case_accuracy_.shape == model.kappa_.shape == (3,)
    assert model.score(X, y) > 0.9


def test_error_rate_bias_makes_no_more_errors():
    X, y = skewed(400, 0.2, 0)
    plain = MinimaxProbabilityMachine(covariance_ridge=1e-2, gamma=0.1).fit(X, y)
    unbiased = MinimaxProbabilityMachine(covariance_ridge=1e-2, gamma=0.1, bias="error_rate").fit(
        X, y
    )
    assert unbiased.score(X, y) >= plain.score(X, y) + 0.07


@pytest.mark.slow
def test_plain_machine_is_biased_for_a_rare_class():
    plain, unbiased = [], []
    grid = {"gamma": [0.01, 0.03, 0.1, 0.3, 1.0], "covariance_ridge": [0.1, 1e-2, 1e-3, 1e-4]}
    for seed in range(10):
        X, y = skewed(400, 0.2, seed)
        T, t = skewed(10_000, 0.2, 100 + seed)
        for bias, errors in (("minimax", plain), ("error_rate", unbiased)):
            search = GridSearchCV(MinimaxProbabilityMachine(bias=bias), grid, cv=5).fit(X, y)
            errors.append(1.0 - search.score(T, t))
    assert 0.23 < np.mean(plain) < 0.29  # the paper prints 26.0
    assert 0.145 < np.mean(unbiased) < 0.175  # and 16.5; the Bayes error is 14.7


@pytest.mark.parametrize("given", [{"kernel": "linear", "margin": True}, {}, {"margin": True}])
def test_stopping_short_warns(given):
    X, y = blobs()
    with pytest.warns(ConvergenceWarning, match="MinimaxProbabilityMachine"):
        short = MinimaxProbabilityMachine(max_iter=1, **given).fit(X, y)
    assert short.n_iter_ == 1
    done = MinimaxProbabilityMachine(**given).fit(X, y)
    assert 0 <= short.objective_ - done.objective_ <= short.duality_gap_


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bias", "primal"),
        ("margin", "yes"),
        ("kappa", -1.0),
        ("mean_error", -0.1),
        ("covariance_ridge", -1.0),
        ("tol", 0.0),
        ("max_iter", 0),
    ],
)
def test_bad_parameters_are_named(name, value):
    X, y = blobs(20)
    with pytest.raises(ValueError, match=name):
        MinimaxProbabilityMachine(**{name: value}).fit(X, y)
