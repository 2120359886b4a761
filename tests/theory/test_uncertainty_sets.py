"""Uncertainty sets as geometric objects: membership, support, levels, fixed sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buttress.losses import (
    EllipsoidError,
    Exponential,
    HardMargin,
    LogBarrier,
    Logistic,
    NuHinge,
    TruncatedQuadratic,
)
from buttress.theory import Ellipsoid, UncertaintySet, confidence_region, convex_hull, reduced_hull

LOSSES = [
    TruncatedQuadratic(),
    EllipsoidError(h=1.0),
    EllipsoidError(h=0.3, omega=0.6),
    Exponential(),
    Logistic(30.0),
    LogBarrier(),
]
POINTS = np.random.default_rng(0).normal(size=(12, 2))
M = 30


def between(loss, share):
    """A set between the mean and the hull."""
    lowest = UncertaintySet(POINTS, loss, 1e6, n_samples=M)
    top = min(lowest.full_hull_level(), lowest.minimum_level() + 5.0)
    level = lowest.minimum_level() + share * (top - lowest.minimum_level())
    return UncertaintySet(POINTS, loss, level, n_samples=M)


@pytest.mark.smoke
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_boundary_points_have_the_level_and_part_inside_from_outside(loss, share):
    shape = between(loss, share)
    for direction in np.array([[1.0, 0.0], [-0.3, 1.0], [0.5, -2.0]]):
        alpha = shape.weights(direction)
        value, point = shape.support(direction)
        assert alpha.sum() == pytest.approx(1.0)
        assert np.all(alpha >= 0)
        assert shape.level_of(alpha) == pytest.approx(shape.level, abs=1e-9)
        assert value == pytest.approx(direction @ point)
        out = point - shape.center
        assert shape.contains(shape.center + 0.98 * out)
        assert not shape.contains(shape.center + 1.01 * out)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@settings(max_examples=10)
@given(seed=st.integers(0, 1000), angle=st.floats(0, 6.28))
def test_support_bounds_every_admitted_weight(loss, seed, angle):
    shape = between(loss, 0.3)
    direction = np.array([np.cos(angle), np.sin(angle)])
    alpha = np.random.default_rng(seed).dirichlet(np.full(12, 3.0))
    uniform = np.full(12, 1 / 12)
    # shrink towards uniform weights until admitted
    t = 1.0
    while shape.level_of(t * alpha + (1 - t) * uniform) > shape.level:
        t *= 0.7
    admitted = (t * alpha + (1 - t) * uniform) @ POINTS
    assert direction @ admitted <= shape.support(direction)[0] + 1e-9


def test_support_agrees_with_a_conic_solver():
    cp = pytest.importorskip("cvxpy")
    shape = between(TruncatedQuadratic(), 0.3)
    alpha = cp.Variable(12, nonneg=True)
    level = cp.sum(cp.square(M * alpha) / 4 - M * alpha) / M
    direction = np.array([0.6, 0.8])
    problem = cp.Problem(
        cp.Maximize((POINTS @ direction) @ alpha), [cp.sum(alpha) == 1, level <= shape.level]
    )
    problem.solve(solver="CLARABEL")
    assert shape.support(direction)[0] == pytest.approx(problem.value, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_uniform_weights_have_the_least_level(loss):
    shape = between(loss, 0.5)
    rng = np.random.default_rng(1)
    draws = [shape.level_of(rng.dirichlet(np.ones(12))) for _ in range(50)]
    assert min(draws) >= shape.minimum_level() - 1e-12
    smallest = UncertaintySet(POINTS, loss, shape.minimum_level(), n_samples=M)
    np.testing.assert_allclose(smallest.support([1.0, 0.0])[1], smallest.center, atol=1e-5)
    with pytest.raises(ValueError, match="empty"):
        UncertaintySet(POINTS, loss, shape.minimum_level() - 0.01, n_samples=M)


def test_full_hull_level_gives_the_hull():
    for loss in (TruncatedQuadratic(), EllipsoidError(h=1.0), Exponential()):
        level = UncertaintySet(POINTS, loss, 1e6, n_samples=M).full_hull_level()
        whole = UncertaintySet(POINTS, loss, level, n_samples=M)
        np.testing.assert_allclose(whole.boundary(40), convex_hull(POINTS).boundary(40))
    assert np.isinf(UncertaintySet(POINTS, LogBarrier(), 10.0).full_hull_level())


def test_weights_equal_copies():
    w = np.random.default_rng(2).integers(1, 4, 12)
    for loss in LOSSES:
        level = UncertaintySet(POINTS, loss, 1e6, sample_weight=w).minimum_level() + 0.4
        a = UncertaintySet(POINTS, loss, level, sample_weight=w)
        b = UncertaintySet(np.repeat(POINTS, w, axis=0), loss, level)
        np.testing.assert_allclose(a.boundary(12), b.boundary(12), atol=1e-8)


def test_quadratic_set_lies_in_the_ellipse_with_one_less():
    bound = 0.2  # on the sum of squared weights
    shape = UncertaintySet(POINTS, TruncatedQuadratic(), M * bound / 4 - 1, n_samples=M)
    inverse = np.linalg.inv(np.cov(POINTS.T, bias=True))
    d = shape.boundary(90) - shape.center
    assert np.einsum("ij,jk,ik->i", d, inverse, d).max() <= 12 * bound - 1 + 1e-9
    # affinely independent points: equality
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    small = UncertaintySet(corners, TruncatedQuadratic(), 3 * 0.4 / 4 - 1)
    inverse = np.linalg.inv(np.cov(corners.T, bias=True))
    d = small.boundary(30) - small.center
    np.testing.assert_allclose(np.einsum("ij,jk,ik->i", d, inverse, d), 3 * 0.4 - 1, rtol=1e-6)


def test_hulls():
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    hull = convex_hull(square)
    assert hull.support([1.0, 1.0])[0] == 2.0
    assert hull.contains([0.5, 1.0])
    assert not hull.contains([0.5, 1.01])
    half = reduced_hull(square, 1.0)  # no weight above one half
    assert half.support([1.0, 1.0])[0] == pytest.approx(1.5)
    assert half.contains([0.75, 0.75])
    assert not half.contains([0.9, 0.9])
    assert hull.minimum_level() == half.minimum_level() == 0.0
    assert np.isinf(half.full_hull_level())


def test_points_beyond_the_hull_are_outside():
    for loss in LOSSES:
        assert not between(loss, 0.9).contains([50.0, 0.0])


def test_ellipsoid_and_confidence_region():
    shape = Ellipsoid([1.0, 0.0], [[4.0, 0.0], [0.0, 1.0]], 2.0)
    assert shape.support([1.0, 0.0])[0] == pytest.approx(5.0)
    assert shape.contains([5.0, 0.0])
    assert not shape.contains([5.0, 0.1])
    assert shape.boundary(8).shape == (8, 2)
    draws = np.random.default_rng(0).multivariate_normal([1, 2], [[2, 1], [1, 1]], 4000)
    region = confidence_region(draws[:2000])
    assert np.mean([region.contains(x) for x in draws[2000:]]) == pytest.approx(0.95, abs=0.02)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="points"):
        UncertaintySet(np.empty((0, 2)), Exponential(), 1.0)
    with pytest.raises(ValueError, match="n_samples"):
        UncertaintySet(POINTS, Exponential(), 1.0, n_samples=5)
    with pytest.raises(ValueError, match="plane"):
        convex_hull(np.eye(3)).boundary()
    with pytest.raises(ValueError, match="radius"):
        Ellipsoid([0.0], [[1.0]], -1.0)
    with pytest.raises(ValueError, match="covariance"):
        Ellipsoid([0.0, 0.0], np.zeros((2, 2)), 1.0)
    with pytest.raises(ValueError, match="probability"):
        confidence_region(POINTS, 1.0)
    assert "12 points" in repr(convex_hull(POINTS))
    assert convex_hull(POINTS).loss == HardMargin()
    assert reduced_hull(POINTS, 0.5).loss == NuHinge(0.5)


@pytest.mark.parametrize("shape", [convex_hull(POINTS), Ellipsoid([0.0, 0.0], np.eye(2), 1.0)])
def test_points_and_directions_that_make_no_sense_are_named(shape):
    with pytest.raises(ValueError, match=r"z=.*2 finite coordinates"):
        shape.contains([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"direction=.*2 finite coordinates"):
        shape.support([np.nan, 1.0])
    with pytest.raises(ValueError, match="n=0"):
        shape.boundary(0)
    value, point = shape.support([0.0, 0.0])
    assert value == 0.0
    assert shape.contains(point)


def test_points_must_be_finite():
    with pytest.raises(ValueError, match="points must be finite"):
        convex_hull([[0.0, np.nan]])


def test_stored_support_functions(oracle):
    arrays, cases = oracle("support_function")
    for name, case in cases.items():
        par = case["par"]
        if name.startswith("tq"):
            loss = TruncatedQuadratic(par["b1"], par["b2"])
        elif name.startswith("exp"):
            loss = Exponential()
        else:
            loss = EllipsoidError(h=par["h"], omega=par["w"])
        shape = UncertaintySet(arrays["Xp"], loss, case["c"], n_samples=case["m"])
        assert shape.minimum_level() == pytest.approx(case["cmin"])
        assert shape.full_hull_level() == pytest.approx(case["cmax"])
        for k in range(8):
            direction = [np.cos(k * np.pi / 4), np.sin(k * np.pi / 4)]
            value, point = shape.support(direction)
            assert value == pytest.approx(arrays[f"{name}_support"][k], abs=1e-8)
            np.testing.assert_allclose(point, arrays[f"{name}_points"][k], atol=1e-6)


@pytest.mark.parametrize("h", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("points", [[[0.0], [1.0], [3.0]], [[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]]])
def test_nothing_outside_of_the_hull_is_in_a_set_whose_loss_is_straight_somewhere(points, h):
    points, loss = np.array(points), EllipsoidError(h=h)
    for n_samples in (len(points), 2 * len(points)):
        whole = UncertaintySet(points, loss, 1e9, n_samples=n_samples)
        least, most = whole.minimum_level(), whole.full_hull_level()
        shape = UncertaintySet(points, loss, 0.5 * (least + most), n_samples=n_samples)
        assert shape.contains(shape.center)
        for far in (3.1, 10.0, 100.0, 1e6):
            assert not shape.contains(np.full(points.shape[1], far))
