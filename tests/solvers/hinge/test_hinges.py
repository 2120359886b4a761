"""Sums of hinges: terms, objectives and convex steps."""

from __future__ import annotations

import numpy as np
import pytest

from buttress.losses import GeneralizedHinge, Ramp
from buttress.solvers.hinge.hinges import HingeProblem, HingeTerms, solve_hinges


def make(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2)), y


def test_loss_of_the_terms_is_the_loss_of_the_paper():
    _, y = make()
    ramp = HingeTerms(y, np.ones(30), np.full(30, 2.0), clip=np.full(30, -0.5))
    g, b = 3 * np.sin(np.arange(30.0)), 0.3
    expected = 2.0 * Ramp(-0.5).value(y * (g + b)).sum()
    assert ramp.loss(g, np.array([b])) == pytest.approx(expected)
    np.testing.assert_array_equal(ramp.clipped(g, np.array([b])), y * (g + b) < -0.5)
    assert not ramp.convex
    assert ramp.n_groups == 1

    loss = GeneralizedHinge(0.2)
    stacked = HingeTerms(
        sign=np.tile(y, 2),
        margin=np.repeat([m for _, m in loss.terms], 30),
        weight=np.repeat([w for w, _ in loss.terms], 30),
        row=np.tile(np.arange(30), 2),
    )
    assert stacked.convex
    assert stacked.loss(g, np.array([b])) == pytest.approx(loss.value(y * (g + b)).sum())


def test_terms_without_group_see_no_threshold():
    _, y = make()
    terms = HingeTerms(y, np.ones(30), np.ones(30), group=np.full(30, -1))
    assert terms.n_groups == 0
    np.testing.assert_array_equal(terms.margins(np.arange(30.0), np.empty(0)), y * np.arange(30.0))


def test_strong_duality_of_a_convex_step():
    """Primal value = -(dual minimum) + sum of beta times margin."""
    K, y = make()
    terms = HingeTerms(y, np.ones(30), np.full(30, 5.0), clip=np.full(30, -1.0))
    problem = HingeProblem(K, terms)
    pattern = np.arange(30) % 5 == 0
    point = problem.step(pattern, None, 1e-10)
    value = problem.step_value(pattern, point)
    assert value == pytest.approx(-point.step.objective + 5.0 * pattern.sum(), rel=1e-10)
    rng = np.random.default_rng(0)
    for _ in range(20):  # no neighbour is better
        other = problem.point(point.c + 1e-3 * rng.normal(size=30), point.threshold + 1e-3)
        assert problem.step_value(pattern, other) >= value - 1e-9


def test_adjusted_thresholds_are_used():
    K, y = make()
    terms = HingeTerms(y, np.ones(30), np.ones(30))

    class Moved(HingeProblem):
        def adjusted(self, threshold):
            return threshold + 1.0

    plain = HingeProblem(K, terms).step(np.zeros(30, dtype=bool), None, 1e-9)
    moved = Moved(K, terms).step(np.zeros(30, dtype=bool), None, 1e-9)
    np.testing.assert_allclose(moved.threshold, plain.threshold + 1.0)


def test_clipped_terms_are_refused_by_the_convex_solver():
    K, y = make()
    with pytest.raises(ValueError, match="convex"):
        solve_hinges(K, HingeTerms(y, np.ones(30), np.ones(30), clip=np.zeros(30)))
