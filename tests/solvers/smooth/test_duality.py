"""Certificates: never below the distance from the optimum, tight at it, honest about overflow."""

from __future__ import annotations

import numpy as np
import pytest

from buttress.losses import LeakyHockeyStick
from buttress.solvers.smooth.duality import certify


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("r", [np.inf, 1.01, 1.5, 5.0])
def test_no_dual_value_exceeds_a_primal_one(r, fit_intercept):
    rng = np.random.default_rng(0)
    n, L = 60, 12
    X = rng.normal(size=(n, 4))
    K = X @ X.T
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    omega = rng.random(n)
    omega /= omega.sum()
    coefs = rng.normal(size=(L, n)) * 10.0 ** np.linspace(-3, 0, L)[:, None]
    scores, penalties = coefs @ K, 10.0 ** rng.uniform(-3, 1, L)
    intercepts = rng.normal(size=L) if fit_intercept else np.zeros(L)
    found = certify(
        LeakyHockeyStick(r),
        y,
        omega,
        np.full(L, penalties[0]),
        scores,
        intercepts,
        np.einsum("ij,ij->i", coefs, scores),
        lambda v: np.einsum("ij,ij->i", v, v @ K),
        fit_intercept=fit_intercept,
    )
    # weak duality between all pairs of points of one problem
    assert found.dual.max() <= found.primal.min() + 1e-12
    assert np.all(np.isfinite(found.primal))


def test_a_dual_point_beyond_all_numbers_has_no_value():
    # The power of the slope in the conjugate overflows: the gap is infinite, and says so.
    y, omega = np.array([1.0, -1.0]), np.array([1e-4, 1.0 - 1e-4])
    scores = np.array([[1e9, 0.0]])
    loss = LeakyHockeyStick(1.01)
    found = certify(
        loss, y, omega, np.ones(1), scores, np.zeros(1), np.ones(1), lambda v: np.zeros(len(v))
    )
    assert found.dual[0] == -np.inf
    assert found.gap[0] == np.inf
    assert np.isfinite(found.primal[0])
