"""Set losses: derivative, curvature, and the Fenchel relation with their conjugates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from buttress.losses import (
    EllipsoidError,
    Exponential,
    HardMargin,
    LogBarrier,
    Logistic,
    NuHinge,
    TruncatedQuadratic,
)

SMOOTH = [
    TruncatedQuadratic(),
    TruncatedQuadratic(b1=-0.3, b2=2.0),
    EllipsoidError(),
    EllipsoidError(h=1.0),
    EllipsoidError(h=0.3, omega=0.6, scale=2.5),
    Exponential(),
    Logistic(),
    Logistic(slope=4.0),
    LogBarrier(),
]
ALL = [*SMOOTH, NuHinge(0.5), HardMargin()]
POINTS = hnp.arrays(np.float64, 15, elements=st.floats(-6, 4))
WEIGHTS = hnp.arrays(np.float64, 15, elements=st.floats(0.01, 3.9))


def inside(loss, z):
    return np.minimum(z, -0.01) if isinstance(loss, (LogBarrier, HardMargin)) else z


@pytest.mark.smoke
def test_values_of_the_paper():
    z = np.array([-2.0, 0.0, 1.0])
    np.testing.assert_allclose(TruncatedQuadratic().value(z), [0, 1, 4])
    np.testing.assert_allclose(Exponential().value(z), np.exp(z))
    np.testing.assert_allclose(NuHinge(0.5).value(z), [0, 0, 4])
    np.testing.assert_allclose(EllipsoidError(h=1.0).value(0.0), 3.0)


@pytest.mark.parametrize("h", [0.0, 0.1, 0.5, 1.0, 2.5])
def test_compact_form_equals_equation_23(h):
    z = np.linspace(-10, 10, 801)
    pieces = np.select(
        [z < -2 * h - 2, z < -2 * h, z < 2 * h],
        [0 * z, (z / 2 + 1 + h) ** 2, z + 2 * h + 1],
        z**2 / 4 + z * (1 - h) + (1 + h) ** 2,
    )
    np.testing.assert_allclose(EllipsoidError(h=h).value(z), pieces, atol=1e-12)


def test_truncated_quadratic_is_an_ellipsoid_loss():
    z = np.linspace(-4, 4, 101)
    one, other = TruncatedQuadratic(), EllipsoidError(h=0.0, omega=0.5)
    for name in ("value", "derivative", "curvature", "conjugate"):
        np.testing.assert_allclose(getattr(one, name)(z), getattr(other, name)(z), atol=1e-13)


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
@given(z=POINTS)
def test_derivative_agrees_with_differences(loss, z):
    z, e = inside(loss, z), 1e-6
    differences = (loss.value(z + e) - loss.value(z - e)) / (2 * e)
    np.testing.assert_allclose(loss.derivative(z), differences, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
@given(z=POINTS, w=POINTS)
def test_derivative_is_lipschitz_with_the_curvature_bound(loss, z, w):
    z, w = inside(loss, z), inside(loss, w)
    change = np.abs(loss.derivative(z) - loss.derivative(w))
    assert np.all(loss.curvature(z) <= loss.curvature_bound * (1 + 1e-12))
    if np.isfinite(loss.curvature_bound):
        assert np.all(change <= loss.curvature_bound * np.abs(z - w) + 1e-12)
    else:
        assert np.all((loss.derivative(z) - loss.derivative(w)) * (z - w) >= 0)


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
@given(z=POINTS)
def test_fenchel_equality_at_the_derivative(loss, z):
    z = inside(loss, z)
    s = loss.derivative(z)
    np.testing.assert_allclose(loss.value(z) + loss.conjugate(s), s * z, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("loss", ALL, ids=repr)
@given(z=POINTS, s=WEIGHTS)
def test_fenchel_inequality(loss, z, s):
    assert np.all(loss.value(inside(loss, z)) + loss.conjugate(s) >= s * inside(loss, z) - 1e-9)


@pytest.mark.parametrize("loss", ALL, ids=repr)
@given(s=WEIGHTS)
def test_conjugate_derivative_reaches_the_supremum(loss, s):
    s = np.minimum(s, 0.999 * loss.slope_bound)
    z = loss.conjugate_derivative(s)
    np.testing.assert_allclose(loss.conjugate(s), s * z - loss.value(z), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_conjugate_is_infinite_below_zero(loss):
    assert np.isinf(loss.conjugate(np.array([-1e-9, -2.0]))).all()
    assert np.isnan(loss.conjugate_derivative(np.array([-1.0]))).all()


def test_bounded_slopes_end_the_domain_of_the_conjugate():
    assert np.isinf(Logistic(2.0).conjugate(2.1))
    assert np.isinf(NuHinge(0.5).conjugate(4.1))
    assert Logistic(2.0).slope_bound == 2.0


def test_far_arguments_do_not_overflow():
    z = np.array([-1e4, 1e4])
    assert np.isfinite(Exponential().value(z)).all()
    assert np.isfinite(Logistic().derivative(z)).all()
    np.testing.assert_allclose(Logistic().curvature(z), 0.0)
    np.testing.assert_array_equal(LogBarrier().value(np.array([0.0, 1.0])), np.inf)
    np.testing.assert_array_equal(HardMargin().derivative(np.array([-1.0, 1.0])), [0.0, np.inf])
    np.testing.assert_array_equal(NuHinge(1.0).derivative(np.array([-1.0, 1.0])), [0.0, 2.0])


def test_exponential_threshold_in_closed_form():
    s, w = np.array([-300.0, 0.0, 800.0]), np.array([1.0, 2.0, 1.0])
    r = Exponential().threshold(s, w, 4.0)
    assert float(w @ Exponential().derivative(r - s)) == pytest.approx(4.0, rel=1e-12)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: EllipsoidError(h=-1.0), "h"),
        (lambda: EllipsoidError(omega=0.0), "omega"),
        (lambda: EllipsoidError(scale=-1.0), "scale"),
        (lambda: Logistic(slope=0.0), "slope"),
        (lambda: TruncatedQuadratic(b2=0.0), "b2"),
        (lambda: TruncatedQuadratic(b1=np.inf), "b1"),
        (lambda: NuHinge(1.5), "nu"),
    ],
)
def test_parameters_out_of_range_are_named(make, name):
    with pytest.raises(ValueError, match=name):
        make()


@pytest.mark.parametrize("seed", range(5))
def test_truncated_quadratic_threshold_in_closed_form(seed):
    rng = np.random.default_rng(seed)
    s = np.round(rng.normal(size=80) * 10.0 ** rng.uniform(-2, 4), 2)  # some of them equal
    w = rng.integers(0, 3, 80).astype(float)
    loss = TruncatedQuadratic(b1=rng.normal(), b2=10.0 ** rng.uniform(-2, 2))
    for target in w.sum() * np.array([1e-3, 0.5, 1.0, 50.0]):
        r = loss.threshold(s, w, target)
        curvature = w @ loss.curvature(r - s)
        missed = (w @ loss.derivative(r - s) - target) / curvature
        assert abs(missed) <= 1e-13 * (np.abs(s).max() + abs(r))
