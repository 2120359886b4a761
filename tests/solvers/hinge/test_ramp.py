"""The ramp machine against reference solutions, a conic solver and its own theory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buttress.losses import Ramp
from buttress.solvers.hinge.dc import minimize_dc
from buttress.solvers.hinge.hinges import HingeProblem, HingeTerms
from buttress.solvers.hinge.ramp import RampTerms, solve_ramp, solve_ramp_in_ball


def make(n=60, seed=0, gamma=1.0, flips=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.4 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:flips] *= -1
    y[-2:] = 1.0, -1.0
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2)), y


def ramp_terms(y, C, s, bias):
    n = len(y)
    return HingeTerms(
        y, np.ones(n), np.full(n, C), np.full(n, s), group=np.full(n, 0 if bias else -1)
    )


def test_convex_step_equals_the_reference(oracle):
    arrays, info = oracle("ramp_step_a")
    y = arrays["y"].astype(float)
    problem = HingeProblem(arrays["K"], ramp_terms(y, info["C"], info["s"], info["bias"]))
    pattern = arrays["beta"] > 0
    point = problem.step(pattern, None, 1e-10)
    np.testing.assert_allclose(point.g, arrays["g"], atol=1e-9)
    assert point.threshold[0] == pytest.approx(info["b"], abs=1e-9)
    assert problem.step_value(pattern, point) == pytest.approx(info["primal"], rel=1e-10)


def test_whole_run_equals_the_reference(oracle):
    arrays, info = oracle("ramp_full_a")
    solution = solve_ramp(
        arrays["K"],
        arrays["y"].astype(float),
        RampTerms(s=info["s"], fit_intercept=info["bias"]),
        C=info["C"],
        start=arrays["betas"][0] > 0,
    )
    assert solution.n_outer == info["outer"]
    np.testing.assert_allclose(solution.objective_path, info["objective"], rtol=1e-9)
    np.testing.assert_allclose(solution.g + solution.b, arrays["f"], atol=1e-8)
    np.testing.assert_array_equal(solution.clipped, arrays["betas"][-1] > 0)


def test_ball_form_keeps_the_reference_fixed_point(oracle):
    arrays, info = oracle("ramp_constrained_a")
    y = arrays["y"].astype(float)
    terms = RampTerms(s=info["s"], fit_intercept=False)
    options = {"terms": terms, "radius": info["radius"]}
    for start in (arrays["beta01"] > 0, (arrays["alpha_signed"], 0.0)):
        solution = solve_ramp_in_ball(arrays["K"], y, start=start, **options)
        np.testing.assert_allclose(solution.g, arrays["f"], atol=1e-6)
        np.testing.assert_allclose(solution.C, info["C_equivalent"], rtol=1e-6)
        assert solution.objective == pytest.approx(info["mean_ramp_risk"], rel=1e-6)
        assert solution.ball_active
    # from nothing clipped another stationary point is reached, not a worse one
    free = solve_ramp_in_ball(arrays["K"], y, **options)
    assert free.objective <= info["mean_ramp_risk"] + 1e-9


@pytest.mark.smoke
@pytest.mark.parametrize("bias", [True, False])
def test_hinge_limit_has_a_closed_duality_gap(bias):
    K, y = make()
    solution = solve_ramp(K, y, RampTerms(s=-np.inf, fit_intercept=bias), C=3.0)
    f = solution.g + solution.b
    primal = 0.5 * solution.c @ K @ solution.c + 3.0 * np.maximum(1 - y * f, 0).sum()
    assert solution.objective == pytest.approx(primal, rel=1e-10)
    assert solution.gap < 1e-8 * primal
    assert solution.n_outer == 1
    assert not solution.clipped.any()


@settings(max_examples=40)
@given(
    seed=st.integers(0, 500),
    C=st.floats(0.05, 100),
    s=st.sampled_from([0.0, -0.3, -1.0, -2.0]),
    bias=st.booleans(),
    wild=st.booleans(),
)
def test_objective_never_increases_and_the_end_is_stationary(seed, C, s, bias, wild):
    K, y = make(40, seed)
    rng = np.random.default_rng(seed)
    start = rng.random(40) < 0.4 if wild else None
    solution = solve_ramp(K, y, RampTerms(s=s, fit_intercept=bias), C=C, start=start)
    path = solution.objective_path
    assert (np.diff(path) <= 1e-9 * (1 + np.abs(path[:-1]))).all()
    assert solution.converged
    f = solution.g + solution.b
    value = 0.5 * solution.c @ K @ solution.c + C * Ramp(s).value(y * f).sum()
    assert solution.objective == pytest.approx(value, rel=1e-9)
    again = solve_ramp(
        K, y, RampTerms(s=s, fit_intercept=bias), C=C, start=(solution.c, solution.b), max_iter=1
    )
    assert again.objective >= solution.objective - 1e-6 * (1 + abs(solution.objective))


def test_clipped_rows_are_no_support_vectors():
    K, y = make()
    solution = solve_ramp(K, y, RampTerms(s=-0.5), C=10.0)
    assert solution.clipped.any()
    np.testing.assert_array_equal(solution.c[solution.clipped], 0.0)


def test_integer_weights_equal_copies():
    K, y = make()
    weight = np.ones(60)
    weight[::4] = 3.0
    index = np.repeat(np.arange(60), weight.astype(int))
    weighted = solve_ramp(K, y, RampTerms(weight=weight), C=2.0)
    copied = solve_ramp(K[np.ix_(index, index)], y[index], C=2.0)
    np.testing.assert_allclose((weighted.g + weighted.b)[index], copied.g + copied.b, atol=1e-8)


def test_label_swap_negates():
    K, y = make()
    one, other = solve_ramp(K, y, C=2.0), solve_ramp(K, -y, C=2.0)
    np.testing.assert_allclose(one.g + one.b, -(other.g + other.b), atol=1e-8)


@given(st.integers(0, 1000))
def test_order_of_rows_does_not_matter(seed):
    K, y = make(40)
    order = np.random.default_rng(seed).permutation(40)
    plain = solve_ramp(K, y, C=2.0)
    mixed = solve_ramp(K[np.ix_(order, order)], y[order], C=2.0)
    np.testing.assert_allclose((plain.g + plain.b)[order], mixed.g + mixed.b, atol=1e-8)


@given(
    seed=st.integers(0, 200),
    radius=st.floats(0.3, 30),
    bias=st.booleans(),
    s=st.sampled_from([-np.inf, -1.0, -0.2]),
)
def test_ball_is_respected_and_its_end_is_stationary(seed, radius, bias, s):
    K, y = make(30, seed)
    solution = solve_ramp_in_ball(K, y, RampTerms(s=s, fit_intercept=bias), radius=radius)
    norm = np.sqrt(solution.c @ K @ solution.c)
    assert norm <= radius * (1 + 1e-8)
    if solution.ball_active:
        assert norm == pytest.approx(radius, rel=1e-7)
    path = solution.objective_path
    assert (np.diff(path) <= 1e-9).all()
    start = (solution.c, solution.b)
    again = solve_ramp_in_ball(
        K, y, RampTerms(s=s, fit_intercept=bias), radius=radius, start=start, max_iter=1
    )
    assert again.objective >= solution.objective - 1e-7
    if np.isneginf(s) and solution.ball_active:
        same = solve_ramp(K, y, RampTerms(s=s, fit_intercept=bias), C=solution.C)
        np.testing.assert_allclose(same.g, solution.g, atol=1e-5 * (1 + radius))


def test_hinge_in_a_ball_equals_the_conic_solution():
    cp = pytest.importorskip("cvxpy")
    K, y = make(40)
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    w, b = cp.Variable(40), cp.Variable()
    risk = cp.sum(cp.pos(1 - cp.multiply(y, root @ w + b))) / 40
    problem = cp.Problem(cp.Minimize(risk), [cp.norm(w) <= 4.0])
    problem.solve(solver="CLARABEL")
    solution = solve_ramp_in_ball(K, y, RampTerms(s=-np.inf), radius=4.0)
    assert solution.objective == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(solution.g, root @ w.value, atol=1e-4)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("s", [-np.inf, -1.0])
def test_a_norm_that_rests_while_the_penalty_grows_goes_on_to_the_radius(s, bias):
    # The outer rows hold w at 1 for penalties from 1 to 25, then the inner ones pull it to 5.
    x, y = np.array([1.0, 0.02, -1.0, -0.02]), np.array([1.0, 1.0, -1.0, -1.0])
    solution = solve_ramp_in_ball(np.outer(x, x), y, RampTerms(s=s, fit_intercept=bias), radius=5.0)
    np.testing.assert_allclose(solution.g, 5.0 * x, atol=1e-9)
    assert solution.objective == pytest.approx(0.45, abs=1e-9)
    assert solution.ball_active


@pytest.mark.parametrize("seed", range(6))
def test_no_penalty_finds_a_better_hinge_in_the_ball(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 4))
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    terms = RampTerms(s=-np.inf)
    for radius in (1.0, 3.0, 10.0, 30.0):
        found = solve_ramp_in_ball(X @ X.T, y, terms, radius=radius)
        least = found.objective - found.gap - 1e-9
        for C in np.geomspace(0.01, 1e4, 13):
            other = solve_ramp(X @ X.T, y, terms, C=C)
            if other.c @ X @ X.T @ other.c <= radius**2:
                assert np.maximum(1.0 - y * (other.g + other.b), 0.0).mean() >= least
        if not found.ball_active:
            assert found.gap <= 2e-7 * (1.0 + found.objective)


def test_ball_beyond_reach_is_reported():
    K, y = make(20, flips=0, gamma=4.0)
    solution = solve_ramp_in_ball(K, y, RampTerms(s=-np.inf), radius=1e4)
    assert not solution.ball_active
    assert solution.objective < 1e-8


def test_cap_on_outer_steps_is_reported():
    K, y = make(60)
    full = solve_ramp(K, y, RampTerms(s=0.0), C=10.0)
    assert full.n_outer > 1
    short = solve_ramp(K, y, RampTerms(s=0.0), C=10.0, max_iter=1)
    assert not short.converged
    assert short.n_outer == 1
    with pytest.raises(ValueError, match="max_iter=0"):
        minimize_dc(HingeProblem(K, ramp_terms(y, 1.0, -1.0, True)), max_iter=0)
