"""Bounds as the papers state them, and the conditions of the consistency theorems."""

from __future__ import annotations

import numpy as np
import pytest

from buttress import LeakyHockeyStickClassifier
from buttress.losses import DoubleHinge, DoubleRamp, Hinge, LeakyHockeyStick, Ramp
from buttress.theory import (
    admissible_schedule,
    calibration,
    excess_risk_bound,
    existence_radius,
    generalization_bound,
    noise_condition,
    reject_risk_bound,
    risk_is_finite,
    schedule_is_admissible,
)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("radius", "kind", "expected"),
    [(1, "paper", 0.206), (1, "tight", 0.189), (5, "paper", 1.031), (5, "tight", 0.680)],
)
def test_the_notes_numbers(radius, kind, expected):
    bound = generalization_bound(4240, 1.0, radius, 0.05, -0.75, kind=kind)
    assert bound.total == pytest.approx(expected, abs=5e-4)
    assert bound.total == bound.complexity + bound.deviation == float(bound)
    assert not bound.vacuous
    assert generalization_bound(100, 1.0, 21.0, 0.05, -0.75, kind=kind).vacuous


def test_the_range_of_the_loss_on_a_ball():
    rng = np.random.default_rng(0)
    for radius, s in [(0.3, -0.5), (0.3, -0.1), (2.0, -0.5), (2.0, -9.0)]:
        values = Ramp(s).value(rng.uniform(-radius, radius, 100_000))
        bound = generalization_bound(10, 1.0, radius, 0.1, s, kind="tight")
        assert np.ptp(values) <= bound.loss_range
        assert bound.loss_range == pytest.approx(np.ptp(values), abs=1e-3)


def test_excess_risk_bounds():
    assert excess_risk_bound(Hinge(), 0.3).bound == 0.3
    assert excess_risk_bound(Ramp(-1.0), 7.0).bound == 1.0
    assert excess_risk_bound(Hinge(), 0.0).bound == 0.0
    leaky = excess_risk_bound(LeakyHockeyStick(), 0.4)
    theta = float(leaky)
    assert (1 + theta) * np.arctanh(theta) == pytest.approx(0.4, abs=1e-12)
    assert theta < leaky.excess / leaky.constant
    same = excess_risk_bound(calibration(LeakyHockeyStick()), 0.4)
    assert same.bound == leaky.bound

    class Square:
        def value(self, u):
            return (1 - u) ** 2

    curved = excess_risk_bound(Square(), 0.09)
    assert curved.bound == pytest.approx(0.3, abs=1e-4)
    assert (curved.constant, curved.method) == (0.0, "numerical")
    with pytest.raises(ValueError, match="not classification-calibrated"):
        excess_risk_bound(DoubleHinge(0.2), 0.1)


@pytest.mark.parametrize("alpha", [1.0, 1e-2])
def test_every_solution_is_in_the_ball(alpha):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 3))
        y = np.where(rng.random(30) < 0.25, 1, -1)
        y[:2] = 1, -1
        model = LeakyHockeyStickClassifier(alpha=alpha, kernel="linear").fit(X, y)
        found = existence_radius(X, y, alpha)
        norm = np.hypot(model.intercept_[0], np.linalg.norm(model.coef_))
        assert norm <= found.radius == float(found)
        assert found.radius == pytest.approx(np.hypot(found.intercept, found.weights))


def test_the_ball_by_hand():
    found = existence_radius([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]], [0, 0, 1], alpha=0.25)
    root = 2.0 + np.sqrt(3) + 5 / (2 * np.sqrt(0.25 / 3))
    assert found.intercept == pytest.approx(root**2)
    assert found.weights == pytest.approx(5 / 0.25 + root / 0.5)


