"""From sets to losses: the closed forms of the paper's examples and Theorem 1."""

import numpy as np
import pytest

from buttress.losses import EllipsoidError, Exponential, TruncatedQuadratic
from buttress.solvers.sets.distance import solve_distance
from buttress.solvers.sets.geometry import CentredGeometry
from buttress.theory import (
    EllipsoidLevels,
    QuadraticWeights,
    UncertaintySet,
    revise_uncertainty_set,
)

A = np.linspace(0.0, 4.0, 41)
Z = np.linspace(-3.0, 3.0, 13)


def positive_definite(n, seed):
    B = np.random.default_rng(seed).normal(size=(n, n))
    return B @ B.T + np.eye(n)


def by_hand(positive, negative, p, n):
    """The general, numerical revision: callables hide the closed form."""
    return revise_uncertainty_set(lambda a: positive(a), lambda a: negative(a), p, n)


@pytest.mark.smoke
def test_example_4_quadratic_weights():
    p, n = QuadraticWeights(positive_definite(4, 0)), QuadraticWeights(positive_definite(6, 1))
    loss = revise_uncertainty_set(p, n, 4, 6)
    k = p.matrix.sum() + n.matrix.sum()
    np.testing.assert_allclose(loss.conjugate(A), k * A**2 / 100)
    np.testing.assert_allclose(loss.value(Z), 100 / (4 * k) * np.maximum(Z, 0) ** 2)
    numerical = by_hand(p, n, 4, 6)
    np.testing.assert_allclose(numerical.conjugate(A), loss.conjugate(A), atol=1e-12)
    np.testing.assert_allclose(numerical.value(Z), loss.value(Z), atol=1e-9)
    np.testing.assert_allclose(numerical.derivative(Z), loss.derivative(Z), atol=1e-6)
    np.testing.assert_allclose(
        numerical.conjugate_derivative(A[1:]), loss.conjugate_derivative(A[1:]), atol=1e-6
    )
    assert np.isinf(numerical.conjugate(-1.0))
    assert np.isnan(numerical.conjugate_derivative(-1.0))
    assert np.isinf(numerical.slope_bound)


def test_example_4_rescales_to_a_plain_quadratic():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 2)), np.where(np.arange(10) < 4, 1.0, -1.0)
    X[y > 0] += 2.0
    p, n = QuadraticWeights(positive_definite(4, 0)), QuadraticWeights(positive_definite(6, 1))
    k = p.matrix.sum() + n.matrix.sum()
    factor = 100 / (4 * k)
    revised = solve_distance(
        CentredGeometry(features=X), y, revise_uncertainty_set(p, n, 4, 6), 0.5
    )
    plain = solve_distance(
        CentredGeometry(features=X), y, TruncatedQuadratic(b1=0.0, b2=0.25), factor * 0.5
    )
    np.testing.assert_allclose(plain.weight_vector, factor * revised.weight_vector, atol=1e-9)


def test_example_5_ellipsoids_around_means():
    means = np.array([1.0, 2.0]), np.array([-1.0, 0.5])
    levels = [EllipsoidLevels(m, positive_definite(2, k)) for k, m in enumerate(means)]
    loss = revise_uncertainty_set(*levels, 30, 20, means=means)
    assert isinstance(loss, TruncatedQuadratic)
    share = 0.6, 0.4
    direct = sum(
        h(A[:, None][7] * s * m) - h(0 * m) for h, s, m in zip(levels, share, means, strict=True)
    )
    assert loss.conjugate(A[7]) == pytest.approx(direct, rel=1e-12)
    general = revise_uncertainty_set(
        lambda z: levels[0](z), lambda z: levels[1](z), 30, 20, means=means
    )
    np.testing.assert_allclose(general.conjugate(A), loss.conjugate(A), atol=1e-9)
    np.testing.assert_allclose(general.value(Z), loss.value(Z), atol=1e-8)


