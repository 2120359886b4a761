"""Closed forms against brute force, and the theorem itself on known distributions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.losses import (
    DoubleHinge,
    DoubleRamp,
    EllipsoidError,
    Exponential,
    GeneralizedRamp,
    Hinge,
    LeakyHockeyStick,
    NuHinge,
    Ramp,
    TruncatedQuadratic,
)
from buttress.theory import calibration, psi_transform, set_calibration

ETA = np.linspace(0.0, 1.0, 202)[1:-1]
SLOPES = [-3.0, -1.5, -1.0, -0.75, -0.5, -0.25, 0.0]
CLOSED = [
    *(Ramp(s) for s in SLOPES),
    Hinge(),
    GeneralizedRamp(0.3),
    LeakyHockeyStick(),
    LeakyHockeyStick(2.0),
    LeakyHockeyStick(5.0),
]


def brute_force(loss, eta, wrong=False):
    """Kinks of all the losses and a fine grid; exact for piecewise linear ones."""
    a = np.concatenate([np.linspace(-6, 6, 24_001), [-0.75, -0.25, 0.25, 0.75]])
    risk = eta[:, None] * loss.value(a) + (1 - eta[:, None]) * loss.value(-a)
    if wrong:
        risk = np.where(a * (2 * eta[:, None] - 1) <= 0, risk, np.inf)
    return risk.min(axis=1)


@pytest.mark.smoke
@pytest.mark.parametrize("s", SLOPES)
def test_the_ramp_equals_brute_force(s):
    found = calibration(Ramp(s))
    np.testing.assert_allclose(found.H(ETA), brute_force(Ramp(s), ETA), atol=1e-10)
    np.testing.assert_allclose(found.H_minus(ETA), brute_force(Ramp(s), ETA, True), atol=1e-10)
    np.testing.assert_allclose(found.psi(2 * ETA - 1), np.abs(2 * ETA - 1), atol=1e-15)
    assert (found.method, found.calibrated, found.constant) == ("closed form", True, 1.0)


@pytest.mark.parametrize("loss", CLOSED, ids=repr)
def test_closed_and_numerical_agree(loss):
    closed, numerical = calibration(loss), calibration(loss, method="numerical")
    np.testing.assert_allclose(closed.H(ETA), numerical.H(ETA), atol=1e-10)
    np.testing.assert_allclose(closed.H_minus(ETA), numerical.H_minus(ETA), atol=1e-10)
    theta = np.linspace(-0.95, 0.95, 39)
    np.testing.assert_allclose(closed.psi_tilde(theta), numerical.psi_tilde(theta), atol=1e-10)
    np.testing.assert_allclose(closed.psi(theta), numerical.psi(theta), atol=1e-4)
    assert numerical.calibrated
    assert numerical.constant == pytest.approx(closed.constant, abs=1e-3)
    # the hull is the largest convex function below
    assert np.all(closed.psi(theta) <= closed.psi_tilde(theta) + 1e-12)
    assert np.all(np.diff(closed.psi(np.linspace(0, 0.99, 100)), 2) >= -1e-12)


@pytest.mark.parametrize("loss", [LeakyHockeyStick(), LeakyHockeyStick(2.0), Hinge(), Ramp(-0.5)])
def test_minimisers_reach_the_least_risk(loss):
    found = calibration(loss)
    f = found.minimiser(ETA)
    risk = ETA * loss.value(f) + (1 - ETA) * loss.value(-f)
    np.testing.assert_allclose(risk, found.H(ETA), atol=1e-12)
    assert np.all(np.sign(f) == np.sign(2 * ETA - 1))
    assert found.minimiser(0.5) == 0.0


def test_the_leaky_minimiser_is_the_odds():
    odds = ETA[ETA > 0.5] / (1 - ETA[ETA > 0.5])
    np.testing.assert_allclose(calibration(LeakyHockeyStick()).minimiser(ETA[ETA > 0.5]), odds)
    np.testing.assert_allclose(
        calibration(LeakyHockeyStick(3.0)).minimiser(ETA[ETA > 0.5]), odds**1.5
    )
    certain = calibration(LeakyHockeyStick())
    assert certain.H(1.0) == -np.inf
    assert certain.psi(1.0) == np.inf


@pytest.mark.parametrize(
    "loss", [DoubleRamp(0.2, 1.0, 2.0), DoubleRamp(0.1, 0.5, 1.0), DoubleRamp(0.4, 0.3, 0.3)]
)
def test_the_double_ramp_against_the_reject_option(loss):
    found = calibration(loss)
    f = np.linspace(-5, 5, 20_001)
    risk = ETA[:, None] * loss.value(f) + (1 - ETA[:, None]) * loss.value(-f)
    np.testing.assert_allclose(found.H(ETA), risk.min(axis=1), atol=1e-10)
    bayes = np.minimum(np.minimum(ETA, 1 - ETA), loss.d)
    np.testing.assert_allclose(found.H(ETA), (1 + loss.mu) * bayes)
    answer = np.where(f > 0, 1 - ETA[:, None], ETA[:, None])
    cost = np.where(np.abs(f) <= loss.rho, loss.d, answer)
    excess, surrogate = cost - bayes[:, None], risk - found.H(ETA)[:, None]
    assert found.target == "0-d-1"
    assert found.constant > 0
    assert np.all(found.constant * excess <= surrogate + 1e-10)
    wrong = np.where(excess > 1e-12, risk, np.inf).min(axis=1)
    np.testing.assert_allclose(found.H_minus(ETA), wrong, atol=2e-3)
    assert np.all(found.H_minus(ETA) <= wrong + 1e-12)


def test_losses_that_are_not_calibrated():
    class Flat:
        def value(self, u):
            return np.abs(u)

    assert not calibration(Flat()).calibrated
    assert calibration(Flat()).constant == 0.0
    # a kink at zero holds a whole band of probabilities: made for rejection, not for answers
    assert not calibration(DoubleHinge(0.2)).calibrated


def test_smooth_losses_have_a_curved_transform():
    class Logistic:
        def value(self, u):
            return np.logaddexp(0, -u)

    found = calibration(Logistic())
    theta = np.linspace(0, 0.9, 10)
    eta = (1 + theta) / 2
    entropy = -eta * np.log(eta) - (1 - eta) * np.log1p(-eta)
    np.testing.assert_allclose(found.psi(theta), np.log(2) - entropy, atol=1e-5)
    assert found.calibrated
    assert found.constant == 0.0
    np.testing.assert_allclose(found.minimiser(0.8), np.log(4), atol=1e-6)


@given(st.sampled_from(CLOSED), st.integers(0, 1000))
def test_excess_risks_obey_the_transform(loss, seed):
    """On any finite distribution and for any scores: psi(excess 0-1) <= excess risk."""
    rng = np.random.default_rng(seed)
    mass, eta, f = rng.dirichlet(np.ones(8)), rng.uniform(0.01, 0.99, 8), 3 * rng.normal(size=8)
    found = calibration(loss)
    risk = eta * loss.value(f) + (1 - eta) * loss.value(-f)
    error = np.where(f > 0, 1 - eta, eta)
    excess_error = mass @ (error - np.minimum(eta, 1 - eta))
    assert found.psi(excess_error) <= mass @ (risk - found.H(eta)) + 1e-12


@pytest.mark.smoke
def test_a_set_loss_is_not_silently_judged_as_a_margin_loss():
    with pytest.warns(UserWarning, match="Exponential grows with its argument.*set_calibration"):
        result = calibration(Exponential())
    assert not result.calibrated
    assert "_least" not in repr(result)


def test_psi_transform_and_bad_input():
    assert psi_transform(Ramp(-1.0), 0.25) == 0.25
    with pytest.raises(ValueError, match="expected an object with `value`"):
        calibration("hinge")
    with pytest.raises(ValueError, match="method='exact'"):
        calibration(Hinge(), method="exact")
    with pytest.raises(ValueError, match="no closed form for DoubleHinge"):
        calibration(DoubleHinge(0.2), method="closed form")
    with pytest.raises(ValueError, match="eta is out of range"):
        calibration(Hinge()).H(1.2)
    with pytest.raises(ValueError, match="theta is out of range"):
        calibration(Hinge()).psi(-1.2)


# -- the uncertainty-set paper's condition ------------------------------------------------------


def test_truncated_quadratic_in_closed_form():
    found = set_calibration(TruncatedQuadratic())
    expected = (1 + found.rhos) ** 2 * found.thetas[:, None] ** 2
    np.testing.assert_allclose(found.psi, expected, atol=1e-10)
    assert found.passed
    assert found.monotone_in_rho
    assert found.evidence == "evidence on a grid"
    assert found.curvature_ratio == pytest.approx(2.0, rel=1e-6)


def test_exponential_in_closed_form():
    found = set_calibration(Exponential(), rho_max=3.0)
    expected = (1 - np.sqrt(1 - found.thetas[:, None] ** 2)) * np.exp(found.rhos)
    np.testing.assert_allclose(found.psi, expected, atol=1e-10)
    assert found.passed
    assert found.monotone_in_rho


@pytest.mark.parametrize("h", [0.0, 0.3, 1.0, 3.0])
def test_the_scale_condition_is_sharp(h):
    limit = (1 + 2 * h) / (4 * (1 + h))
    above = set_calibration(EllipsoidError(h=h, omega=1.02 * limit))
    below = set_calibration(EllipsoidError(h=h, omega=0.98 * limit))
    assert above.scale_condition == (1.02 * limit, limit)
    assert above.passed
    assert not below.passed
    wide = set_calibration(EllipsoidError(h=h, omega=1.0))
    assert np.all(wide.infimum >= 3 / 32 * wide.thetas**2 - 1e-12)
    assert wide.monotone_in_rho == (h == 0.0)


def test_the_hinge_fails():
    found = set_calibration(NuHinge(0.5))
    np.testing.assert_allclose(found.psi, 4 * found.rhos * found.thetas[:, None], atol=1e-9)
    assert not found.passed
    assert found.curvature_ratio == np.inf


def test_bad_grids_are_named():
    with pytest.raises(ValueError, match="thetas"):
        set_calibration(TruncatedQuadratic(), thetas=[1.0])
    with pytest.raises(ValueError, match="rhos"):
        set_calibration(TruncatedQuadratic(), rhos=[-1.0])
    with pytest.raises(ValueError, match="rho_max"):
        set_calibration(TruncatedQuadratic(), rho_max=-2.0)
    with pytest.raises(TypeError, match="set_calibration needs"):
        set_calibration(object())
