"""Penalties against exact global maxima, closed forms, and the theorem they serve."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.solvers.boxqp.box_qp import share_matrix
from buttress.theory import rademacher_penalty
from buttress.theory._rademacher_loops import Draw, climb


def phi(u, gamma):
    return np.where(u < 0, 1 - gamma * u, np.maximum(1 - u, 0))


def objective(K, y, sigma, gamma, beta, f, W):
    return 2 / len(y) * (sigma * phi(y * f, gamma)).sum() - beta * W


def global_maximum(K, y, sigma, gamma, beta):
    """Every one of the 2^n linearisations of the convex part."""
    n = len(y)
    shared = share_matrix(K)
    codes = np.random.default_rng(0).integers(2**62, size=n)
    draw = Draw(shared, y, sigma, gamma, codes)
    c, u, best, seen = np.zeros(n), np.empty(n), -np.inf, set()
    for bits in itertools.product([False, True], repeat=n):
        best = max(best, climb(draw, beta, 1e-12, np.array(bits), c, u, seen)[0])
    return best


def line_maximum(x, y, sigma, gamma, beta):
    """Linear kernel in one dimension: breakpoints and vertices of a piecewise quadratic."""
    breaks = np.sort(np.concatenate([[0.0], 1 / (y * x)]))
    middles = np.concatenate([[breaks[0] - 1], (breaks[1:] + breaks[:-1]) / 2, [breaks[-1] + 1]])
    n = len(y)
    slopes = [
        2 / n * (sigma * y * x * -np.where(w * y * x < 0, gamma, w * y * x < 1)).sum()
        for w in middles
    ]
    candidates = np.concatenate([breaks, np.array(slopes) / (2 * beta)])
    return max(objective(None, y, sigma, gamma, beta, w * x, w * w) for w in candidates)


def sample(kind, n, seed):
    rng = np.random.default_rng(seed)
    y, sigma = rng.choice([-1.0, 1.0], size=(2, n))
    if kind == "line":
        X = rng.normal(size=(n, 1))
        return X @ X.T, y, sigma
    X = rng.normal(size=(n, 3 if kind == "linear" else 2))
    if kind == "duplicates":
        X[n // 2 :] = X[: n - n // 2]
    if kind == "linear":
        return X @ X.T, y, sigma
    if kind == "one sign":
        sigma[:] = -1.0
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2), y, sigma


KINDS = ["rbf", "duplicates", "line", "linear", "one sign"]


@pytest.mark.smoke
def test_reference_solutions(oracle):
    arrays, cases = oracle("rademacher")
    for name, case in cases.items():
        prefix = name.split("_g")[0]
        curve = rademacher_penalty(
            arrays[f"{prefix}_K"],
            arrays[f"{prefix}_y"],
            gamma=case["gamma"],
            betas=case["beta"],
            sigmas=arrays[f"{prefix}_sigma"],
            random_state=0,
        )
        assert curve.objectives[0, 0] <= case["global_J"] + 1e-10
        assert curve.objectives[0, 0] >= case["cccp0_J"] - 1e-10
        assert curve.objectives[0, 0] == pytest.approx(case["global_J"], abs=1e-10)
        assert curve.norms[0, 0] == pytest.approx(case["global_W"], rel=1e-8)
        np.testing.assert_allclose(curve.decision[0, 0], arrays[f"{name}_global_Kalpha"], atol=1e-7)
        assert curve.surrogate_gaps.max() < 1e-9


def test_default_starts_find_the_global_maximum():
    betas = [0.005, 0.1]
    found = []
    for kind, gamma, seed in itertools.product(KINDS, [0.05, 0.3, 1.0], range(4)):
        K, y, sigma = sample(kind, 7, seed)
        curve = rademacher_penalty(K, y, gamma=gamma, betas=betas, sigmas=sigma, random_state=seed)
        for k, beta in enumerate(betas):
            best = global_maximum(K, y, sigma, gamma, beta)
            assert curve.objectives[0, k] <= best + 1e-9
            found.append(curve.objectives[0, k] >= best - 1e-9)
    assert np.mean(found) >= 0.95


def test_never_above_the_exact_maximum_on_a_line():
    found = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        x, (y, sigma) = rng.normal(size=9), rng.choice([-1.0, 1.0], size=(2, 9))
        curve = rademacher_penalty(
            np.outer(x, x), y, gamma=0.3, betas=[0.03], sigmas=sigma, random_state=0
        )
        best = line_maximum(x, y, sigma, 0.3, 0.03)
        assert curve.objectives[0, 0] <= best + 1e-9
        found.append(curve.objectives[0, 0] >= best - 1e-9)
    assert np.mean(found) >= 0.95


@given(
    st.sampled_from(KINDS),
    st.integers(0, 1000),
    st.sampled_from([0.05, 0.5, 1.0]),
    st.sampled_from([1e-3, 0.05, 2.0]),
)
def test_the_objective_never_falls_along_the_iteration(kind, seed, gamma, beta):
    K, y, sigma = sample(kind, 15, seed)
    shared = share_matrix(K)
    rng = np.random.default_rng(seed)
    draw = Draw(shared, y, sigma, gamma, rng.integers(2**62, size=15))
    path, u = [], np.empty(15)
    pattern, seen = rng.random(15) < 0.5, set()
    J, W, R, gap, steps = climb(draw, beta, 1e-12, pattern, np.zeros(15), u, seen, path)
    assert len(path) == steps
    assert np.all(np.diff(path) >= -1e-10 * max(1, abs(J)))
    assert gap < 1e-9
    assert J == pytest.approx(objective(K, y, sigma, gamma, beta, y * u, W), abs=1e-10)
    assert R == pytest.approx(J + beta * W, abs=1e-10)


@given(st.sampled_from(KINDS), st.integers(0, 1000), st.sampled_from([0.1, 1.0]))
def test_everything_returned_is_consistent(kind, seed, gamma):
    K, y, sigma = sample(kind, 12, seed)
    betas = np.array([0.02, 3.0, 0.3])
    curve = rademacher_penalty(
        K, y, gamma=gamma, betas=betas, sigmas=sigma, n_starts=3, random_state=seed
    )
    np.testing.assert_array_equal(curve.betas, betas)
    for k, beta in enumerate(betas):
        f, W = curve.decision[0, k], curve.norms[0, k]
        # the smallest norm that gives these values, and the largest objective with them
        least = f @ np.linalg.pinv(K, rcond=1e-10, hermitian=True) @ f
        assert least == pytest.approx(W, rel=1e-4, abs=1e-6)
        value = objective(K, y, sigma, gamma, beta, f, W)
        assert curve.objectives[0, k] == pytest.approx(value, abs=1e-9)
        assert curve.penalties[0, k] == pytest.approx(value + beta * W, abs=1e-9)
        assert curve.objectives[0, k] >= curve.centres[0] - 1e-12
    assert curve.surrogate_gaps.max() < 1e-9
    order = np.argsort(betas)
    # larger balls have larger penalties; smaller weights have larger objectives
    assert np.all(np.diff(curve.objectives[0, order]) <= 1e-9)


def test_zero_norm_limit():
    K, y, _ = sample("rbf", 20, 0)
    curve = rademacher_penalty(K, y, betas=[1e3], n_draws=6, random_state=0)
    np.testing.assert_allclose(curve.penalties[:, 0], curve.centres, atol=5e-4)
    assert curve.norms.max() < 1e-5


@pytest.mark.parametrize("kind", ["rbf", "duplicates"])
def test_hinge_in_small_balls_in_closed_form(kind):
    K, y, _ = sample(kind, 20, 1)
    betas = np.array([0.5, 1.0, 2.0, 8.0])
    curve = rademacher_penalty(K, y, gamma=1.0, betas=betas, n_draws=5, random_state=0)
    signed = curve.sigmas * y
    Q = np.einsum("di,ij,dj->d", signed, K, signed)
    expected = Q[:, None] / (20 * betas) ** 2
    assert expected.max() < 1
    np.testing.assert_allclose(curve.norms, expected, rtol=1e-9)
    np.testing.assert_allclose(
        curve.penalties, curve.centres[:, None] + 2 / 20 * np.sqrt(expected * Q[:, None]), rtol=1e-9
    )


def test_growth_as_beta_vanishes():
    K, y, sigma = sample("rbf", 12, 2)
    curve = rademacher_penalty(K, y, gamma=0.5, betas=[1e-5, 1e-6], sigmas=sigma, random_state=0)
    growth = curve.norms[0] * curve.betas**2
    np.testing.assert_allclose(growth[0], growth[1], rtol=1e-3)
    products = curve.penalties[0] * curve.betas
    np.testing.assert_allclose(products[0], products[1], rtol=1e-2)
    assert np.all(curve.surrogate_gaps[0] < 1e-9 * curve.penalties[0])


def test_the_mean_stays_below_the_trace_bound():
    K, y, _ = sample("rbf", 40, 3)
    curve = rademacher_penalty(K, y, gamma=0.3, n_draws=12, n_starts=3, random_state=0)
    W = np.array([0.25, 1.0, 4.0, 16.0, 64.0, 1e7])
    mean, error, bound = curve.at(W)
    assert np.all(mean <= bound + 3 * error)
    assert np.all(np.diff(mean) > 0)
    np.testing.assert_allclose(bound, 2 / 40 * np.sqrt(W * 40))
    assert curve.at(0.0).mean == 0.0


def test_interpolation_is_linear_in_the_radius_and_monotone():
    K, y, sigma = sample("rbf", 15, 4)
    curve = rademacher_penalty(K, y, betas=[2.0, 0.5], sigmas=sigma, random_state=0)
    W = curve.norms[0]
    height = curve.penalties[0] - curve.centres[0]
    mid = ((np.sqrt(W[0]) + np.sqrt(W[1])) / 2) ** 2
    assert curve.at(W[0]).mean == pytest.approx(height[0])
    assert curve.at(mid).mean == pytest.approx(height.mean())
    assert curve.at(W[0] / 4).mean == pytest.approx(height[0] / 2)
    # beyond the path the last function is scaled, which is feasible there
    far = 2 / 15 * (sigma * phi(y * 3 * curve.decision[0, 1], 0.1)).sum() - curve.centres[0]
    assert curve.at(9 * W[1]).mean == pytest.approx(max(far, height[1]))
    assert np.isnan(curve.at(1.0).standard_error)


def test_constant_kernel_gives_a_bias():
    """With K = 1 the class is a constant; the maximum is that of one number."""
    y = np.array([1.0, 1.0, -1.0, 1.0])
    sigma = np.array([1.0, -1.0, -1.0, 1.0])
    curve = rademacher_penalty(np.ones((4, 4)), y, gamma=0.2, betas=0.1, sigmas=sigma)
    w = np.linspace(-20, 20, 400_001)
    values = 0.5 * (sigma[:, None] * phi(y[:, None] * w, 0.2)).sum(axis=0) - 0.1 * w * w
    assert curve.objectives[0, 0] == pytest.approx(values.max(), abs=1e-8)
    np.testing.assert_allclose(curve.decision[0, 0], curve.decision[0, 0, 0], atol=1e-10)


def test_jumps_are_marked_where_the_norm_leaps():
    x, y, sigma = np.array([1.0, 0.2, 0.1]), np.ones(3), np.array([-1.0, 1.0, 1.0])
    betas = np.geomspace(3.0, 1e-3, 60)
    curve = rademacher_penalty(np.outer(x, x), y, gamma=0.05, betas=betas, sigmas=sigma)
    growth = curve.norms[0, 1:] / np.maximum(curve.norms[0, :-1], 1e-12)
    leaps = growth > 1.01 * (betas[:-1] / betas[1:]) ** 2
    assert np.all(curve.jumps[0, 1:][leaps & (curve.norms[0, 1:] > 1e-9)])


@pytest.mark.smoke
def test_results_do_not_depend_on_the_number_of_threads_or_the_order_of_betas():
    K, y, _ = sample("rbf", 20, 5)
    betas = np.geomspace(1.0, 1e-2, 5)
    one = rademacher_penalty(K, y, betas=betas, n_draws=4, n_starts=2, random_state=0)
    two = rademacher_penalty(
        K, y, betas=betas[::-1], n_draws=4, n_starts=2, random_state=0, n_jobs=2
    )
    np.testing.assert_array_equal(one.objectives, two.objectives[:, ::-1])
    np.testing.assert_array_equal(one.decision, two.decision[:, ::-1])
    np.testing.assert_array_equal(one.jumps, two.jumps[:, ::-1])


def test_degenerate_matrices():
    zero = rademacher_penalty(np.zeros((3, 3)), [1, -1, 1], n_draws=2, random_state=0)
    np.testing.assert_array_equal(zero.norms, 0.0)
    assert zero.at(5.0).mean == 0.0
    single = rademacher_penalty([[2.0]], [1], sigmas=[[1.0]], betas=[0.1], gamma=1.0)
    assert single.objectives[0, 0] == pytest.approx(2 * 1 + 2 * 2 / (4 * 0.1) * 2, rel=1e-9)
    half = rademacher_penalty(np.eye(4, dtype=np.float32), [1, 1, -1, -1], n_draws=1)
    assert half.decision.dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"K": np.ones((2, 3))}, "square"),
        ({"K": [[np.nan]], "y": [1]}, "finite"),
        ({"K": [[0.0, 1.0], [1.0, 0.0]]}, "smallest eigenvalue"),
        ({"y": [1, 1, 1]}, "y must have shape"),
        ({"y": [0, 1]}, "y must contain -1 and"),
        ({"gamma": 0.0}, "gamma=0.0"),
        ({"gamma": True}, "gamma=True"),
        ({"betas": [0.0]}, "betas="),
        ({"betas": []}, "betas="),
        ({"sigmas": [[1, 2]]}, "sigmas must contain"),
        ({"sigmas": [1, 1, 1]}, "sigmas must have shape"),
        ({"n_draws": 0}, "n_draws=0"),
        ({"n_starts": 1.5}, "n_starts=1.5"),
    ],
)
def test_bad_input_is_named(arguments, message):
    given = {"K": np.eye(2), "y": [1, -1]} | arguments
    with pytest.raises(ValueError, match=message):
        rademacher_penalty(given.pop("K"), given.pop("y"), **given)


def test_negative_norms_are_refused():
    curve = rademacher_penalty(np.eye(2), [1, -1], n_draws=1, random_state=0)
    with pytest.raises(ValueError, match="W="):
        curve.at(-1.0)