def test_example_6_estimation_error_gives_the_loss_u():
    mean, matrix, error = np.array([1.0, 1.0]), positive_definite(2, 3), 0.7
    levels = EllipsoidLevels(mean, matrix, error), EllipsoidLevels(np.zeros(2), np.eye(2), error)
    loss = revise_uncertainty_set(*levels, 20, 30, means=(mean, np.zeros(2)))
    assert isinstance(loss, EllipsoidError)
    d = np.sqrt(mean @ matrix @ mean)
    u = EllipsoidError(h=error / d)
    np.testing.assert_allclose(loss.value(Z), d**2 * u.value(50 * Z / (20 * d**2)), rtol=1e-12)
    general = revise_uncertainty_set(
        lambda z: levels[0](z), lambda z: levels[1](z), 20, 30, means=(mean, np.zeros(2))
    )
    np.testing.assert_allclose(general.conjugate(A), loss.conjugate(A), atol=1e-9)
    np.testing.assert_allclose(general.value(Z), loss.value(Z), atol=1e-7)


def test_example_6_with_two_means_away_from_zero_is_numerical():
    means = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    levels = [EllipsoidLevels(m, np.eye(2), 0.5) for m in means]
    loss = revise_uncertainty_set(*levels, 10, 10, means=means)
    expected = 2 * ((np.abs(0.5 * A - 1) + 0.5) ** 2 - 1.5**2)
    np.testing.assert_allclose(loss.conjugate(A), expected, atol=1e-12)
    other = revise_uncertainty_set(
        levels[0], EllipsoidLevels(2 * means[1], np.eye(2)), 10, 10, means=means
    )
    assert not isinstance(other, (TruncatedQuadratic, EllipsoidError))


def test_worst_mean_of_the_confidence_ellipsoid():
    matrix, r = positive_definite(2, 5), 0.4
    center, z = np.array([0.3, -0.2]), np.array([1.0, 2.0])
    level = EllipsoidLevels(center, matrix, r)(z)
    angles = np.linspace(0, 2 * np.pi, 20_000)
    root = np.linalg.inv(np.linalg.cholesky(matrix)).T
    means = center + r * np.column_stack([np.cos(angles), np.sin(angles)]) @ root.T
    worst = max((z - m) @ matrix @ (z - m) for m in means)
    assert level == pytest.approx(worst, rel=1e-6)


@pytest.mark.parametrize("loss", [TruncatedQuadratic(), Exponential(), EllipsoidError(h=1.0)])
def test_theorem_1_sets_with_a_loss_are_left_alone_and_the_loss_is_unique(loss):
    p, n = 5, 8
    m = p + n

    def additive(alpha):
        return float(np.sum(loss.conjugate(m * np.asarray(alpha)))) / m

    revised = revise_uncertainty_set(additive, additive, p, n)
    np.testing.assert_allclose(revised.conjugate(A), loss.conjugate(A), atol=1e-12)
    points = np.random.default_rng(0).normal(size=(p, 2))
    level = UncertaintySet(points, loss, 1e6, n_samples=m).minimum_level() + 0.3
    one = UncertaintySet(points, loss, level, n_samples=m)
    two = UncertaintySet(points, revised, level, n_samples=m)
    alpha = one.weights([1.0, 0.5])
    assert two.level_of(alpha) == pytest.approx(level, abs=1e-9)
    # second statement: equality on the diagonal alone fixes the conjugate
    other = TruncatedQuadratic(b1=-2.0)
    assert not np.allclose(revised.conjugate(A), other.conjugate(A))


def test_bad_arguments_are_explained():
    ball = QuadraticWeights(np.eye(2))
    with pytest.raises(ValueError, match="n_positive"):
        revise_uncertainty_set(ball, ball, 0, 2)
    with pytest.raises(ValueError, match="zero"):
        revise_uncertainty_set(ball, ball, 2, 2, means=(np.zeros(2), np.zeros(2)))
