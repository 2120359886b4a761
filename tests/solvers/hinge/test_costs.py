"""Costs that differ from row to row, against a conic solver and copies of rows."""

from __future__ import annotations

import numpy as np
import pytest

from buttress.losses import DoubleRamp
from buttress.solvers.hinge.reject import (
    DoubleRampTerms,
    double_ramp_step,
    solve_double_ramp,
    solve_stacked_hinge,
)


def rows(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.9 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1)), y, rng


def root_of(K):
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def conic_step(K, y, C, mu, a, b, beta1, beta2, fit_intercept, ordered):
    cp = pytest.importorskip("cvxpy")
    F = root_of(K)
    w, shift, rho = cp.Variable(len(y)), cp.Variable(), cp.Variable()
    t = cp.multiply(y, F @ w + shift)
    value = (
        0.5 * cp.sum_squares(w)
        + C / mu * (b @ cp.pos(mu - t + rho) + (a - b) @ cp.pos(mu - t - rho))
        + beta1 @ (t - rho)
        + beta2 @ (t + rho)
    )
    constraints = ([rho >= 0] if ordered else []) + ([] if fit_intercept else [shift == 0])
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return problem.value


# the second pair makes refusing a positive row dearer than half its error, the third both
@pytest.mark.parametrize(
    "costs", [(1.0, 0.1, 5.0, 0.6), (1.0, 0.7, 5.0, 0.2), (2.0, 1.4, 1.0, 0.8)]
)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 3.0])
def test_convex_steps_equal_the_conic_solution(costs, fit_intercept, C):
    K, y, rng = rows()
    a_pos, b_pos, a_neg, b_neg = costs
    a, b = np.where(y > 0, a_pos, a_neg), np.where(y > 0, b_pos, b_neg)
    swaps = bool((2 * b <= a).all())
    for start in (None, (rng.normal(size=len(y)), 0.0 if not fit_intercept else 0.3, 0.4)):
        found = double_ramp_step(
            K,
            y,
            DoubleRampTerms(mu=0.8, error_cost=a, refusal_cost=b, fit_intercept=fit_intercept),
            C=C,
            start=start,
            tol=1e-10,
        )
        value = conic_step(
            K, y, C, 0.8, a, b, found.beta1, found.beta2, fit_intercept, ordered=not swaps
        )
        assert found.rho >= 0
        # turning a negative band over is for the true objective, not for the step's
        if found.interval_a[0] <= found.interval_b[1]:
            assert found.step_objective == pytest.approx(value, rel=1e-8, abs=1e-8)
        assert found.gap <= 1e-8 * (1 + abs(value))


@pytest.mark.parametrize("costs", [(1.0, 0.2, 3.0, 0.9), (1.0, 0.8, 4.0, 0.3)])
def test_the_loop_descends_on_the_stated_problem(costs):
    K, y, _ = rows(seed=3)
    a_pos, b_pos, a_neg, b_neg = costs
    a, b = np.where(y > 0, a_pos, a_neg), np.where(y > 0, b_pos, b_neg)
    found = solve_double_ramp(K, y, DoubleRampTerms(error_cost=a, refusal_cost=b), C=4.0)
    ramp = lambda t: np.clip(1.0 - t, 0.0, 2.0)  # noqa: E731 (mu = 1)
    t = y * (found.g + found.b)
    stated = 0.5 * found.c @ found.g + 4.0 * (
        b @ ramp(t - found.rho) + (a - b) @ ramp(t + found.rho)
    )
    assert found.converged
    assert found.rho >= 0
    assert found.objective == pytest.approx(stated, rel=1e-12)
    assert (np.diff(found.objective_path) <= 1e-9 * (1 + abs(stated))).all()


def test_equal_costs_are_the_machine_with_one_d():
    K, y, rng = rows(seed=1)
    weight = rng.uniform(0.5, 2.0, size=len(y))
    plain = solve_double_ramp(K, y, DoubleRampTerms(d=0.25, weight=weight), C=2.0)
    costly = solve_double_ramp(
        K,
        y,
        DoubleRampTerms(
            weight=weight, error_cost=np.full(len(y), 2.0), refusal_cost=np.full(len(y), 0.5)
        ),
        C=1.0,
    )
    assert np.allclose(plain.g, costly.g, atol=1e-9)
    assert costly.rho == pytest.approx(plain.rho, abs=1e-9)
    loss = DoubleRamp(d=0.25, rho=plain.rho).value(y * (plain.g + plain.b))
    assert plain.objective == pytest.approx(0.5 * plain.c @ plain.g + 2.0 * weight @ loss)


def test_a_cost_of_three_equals_three_copies():
    K, y, _ = rows(seed=2)
    a, b = np.where(y > 0, 3.0, 1.0), np.where(y > 0, 0.6, 0.2)
    copies = np.repeat(np.arange(len(y)), np.where(y > 0, 3, 1))
    costly = solve_double_ramp(K, y, DoubleRampTerms(error_cost=a, refusal_cost=b), C=1.5)
    copied = solve_double_ramp(K[np.ix_(copies, copies)], y[copies], DoubleRampTerms(d=0.2), C=1.5)
    assert np.allclose(costly.g[copies] + costly.b, copied.g + copied.b, atol=1e-7)
    assert costly.objective == pytest.approx(copied.objective, rel=1e-9)


def test_stacked_hinges_take_a_weight_and_a_margin_per_row():
    cp = pytest.importorskip("cvxpy")
    K, y, rng = rows(seed=4)
    a, b = np.where(y > 0, 4.0, 1.0), np.where(y > 0, 0.8, 0.3)
    margin = rng.uniform(0.5, 1.5, size=len(y))
    terms = ((b, margin), (a - 2 * b, 0.0))
    found = solve_stacked_hinge(K, y, terms, C=2.0, tol=1e-10)
    F = root_of(K)
    w, shift = cp.Variable(len(y)), cp.Variable()
    t = cp.multiply(y, F @ w + shift)
    loss = b @ cp.pos(margin - t) + (a - 2 * b) @ cp.pos(-t)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + 2.0 * loss))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    assert found.objective == pytest.approx(problem.value, rel=1e-8)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.ones(30), np.ones(30), "between 0"),
        (np.ones(29), np.full(30, 0.1), "one number per row"),
    ],
)
def test_bad_costs_are_named(a, b, message):
    K, y, _ = rows()
    with pytest.raises(ValueError, match=message):
        solve_double_ramp(K, y, DoubleRampTerms(error_cost=a, refusal_cost=b))
