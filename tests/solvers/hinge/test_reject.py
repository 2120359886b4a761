"""The double ramp and stacked hinge solvers against conic solutions and reference cases."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from buttress.datasets import make_noisy_band
from buttress.losses import DoubleHinge, DoubleRamp, GeneralizedHinge, Hinge
from buttress.solvers.hinge.kernel_rows import KernelRowCache
from buttress.solvers.hinge.reject import (
    DoubleRampTerms,
    double_ramp_step,
    solve_double_ramp,
    solve_stacked_hinge,
)


def make_case(name, seed=0):
    """A kernel matrix and labels: one of the shapes that break solvers."""
    rng = np.random.default_rng(seed)
    n = 26
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    if name == "duplicates":
        X[n // 2 :] = X[: n // 2]
        y[n // 2 :] = -y[: n // 2]
    if name == "imbalanced":
        y[:] = 1.0
        y[:2] = -1.0
    if name == "zero":
        return np.zeros((n, n)), y
    if name in ("rank3", "imbalanced"):
        return X @ X.T, y
    return np.exp(-0.7 * ((X[:, None] - X[None]) ** 2).sum(-1)), y


CASES = ["plain", "duplicates", "rank3", "imbalanced", "zero"]


def conic_double_ramp(K, y, C, d, mu, beta1, beta2, weight=None, fit_intercept=True):
    """The convex step solved by a conic code, in the primal."""
    cp = pytest.importorskip("cvxpy")
    values, vectors = np.linalg.eigh(K)
    F = vectors * np.sqrt(np.maximum(values, 0.0))
    w, b, rho = cp.Variable(len(y)), cp.Variable(), cp.Variable()
    cost = C / mu * (np.ones(len(y)) if weight is None else weight)
    t = cp.multiply(y, F @ w + b)
    objective = (
        0.5 * cp.sum_squares(w)
        + cp.sum(cp.multiply(d * cost, cp.pos(mu - t + rho)))
        + cp.sum(cp.multiply((1 - d) * cost, cp.pos(mu - t - rho)))
        + beta1 @ (t - rho)
        + beta2 @ (t + rho)
    )
    problem = cp.Problem(cp.Minimize(objective), [] if fit_intercept else [b == 0])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return problem.value, F @ w.value, float(b.value), float(rho.value)


def conic_hinges(K, y, terms, C):
    cp = pytest.importorskip("cvxpy")
    values, vectors = np.linalg.eigh(K)
    F = vectors * np.sqrt(np.maximum(values, 0.0))
    w, b = cp.Variable(len(y)), cp.Variable()
    t = cp.multiply(y, F @ w + b)
    loss = sum(weight * cp.sum(cp.pos(margin - t)) for weight, margin in terms)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + C * loss))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return problem.value, F @ w.value, float(b.value)


def inside(value, interval, slack=2e-6):
    return interval[0] - slack <= value <= interval[1] + slack


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("d", "mu", "C"), [(0.2, 1.0, 1.0), (0.35, 0.5, 20.0), (0.05, 1.0, 0.01)])
def test_convex_step_equals_conic_solution(case, d, mu, C):
    K, y = make_case(case)
    rng = np.random.default_rng(3)
    for start in (None, (rng.normal(size=len(y)), 0.3, 0.4)):
        found = double_ramp_step(K, y, DoubleRampTerms(d=d, mu=mu), C=C, start=start, tol=1e-10)
        value, g, b, rho = conic_double_ramp(K, y, C, d, mu, found.beta1, found.beta2)
        scale = 1 + np.abs(found.g).max()
        assert abs(found.step_objective - value) <= 1e-8 * (1 + abs(value))
        assert np.abs(found.g - g).max() <= 1e-5 * scale  # the conic code's own accuracy
        assert inside(b - rho, found.interval_a)
        assert inside(b + rho, found.interval_b)
        assert found.gap <= 1e-8 * (1 + abs(value))
        assert found.converged


def test_convex_step_with_weights_and_without_intercept():
    K, y = make_case("plain", seed=4)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(y))
    for fit_intercept in (True, False):
        found = double_ramp_step(
            K,
            y,
            DoubleRampTerms(d=0.2, mu=0.7, weight=weight, fit_intercept=fit_intercept),
            C=2.0,
            tol=1e-10,
        )
        value, g, b, rho = conic_double_ramp(
            K, y, 2.0, 0.2, 0.7, found.beta1, found.beta2, weight, fit_intercept
        )
        assert found.step_objective == pytest.approx(value, rel=1e-8)
        assert np.allclose(found.g, g, atol=1e-5)
        assert found.b == pytest.approx(b, abs=1e-5)
        assert inside(rho, found.interval_b - found.b, 1e-5)


@pytest.mark.parametrize("loss", [GeneralizedHinge, DoubleHinge])
@pytest.mark.parametrize("case", CASES)
def test_stacked_hinges_equal_conic_solution(case, loss):
    K, y = make_case(case, seed=1)
    for d, C in [(0.2, 1.0), (0.05, 10.0), (0.5, 1.0)]:
        terms = loss(d).terms
        found = solve_stacked_hinge(K, y, terms, C=C, tol=1e-10)
        value, g, b = conic_hinges(K, y, terms, C)
        assert abs(found.objective - value) <= 1e-8 * (1 + abs(value))
        assert np.abs(found.g - g).max() <= 1e-5 * (1 + np.abs(g).max())
        assert inside(b, found.b_interval, 1e-5)
        assert found.gap <= 1e-8 * (1 + abs(value))


def test_double_hinge_is_the_scaled_generalised_hinge():
    K, y = make_case("plain", seed=2)
    for d in (0.05, 0.2, 0.45):
        H = DoubleHinge(d).entropy
        ours = solve_stacked_hinge(K, y, DoubleHinge(d).terms, C=3.0, tol=1e-11)
        scaled = solve_stacked_hinge(K, y, GeneralizedHinge(d).terms, C=3.0 * d * d / H, tol=1e-11)
        assert np.allclose(ours.g + ours.b, (scaled.g + scaled.b) * H / d, atol=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_half_is_the_ramp_machine_without_rejection(fit_intercept):
    K, y = make_case("plain", seed=5)
    found = solve_double_ramp(K, y, DoubleRampTerms(d=0.5, fit_intercept=fit_intercept), C=5.0)
    assert found.rho == 0.0
    # a cost just below one half gives the same function: both groups are the same machine
    near = solve_double_ramp(
        K, y, DoubleRampTerms(d=0.5 - 1e-9, fit_intercept=fit_intercept), C=5.0
    )
    assert np.allclose(found.g + found.b, near.g + near.b, atol=1e-5)
    loss = DoubleRamp(d=0.5, mu=1.0, rho=0.0).value(y * (found.g + found.b)).sum()
    assert found.objective == pytest.approx(0.5 * found.c @ found.g + 5.0 * loss, rel=1e-12)


@given(
    seed=st.integers(0, 10_000),
    d=st.sampled_from([0.05, 0.2, 0.4]),
    mu=st.sampled_from([0.3, 1.0]),
    C=st.sampled_from([0.1, 1.0, 30.0]),
    case=st.sampled_from(CASES),
    fit_intercept=st.booleans(),
)
@settings(max_examples=40)
def test_objective_never_rises_and_the_end_is_stationary(seed, d, mu, C, case, fit_intercept):
    K, y = make_case(case, seed)
    rng = np.random.default_rng(seed)
    start = (3 * rng.normal(size=len(y)), float(rng.normal()), float(abs(rng.normal())))
    for first in (None, start):
        found = solve_double_ramp(
            K,
            y,
            DoubleRampTerms(d=d, mu=mu, fit_intercept=fit_intercept),
            C=C,
            start=first,
            tol=1e-9,
        )
        path = found.objective_path
        assert (np.diff(path) <= 1e-9 * (1 + np.abs(path[:-1]))).all()
        assert found.rho >= 0
        assert found.converged
        loss = DoubleRamp(d=d, mu=mu, rho=found.rho).value(y * (found.g + found.b)).sum()
        value = 0.5 * found.c @ K @ found.c + C * loss
        assert found.objective == pytest.approx(value, rel=1e-9, abs=1e-9)
        again = double_ramp_step(
            K,
            y,
            DoubleRampTerms(d=d, mu=mu, fit_intercept=fit_intercept),
            C=C,
            start=(found.c, found.b, found.rho),
            tol=1e-9,
        )
        assert again.objective >= found.objective - 1e-6 * (1 + abs(found.objective))


def test_thresholds_minimise_the_loss_for_the_function_found():
    """The intervals are the minimisers over a fine grid of both thresholds."""
    K, y = make_case("duplicates", seed=7)
    step = double_ramp_step(K, y, DoubleRampTerms(d=0.2), C=1.0, tol=1e-11)

    def value(low, high):
        t_low, t_high = y * (step.g + low), y * (step.g + high)
        first = np.where(y > 0, np.maximum(1 - t_low, 0) * 0.2, np.maximum(1 - t_low, 0) * 0.8)
        last = np.where(y > 0, np.maximum(1 - t_high, 0) * 0.8, np.maximum(1 - t_high, 0) * 0.2)
        return (first + last).sum()

    best = value(step.b - step.rho, step.b + step.rho)
    for low, high in itertools.product(np.linspace(-3, 3, 61), repeat=2):
        assert value(low, high) >= best - 1e-9


def test_zero_kernel_rejects_everything():
    y = np.array([1.0, -1.0] * 10)
    found = solve_double_ramp(np.zeros((20, 20)), y, DoubleRampTerms(d=0.2, mu=1.0), C=1.0)
    assert found.objective == pytest.approx(20 * 0.2 * 2.0)
    assert found.b == pytest.approx(0.0)
    assert found.rho == pytest.approx(1.0)


def test_no_free_variable_takes_the_middle_of_the_interval():
    # four rows of cost d balance one of cost 1 - d: in group A every variable is at a bound
    K, _ = make_case("plain", seed=12)
    K, y = K[:5, :5], np.array([1.0, 1.0, 1.0, 1.0, -1.0])
    found = double_ramp_step(K, y, DoubleRampTerms(d=0.2), C=0.01, tol=1e-12)
    assert found.interval_a[0] + 1e-3 < found.interval_a[1]
    assert found.b - found.rho == pytest.approx(found.interval_a.mean())
    value, *_ = conic_double_ramp(K, y, 0.01, 0.2, 1.0, found.beta1, found.beta2)
    assert found.step_objective == pytest.approx(value, rel=1e-8)


def test_warm_start_goes_the_same_way_in_fewer_steps():
    K, y = make_case("plain", seed=8)
    previous = solve_double_ramp(K, y, DoubleRampTerms(d=0.1), C=2.0)
    for d in (0.15, 0.3, 0.5):
        cold = solve_double_ramp(K, y, DoubleRampTerms(d=d), C=2.0)
        warm = solve_double_ramp(K, y, DoubleRampTerms(d=d), C=2.0, warm=previous)
        assert warm.n_outer == cold.n_outer
        assert np.allclose(warm.g + warm.b, cold.g + cold.b, atol=1e-7)
        assert warm.rho == pytest.approx(cold.rho, abs=1e-7)
        previous = warm


def test_a_row_cache_gives_the_same_solution():
    K, y = make_case("plain", seed=9)
    cache = KernelRowCache(lambda rows: K[rows], np.diagonal(K), cache_size=1e-4)
    for fit_intercept in (True, False):
        whole = solve_double_ramp(K, y, DoubleRampTerms(d=0.2, fit_intercept=fit_intercept), C=2.0)
        rows = solve_double_ramp(
            cache, y, DoubleRampTerms(d=0.2, fit_intercept=fit_intercept), C=2.0
        )
        assert np.allclose(whole.g + whole.b, rows.g + rows.b, atol=1e-6)


def test_hinge_terms_give_the_support_vector_machine():
    svm = pytest.importorskip("sklearn.svm")
    K, y = make_case("plain", seed=10)
    ours = solve_stacked_hinge(K, y, Hinge().terms, C=1.0)
    theirs = svm.SVC(C=1.0, kernel="precomputed", tol=1e-8).fit(K, y)
    assert np.allclose(ours.g + ours.b, theirs.decision_function(K), atol=1e-4)


def test_without_intercept_the_constant_is_zero():
    K, y = make_case("plain", seed=11)
    found = solve_stacked_hinge(K, y, GeneralizedHinge(0.2).terms, fit_intercept=False)
    assert found.b == 0.0
    assert found.gap <= 1e-7


@pytest.mark.parametrize("name", ["dr_step_a", "dr_step_b", "dr_step_c", "dr_step_d", "dr_step_e"])
def test_reference_steps(oracle, name):
    arrays, given_ = oracle(name)
    if given_ is None:
        pytest.skip(f"no reference case {name}")
    found = double_ramp_step(
        arrays["K"],
        arrays["y"],
        DoubleRampTerms(d=given_["d"], mu=given_["mu"]),
        C=given_["C"],
        start=(arrays["c0"], given_["b0"], given_["rho0"]),
    )
    assert found.step_objective == pytest.approx(given_["primal"], rel=1e-8)
    assert np.allclose(found.g, arrays["g"], atol=1e-6)
    assert np.array_equal(found.beta1, arrays["beta1"])
    for mine, theirs in ((found.interval_a, "rA_interval"), (found.interval_b, "rB_interval")):
        ends = [
            end if end is not None else s * np.inf
            for s, end in zip((-1, 1), given_[theirs], strict=True)
        ]
        assert np.allclose(mine, ends, atol=1e-6)


@pytest.mark.parametrize("name", ["dr_full_a", "dr_full_b", "dr_full_c", "dr_full_d", "dr_full_e"])
def test_reference_runs(oracle, name):
    arrays, given_ = oracle(name)
    if given_ is None:
        pytest.skip(f"no reference case {name}")
    found = solve_double_ramp(
        arrays["K"],
        arrays["y"],
        DoubleRampTerms(d=given_["d"], mu=given_["mu"]),
        C=given_["C"],
        start=(arrays["c0"], given_["b0"], given_["rho0"]),
    )
    assert found.objective == pytest.approx(given_["objective"][-1], rel=1e-8)
    assert found.b == pytest.approx(given_["b"], abs=1e-6)
    assert found.rho == pytest.approx(given_["rho"], abs=1e-6)


@pytest.mark.parametrize(("name", "loss"), [("dh_a", DoubleHinge), ("gh_a", GeneralizedHinge)])
def test_reference_hinges(oracle, name, loss):
    arrays, given_ = oracle(name)
    found = solve_stacked_hinge(arrays["K"], arrays["y"], loss(given_["d"]).terms, C=given_["C"])
    assert found.objective == pytest.approx(given_["primal"], rel=1e-10)
    assert np.allclose(found.g + found.b, arrays["f"], atol=1e-8)
    assert np.allclose(found.b_interval, given_["b_interval"], atol=1e-8)


@pytest.mark.parametrize("seed", [4, 17])
def test_no_row_beyond_the_last_kink_carries_a_dual_variable(seed):
    """Where the last step gains nothing but rounding, its duals still are the right ones."""
    sample = make_noisy_band(random_state=seed)
    y = np.where(sample.y == np.unique(sample.y)[1], 1.0, -1.0)
    solution = solve_double_ramp(
        sample.X @ sample.X.T, y, DoubleRampTerms(d=0.2), C=100.0, tol=1e-10
    )
    t = y * (solution.g + solution.b)
    assert solution.converged
    for gamma, kink in (
        (solution.gamma1, solution.rho - 1.0),
        (solution.gamma2, -solution.rho - 1.0),
    ):
        np.testing.assert_allclose(gamma[t < kink - 1e-6], 0.0, atol=1e-9)
