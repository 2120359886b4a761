"""Nearest points of uncertainty sets against a conic solver, stored solutions and NuSVC."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buttress.losses import (
    EllipsoidError,
    Exponential,
    HardMargin,
    LogBarrier,
    Logistic,
    NuHinge,
    TruncatedQuadratic,
)
from buttress.solvers.sets import distance as module
from buttress.solvers.sets.distance import (
    check_feasible,
    distance_path,
    solve_distance,
    solve_penalised_distance,
)
from buttress.solvers.sets.geometry import CentredGeometry

LOSSES = [
    TruncatedQuadratic(),
    EllipsoidError(),
    EllipsoidError(h=1.0),
    EllipsoidError(h=0.3, omega=0.6),
    Exponential(),
    Logistic(20.0),
    NuHinge(0.12),
    HardMargin(),
]
SMOOTH = [loss for loss in LOSSES if not isinstance(loss, (NuHinge, HardMargin))]


def rbf(X, gamma=0.5):
    d = np.sum(X**2, axis=1)
    return np.exp(-gamma * np.maximum(d[:, None] + d - 2 * X @ X.T, 0.0))


def sample(n=36, p=3, positives=14, shift=0.8, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < positives, 1.0, -1.0)
    X = rng.normal(size=(n, p))
    X[y > 0] += shift
    return X, y


def problems():
    X, y = sample()
    yield "linear", CentredGeometry(features=X), y
    yield "kernel", CentredGeometry(rbf(X)), y
    again = np.r_[X, X[:10], X[-4:]]
    labels = np.r_[y, -y[:10], y[-4:]]  # copies within and across the classes
    yield "duplicates", CentredGeometry(rbf(again)), labels
    X, y = sample(30, positives=2, shift=0.3)
    yield "two positives", CentredGeometry(features=X), y


PROBLEMS = {name: (geometry, y) for name, geometry, y in problems()}


@pytest.mark.smoke
def test_gap_certifies_the_solution():
    X, y = sample()
    result = solve_distance(rbf(X), y, EllipsoidError(h=1.0), 5.0)
    assert result.converged
    assert result.gap < 1e-11
    assert result.norm == pytest.approx(5.0)
    assert result.alpha[y > 0].sum() == pytest.approx(1.0)
    np.testing.assert_allclose(rbf(X) @ result.coef, result.values, atol=1e-9)


@pytest.mark.parametrize("radius", [0.3, 15.0])
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_agrees_with_the_conic_solver(loss, name, radius):
    geometry, y = PROBLEMS[name]
    ours = solve_distance(geometry, y, loss, radius)
    theirs = solve_distance(geometry, y, loss, radius, method="conic")
    assert ours.gap <= 1e-8 * max(1.0, abs(ours.objective))
    assert ours.objective == pytest.approx(ours.dual_objective, rel=1e-8, abs=1e-8)
    # the conic solver's own primal error, seen in its gap, is beyond ours
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-6, abs=1e-6 + theirs.gap)
    assert ours.dual_objective >= theirs.dual_objective - 1e-9
    if not isinstance(loss, (NuHinge, HardMargin)) and theirs.gap < 1e-8:
        f, g = (r.values + r.intercept for r in (ours, theirs))
        np.testing.assert_allclose(f, g, atol=3e-4 * max(1.0, np.abs(f).max()))


def test_touching_sets_do_not_give_the_zero_function():
    X, y = sample(25, 2, positives=10, shift=0.3, seed=1)
    for loss in SMOOTH:
        result = solve_distance(CentredGeometry(features=X), y, loss, 20.0)
        nothing = solve_distance(CentredGeometry(features=X), y, loss, 1e-9)
        assert not result.active
        assert result.distance < 1e-10
        assert result.objective < nothing.objective - 1e-3
        assert result.gap < 1e-9


def test_hulls_that_meet_give_the_zero_function():
    X, y = sample(40, 2, positives=20, shift=0.0)
    for loss in (NuHinge(0.3), HardMargin()):
        result = solve_distance(CentredGeometry(features=X), y, loss, 20.0)
        assert result.norm == 0.0
        assert result.objective == 0.0
        assert result.gap < 1e-8


@pytest.mark.parametrize("loss", [*LOSSES, LogBarrier()], ids=repr)
def test_integer_weights_equal_copies(loss):
    X, y = sample(24)
    w = np.random.default_rng(3).integers(1, 4, len(y))
    a = solve_distance(rbf(X), y, loss, 2.0, sample_weight=w.astype(float))
    X2, y2 = np.repeat(X, w, axis=0), np.repeat(y, w)
    b = solve_distance(rbf(X2), y2, loss, 2.0)
    assert a.objective == pytest.approx(b.objective, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(np.repeat(a.values, w), b.values, atol=1e-7)
    if loss != HardMargin():
        assert a.intercept == pytest.approx(b.intercept, abs=1e-7)


def test_penalised_form_is_the_constrained_one_at_its_norm():
    X, y = sample()
    for loss in SMOOTH:
        penalised = solve_penalised_distance(rbf(X), y, loss, 0.05)
        constrained = solve_distance(rbf(X), y, loss, penalised.norm)
        assert constrained.penalty == pytest.approx(0.05, rel=1e-6)
        np.testing.assert_allclose(penalised.values, constrained.values, atol=1e-7)


def test_norm_grows_as_the_penalty_falls():
    X, y = sample()
    norms = [
        solve_penalised_distance(rbf(X), y, EllipsoidError(), mu).norm
        for mu in (1.0, 0.1, 0.01, 0.001)
    ]
    assert np.all(np.diff(norms) > 0)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_path_equals_single_solutions(loss):
    X, y = sample()
    radii = [30.0, 0.1, 3.0]
    for radius, result in zip(radii, distance_path(rbf(X), y, loss, radii), strict=True):
        single = solve_distance(rbf(X), y, loss, radius)
        assert result.objective == pytest.approx(single.objective, rel=1e-10)
        np.testing.assert_allclose(result.values, single.values, atol=1e-6 * radius)


def test_exponential_loss_has_its_closed_form():
    X, y = sample()
    r = solve_distance(rbf(X), y, Exponential(), 3.0)
    m, g = len(y), r.values
    logs = np.log(np.exp(-g[y > 0]).sum()), np.log(np.exp(g[y < 0]).sum())
    assert r.objective == pytest.approx(2 - 2 * np.log(m) + logs[0] + logs[1], rel=1e-12)
    assert r.rho - r.intercept == pytest.approx(np.log(m) - logs[0], rel=1e-10)
    assert r.rho + r.intercept == pytest.approx(np.log(m) - logs[1], rel=1e-10)


def test_omega_only_rescales_without_estimation_error():
    X, y = sample()
    one = solve_distance(rbf(X), y, EllipsoidError(omega=1.0), 2.0 / 0.49)
    other = solve_distance(rbf(X), y, EllipsoidError(omega=0.7), 2.0)
    np.testing.assert_allclose(other.values, 0.49 * one.values, atol=1e-8)
    assert other.objective == pytest.approx(0.49 * (one.objective - 4) + 4 * 0.7, rel=1e-10)


def test_reduced_hull_equals_nusvc_up_to_scale():
    svm = pytest.importorskip("sklearn.svm")
    X, y = sample(60, positives=25, shift=0.5)
    model = svm.NuSVC(nu=0.6, kernel="rbf", gamma=0.5, tol=1e-9).fit(X, y)
    ours = solve_distance(rbf(X), y, NuHinge(0.6), 1.0)
    f = model.decision_function(X) - model.intercept_
    scale = f @ ours.values / (ours.values @ ours.values)
    np.testing.assert_allclose(scale * ours.values, f, atol=1e-4 * np.abs(f).max())


def test_infeasible_nu_states_the_limit():
    X, y = sample(20, positives=8)
    solve_distance(rbf(X), y, NuHinge(0.8), 1.0)  # the limit itself: uniform positive weights
    with pytest.raises(ValueError, match=r"2 \* min\(m_\+, m_-\) / m = 0.8"):
        solve_distance(rbf(X), y, NuHinge(0.81), 1.0)
    with pytest.raises(ValueError, match=r"bounded by 2\.5"):
        check_feasible(Logistic(2.5), y)


def test_both_classes_at_the_limit_leave_no_choice():
    X, y = sample(20, positives=10)
    result = solve_distance(CentredGeometry(features=X), y, NuHinge(1.0), 2.0)
    np.testing.assert_allclose(result.alpha, 0.1)
    difference = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    assert result.distance == pytest.approx(np.linalg.norm(difference))


def test_equal_rows_have_no_direction():
    y = np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    for loss in (NuHinge(0.5), HardMargin(), EllipsoidError()):
        result = solve_distance(CentredGeometry(features=np.ones((5, 2))), y, loss, 1.0)
        np.testing.assert_allclose(result.coef, 0.0)
        assert result.gap < 1e-12


def test_equal_class_means_give_the_zero_function():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    for loss in SMOOTH:
        result = solve_distance(CentredGeometry(features=X), y, loss, 3.0)
        np.testing.assert_allclose(result.coef, 0.0, atol=1e-12)
        assert result.gap < 1e-10


def test_a_large_common_offset_costs_no_digits():
    X, y = sample()
    near = solve_distance(CentredGeometry(features=X), y, EllipsoidError(), 0.4)
    far = solve_distance(CentredGeometry(features=X + 1e5), y, EllipsoidError(), 0.4)
    np.testing.assert_allclose(near.weight_vector, far.weight_vector, atol=1e-9)
    assert near.objective == pytest.approx(far.objective, rel=1e-9)


def test_rows_on_linear_pieces_give_the_midpoint_of_the_thresholds():
    X, y = np.array([[0.0], [0.1], [1.0], [1.1]]), np.array([-1.0, -1.0, 1.0, 1.0])
    loss = EllipsoidError(h=3.0, omega=0.5)  # slope 2 = m / m_o on the whole linear piece
    result = solve_distance(CentredGeometry(features=X), y, loss, 0.1)
    np.testing.assert_allclose(result.alpha, 0.5, atol=1e-12)
    assert result.rho == pytest.approx(0.05, abs=1e-6)
    assert result.gap < 1e-12


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from(SMOOTH), st.floats(-2, 3))
def test_random_problems_close_the_gap(seed, loss, log_radius):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 40))
    X = rng.normal(size=(n, 2))
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    y[:3], y[3:6] = 1.0, -1.0
    if rng.random() < 0.5:
        X = np.round(X)
    loss = Logistic(2.0 * n) if isinstance(loss, Logistic) else loss
    result = solve_distance(rbf(X), y, loss, 10.0**log_radius)
    assert result.gap <= 1e-8 * max(1.0, abs(result.objective))
    assert result.norm <= 10.0**log_radius * (1 + 1e-9)


def test_sharp_losses_are_approached_over_smaller_radii():
    X, y = sample(40, 5, shift=2.0, seed=2)
    for loss in (Exponential(), LogBarrier(), EllipsoidError(h=2.0, omega=0.5)):
        result = solve_distance(CentredGeometry(features=30.0 * X), y, loss, 50.0)
        assert result.gap <= 1e-8 * abs(result.objective)


def test_kernel_form_gives_way_to_features_when_the_multiplier_vanishes():
    X, y = sample(40, 2, shift=0.0, seed=4)
    mixed = np.r_[X, X[:3]]
    labels = np.r_[y, -y[:3]]
    result = solve_distance(rbf(mixed, 30.0), labels, EllipsoidError(h=0.0), 1e5)
    assert result.gap <= 1e-7 * max(1.0, abs(result.objective))


def test_single_precision_and_slightly_indefinite_matrices():
    X, y = sample(60, 2)
    K = rbf(X, 0.01)
    exact = solve_distance(K, y, EllipsoidError(), 100.0)
    single = solve_distance(K.astype(np.float32), y, EllipsoidError(), 100.0)
    assert single.objective == pytest.approx(exact.objective, rel=1e-2)
    shifted = K - 1e-9 * np.eye(60)
    for radius in (100.0, 1e6):
        result = solve_distance(shifted, y, EllipsoidError(), radius)
        assert result.gap <= 1e-6 * max(1.0, abs(result.objective))
    penalised = solve_penalised_distance(shifted, y, EllipsoidError(), 1e-9)
    assert penalised.gap <= 1e-6 * max(1.0, abs(penalised.objective))


def test_few_steps_allowed_means_not_converged():
    X, y = sample()
    result = solve_distance(rbf(X), y, EllipsoidError(h=1.0), 50.0, max_iter=1)
    assert not result.converged
    assert result.gap > 0


def test_more_rows_than_one_thread_is_good_for(monkeypatch):
    monkeypatch.setattr(module, "_ONE_THREAD_BELOW", 10)
    X, y = sample()
    assert solve_distance(rbf(X), y, EllipsoidError(), 1.0).converged


def test_bad_arguments_are_named():
    X, y = sample()
    with pytest.raises(ValueError, match="radius"):
        solve_distance(rbf(X), y, EllipsoidError(), -1.0)
    with pytest.raises(ValueError, match="penalty"):
        solve_penalised_distance(rbf(X), y, EllipsoidError(), 0.0)
    with pytest.raises(TypeError, match="NuHinge"):
        solve_penalised_distance(rbf(X), y, NuHinge(0.1), 1.0)
    with pytest.raises(ValueError, match="either"):
        CentredGeometry()
    with pytest.raises(TypeError, match="LogBarrier"):
        solve_distance(rbf(X), y, LogBarrier(), 1.0, method="conic")

    class Half:
        def value(self, t):
            return t

    with pytest.raises(TypeError, match="Half"):
        solve_distance(rbf(X), y, Half(), 1.0)


def make_loss(case):
    par = case.get("par", case)
    if case.get("loss") == "hinge":
        return NuHinge(par["nu"])
    if case.get("loss") == "tq":
        return TruncatedQuadratic()
    if case.get("loss") == "exp":
        return Exponential()
    return EllipsoidError(h=par["h"], omega=par["w"])


def test_stored_linear_solutions(oracle):
    arrays, cases = oracle("unc_linear")
    X, y = arrays["plain_X"], arrays["plain_y"]
    for name, case in cases.items():
        result = solve_distance(CentredGeometry(features=X), y, make_loss(case), case["lam"])
        assert result.objective == pytest.approx(case["primal"], rel=1e-8)
        assert result.distance == pytest.approx(case["dist"], abs=1e-6)
        np.testing.assert_allclose(result.weight_vector, arrays[f"{name}_w"], atol=1e-6)
        if case["b_rho_unique"]:
            assert result.intercept == pytest.approx(case["b"], abs=1e-6)
            assert result.rho == pytest.approx(case["rho"], abs=1e-6)


def test_stored_kernel_solutions(oracle):
    arrays, cases = oracle("unc_kernel_u")
    K, y = arrays["plain_K"], arrays["plain_y"]
    for name, case in cases.items():
        result = solve_distance(K, y, make_loss(case), case["lam"])
        assert result.objective == pytest.approx(case["primal"], rel=1e-10)
        assert result.penalty == pytest.approx(case["mu"], rel=1e-8)
        np.testing.assert_allclose(result.values, arrays[f"{name}_f_train"], atol=1e-8)
