"""Newton's method at one penalty: rough where it is far from the solution, exact at its end."""

from __future__ import annotations

import numpy as np
import pytest

from buttress import LeakyHockeyStickClassifier
from buttress.datasets import make_banana
from buttress.solvers.smooth import _plain_newton


@pytest.fixture
def precisions(monkeypatch):
    """The precision of every system that was filled."""
    fill, filled = _plain_newton.one_plus_scaled, []

    def noted(K, rows, scale, out):
        filled.append(out.dtype)
        fill(K, rows, scale, out)

    monkeypatch.setattr(_plain_newton, "one_plus_scaled", noted)
    return filled


@pytest.mark.parametrize("r", [1.5, 2.0, np.inf])
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_rough_steps_lead_to_an_exact_end(r, scale, precisions):
    banana = make_banana(400, random_state=0)
    X, y = banana.X * scale, banana.y
    model = LeakyHockeyStickClassifier(alpha=1e-6, r=r, gamma=1.0 / X.var())
    model.fit(X, y)
    assert model.duality_gap_ <= 1e-9 * abs(model.objective_)
    assert np.float32 in precisions
    assert precisions[-1] == np.float64


def test_single_precision_is_left_where_it_would_not_hold_the_numbers(precisions):
    banana = make_banana(400, random_state=0)
    model = LeakyHockeyStickClassifier(alpha=1e-11, gamma=1.0).fit(banana.X, banana.y)
    assert model.duality_gap_ <= 1e-8 * abs(model.objective_)
    assert precisions[-2:] == [np.float64] * 2
