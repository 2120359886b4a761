"""The interior point with points and with their products takes the same way to the optimum."""

import numpy as np
import pytest

from buttress.solvers.boxqp.group_sums import SumsProblem, minimise_with_sums


def problem(n_groups, some_outside, seed=0):
    """Two variables for each of 60 points; three and a whole point's variables are fixed."""
    rng = np.random.default_rng(seed)
    n = 60
    points = rng.normal(size=(n, 30))
    row = np.tile(np.arange(n), 2)
    group = np.repeat([0, n_groups - 1], n) if n_groups else np.full(2 * n, -1)
    if some_outside:
        group = np.where(rng.random(2 * n) < 0.3, -1, group)
    sign = rng.choice([-1.0, 1.0], 2 * n)
    lower, upper = np.minimum(5.0 * sign, 0.0), np.maximum(5.0 * sign, 0.0)
    fixed = [0, 1, 2, 4, 4 + n]
    upper[fixed] = lower[fixed] = 0.5 * (lower + upper)[fixed]
    held = [lower[fixed][group[fixed] == k].sum() for k in range(n_groups)]
    return points, -sign, lower, upper, row, group, np.array(held)


@pytest.mark.parametrize("some_outside", [False, True])
@pytest.mark.parametrize("n_groups", [0, 1, 2])
def test_products_give_what_points_give(n_groups, some_outside):
    points, *rest = problem(n_groups, some_outside)
    by_points = minimise_with_sums(SumsProblem(points, *rest))
    by_products = minimise_with_sums(SumsProblem(points @ points.T, *rest, gram=True))
    np.testing.assert_allclose(by_products.b, by_points.b, atol=1e-7)
    np.testing.assert_allclose(by_products.multiplier, by_points.multiplier, atol=1e-8)
    np.testing.assert_allclose(by_products.w[60:], points @ by_points.w, atol=1e-8)
    # the weights beside these values are those of the same vector
    np.testing.assert_allclose(
        points @ (points.T @ by_products.w[:60]), by_products.w[60:], atol=1e-8
    )
    q, lower, upper, row, group, sums = rest
    b = by_products.b
    assert ((b >= lower) & (b <= upper)).all()
    for k in range(n_groups):
        assert b[group == k].sum() == pytest.approx(sums[k], abs=1e-8)
    force = by_products.w[60:][row] + q + np.append(by_products.multiplier, 0.0)[group]
    free = (b - lower > 1e-4) & (upper - b > 1e-4)
    assert free.any()
    assert np.abs(force[free]).max() < 1e-6


@pytest.mark.parametrize("gram", [False, True])
def test_any_start_inside_leads_to_the_same_point(gram):
    points, q, lower, upper, row, group, sums = problem(2, True)
    given = SumsProblem(
        points @ points.T if gram else points, q, lower, upper, row, group, sums, gram
    )
    middle = minimise_with_sums(given)
    start = middle.b + 0.3 * (0.5 * (lower + upper) - middle.b)
    for k in range(2):
        members = np.flatnonzero((group == k) & (upper > lower))
        start[members[0]] -= start[group == k].sum() - sums[k]
    inside = (start > lower) & (start < upper) | (lower == upper)
    assert inside.all()
    again = minimise_with_sums(given, start=start)
    # where two variables weigh one point only their sum is unique
    np.testing.assert_allclose(again.w, middle.w, atol=1e-6)


def test_nothing_to_move():
    points, q, lower, _, row, group, _ = problem(0, False)
    found = minimise_with_sums(
        SumsProblem(points @ points.T, q, lower, lower, row, group, np.empty(0), gram=True)
    )
    weights = np.bincount(row, weights=lower, minlength=60)
    np.testing.assert_allclose(found.w, np.r_[weights, points @ (points.T @ weights)])


def test_a_gap_that_is_enough_ends_the_search():
    """Hulls that meet: relative to a distance of zero no gap would ever be small."""
    rng = np.random.default_rng(2)
    points = rng.normal(size=(40, 3))
    signed = points * np.where(np.arange(40) < 20, 1.0, -1.0)[:, None]
    n = len(points)
    problem = SumsProblem(
        signed @ signed.T, np.zeros(n), np.zeros(n), np.full(n, 2.0), np.arange(n),
        (np.arange(n) >= 20).astype(int), np.ones(2), gram=True,
    )  # fmt: skip
    start = np.full(n, 1.0 / 20.0)
    long = minimise_with_sums(problem, start=start)
    short = minimise_with_sums(problem, start=start, enough=1e-12)
    assert short.n_iter < long.n_iter
    assert 0.5 * np.sum((signed.T @ short.b) ** 2) <= 1e-12 + 1e-15
