"""Directions against brute force over angles, a conic solver, and the classifiers' limits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from buttress import LeakyHockeyStickClassifier
from buttress.theory import margin_directions

ANGLES = np.linspace(0, 2 * np.pi, 720_001)


def separable(seed, n=12, p=2):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=p)
    X = rng.normal(size=(n, p))
    y = np.sign(X @ w)
    return X + 0.3 * y[:, None] * w / np.linalg.norm(w), y


@pytest.mark.smoke
def test_both_directions_in_the_plane():
    X, y = separable(0)
    margins = y[:, None] * (X @ np.stack([np.cos(ANGLES), np.sin(ANGLES)]))
    inside = margins.min(axis=0) > 0
    logs = np.where(inside, np.log(np.where(inside, margins, 1.0)).sum(axis=0), -np.inf)
    found = margin_directions(X, y)
    best = ANGLES[np.argmax(logs)]
    np.testing.assert_allclose(found.product, [np.cos(best), np.sin(best)], atol=2e-5)
    best = ANGLES[np.argmax(margins.min(axis=0))]
    np.testing.assert_allclose(found.smallest, [np.cos(best), np.sin(best)], atol=2e-5)
    cosine = found.product @ found.smallest
    assert found.angle == pytest.approx(np.arccos(cosine), abs=1e-6)
    assert found.residual < 1e-10


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e5])
def test_limits_of_the_classifiers(scale):
    X, y = separable(1, n=20, p=3)
    found = margin_directions(scale * X, y)
    leaky = LeakyHockeyStickClassifier(alpha=1e-7, kernel="linear", fit_intercept=False, tol=1e-12)
    w = leaky.fit(X, y).coef_[0]
    np.testing.assert_allclose(w / np.linalg.norm(w), found.product, atol=1e-5)
    # a constant feature in both classes lets the machine with an intercept do without it
    double = np.concatenate([X, -X])
    machine = SVC(C=1e8, kernel="linear", tol=1e-10).fit(double, np.concatenate([y, -y]))
    w = machine.coef_[0]
    np.testing.assert_allclose(w / np.linalg.norm(w), found.smallest, atol=1e-4)


@pytest.mark.parametrize("q", [1.5, 2.0, 3.0])
def test_other_norms_against_a_conic_solver(q):
    cvxpy = pytest.importorskip("cvxpy")
    X, y = separable(2, n=15, p=3)
    found = margin_directions(X, y, q=q)
    for w in (found.product, found.smallest):
        assert np.sum(np.abs(w) ** q) == pytest.approx(1.0)
    v = cvxpy.Variable(3)
    margins = cvxpy.multiply(y, X @ v)
    task = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.log(margins))), [cvxpy.pnorm(v, q) <= 1])
    task.solve(solver=cvxpy.CLARABEL)
    assert np.log(found.product_margins).sum() >= task.value - 1e-6
    np.testing.assert_allclose(found.product, v.value, atol=1e-3)
    task = cvxpy.Problem(cvxpy.Maximize(cvxpy.min(margins)), [cvxpy.pnorm(v, q) <= 1])
    task.solve(solver=cvxpy.CLARABEL)
    assert found.smallest_margins.min() >= task.value - 1e-6


@pytest.mark.parametrize(
    ("X", "y", "q", "message"),
    [
        ([[1.0], [2.0]], [1, -1], 2, "No hyperplane through the origin"),
        ([[0.0], [0.0]], [1, -1], 2, "No hyperplane through the origin"),
        ([[1.0]], [0], 2, "-1 and"),
        ([[1.0]], [1, 1], 2, "shape"),
        ([[1.0]], [1], 1, "q=1"),
        ([[1.0]], [1], np.inf, "q=inf"),
    ],
)
def test_bad_input_is_named(X, y, q, message):
    with pytest.raises(ValueError, match=message):
        margin_directions(X, y, q)


@pytest.mark.parametrize("q", [1.2, 3.0, 6.0, 12.0])
def test_the_smallest_margin_is_the_largest_possible_for_every_norm(q):
    cvxpy = pytest.importorskip("cvxpy")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, direction = rng.normal(size=(11, 2)), rng.normal(size=2)
        y = np.where(X @ direction > 0, 1, -1)
        v, least = cvxpy.Variable(2), cvxpy.Variable()
        conditions = [cvxpy.multiply(y, X @ v) >= least, cvxpy.pnorm(v, q) <= 1]
        task = cvxpy.Problem(cvxpy.Maximize(least), conditions)
        task.solve(solver=cvxpy.CLARABEL)
        found = margin_directions(X, y, q)
        assert found.smallest_margins.min() == pytest.approx(task.value, rel=1e-6)


def test_an_intercept_by_a_column_of_ones():
    X = np.array([[1.0], [2.0], [5.0]])
    y = np.array([-1, -1, 1])
    found = margin_directions(np.column_stack([X, np.ones(3)]), y)
    assert np.all(found.product_margins > 0)
    assert np.all(found.smallest_margins > 0)
