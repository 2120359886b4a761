"""The Rademacher penalty paper: its identities, its dual, and the exact maximum."""

from __future__ import annotations

import numpy as np
import pytest

from buttress.experiments.rademacher_starts import exact_maximum, objective


def vectors(seed, count, n=7):
    random = np.random.default_rng(seed)
    root = random.standard_normal((n, n))
    return root @ root.T, random.standard_normal((count, n))


@pytest.mark.parametrize("seed", range(5))
def test_hadamard_products_move_into_the_matrix(seed):
    K, (a, b, c, d) = vectors(seed, 4)
    sums = sum(a[i] * b[i] * K[i, j] * c[j] * d[j] for i in range(len(K)) for j in range(len(K)))
    # (34) by way of (35) and (36)
    assert (a * b) @ K @ (c * d) == pytest.approx(sums, rel=1e-10)
    assert a @ (np.outer(b, c) * K) @ d == pytest.approx(sums, rel=1e-10)
    # (37)
    ones = np.ones(len(K))
    assert a @ K @ (b * c) == pytest.approx(a @ (np.outer(ones, b) * K) @ c, rel=1e-10)


def test_the_cross_term_of_32_needs_the_factor_two():
    K, (v, w, y, lam) = vectors(9, 4)
    whole = (w * lam * y + v) @ K @ (w * lam * y + v)
    square = lam @ (np.outer(w * y, w * y) * K) @ lam
    cross = v @ (np.outer(np.ones(len(K)), w * y) * K) @ lam
    assert whole == pytest.approx(square + 2 * cross + v @ K @ v, rel=1e-10)
    assert whole != pytest.approx(square + cross + v @ K @ v, rel=1e-3)


@pytest.mark.parametrize("slope", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("beta", [0.02, 0.2, 1.0])
def test_the_exact_maximum_is_that_of_a_grid(slope, beta):
    # Rows on a line: every function of the class is one number.
    x = np.array([-2.0, -0.7, 0.3, 0.9, 1.6])
    y = np.array([-1.0, 1.0, -1.0, 1.0, 1.0])
    sigma = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    K = np.outer(x, x)
    found = exact_maximum(K, y, sigma, slope, beta)
    w = np.linspace(-60, 60, 240_001)
    u = y[:, None] * x[:, None] * w
    loss = np.maximum(1 - u, 0) - np.maximum(-(1 - slope) * u, 0)
    best = float((2 * (sigma[:, None] * loss).mean(axis=0) - beta * w**2).max())
    assert found == pytest.approx(best, abs=1e-4)
    assert found >= best - 1e-9


def test_the_objective_is_the_signed_mean_loss_minus_the_norm():
    K, (alpha,) = vectors(3, 1)
    y = sigma = np.array([1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0])
    u = y * (K @ alpha)
    loss = np.where(u < 0, 1 - 0.3 * u, np.where(u <= 1, 1 - u, 0.0))
    expected = 2 * np.mean(sigma * loss) - 0.1 * alpha @ K @ alpha
    assert objective(K, y, sigma, 0.3, 0.1, alpha) == pytest.approx(expected)
