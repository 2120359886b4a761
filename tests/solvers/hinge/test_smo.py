"""The box solver against a conic solver, and its certificates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.solvers.hinge.kernel_rows import KernelMatrix, KernelRowCache
from buttress.solvers.hinge.smo import BoxTerms, solve_box_qp


def solve(K, *, sign, linear, lower, upper, row=None, group=None, **until):
    return solve_box_qp(BoxTerms(K, sign, linear, row, group), lower, upper, **until)


def rbf(X, gamma):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def conic(K, sign, linear, lower, upper, row, group):
    """Independent solution: the optimal value and the row values g."""
    cp = pytest.importorskip("cvxpy")
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    a = cp.Variable(len(sign))
    to_rows = np.zeros((len(K), len(sign)))
    to_rows[row, np.arange(len(sign))] = sign
    c = to_rows @ a
    constraints = [a >= lower, a <= upper]
    constraints += [sign[group == k] @ a[group == k] == 0 for k in set(group.tolist()) - {-1}]
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(root.T @ c) + linear @ a), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value, K @ (to_rows @ a.value)


def check(K, sign, linear, lower, upper, row=None, group=None, tol=1e-10):
    m = len(sign)
    row = np.arange(m) if row is None else row
    group = np.zeros(m, dtype=int) if group is None else group
    solution = solve(
        K, sign=sign, linear=linear, lower=lower, upper=upper, row=row, group=group, tol=tol
    )
    value, g = conic(K, sign, linear, lower, upper, row, group)
    scale = 1 + abs(value)
    assert solution.converged
    assert solution.objective == pytest.approx(value, abs=1e-8 * scale)
    np.testing.assert_allclose(solution.g, g, atol=1e-6 * (1 + np.abs(g).max()))
    assert (solution.a >= lower - 1e-12).all()
    assert (solution.a <= upper + 1e-12).all()
    for k in range(len(solution.threshold)):
        assert abs(sign[group == k] @ solution.a[group == k]) <= 1e-8 * (1 + np.abs(upper).max())
    assert -1e-9 * scale <= solution.gap <= 1e-6 * scale
    return solution


def sample(n, p=2, seed=0, gamma=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return rbf(X, gamma), y


@pytest.mark.smoke
def test_two_points_by_hand():
    y = np.array([1.0, -1.0])
    solution = solve(
        np.eye(2), sign=y, linear=-np.ones(2), lower=np.zeros(2), upper=np.full(2, 0.25)
    )
    np.testing.assert_allclose(solution.a, [0.25, 0.25])
    # no free variable: any threshold between the two scores is optimal
    np.testing.assert_allclose(solution.interval, [[-0.75, 0.75]])
    assert solution.threshold[0] == pytest.approx(0.0)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_svm_dual_equals_the_conic_solution(C, intercept):
    K, y = sample(60)
    group = np.full(60, 0 if intercept else -1)
    check(K, y, -np.ones(60), np.zeros(60), np.full(60, C), group=group)


@given(
    seed=st.integers(0, 10_000), n=st.integers(4, 24), C=st.floats(0.05, 50), k=st.integers(0, 2)
)
def test_random_steps_equal_the_conic_solution(seed, n, C, k):
    """Ramp-shaped boxes, with no, one or two groups and one or two variables per row."""
    rng = np.random.default_rng(seed)
    K, y = sample(n, seed=seed, gamma=rng.choice([0.1, 1.0, 5.0]))
    row = np.arange(n) if k < 2 else np.tile(np.arange(n), 2)
    m = len(row)
    beta = C * (rng.random(m) < 0.2)
    group = np.full(m, k - 1) if k < 2 else rng.integers(0, 2, m)
    linear = -rng.choice([0.5, 1.0], m)
    check(K, y[row], linear, -beta, C - beta, row=row, group=group)


def test_duplicates_with_conflicting_labels():
    K, y = sample(20)
    index = np.r_[0:20, 0:20]
    sign = np.r_[y, y]
    sign[20:26] *= -1
    check(K[np.ix_(index, index)], sign, -np.ones(40), np.zeros(40), np.full(40, 3.0))


def test_rank_three_linear_kernel():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 3))
    y = np.where(X @ [1.0, -2.0, 0.5] + rng.normal(size=50) > 0, 1.0, -1.0)
    for C in (0.1, 10.0):
        check(X @ X.T, y, -np.ones(50), np.zeros(50), np.full(50, C))


@pytest.mark.parametrize("group", [0, -1])
def test_zero_kernel(group):
    y = np.array([1.0, 1.0, -1.0])
    solution = check(
        np.zeros((3, 3)), y, -np.ones(3), np.zeros(3), np.full(3, 2.0), group=np.full(3, group)
    )
    np.testing.assert_array_equal(solution.g, 0.0)


def test_extreme_imbalance_and_unequal_weights():
    K, _ = sample(40)
    y = np.full(40, -1.0)
    y[0] = 1.0
    upper = np.geomspace(1e-3, 1e3, 40)
    check(K, y, -np.ones(40), np.zeros(40), upper)


def test_same_row_twice_in_one_group():
    """Two stacked hinges: both variables of a row have one kernel row, curvature zero."""
    K, y = sample(30)
    row = np.tile(np.arange(30), 2)
    linear = -np.r_[np.ones(30), np.zeros(30)]
    upper = np.r_[np.full(30, 2.0), np.full(30, 6.0)]
    check(K, np.r_[y, y], linear, np.zeros(60), upper, row=row)


def test_blocks_of_rows_reach_the_solution_of_the_whole():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=900) > 0, 1.0, -1.0)
    K = rbf(X, 0.5)
    options = {"sign": y, "linear": -np.ones(900), "lower": np.zeros(900)}
    for C in (1.0, 300.0):
        solution = solve(K, upper=np.full(900, C), tol=1e-9, **options)
        # the certificate is exact: gap = primal - dual, recomputed here from scratch
        f = K @ solution.c + solution.threshold[0]
        primal = 0.5 * solution.c @ K @ solution.c + C * np.maximum(1 - y * f, 0).sum()
        assert solution.converged
        assert primal + solution.objective == pytest.approx(solution.gap, abs=1e-7 * primal)
        assert solution.gap <= 1e-6 * primal


def test_cached_rows_give_the_same_solution_with_little_memory():
    K, y = sample(300, p=4, seed=5)
    asked = []

    def compute(rows):
        asked.append(len(rows))
        return K[rows]

    options = {
        "sign": y,
        "linear": -np.ones(300),
        "lower": np.zeros(300),
        "upper": np.full(300, 10.0),
        "tol": 1e-9,
    }
    cache = KernelRowCache(compute, np.diagonal(K), cache_size=0.1)
    assert cache.most_rows == 64
    reference = solve(K, **options)
    solution = solve(cache, **options)
    assert solution.converged
    assert solution.objective == pytest.approx(reference.objective, rel=1e-10)
    np.testing.assert_allclose(solution.g, reference.g, atol=1e-6)
    assert max(asked) <= 64


def test_warm_start_from_any_point_is_repaired():
    K, y = sample(50)
    rng = np.random.default_rng(0)
    options = {
        "sign": y,
        "linear": -np.ones(50),
        "lower": np.zeros(50),
        "upper": np.full(50, 2.0),
        "tol": 1e-10,
    }
    cold = solve(K, **options)
    for start in (cold.a, rng.normal(0, 5, 50), np.full(50, 9.0)):
        warm = solve(K, start=start, **options)
        assert warm.objective == pytest.approx(cold.objective, rel=1e-12)
        assert abs(y @ warm.a) < 1e-10
    near = solve(K, start=cold.a, start_g=(cold.c, cold.g), **options)
    assert near.n_iter == 0
    np.testing.assert_allclose(near.g, cold.g, atol=1e-12)


def test_float32_kernel():
    K, y = sample(80)
    options = {
        "sign": y,
        "linear": -np.ones(80),
        "lower": np.zeros(80),
        "upper": np.ones(80),
        "tol": 1e-6,
    }
    single = solve(K.astype(np.float32), **options)
    double = solve(K, **options)
    np.testing.assert_allclose(single.g, double.g, atol=1e-5)


def test_iteration_cap_is_reported():
    K, y = sample(100)
    solution = solve(
        K,
        sign=y,
        linear=-np.ones(100),
        lower=np.zeros(100),
        upper=np.full(100, 100.0),
        max_iter=5,
    )
    assert not solution.converged
    assert solution.n_iter == 5
    assert solution.gap > 0


def test_impossible_boxes_are_refused():
    y = np.array([1.0, 1.0])
    with pytest.raises(ValueError, match="sum constraint of group 0"):
        solve(np.eye(2), sign=y, linear=-np.ones(2), lower=np.full(2, 1.0), upper=np.full(2, 2.0))
    with pytest.raises(ValueError, match="lower bound"):
        solve(np.eye(2), sign=y, linear=-np.ones(2), lower=np.ones(2), upper=np.zeros(2))
    with pytest.raises(ValueError, match="square"):
        KernelMatrix(np.ones((2, 3)))


def test_integer_kernels_are_taken_as_numbers():
    assert KernelMatrix(np.eye(2, dtype=int)).submatrix(np.array([0, 1])).dtype == np.float64


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_unscaled_features_and_a_large_penalty_converge(scale):
    """Without the way through smaller boxes ten million pair steps do not suffice."""
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(300, 10))
    y = np.where(X[:, 0] + scale * rng.normal(size=300) > 0, 1.0, -1.0)
    solution = solve(
        X @ X.T, sign=y, linear=-np.ones(300), lower=np.zeros(300), upper=np.full(300, 100.0),
        max_iter=500_000,
    )  # fmt: skip
    assert solution.converged
    assert solution.gap <= 1e-6 * abs(solution.objective)
