"""The leaky hockey stick family: its definition, its derivative, its conjugate."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from buttress.losses import ConjugateLoss, LeakyHockeyStick, Loss, SmoothLoss, require

EXPONENTS = st.sampled_from([1.01, 1.5, 2.0, 5.0, 1e3, math.inf])
MARGINS = hnp.arrays(np.float64, 20, elements=st.floats(-50, 50))


@pytest.mark.smoke
def test_values_are_those_of_the_definition():
    u = np.array([-2.0, 0.5, 1.0, 4.0])
    np.testing.assert_allclose(LeakyHockeyStick().value(u), [3, 0.5, 0, -math.log(4)])
    np.testing.assert_allclose(LeakyHockeyStick(2).value(u), [3, 0.5, 0, 2 * (1 - 2)])


@given(EXPONENTS, MARGINS, MARGINS, st.floats(0, 1))
def test_convex(r, u, v, share):
    loss = LeakyHockeyStick(r)
    between = loss.value(share * u + (1 - share) * v)
    assert np.all(between <= share * loss.value(u) + (1 - share) * loss.value(v) + 1e-9)


@given(EXPONENTS, MARGINS)
def test_derivative_agrees_with_differences(r, u):
    loss, h = LeakyHockeyStick(r), 1e-6
    differences = (loss.value(u + h) - loss.value(u - h)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(u), differences, atol=2e-6)


@given(EXPONENTS, MARGINS)
def test_curvature_agrees_with_differences_of_the_derivative_and_its_bound(r, u):
    loss, h = LeakyHockeyStick(r), 1e-6
    away = np.abs(u - 1) > 1e-3
    differences = (loss.derivative(u + h) - loss.derivative(u - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(u)[away], differences[away], atol=1e-6)
    assert np.all(loss.curvature(u) <= loss.curvature_bound + 1e-15)
    assert loss.curvature(np.array([1.0 + 1e-12]))[0] == pytest.approx(loss.curvature_bound)


@given(EXPONENTS, MARGINS)
def test_fenchel_young_holds_with_equality_at_the_derivative(r, u):
    loss = LeakyHockeyStick(r)
    s = loss.derivative(u)
    # at u = 50 and r near 1 the conjugate's argument is close to 0 and its value moderate
    np.testing.assert_allclose(loss.value(u) + loss.conjugate(s), s * u, rtol=1e-9, atol=1e-9)


@given(EXPONENTS, MARGINS, hnp.arrays(np.float64, 20, elements=st.floats(-1, -1e-3)))
def test_fenchel_young_inequality(r, u, s):
    loss = LeakyHockeyStick(r)
    assert np.all(loss.value(u) + loss.conjugate(s) >= s * u - 1e-9 * (1 + np.abs(s * u)))


def test_conjugate_is_infinite_outside_its_domain_and_finite_near_r_one():
    for r in (1.01, 2.0, math.inf):
        loss = LeakyHockeyStick(r)
        assert np.all(np.isinf(loss.conjugate(np.array([-1.5, 0.0, 0.5]))))
        assert loss.conjugate(np.array([-1.0]))[0] == pytest.approx(-1.0)
    near_one = LeakyHockeyStick(1.01)
    assert np.isfinite(near_one.conjugate(np.array([-0.01]))).all()
    assert np.isinf(near_one.conjugate(np.array([-1e-9]))).all()


def test_the_family_ends_in_the_leaky_hockey_stick():
    u = np.linspace(-3, 10, 200)
    np.testing.assert_allclose(
        LeakyHockeyStick(1e6).value(u), LeakyHockeyStick().value(u), atol=3e-6
    )
    np.testing.assert_allclose(
        LeakyHockeyStick(1e8).derivative(u), LeakyHockeyStick().derivative(u), atol=1e-7
    )


def test_single_precision_is_kept_and_huge_margins_do_not_overflow():
    u = np.array([-1e30, 1e30], dtype=np.float32)
    for r in (2.0, math.inf):
        loss = LeakyHockeyStick(r)
        for values in (loss.value(u), loss.derivative(u), loss.curvature(u)):
            assert values.dtype == np.float32
            assert np.isfinite(values).all()


@pytest.mark.parametrize("r", [1.0, 0.5, -math.inf, math.nan])
def test_exponent_out_of_range(r):
    with pytest.raises(ValueError, match=r"r=.* expected a number in \(1, inf\]"):
        LeakyHockeyStick(r)


def test_protocols_recognise_it_and_say_what_another_object_lacks():
    loss = LeakyHockeyStick()
    assert isinstance(loss, Loss)
    assert isinstance(loss, ConjugateLoss)
    require(loss, SmoothLoss, "solver 'newton'")
    with pytest.raises(TypeError, match=r"solver 'newton' needs .*curvature_bound.*object has no"):
        require(object(), SmoothLoss, "solver 'newton'")


@pytest.mark.parametrize("r", [1.5, 2.0, np.inf])
def test_scalars_may_be_asked_from_python(r):
    loss, u = LeakyHockeyStick(r), np.linspace(-2, 4, 13)
    assert [loss.scalars.value(each) for each in u] == pytest.approx(loss.value(u).tolist())
    slopes = np.array([loss.scalars.slopes(each) for each in u])
    np.testing.assert_allclose(slopes, np.column_stack([-loss.derivative(u), loss.curvature(u)]))
