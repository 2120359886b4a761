"""The uncertainty-set classifier: estimator contract, stored solutions, biases, sets."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import NuSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import UncertaintySetClassifier
from buttress.classifiers.stopping import noted_not_warned
from buttress.losses import EllipsoidError, LogBarrier, NuHinge
from buttress.solvers.sets.bias import error_rate_bias


@parametrize_with_checks([UncertaintySetClassifier()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def moons(n=120, seed=0):
    return make_moons(n, noise=0.25, random_state=seed)


def skewed(n, share, seed):
    """The paper's synthetic data: a round positive class, a tilted negative one."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1, -1)
    tilted = rng.multivariate_normal([1, 1], [[1.75, 0.8660254], [0.8660254, 0.75]], n)
    return np.where(y[:, None] > 0, rng.normal(size=(n, 2)), tilted), y


@pytest.mark.smoke
@pytest.mark.parametrize(
    "loss",
    ["ellipsoid", "reduced_hull", "hull", "truncated_quadratic", "exponential", "logistic"],
)
def test_every_loss_separates_two_blobs(loss):
    X, y = make_blobs(60, centers=[[0, 0], [4, 4]], random_state=0)
    model = UncertaintySetClassifier(loss).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.duality_gap_ < 1e-8
    assert model.set_weights_[y == 1].sum() == pytest.approx(1.0)
    assert model.set_weights_[y == 0].sum() == pytest.approx(1.0)


def test_stored_linear_solutions(oracle):
    arrays, cases = oracle("unc_linear")
    X, y = arrays["plain_X"], arrays["plain_y"]
    names = {"hinge": "reduced_hull", "tq": "truncated_quadratic", "exp": "exponential"}
    for name, case in cases.items():
        par = case["par"]
        model = UncertaintySetClassifier(
            names.get(case["loss"], "ellipsoid"),
            h=par.get("h", 0.0),
            omega=par.get("w", 1.0),
            nu=par.get("nu", 0.5),
            radius=case["lam"],
            kernel="linear",
            bias="primal",
        ).fit(X, y)
        assert model.objective_ == pytest.approx(case["primal"], rel=1e-8)
        np.testing.assert_allclose(model.coef_[0], arrays[f"{name}_w"], atol=1e-6)
        if case["b_rho_unique"]:
            assert model.intercept_[0] == pytest.approx(case["b"], abs=1e-6)
            assert model.rho_ == pytest.approx(case["rho"], abs=1e-6)


def test_stored_kernel_solutions(oracle):
    arrays, cases = oracle("unc_kernel_u")
    X, y = arrays["plain_X"], arrays["plain_y"]
    for name, case in cases.items():
        options = {"h": case["h"], "omega": case["w"], "radius": case["lam"], "gamma": 0.5}
        model = UncertaintySetClassifier(bias="primal", **options).fit(X, y)
        f = model.decision_function(X)
        np.testing.assert_allclose(f - model.intercept_, arrays[f"{name}_f_train"], atol=1e-7)
        assert model.intercept_[0] == pytest.approx(case["b"], abs=1e-7)
        assert model.rho_ == pytest.approx(case["rho"], abs=1e-7)
        swept = UncertaintySetClassifier(**options).fit(X, y)
        assert np.sum(y * swept.decision_function(X) <= 0) == case["err01"]
        assert swept.intercept_[0] == pytest.approx(case["b01"], abs=1e-7)


def test_reduced_hull_is_the_nu_svm():
    X, y = moons()
    ours = UncertaintySetClassifier("reduced_hull", nu=0.4, gamma=1.0).fit(X, y)
    svm = NuSVC(nu=0.4, gamma=1.0, tol=1e-9).fit(X, y)
    f = ours.decision_function(X) - ours.intercept_
    g = svm.decision_function(X) - svm.intercept_
    np.testing.assert_allclose(f / np.linalg.norm(f), g / np.linalg.norm(g), atol=1e-5)
    assert ours.solver_ == "interior_point"


def test_truncated_quadratic_is_an_ellipsoid():
    X, y = moons()
    a = UncertaintySetClassifier("truncated_quadratic", radius=3.0).fit(X, y)
    b = UncertaintySetClassifier(h=0.0, omega=0.5, radius=3.0).fit(X, y)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-9)


def test_conic_solver_agrees():
    X, y = moons(60)
    a = UncertaintySetClassifier(h=1.0, radius=5.0, bias="primal").fit(X, y)
    b = clone(a).set_params(solver="conic").fit(X, y)
    assert b.solver_ == "conic"
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-6)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-4)


