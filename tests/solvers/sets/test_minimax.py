"""Solvers of the minimax machines on given moments."""

import numpy as np
import pytest

from buttress.solvers.sets.geometry import CentredGeometry
from buttress.solvers.sets.minimax import (
    Moments,
    class_moments,
    minimax_path,
    solve_maximum_margin,
    solve_minimax,
)


def moments(seed, shift=2.0, p=4):
    rng = np.random.default_rng(seed)
    return [
        class_moments(rng.normal(size=(30, p)) * rng.uniform(0.5, 2, p) + k * shift, np.ones(30), 0)
        for k in (1, 0)
    ]


@pytest.mark.smoke
def test_no_direction_beats_the_minimax_one():
    positive, negative = moments(0)
    found = solve_minimax(positive, negative)
    delta = positive.mean - negative.mean
    for w in np.random.default_rng(1).normal(size=(200, 4)):
        kappa = (w @ delta) / (positive.deviation(w) + negative.deviation(w))
        assert kappa <= found.kappa + 1e-12
    assert found.gap <= 1e-12
    assert found.objective == pytest.approx(1.0 / found.kappa)


def test_maximum_margin_approaches_the_minimax_direction():
    positive, negative = moments(2)
    plain = solve_minimax(positive, negative)
    near = solve_maximum_margin(positive, negative, 0.999 * plain.kappa)
    w, v = plain.weight_vector, near.weight_vector
    assert w @ v / np.linalg.norm(w) / np.linalg.norm(v) > 0.999
    with pytest.raises(ValueError, match="infeasible"):
        solve_maximum_margin(positive, negative, plain.kappa)


def test_scaled_classes_need_damped_steps():
    positive, negative = moments(3, shift=0.3)
    stretch = np.diag([100.0, 1.0, 1.0, 0.01])
    a, b = (
        Moments(stretch @ m.mean, stretch @ m.covariance @ stretch) for m in (positive, negative)
    )
    limit = solve_minimax(a, b).kappa
    found = solve_maximum_margin(a, b, 0.9 * limit)
    assert found.gap <= 1e-8 * found.objective
    s = a.deviation(found.weight_vector)
    margin = found.weight_vector @ a.mean + found.intercept - 0.9 * limit * s
    assert margin == pytest.approx(1.0, rel=1e-6)


def test_degenerate_moments_are_explained():
    positive, negative = moments(4)
    with pytest.raises(ValueError, match="coincide"):
        solve_minimax(positive, Moments(positive.mean, negative.covariance))
    flat = np.zeros((4, 4))
    with pytest.raises(ValueError, match="singular"):
        solve_minimax(Moments(positive.mean, flat), Moments(negative.mean, flat))
    line = np.diag([1.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="singular"):
        solve_minimax(Moments(positive.mean, line), Moments(negative.mean, line))


def kernel_problem(n=60, gamma=0.3, copies=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0.3, 1.0, -1.0)
    X = np.r_[X, X[:copies]]
    y = np.r_[y, -y[:copies]]
    K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    return K, y, rng.integers(1, 4, len(y)).astype(float)


@pytest.mark.parametrize(("gamma", "copies"), [(0.3, 0), (1e-3, 0), (0.3, 40)])
def test_a_path_of_ridges_is_the_diagonalisation(gamma, copies):
    K, y, w = kernel_problem(gamma=gamma, copies=copies)
    geometry = CentredGeometry(K)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    features = geometry.features
    ridges = [1e-1, 1e-3, 1e-5]
    for ridge, found in zip(ridges, minimax_path(CentredGeometry(K), y, w, ridges), strict=True):
        positive, negative = (
            class_moments(features[rows], w[rows], ridge) for rows in (y > 0, y < 0)
        )
        expected = solve_minimax(positive, negative)
        assert found.kappa == pytest.approx(expected.kappa, rel=1e-9)
        assert found.intercept == pytest.approx(expected.intercept, abs=1e-7)
        assert found.gap <= 1e-9 * found.objective
        np.testing.assert_allclose(found.values, features @ expected.weight_vector, atol=1e-7)
        np.testing.assert_allclose(centred @ found.coef, found.values, atol=1e-7)
        v = expected.weight_vector
        assert found.deviations == pytest.approx((positive.deviation(v), negative.deviation(v)))


def test_a_class_without_spread_pulls_the_mixture_to_its_end():
    K, y, w = kernel_problem(gamma=1.0)
    K[np.ix_(y > 0, y > 0)] = 1.0
    K[np.ix_(y > 0, y < 0)] = K[np.ix_(y > 0, y < 0)][0]
    K[np.ix_(y < 0, y > 0)] = K[np.ix_(y > 0, y < 0)].T
    (found,) = minimax_path(CentredGeometry(K), y, w, [1e-4])
    assert found.gap <= 1e-8 * found.objective
    assert found.deviations[0] < found.deviations[1]


def test_equal_means_have_no_path():
    K, _, w = kernel_problem(n=20)
    K = np.block([[K, K], [K, K]])
    with pytest.raises(ValueError, match="means coincide"):
        minimax_path(CentredGeometry(K), np.r_[np.ones(20), -np.ones(20)], np.r_[w, w], [1e-2])


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_search_that_is_cut_short_knows_how_far_off_it_is(steps):
    K, y, w = kernel_problem(gamma=0.05)
    (best,) = minimax_path(CentredGeometry(K), y, w, [1e-3])
    (cut,) = minimax_path(CentredGeometry(K), y, w, [1e-3], max_iter=steps)
    assert cut.n_iter == steps < best.n_iter
    assert -1e-12 <= cut.objective - best.objective <= cut.gap

    positive, negative = moments(3, shift=0.3)
    kappa = 0.9 * solve_minimax(positive, negative).kappa
    best, cut = (
        solve_maximum_margin(positive, negative, kappa, max_iter=most) for most in (200, steps)
    )
    assert cut.n_iter == steps < best.n_iter
    assert -1e-12 * best.objective <= cut.objective - best.objective <= cut.gap
    v = cut.weight_vector
    assert cut.objective == pytest.approx(0.5 * v @ v)
    margin = v @ positive.mean + cut.intercept - kappa * positive.deviation(v)
    assert margin == pytest.approx(1.0)