def test_the_reject_bound():
    rng = np.random.default_rng(0)
    y, f = rng.choice([-1, 1], size=300), 2 * rng.normal(size=300)
    for d, mu, rho in [(0.1, 1.0, 0.5), (0.3, 0.2, 1.0), (0.5, 0.5, 0.0)]:
        found = reject_risk_bound(DoubleRamp(d, mu, rho), y, f)
        wrong, rejected = (y * f <= 0).astype(float), (np.abs(f) <= rho) & (rho > 0)
        assert found.risk == pytest.approx(np.where(rejected, d, wrong).mean())
        assert found.risk <= found.upper <= found.ceiling == 1 + mu
        assert found.flat == pytest.approx(d * (1 + mu))
    # the bound closes as mu goes to 0
    assert reject_risk_bound(DoubleRamp(0.2, 1e-4, 0.5), y, f).upper == pytest.approx(
        reject_risk_bound(DoubleRamp(0.2, 1e-4, 0.5), y, f).risk, abs=5e-3
    )
    with pytest.raises(ValueError, match="y must be"):
        reject_risk_bound(DoubleRamp(), [0, 1], [1.0, 1.0])


@pytest.mark.parametrize(
    ("g", "finite"),
    [
        (lambda delta: delta, True),
        (lambda delta: delta**0.2, True),
        (lambda delta: 0.3, False),
        (lambda delta: 1 / -np.log(delta / 3), False),
        (lambda delta: np.log(delta / 3) ** -3.0, True),
        (lambda delta: 0.0, True),
    ],
)
def test_when_the_best_leaky_risk_is_finite(g, finite):
    found = risk_is_finite(lambda delta: abs(g(delta)))
    assert found.finite is finite
    assert found.integral == pytest.approx(sum(found.decades))
    assert "evidence" in found.evidence


def test_the_finite_risk_by_hand():
    """With eta uniform, g(delta) = delta and the best risk is an elementary integral."""
    eta = (np.arange(200_000) + 0.5) / 200_000
    risk = calibration(LeakyHockeyStick()).H(eta)
    assert risk.mean() == pytest.approx(0.5 - np.log(2), abs=1e-4)
    assert risk_is_finite(lambda delta: delta).integral == pytest.approx(0.1, rel=1e-6)


def test_schedules():
    np.testing.assert_allclose(admissible_schedule([100, 10_000], scale=2.0), [0.2, 0.02])
    assert schedule_is_admissible(lambda n: admissible_schedule(n, power=0.9))
    assert schedule_is_admissible(lambda n: 1 / np.log(n))
    assert not schedule_is_admissible(lambda n: 1 / n)
    assert not schedule_is_admissible(lambda n: n**-1.5)
    assert not schedule_is_admissible(lambda n: 0.1)
    assert noise_condition(lambda delta: delta)
    assert not noise_condition(lambda delta: 0.5)
    assert noise_condition(lambda delta: delta**3, r=3.0)
    assert not noise_condition(lambda delta: delta, r=3.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: generalization_bound(0, 1, 1, 0.1, -1), "n=0"),
        (lambda: generalization_bound(9, -1, 1, 0.1, -1), "kernel_bound=-1"),
        (lambda: generalization_bound(9, 1, 0, 0.1, -1), "radius=0"),
        (lambda: generalization_bound(9, 1, 1, 1.0, -1), "delta=1.0"),
        (lambda: generalization_bound(9, 1, 1, 0.1, 0.5), "s=0.5"),
        (lambda: generalization_bound(9, 1, 1, 0.1, -1, kind="best"), "kind='best'"),
        (lambda: excess_risk_bound(Hinge(), -0.1), "excess=-0.1"),
        (lambda: excess_risk_bound(Hinge(), "much"), "excess='much'"),
        (lambda: existence_radius([[1.0]], [1], 1.0), "two labels"),
        (lambda: existence_radius([1.0], [1], 1.0), "shape"),
        (lambda: existence_radius([[1.0], [2.0]], [1, 0], 0.0), "alpha=0.0"),
        (lambda: admissible_schedule([0.5]), "n="),
        (lambda: admissible_schedule(9, power=1.0), "power=1.0"),
        (lambda: risk_is_finite(lambda d: d, delta_max=2.0), "delta_max=2.0"),
        (lambda: noise_condition(lambda d: d, r=1.0), "r=1.0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