def test_biases():
    X, y = moons()
    sign = 2 * y - 1
    models = {
        bias: UncertaintySetClassifier(radius=20.0, bias=bias).fit(X, y)
        for bias in ("error_rate", "bisect", "primal")
    }
    f = models["primal"].decision_function(X) - models["primal"].intercept_
    best = error_rate_bias(f, sign, reference=float(models["primal"].intercept_[0]))
    assert models["error_rate"].intercept_[0] == pytest.approx(best.bias, abs=1e-9)
    alpha = models["bisect"].set_weights_
    middle = -0.5 * (alpha[y == 1] @ f[y == 1] + alpha[y == 0] @ f[y == 0])
    assert models["bisect"].intercept_[0] == pytest.approx(middle, abs=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_holdout_uses_other_rows_for_the_bias(kernel):
    X, y = moons(150)
    rows = rbf_kernel(X, gamma=1.0) if kernel == "precomputed" else X
    model = UncertaintySetClassifier(
        radius=10.0, holdout=0.3, kernel=kernel, gamma=1.0, random_state=0
    ).fit(rows, y)
    kept = model.set_weights_ > 0
    assert abs(kept.sum() - 105) <= 2
    f = model.decision_function(rows) - model.intercept_
    held = ~kept
    best = error_rate_bias(f[held], 2.0 * y[held] - 1.0)
    b = model.intercept_[0]
    assert np.sum((2 * y[held] - 1) * (f[held] + b) <= 0) == best.errors
    primal = clone(model).set_params(bias="primal").fit(rows, y)
    np.testing.assert_allclose(primal.set_weights_, model.set_weights_)


def test_weights_equal_copies_and_zero_weights_removed_rows():
    X, y = moons(50)
    w = np.random.default_rng(0).integers(0, 3, len(y))
    for loss in ("ellipsoid", "reduced_hull", "exponential"):
        a = UncertaintySetClassifier(loss, nu=0.3, gamma=1.0).fit(X, y, sample_weight=w)
        b = UncertaintySetClassifier(loss, nu=0.3, gamma=1.0).fit(
            np.repeat(X, w, axis=0), np.repeat(y, w)
        )
        np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-7)
        assert a.set_weights_.shape == y.shape
        assert np.all(a.set_weights_[w == 0] == 0)


def test_precomputed_and_sparse_agree_with_rows():
    sparse = pytest.importorskip("scipy.sparse")
    X, y = moons(60)
    rows = UncertaintySetClassifier(gamma=1.0).fit(X, y)
    K = rbf_kernel(X, gamma=1.0)
    gram = UncertaintySetClassifier(kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(rows.decision_function(X), gram.decision_function(K), atol=1e-9)
    csr = UncertaintySetClassifier(kernel="linear").fit(sparse.csr_matrix(X), y)
    dense = UncertaintySetClassifier(kernel="linear").fit(X, y)
    np.testing.assert_allclose(csr.coef_, dense.coef_, atol=1e-9)
    assert csr.uncertainty_sets_[0].points.shape == (30, 2)


def test_more_classes_share_one_matrix():
    X, y = make_blobs(90, centers=3, random_state=1)
    model = UncertaintySetClassifier().fit(X, y)
    assert model.decision_function(X).shape == (90, 3)
    assert model.rho_.shape == model.objective_.shape == (3,)
    assert model.set_weights_.shape == (3, 90)
    assert len(model.uncertainty_sets_) == 3
    assert model.score(X, y) > 0.95


def test_float32_gives_a_float32_model():
    X, y = moons(60)
    model = UncertaintySetClassifier().fit(X.astype(np.float32), y)
    assert model.dual_coef_.dtype == model.decision_function(X[:2].astype(np.float32)).dtype
    assert model.dual_coef_.dtype == np.float32
    exact = UncertaintySetClassifier().fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-4)


def test_sets_contain_the_nearest_points():
    X, y = make_blobs(40, centers=[[0, 0], [2, 1]], random_state=2)
    w = np.random.default_rng(1).integers(1, 3, 40)
    for weight in (None, w):
        model = UncertaintySetClassifier(h=1.0, kernel="linear").fit(X, y, weight)
        positive, negative = model.uncertainty_sets_
        for shape, label, sign in ((positive, 1, -1), (negative, 0, 1)):
            z = model.set_weights_[y == label] @ X[y == label]
            assert shape.contains(z, tol=1e-7)
            value, _ = shape.support(sign * model.coef_[0])
            assert value == pytest.approx(sign * model.coef_[0] @ z, abs=1e-7)


def test_sets_need_rows():
    with pytest.raises(AttributeError, match="fitted"):
        UncertaintySetClassifier().uncertainty_sets_
    X, y = moons(40)
    with pytest.raises(AttributeError, match="precomputed"):
        UncertaintySetClassifier(kernel="precomputed").fit(X @ X.T, y).uncertainty_sets_


def test_few_distinct_rows_warn():
    X, y = moons(60)
    with pytest.warns(UserWarning, match="5 of 60 rows are distinct"):
        UncertaintySetClassifier().fit(X[np.arange(60) % 5], y)


