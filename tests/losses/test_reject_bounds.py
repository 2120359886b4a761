"""Theorem 1 of the double ramp paper (corrected), and where the convex losses bound 0-d-1."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from buttress.losses import DoubleHinge, DoubleRamp, GeneralizedHinge, Ramp

costs = st.floats(0.01, 0.5)
slopes = st.floats(0.01, 1.0)
widths = st.floats(0.0, 5.0)
T = np.linspace(-9, 9, 3601)


def zero_d_one(t, d, rho):
    return np.where(t < -rho, 1.0, np.where(t <= rho, d, 0.0))


@given(costs, slopes, widths)
def test_i_double_ramp_bounds_the_loss_from_above(d, mu, rho):
    for t in (T, np.array([-rho, rho, np.nextafter(-rho, -9), np.nextafter(rho, 9)])):
        value = DoubleRamp(d=d, mu=mu, rho=rho).value(t)
        assert (value >= zero_d_one(t, d, rho) - 1e-12).all()


@given(costs, widths, st.floats(-8, 8))
def test_ii_double_ramp_tends_to_the_loss_except_at_minus_rho(d, rho, t):
    narrow = DoubleRamp(d=d, mu=1e-9, rho=rho)
    if min(abs(t - rho), abs(t + rho)) > 1e-6:
        assert narrow.value(np.array(t)) == pytest.approx(zero_d_one(t, d, rho), abs=1e-6)
    if rho > 0.1:
        assert narrow.value(np.array(-rho)) == pytest.approx(1.0, abs=1e-6)


@given(costs, slopes, widths)
def test_iii_double_ramp_is_flat_inside_the_band(d, mu, rho):
    t = np.linspace(-9, 9, 3601)
    flat = t[(t > mu - rho) & (t < rho - mu * mu)]
    assert np.allclose(DoubleRamp(d=d, mu=mu, rho=rho).value(flat), d * (1 + mu))
    if 2 * rho <= mu + mu * mu - 0.01:
        assert len(flat) == 0


@given(costs, slopes, widths)
def test_iv_double_ramp_never_exceeds_one_plus_mu(d, mu, rho):
    value = DoubleRamp(d=d, mu=mu, rho=rho).value(T)
    assert value.max() <= (1 + mu) * (1 + 1e-12)
    assert value[0] == pytest.approx(1 + mu)


@given(costs, slopes)
def test_v_without_a_band_it_is_the_mu_ramp(d, mu):
    # with mu = 1 that is the ramp clipped at -1
    plain = (np.maximum(mu - T, 0) - np.maximum(-mu * mu - T, 0)) / mu
    assert np.allclose(DoubleRamp(d=d, mu=mu, rho=0.0).value(T), plain)
    assert np.allclose(DoubleRamp(d=d, mu=1.0, rho=0.0).value(T), Ramp(-1.0).value(T))


@given(costs, slopes)
def test_vi_it_is_not_convex(d, mu):
    loss = DoubleRamp(d=d, mu=mu, rho=0.5)
    left, kink, right = -0.5 - mu * mu - 4.0, -0.5 - mu * mu, -0.5 - mu * mu + 0.5 * mu
    share = (right - kink) / (right - left)
    chord = share * loss.value(np.array(left)) + (1 - share) * loss.value(np.array(right))
    assert loss.value(np.array(kink)) > chord + 1e-3


@given(costs, st.floats(0.0, 1.0))
def test_generalised_hinge_bounds_the_loss_for_rho_up_to_one_minus_d(d, share):
    value = GeneralizedHinge(d).value(T)
    assert (value >= zero_d_one(T, d, share * (1 - d)) - 1e-12).all()
    beyond = 1 - d + 0.05
    t = np.array([beyond])
    assert GeneralizedHinge(d).value(t)[0] < zero_d_one(t, d, beyond)[0]


@given(st.floats(0.02, 0.42), st.floats(0.0, 1.0))
def test_double_hinge_bounds_the_loss_for_rho_in_its_range(d, share):
    # the range is empty above d = 0.43 or so
    H = DoubleHinge(d).entropy
    low, high = max((1 - H) / (1 - d), 0.0), (H - d) / d
    rho = low + share * (high - low)
    assert (DoubleHinge(d).value(T) >= zero_d_one(T, d, rho) - 1e-9).all()
    t = np.array([high + 0.05])
    assert DoubleHinge(d).value(t)[0] < zero_d_one(t, d, high + 0.05)[0]
    if low > 0.05:
        t = np.array([-(low - 0.02)])
        assert DoubleHinge(d).value(t)[0] < zero_d_one(t, d, low - 0.04)[0]


@given(costs, widths, st.floats(-5, 5), st.floats(-3, 3), slopes)
def test_the_loss_splits_into_two_thresholds(d, rho, g, b, mu):
    """L(y, f, rho) = weighted ramps of b - rho and b + rho, one for every label."""

    def ramp(t):
        return (max(mu - t, 0.0) - max(-mu * mu - t, 0.0)) / mu

    low, high = g + b - rho, g + b + rho
    for y, first, last in ((1, d * ramp(low), (1 - d) * ramp(high)),
                           (-1, (1 - d) * ramp(-low), d * ramp(-high))):  # fmt: skip
        value = DoubleRamp(d=d, mu=mu, rho=rho).value(np.array(y * (g + b)))
        assert value == pytest.approx(first + last, abs=1e-9)
