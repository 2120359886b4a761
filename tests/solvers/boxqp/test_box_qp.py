"""The box-constrained quadratic program against L-BFGS-B, a conic solver and its own gap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from buttress.solvers.boxqp.box_qp import box_qp, share_matrix


def problem(seed, n, rank, scale=1.0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank))
    K = scale * A @ A.T
    b = scale * rng.normal(size=n)
    middle, half = rng.normal(size=n), rng.exponential(size=n)
    # some variables are held fixed
    half[rng.random(n) < 0.1] = 0.0
    return K, b, middle - half, middle + half


def gaussian(seed, n, p, beta):
    """A step of the penalty's search: nearly singular for few features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2)
    lower = rng.choice([-2.0, -1.4, 0.0], size=n) / n
    return K, 2 * beta * rng.choice([-1.0, 0.0, 1.0], size=n), lower, lower + 1.4 / n


@pytest.mark.smoke
@pytest.mark.parametrize("rank", [1, 3, 20])
def test_equals_bounded_least_squares(rank):
    rng = np.random.default_rng(rank)
    A, target = rng.normal(size=(rank, 20)), rng.normal(size=rank)
    lower, upper = -rng.exponential(size=20), rng.exponential(size=20)
    expected = lsq_linear(A, target, (lower, upper), method="bvls", tol=1e-14)
    found = box_qp(A.T @ A, A.T @ target, lower, upper)
    assert found.converged
    np.testing.assert_allclose(A @ found.x, A @ expected.x, atol=1e-6)
    assert found.objective <= expected.cost - 0.5 * target @ target + 1e-10


@given(st.integers(0, 10_000), st.integers(1, 25), st.integers(0, 25), st.sampled_from([1e-3, 1.0]))
def test_the_gap_is_certified_at_any_rank(seed, n, rank, scale):
    K, b, lower, upper = problem(seed, n, rank, scale)
    found = box_qp(K, b, lower, upper)
    assert found.converged
    assert np.all((found.x >= lower) & (found.x <= upper))
    g = K @ found.x - b
    np.testing.assert_allclose(found.gradient, g, atol=1e-10)
    gap = np.where(g > 0, g * (found.x - lower), g * (found.x - upper)).sum()
    assert -1e-15 <= gap <= 1e-11
    # the gap bounds the distance to every feasible point
    for other in (lower, upper, (lower + upper) / 2):
        value = 0.5 * other @ K @ other - b @ other
        assert value >= found.objective - gap - 1e-10


@pytest.mark.parametrize("p", [1, 2, 4, 10])
@pytest.mark.parametrize("beta", [0.1, 1e-3])
def test_nearly_singular_matrices(p, beta):
    """Where coordinate descent and projected Newton stall."""
    K, b, lower, upper = gaussian(p, 150, p, beta)
    shared = share_matrix(K)
    cold = box_qp(shared, b, lower, upper, tol=2 * beta * 1e-12)
    assert cold.converged
    warm = box_qp(shared, b, lower, upper, start=cold.x, tol=2 * beta * 1e-12)
    assert warm.n_iter <= cold.n_iter
    np.testing.assert_allclose(K @ warm.x, K @ cold.x, atol=1e-6)


def test_equals_a_conic_solver():
    cvxpy = pytest.importorskip("cvxpy")
    K, b, lower, upper = problem(3, 30, 12)
    x = cvxpy.Variable(30)
    value = 0.5 * cvxpy.quad_form(x, cvxpy.psd_wrap(K)) - b @ x
    task = cvxpy.Problem(cvxpy.Minimize(value), [x >= lower, x <= upper])
    task.solve(solver=cvxpy.CLARABEL)
    assert abs(box_qp(K, b, lower, upper).objective - task.value) < 1e-6


def test_a_zero_matrix_goes_to_the_bounds():
    found = box_qp(np.zeros((3, 3)), np.array([1.0, -1.0, 0.0]), -np.ones(3), np.ones(3))
    np.testing.assert_array_equal(found.x, [1.0, -1.0, 0.0])
    assert found.gap == 0.0