def test_meeting_hulls_warn():
    X, y = make_blobs(40, centers=[[0, 0], [0.1, 0]], random_state=0)
    with pytest.warns(UserWarning, match="hulls meet"):
        UncertaintySetClassifier("hull", kernel="linear").fit(X, y)


def test_stopping_short_warns():
    X, y = moons()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        UncertaintySetClassifier(h=1.0, radius=100.0, max_iter=1).fit(X, y)
    with noted_not_warned() as by_limit:
        model = UncertaintySetClassifier(h=1.0, radius=100.0, max_iter=1).fit(X, y)
    assert model.duality_gap_ > 1e-3
    assert by_limit == [True]


@pytest.mark.parametrize("radius", [0.5, 1.0])
@pytest.mark.parametrize("seed", [5, 6, 7])
def test_a_gap_that_rounding_leaves_is_not_warned_about(seed, radius):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 1))
    y = X[:, 0] + rng.normal(size=50) > 0
    model = UncertaintySetClassifier("reduced_hull", nu=0.3, gamma=1.0, radius=radius)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        warnings.filterwarnings("ignore", "UncertaintySetClassifier: the two hulls meet")
        model.fit(X, y)
    assert model.duality_gap_ <= 1e-7


def test_a_loss_object_is_accepted():
    X, y = moons(60)
    model = UncertaintySetClassifier(EllipsoidError(h=0.5), radius=4.0).fit(X, y)
    named = UncertaintySetClassifier(h=0.5, radius=4.0).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_, named.dual_coef_)
    assert UncertaintySetClassifier(LogBarrier(), radius=2.0).fit(X, y).duality_gap_ < 1e-8
    assert isinstance(UncertaintySetClassifier("reduced_hull").fit(X, y).loss_, NuHinge)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("radius", 0.0, "radius"),
        ("loss", "square", "loss='square'"),
        ("loss", 3, "loss=3"),
        ("h", -1.0, "h=-1.0"),
        ("omega", 0.0, "omega"),
        ("bias", "none", "bias"),
        ("holdout", 1.0, "holdout"),
        ("solver", "magic", "solver"),
        ("tol", 0.0, "tol"),
        ("max_iter", 0, "max_iter"),
    ],
)
def test_bad_parameters_are_named(name, value, message):
    X, y = moons(40)
    with pytest.raises(ValueError, match=message):
        UncertaintySetClassifier(**{name: value}).fit(X, y)


def test_infeasible_nu_and_holdout():
    X, y = make_blobs(40, centers=[[0, 0], [3, 3]], random_state=0)
    y = np.where(np.arange(40) < 4, 1, 0)
    with pytest.raises(ValueError, match=r"= 0\.2"):
        UncertaintySetClassifier("reduced_hull", nu=0.5).fit(X, y)
    with pytest.raises(ValueError, match="nu"):
        UncertaintySetClassifier("logistic", nu=2.0).fit(X, y)
    with pytest.raises(ValueError, match="holdout"):
        UncertaintySetClassifier(holdout=0.01).fit(X, y)


@pytest.mark.slow
def test_error_tends_to_the_bayes_error_under_the_schedule():
    """Theorem 3: two-sample algorithm, radius growing as Example 7 admits."""
    from buttress.theory import radius_schedule

    means = []
    for m in (60, 300, 1500):
        errors = []
        for seed in range(8):
            X, y = skewed(m, 0.5, seed)
            T, t = skewed(10_000, 0.5, 1000 + seed)
            model = UncertaintySetClassifier(
                radius=radius_schedule(0.5 * m, "ellipsoid", scale=6.0),
                gamma=0.3,
                holdout=0.5,
                random_state=seed,
            ).fit(X, y)
            errors.append(1.0 - model.score(T, t))
        means.append(np.mean(errors))
    assert means[0] > means[1] > means[2] - 0.002
    assert 0.238 < means[2] < 0.262  # Bayes error 24.1 %


@pytest.mark.slow
@pytest.mark.parametrize(("share", "low", "high"), [(0.2, 0.147, 0.175), (0.5, 0.241, 0.27)])
def test_error_bands_of_the_synthetic_experiment(share, low, high):
    from buttress import UncertaintySetClassifierCV

    for h in (0.0, 1.0):
        errors = []
        for seed in range(10):
            X, y = skewed(400, share, seed)
            T, t = skewed(10_000, share, 500 + seed)
            model = UncertaintySetClassifierCV(
                h=h, radii=np.geomspace(0.3, 300, 8), gammas=[0.03, 0.1, 0.3, 1.0]
            ).fit(X, y)
            errors.append(1.0 - model.score(T, t))
        assert low - 0.002 < np.mean(errors) < high
