"""Ramp losses: formulas, splits, and Theorem 1 of the double ramp paper (corrected)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from buttress.losses import DoubleRamp, GeneralizedHinge, GeneralizedRamp, Hinge, Ramp

U = np.linspace(-8, 8, 3201)
LOSSES = [
    Ramp(-1.0),
    Ramp(0.0),
    Ramp(-np.inf),
    GeneralizedRamp(0.0),
    GeneralizedRamp(0.3),
    GeneralizedRamp(1.0),
    DoubleRamp(0.2, 1.0, 2.0),
    DoubleRamp(0.4, 0.5, 0.1),
    DoubleRamp(0.5, 0.1, 0.0),
]
costs = st.floats(0.01, 0.5)
widths = st.floats(0.05, 1.0)
bands = st.floats(0.0, 4.0)


@pytest.mark.smoke
def test_ramp_is_a_clipped_hinge():
    np.testing.assert_array_equal(Ramp(-1.0).value(U), np.minimum(Hinge().value(U), 2.0))
    np.testing.assert_array_equal(Ramp(-np.inf).value(U), Hinge().value(U))


def test_generalized_ramp_is_its_formula():
    expected = np.where(U < 0, 1 - 0.3 * U, np.maximum(1 - U, 0))
    np.testing.assert_allclose(GeneralizedRamp(0.3).value(U), expected, atol=1e-12)
    np.testing.assert_allclose(GeneralizedRamp(1.0).value(U), Hinge().value(U))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_split_adds_up_and_has_the_right_curvatures(loss):
    convex, concave = loss.convex_part(U), loss.concave_part(U)
    np.testing.assert_allclose(convex + concave, loss.value(U), atol=1e-12)
    assert (np.diff(convex, 2) >= -1e-12).all()
    assert (np.diff(concave, 2) <= 1e-12).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_derivative_is_the_slope_between_kinks(loss):
    slope = (loss.value(U + 1e-7) - loss.value(U - 1e-7)) / 2e-7
    away = np.abs(loss.value(U + 1e-3) + loss.value(U - 1e-3) - 2 * loss.value(U)) < 1e-9
    assert away.mean() > 0.9
    np.testing.assert_allclose(loss.derivative(U)[away], slope[away], atol=1e-6)


def test_ramp_keeps_its_value_far_to_the_left():
    assert float(Ramp(-0.5).value(np.asarray(-1e17))) == 1.5
    assert float(DoubleRamp(0.2, 0.5, 1.0).value(np.asarray(-1e17))) == pytest.approx(1.5)


@given(costs, widths, bands, st.floats(-20, 20))
def test_double_ramp_lies_between_the_rejection_loss_and_its_cap(d, mu, rho, u):
    value = float(DoubleRamp(d, mu, rho).value(np.asarray(u)))
    zero_d_one = 1.0 if u < -rho else (d if u <= rho else 0.0)
    assert zero_d_one - 1e-9 <= value <= 1 + mu + 1e-9


@given(costs, widths, bands)
def test_double_ramp_is_flat_inside_a_wide_band(d, mu, rho):
    low, high = -rho + mu, rho - mu * mu
    assume(high > low)
    inside = np.linspace(low, high, 7)
    np.testing.assert_allclose(DoubleRamp(d, mu, rho).value(inside), d * (1 + mu), atol=1e-9)


@given(costs, bands, st.floats(-5, 5))
def test_double_ramp_tends_to_the_rejection_loss(d, rho, u):
    assume(min(abs(u - rho), abs(u + rho)) > 1e-3)
    zero_d_one = 1.0 if u < -rho else (d if u <= rho else 0.0)
    assert float(DoubleRamp(d, 1e-6, rho).value(np.asarray(u))) == pytest.approx(
        zero_d_one, abs=1e-4
    )


@given(costs, widths, bands)
def test_double_ramp_does_not_increase(d, mu, rho):
    assert (np.diff(DoubleRamp(d, mu, rho).value(U)) <= 1e-12).all()


@given(costs, widths, bands)
def test_double_ramp_is_two_ramps(d, mu, rho):
    def ramp(t):
        return np.clip((mu - t) / mu, 0, 1 + mu)

    expected = d * ramp(U - rho) + (1 - d) * ramp(U + rho)
    np.testing.assert_allclose(DoubleRamp(d, mu, rho).value(U), expected, atol=1e-9)


@given(widths)
def test_half_cost_without_band_is_a_plain_ramp(mu):
    np.testing.assert_allclose(
        DoubleRamp(0.5, mu, 0.0).value(U), np.clip((mu - U) / mu, 0, 1 + mu), atol=1e-9
    )


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Ramp(0.1), r"s=0\.1.*\[-inf, 0\]"),
        (lambda: Ramp(float("nan")), r"s=nan"),
        (lambda: GeneralizedRamp(1.5), r"gamma=1\.5.*\[0, 1\]"),
        (lambda: DoubleRamp(d=0.6), r"d=0\.6.*\(0, 0\.5\]"),
        (lambda: DoubleRamp(mu=0.0), r"mu=0\.0.*\(0, 1\]"),
        (lambda: DoubleRamp(rho=-1.0), r"rho=-1\.0.*\[0, inf\)"),
        (lambda: GeneralizedHinge(0.7), r"d=0\.7"),
    ],
)
def test_parameters_out_of_range_are_named(make, named):
    with pytest.raises(ValueError, match=named):
        make()
