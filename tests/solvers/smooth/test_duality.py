"""Certificates of the leaky family in compiled code are those of its loss object."""

from __future__ import annotations

import numpy as np
import pytest

from buttress.losses import LeakyHockeyStick
from buttress.solvers.smooth.duality import _set_leaky_parts, _set_parts, certify


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("r", [np.inf, 1.01, 1.5, 5.0, 1e6])
def test_both_objectives_agree_with_the_loss(r, fit_intercept):
    rng = np.random.default_rng(0)
    n, L = 300, 12
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    omega = rng.random(n)
    omega /= omega.sum()
    scores = rng.normal(size=(L, n)) * 10.0 ** np.linspace(-2, 3, L)[:, None]
    intercepts = rng.normal(size=L)
    expected, found = [(np.empty(L), np.empty(L), np.empty((L, n))) for _ in range(2)]
    _set_parts(LeakyHockeyStick(r), y, omega, scores, intercepts, fit_intercept, *expected)
    _set_leaky_parts(1.0 / r, y, omega, scores, intercepts, fit_intercept, *found)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-14)


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
