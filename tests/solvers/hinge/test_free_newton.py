"""The Newton step inside a box against a general solver, and what it costs."""

import numpy as np
import pytest

from buttress.solvers.hinge._free_newton import newton_step


def problem(seed, rank, n_groups, m=24):
    """A singular system with a box of unlike sides, some of them closed to one side."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(m, rank))
    lower = -rng.uniform(0, 1, m) * 10.0 ** rng.uniform(-2, 1)
    lower[rng.random(m) < 0.2] = 0.0
    group = rng.integers(-1, n_groups, size=m)
    return points @ points.T, rng.normal(size=m), group, lower, rng.uniform(0, 1, m)


def least(K, v, group, n_groups, lower, upper):
    """The minimum by a conic code."""
    cvxpy = pytest.importorskip("cvxpy")
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    d = cvxpy.Variable(len(v))
    sums = [cvxpy.sum(d[np.flatnonzero(group == k)]) == 0 for k in range(n_groups)]
    whole = cvxpy.Problem(
        cvxpy.Minimize(0.5 * cvxpy.sum_squares(root.T @ d) - v @ d),
        [d >= lower, d <= upper, *sums],
    )
    whole.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return whole.value


@pytest.mark.parametrize("n_groups", [0, 1, 2])
@pytest.mark.parametrize("rank", [2, 10, 30])
def test_steps_stay_inside_keep_the_sums_and_descend(rank, n_groups):
    shares = []
    for seed in range(8):
        K, v, group, lower, upper = problem(seed, rank, n_groups)
        found = newton_step(K.copy(), v, group, n_groups, lower, upper)
        step = found.step
        assert step is not None
        assert (step >= lower).all()
        assert (step <= upper).all()
        for k in range(n_groups):
            assert abs(step[group == k].sum()) <= 1e-13
        fell = step @ (v - 0.5 * K @ step)
        assert fell > 0.0
        shares.append(fell / -least(K, v, group, n_groups, lower, upper))
    # variables that met a bound stay there, so the minimum is nearly, not always, reached
    assert max(shares) <= 1.0 + 1e-7
    assert np.median(shares) > 0.9


def test_a_minimum_inside_the_box_is_one_system():
    K, v, group, _, _ = problem(0, 30, 2)
    found = newton_step(K.copy(), v, group, 2, np.full(24, -1e3), np.full(24, 1e3))
    assert (found.factors, found.bounds) == (1, 0)
    residual = v - K @ found.step
    for k in range(2):
        assert np.ptp(residual[group == k]) < 1e-8
    assert np.abs(residual[group < 0]).max() < 1e-8


def test_at_the_minimum_there_is_no_step():
    K = np.diag([1.0, 2.0, 3.0])
    found = newton_step(K, np.zeros(3), np.full(3, -1), 0, -np.ones(3), np.ones(3))
    assert found.step is None
