"""Newton's method at one penalty: rough where it is far from the solution, exact at its end."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from buttress import LeakyHockeyStickClassifier
from buttress.datasets import make_banana
from buttress.losses import LeakyHockeyStick
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


def test_a_step_too_rough_to_fall_is_taken_exactly():
    rng = np.random.default_rng(331)
    n = int(rng.choice([300, 400, 700]))
    X = rng.normal(size=(n, 5))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1, -1)
    model = LeakyHockeyStickClassifier(
        r=1.2, alpha=7.98443452247214e-09, kernel="laplacian", gamma=0.008079464125163595
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert model.duality_gap_ <= 1e-8


def test_a_rough_last_step_tells_no_residual():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = np.where(X[:, 0] + rng.normal(size=500) > 0, 1.0, -1.0)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    rows = _plain_newton.KernelRows(K, y, np.full(500, 1 / 500))
    start = _plain_newton.PlainPoint(np.zeros(500), 0.0, np.zeros(500))
    loss = LeakyHockeyStick(np.inf)
    for steps, near in ((1, False), (1, True), (60, False)):
        point, residual, _ = _plain_newton.solve_penalty(
            rows, loss, 1e-3, start, True, 1e-10, steps, near
        )
        slope = -loss.derivative(point.u)
        errors = np.abs(point.x - rows.omega * y * slope / 2e-3)
        # what is told is at least the error of a coefficient, in units of a slope
        assert residual >= (1 - 1e-9) * errors.max() * 2e-3 * 500 - 1e-12
        assert np.isinf(residual) == (steps == 1 and not near)


def test_single_precision_is_left_where_it_would_not_hold_the_numbers(precisions):
    banana = make_banana(400, random_state=0)
    model = LeakyHockeyStickClassifier(alpha=1e-11, gamma=1.0).fit(banana.X, banana.y)
    assert model.duality_gap_ <= 1e-8 * abs(model.objective_)
    assert precisions[-2:] == [np.float64] * 2
