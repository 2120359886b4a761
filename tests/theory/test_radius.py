"""The growth of the radius that the paper's Example 7 admits."""

import numpy as np
import pytest

from buttress.losses import EllipsoidError, Exponential, Logistic, TruncatedQuadratic
from buttress.theory import radius_schedule


@pytest.mark.smoke
def test_orders_of_example_7():
    m = np.array([10.0, 1e3, 1e6])
    np.testing.assert_allclose(radius_schedule(m, "truncated_quadratic", exponent=0.2), m**0.2)
    np.testing.assert_allclose(radius_schedule(m, Exponential(), exponent=0.5), np.log(m) ** 0.5)
    assert radius_schedule(100, EllipsoidError()) == radius_schedule(100, TruncatedQuadratic())
    assert radius_schedule(100, scale=3.0) == pytest.approx(3.0 * 100**0.2)


def test_the_uniform_deviation_bound_vanishes_under_the_schedule():
    """The exponent of (36): m / b^2 must outgrow the covering number's logarithm."""
    m = 10.0 ** np.arange(40, 120, 10)  # an asymptotic statement: logarithms win for long
    radius = radius_schedule(m, "truncated_quadratic")
    b = 4 * radius + (3 * radius + 1) ** 2
    exponent = m / b**2 - np.log(radius**2) ** 3
    assert np.all(exponent > 0)
    assert np.all(np.diff(exponent) > 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "logistic"}, "loss='logistic'"),
        ({"loss": Logistic(4.0)}, "loss=Logistic"),
        ({"exponent": 0.25}, "exponent"),
        ({"loss": "exponential", "exponent": 1.0}, "exponent"),
        ({"scale": 0.0}, "scale"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        radius_schedule(100, **arguments)
    with pytest.raises(ValueError, match="m="):
        radius_schedule(1)
