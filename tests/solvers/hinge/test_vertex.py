"""From the middle of an optimal face to a vertex: same function, same sums, few variables free."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from buttress import DoubleHingeClassifier
from buttress.solvers.hinge._smo_problem import BoxProblem, BoxTerms
from buttress.solvers.hinge._vertex import at_vertex


def middle_of_a_face(seed, n_groups, layers=1, n=200, r=7):
    """A problem over points of few dimensions, and a point with all variables inside."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, r)) * 10.0 ** rng.uniform(-3, 0, size=r)
    m = layers * n
    group = rng.integers(0, n_groups, size=m) if n_groups else np.full(m, -1)
    terms = BoxTerms(
        points @ points.T,
        np.where(rng.random(m) < 0.5, 1.0, -1.0),
        -np.ones(m),
        np.tile(np.arange(n), layers),
        group,
    )
    upper = rng.uniform(0.5, 2.0, size=m)
    problem = BoxProblem(terms, np.zeros(m), upper)
    width = problem.upper - problem.lower
    b = problem.lower + rng.uniform(0.01, 0.99, size=m) * width
    at_bound = rng.random(m) < 0.3
    b[at_bound] = problem.upper[at_bound]
    return problem, points, b


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n_groups", "layers"), [(0, 1), (1, 1), (1, 2), (2, 2)])
def test_function_and_sums_stay_and_few_variables_are_free(seed, n_groups, layers):
    problem, points, b = middle_of_a_face(seed, n_groups, layers)
    vertex = at_vertex(problem, b, points)
    assert (vertex >= problem.lower).all()
    assert (vertex <= problem.upper).all()
    before, after = (points.T @ problem.row_sums(each) for each in (b, vertex))
    np.testing.assert_allclose(after, before, atol=1e-9)
    for k in range(n_groups):
        assert vertex[problem.group == k].sum() == pytest.approx(b[problem.group == k].sum())
    free = np.minimum(vertex - problem.lower, problem.upper - vertex) > problem.slack
    assert free.sum() <= points.shape[1] + n_groups
    # what was on a bound stays there
    fixed = np.minimum(b - problem.lower, problem.upper - b) <= problem.slack
    np.testing.assert_array_equal(vertex[fixed], b[fixed])


def test_a_point_with_few_free_variables_is_left_as_it_is():
    problem, points, b = middle_of_a_face(0, 1)
    vertex = at_vertex(problem, b, points)
    np.testing.assert_array_equal(at_vertex(problem, vertex, points), vertex)


@pytest.mark.parametrize("seed", range(4))
def test_a_kernel_of_low_rank_is_solved_to_the_end(seed):
    """A wide Gaussian kernel: the interior point leaves nearly all variables inside."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = DoubleHingeClassifier(d=0.05, C=20.0, gamma=1e-3).fit(X, y)
    assert model.duality_gap_ <= 1e-7 * (1.0 + model.objective_)
