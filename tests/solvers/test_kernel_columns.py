"""Columns in kernel form against Newton's method in double precision."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from buttress.kernels import make_kernel
from buttress.losses import LeakyHockeyStick
from buttress.solvers._column_solvers import KernelColumns
from buttress.solvers._geometry import from_gram
from buttress.solvers._low_rank import leading_part
from buttress.solvers._plane_search import plane_minimum
from buttress.solvers._sign_certificate import score_errors, smallest_held_out
from buttress.solvers.spectral import solve_problems

ALPHAS = 10.0 ** np.linspace(0, -7, 29)


def folds_of(seed, n=240, gamma=0.3, **options):
    """A Gram matrix, and the labels and weights of four folds and of all rows."""
    X, y = make_classification(
        n, 4, n_informative=3, n_redundant=0, random_state=seed, **({"flip_y": 0.1} | options)
    )
    K = make_kernel("rbf", gamma=gamma)(X)
    omega = np.ones((5, n))
    for k in range(4):
        omega[k, k::4] = 0.0
    omega /= omega.sum(axis=1, keepdims=True)
    return K, np.tile(np.where(y > 0, 1.0, -1.0), (5, 1)), omega


def decision(paths):
    return paths.scores + paths.intercept[:, :, None]


@pytest.mark.parametrize("r", [np.inf, 2.0])
@pytest.mark.parametrize(
    "options",
    [
        {"flip_y": 0.0, "class_sep": 3.0},
        {"flip_y": 0.3},
        {"weights": [0.9]},
        {"gamma": 0.03},
        {"gamma": 20.0},
    ],
    ids=["separable", "noisy", "unequal", "nearly singular", "nearly diagonal"],
)
def test_signs_of_held_out_scores_are_those_of_the_exact_path(options, r):
    K, Y, omega = folds_of(3, **options)
    geometry, loss = from_gram(K), LeakyHockeyStick(r)
    common = {"n_threads": 2, "weight": None}
    exact = solve_problems(geometry, Y, omega, ALPHAS, loss, tol=1e-12, method="newton", **common)
    found = solve_problems(
        geometry,
        Y,
        omega,
        ALPHAS,
        loss,
        tol=1e-6,
        method="batched",
        signs_only=np.arange(5) < 4,
        **common,
    )
    assert found.converged.all()
    f, expected = decision(found), decision(exact)
    scale = np.abs(expected).max(axis=2, keepdims=True)
    for q in range(4):
        held_out = omega[q] == 0
        np.testing.assert_array_equal(f[q][:, held_out] > 0, expected[q][:, held_out] > 0)
    # the problem on all rows is solved whatever the signs
    error = np.abs(f[4] - expected[4]) / scale[4]
    assert error.max() <= 2e-3
    assert np.median(error.max(axis=1)) <= 2e-5


def test_refined_columns_are_solutions_in_double_precision():
    K, Y, omega = folds_of(1)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    lam = ALPHAS[[0, 6, 12]] / geometry.scale
    exact = solve_problems(geometry, Y, omega, ALPHAS[[0, 6, 12]], loss, tol=1e-12, method="newton")
    problem = np.array([0, 1, 4])
    solver = KernelColumns(geometry, Y, omega, loss, True, 1)
    start = (
        exact.weights[problem, [0, 1, 2]].astype(np.float32),
        exact.intercept[problem, [0, 1, 2]],
    )
    noise = 1e-3 * np.random.default_rng(0).standard_normal(start[0].shape) * np.abs(start[0])
    found = solver.refine(problem, lam, (start[0] + noise, start[1]), 1e-9)
    expected = exact.scores[problem, [0, 1, 2]] + exact.intercept[problem, [0, 1, 2], None]
    assert np.all(found.residual <= 1e-9)
    np.testing.assert_allclose(found.scores + found.intercept[:, None], expected, atol=1e-7)


def test_the_error_of_scores_is_bounded_by_what_is_left_of_the_objective():
    K, Y, omega = folds_of(2)
    geometry, loss, alpha = from_gram(K), LeakyHockeyStick(), np.array([1e-2])
    exact = solve_problems(geometry, Y, omega, alpha, loss, tol=1e-12, method="newton")
    lam = alpha / geometry.scale

    def value(coef, intercept):
        g = geometry.matrix @ coef
        return omega[0] @ loss.value(Y[0] * (g + intercept)) + lam[0] * coef @ g

    best = exact.weights[0, 0], exact.intercept[0, 0]
    random = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        coef = best[0] * (1.0 + size * random.standard_normal(len(best[0])))
        left = np.array([value(coef, best[1]) - value(*best)])
        norm = float(np.sqrt(np.diagonal(geometry.matrix).max()))
        distance, rounding = score_errors(left, lam, norm, coef[None].astype(np.float32))
        moved = np.abs(geometry.matrix @ (coef - best[0])).max()
        assert moved <= distance[0]
        assert rounding[0] < 1e-3 * np.abs(exact.scores[0, 0]).max()


def test_only_held_out_rows_count_for_certainty():
    f = np.array([[0.1, -2.0, 3.0], [0.1, -2.0, 3.0]])
    omega = np.array([[0.5, 0.0, 0.0], [0.5, 0.25, 0.25]])
    np.testing.assert_array_equal(smallest_held_out(f, omega, np.array([0, 1])), [2.0, np.inf])


def test_the_leading_part_is_that_of_the_eigenvectors():
    K, *_ = folds_of(0)
    found = leading_part(lambda rows: rows @ K.astype(np.float32), np.diagonal(K), 64)
    values = np.linalg.eigvalsh(K)[::-1]
    left = K - found.factor.astype(float) @ found.factor.T
    assert np.abs(np.linalg.eigvalsh(left)).max() <= 1.5 * values[64] + 1e-3
    m = found.factor.shape[1]
    rows, columns = np.tril_indices(m)
    np.testing.assert_allclose(
        found.pairs, found.factor[:, rows] * found.factor[:, columns], rtol=1e-6
    )
    assert found.ranks[-1] == m
    assert np.all(np.diff(found.next_value) <= 0)


@pytest.mark.parametrize("r", [np.inf, 1.5])
def test_the_search_in_a_plane_finds_its_minimum(r):
    random = np.random.default_rng(4)
    n, lam = 300, 0.01
    f, along, before = (random.standard_normal(n).astype(np.float32) * s for s in (3.0, 1.0, 0.5))
    y = np.where(random.random(n) < 0.5, 1.0, -1.0).astype(np.float32)
    omega = np.full(n, 1.0 / n, dtype=np.float32)
    loss = LeakyHockeyStick(r)

    def value(c):
        return omega @ loss.value(y * (f + c[0] * along + c[1] * before)) + lam * (
            c[0] ** 2 + c[0] * c[1] + 2 * c[1] ** 2
        )

    hessian = (2 * lam, lam, 4 * lam)
    first, second, promise = plane_minimum(f, along, before, y, omega, 1.0 / r, (0.0, 0.0), hessian)
    here = value((first, second))
    assert promise > 0
    for direction in random.standard_normal((20, 2)):
        assert here <= value(np.array([first, second]) + 0.05 * direction) + 1e-6
