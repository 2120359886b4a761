"""Columns in kernel form against Newton's method in double precision."""

import numba
import numpy as np
import pytest
from sklearn.datasets import make_classification

from buttress.kernels import make_kernel
from buttress.losses import LeakyHockeyStick
from buttress.solvers.smooth.columns import _plane_search, _sign_certificate, _threads
from buttress.solvers.smooth.columns._low_rank import leading_part
from buttress.solvers.smooth.columns._model_steps import find_steps
from buttress.solvers.smooth.columns._models import (
    Batch,
    KernelSystem,
    empty_models,
    empty_room,
    no_columns,
)
from buttress.solvers.smooth.columns._moves import DRIFT, Limits, advance, new_moves
from buttress.solvers.smooth.columns._sign_certificate import (
    ROUNDOFF,
    measured_rate,
    score_error,
    score_rounding,
)
from buttress.solvers.smooth.columns._threads import KernelColumns, _merged, _shares
from buttress.solvers.smooth.geometry import from_gram
from buttress.solvers.smooth.problems import Problems
from buttress.solvers.smooth.spectral import solve_problems

ALPHAS = 10.0 ** np.linspace(0, -7, 29)


# Doors to functions that are for compiled code.
@numba.njit(error_model="numpy")
def plane_minimum(loss, f, along, before, y, omega, gradient, hessian):
    return _plane_search.plane_minimum(loss, f, along, before, y, omega, gradient, hessian)


@numba.njit
def column_sizes(f, step, a, omega):
    return _sign_certificate.column_sizes(f, step, a, omega)


def from_python(function):
    """A door to a function that is for compiled code."""
    return numba.njit(error_model="numpy")(lambda *arguments: function(*arguments))


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


def columns_of(geometry, Y, omega, lambdas, *, kept, loss=None, n_threads=1):
    """The solver of columns of these problems, with models at the penalties `kept`."""
    answers, loss = np.full(len(Y), -1), loss or LeakyHockeyStick()
    problems = Problems(geometry, Y, omega, lambdas, loss, answers, None, True, 1e-6, 100)
    return KernelColumns(problems, np.array(kept), n_threads)


def decision(paths):
    return paths.scores + paths.intercept[:, :, None]


@pytest.mark.parametrize("method", ["batched", "newton"])
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
def test_signs_of_held_out_scores_are_those_of_the_exact_path(options, r, method):
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
        method=method,
        answers=np.array([0, 1, 2, 3, -1]),
        **common,
    )
    # for Newton's method a fold whose signs are settled is not solved
    assert found.converged[slice(None) if method == "batched" else 4].all()
    assert found.iterations.sum() <= exact.iterations.sum() or method == "batched"
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
    solver = columns_of(geometry, Y, omega, lam, kept=[0, 2])
    start = (
        np.stack([exact.coefs[q][k] for k, q in enumerate(problem)]).astype(np.float32),
        exact.intercept[problem, [0, 1, 2]],
    )
    noise = 1e-3 * np.random.default_rng(0).standard_normal(start[0].shape) * np.abs(start[0])
    found = solver.refine(
        3 * problem + np.arange(3),
        (start[0] + noise, start[1]),
        np.full(3, 1e-9),
        np.zeros(3, dtype=bool),
    )
    expected = exact.scores[problem, [0, 1, 2]] + exact.intercept[problem, [0, 1, 2], None]
    assert np.all(found.residual <= 1e-9)
    np.testing.assert_allclose(found.scores + found.intercept[:, None], expected, atol=1e-7)


def test_one_model_of_a_path_is_refined_to_double_precision():
    K, Y, omega = folds_of(3, n=320)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    options = {"weight": None, "n_threads": 2}
    paths = solve_problems(geometry, Y, omega, ALPHAS, loss, tol=1e-6, method="batched", **options)
    exact = solve_problems(geometry, Y, omega, ALPHAS, loss, tol=1e-12, method="newton")
    for q, index in ((0, 3), (4, 12), (4, 28)):
        (found,) = paths.refine(np.array([q]), index, 1e-9)
        expected = exact.scores[q, index]
        np.testing.assert_allclose(found.scores[0, 0], expected, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(found.coefficients(0)[0] @ geometry.matrix, expected, atol=1e-6)
        assert found.intercept[0, 0] == pytest.approx(exact.intercept[q, index], rel=1e-6)
        assert found.converged.all()


@pytest.mark.parametrize("copies", [1, 10])
@pytest.mark.parametrize("from_nowhere", [False, True])
def test_all_rows_are_solved_from_the_mean_of_the_folds(copies, from_nowhere):
    K, Y, omega = folds_of(4, n=320)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    folds = solve_problems(geometry, Y[:4], omega[:4], ALPHAS, loss, method="batched", n_threads=2)
    exact = solve_problems(geometry, Y[4:], omega[4:], ALPHAS, loss, tol=1e-12, method="newton")
    whole = np.tile(Y[4], (copies, 1)), np.tile(omega[4], (copies, 1))
    for index in (0, 9, 18, 28):
        near = np.mean([coefs[index] for coefs in folds.coefs], axis=0)
        start = np.tile(near, (copies, 1)), np.full(copies, folds.intercept[:, index].mean())
        if from_nowhere:
            start = np.zeros_like(start[0]), np.zeros(copies)
        found = folds.solve_near(*whole, index, start)
        assert found.converged.all()
        assert found.intercept.shape == (copies, 1)
        expected = exact.scores[0, index] + exact.intercept[0, index]
        size = np.abs(expected).max()
        for f in decision(found)[:, 0]:
            np.testing.assert_allclose(f, expected, atol=1e-4 * size)


@pytest.mark.parametrize("penalties", [[1e-4], [3.0], [1e-7], [0.1, 1e-3, 1e-6]])
def test_columns_find_their_way_down_to_a_few_penalties(penalties):
    K, Y, omega = folds_of(5, n=320)
    geometry, loss, penalties = from_gram(K), LeakyHockeyStick(), np.array(penalties)
    exact = solve_problems(geometry, Y, omega, penalties, loss, tol=1e-12, method="newton")
    paths = solve_problems(geometry, Y, omega, penalties, loss, method="batched", n_threads=2)
    assert paths.intercept.shape == exact.intercept.shape
    assert paths.converged.all()
    for index in range(len(penalties)):
        expected = decision(exact)[:, index]
        size = np.abs(expected).max()
        np.testing.assert_allclose(decision(paths)[:, index], expected, atol=1e-4 * size)
        for q, found in enumerate(paths.refine(np.arange(5), index, 1e-9)):
            if found is not None:
                np.testing.assert_allclose(decision(found)[0, 0], expected[q], atol=1e-6 * size)


def test_newton_and_columns_share_single_fits_by_work():
    K, Y, omega = folds_of(6, n=700)
    geometry, chosen = from_gram(K), {}
    for copies, penalty in ((1, 0.1), (1, 1e-5), (19, 0.1), (19, 1e-5)):
        whole = np.tile(Y[4], (copies, 1)), np.tile(omega[4], (copies, 1))
        paths = solve_problems(geometry, *whole, np.array([penalty]), LeakyHockeyStick())
        chosen[copies, penalty] = paths.method
    assert chosen.pop((19, 1e-5)) == "batched"
    assert set(chosen.values()) == {"newton"}


def test_refinement_that_falls_short_says_so():
    K, Y, omega = folds_of(3, n=320)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    paths = solve_problems(geometry, Y, omega, ALPHAS, loss, tol=1e-6, method="batched")
    assert paths.refine(np.array([0]), 10, 1e-18) == [None]


def test_refinement_leaves_free_intercepts_alone():
    K, Y, _ = folds_of(3, n=320, flip_y=0.0)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    omega = np.where(Y[:1] > 0, 0.5 / np.sum(Y[0] > 0), 0.5 / np.sum(Y[0] < 0))
    paths = solve_problems(geometry, Y[:1], omega, ALPHAS, loss, tol=1e-6, method="batched")
    low, high = paths.interval[0, 0]
    assert low < high
    assert paths.refine(np.array([0]), 0, 1e-9) == [None]


def test_models_are_lent_to_columns_near_them_that_are_not_solved_with_their_owner():
    K, Y, omega = folds_of(1)
    lambdas = np.array([1e-2, 8e-3, 7e-3, 1e-5])
    solver = columns_of(from_gram(K), Y, omega, lambdas, kept=[0, 2, 3])
    assert solver._lenders(np.array([1])).tolist() == [-1]  # none is made
    solver.models.level[[0, 2]] = 0
    assert solver._lenders(np.array([1])).tolist() == [0]  # the nearest that is made
    assert solver._lenders(np.array([2])).tolist() == [0]
    assert solver._lenders(np.array([3])).tolist() == [-1]  # too far
    solver.models.level[1] = 0
    assert solver._lenders(np.array([1])).tolist() == [1]
    assert solver._lenders(np.array([1, 2])).tolist() == [0, 0]  # the other one may be renewed
    assert solver._lenders(np.array([0, 1, 2])).tolist() == [-1, -1, -1]
    assert solver._lenders(np.array([5])).tolist() == [-1]  # of another problem


@pytest.mark.parametrize("n_threads", [1, 2])
def test_seats_are_taken_again_until_all_columns_are_solved(monkeypatch, n_threads):
    monkeypatch.setattr(_threads, "_SEATS", 3)
    K, Y, omega = folds_of(3)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    exact = solve_problems(geometry, Y, omega, ALPHAS[:16], loss, tol=1e-12, method="newton")
    lambdas = ALPHAS[:16] / geometry.scale
    solver = columns_of(geometry, Y, omega, lambdas, kept=[0, 5, 10, 15], n_threads=n_threads)
    assert len(solver.moves[0].slot) == 3
    columns = no_columns(len(Y) * 16, len(K), len(K))
    which = np.arange(len(Y) * 16)[::-1]
    solver.solve(columns, which, 1e-10, None)
    assert columns.converged.all()
    assert np.all(columns.iterations > 0)
    np.testing.assert_array_equal(solver.slot.reshape(-1, 16)[:, 5], 4 * np.arange(len(Y)) + 1)
    assert np.all(solver.slot.reshape(-1, 16)[:, 6] == -1)  # models between are not kept
    # without the intercepts, which hardly any curvature holds at the largest penalties
    expected = exact.scores
    scores = (columns.scores - columns.intercept[:, None]).reshape(expected.shape)
    error = np.abs(scores - expected).max(axis=2)
    assert np.all(error <= 1e-3 * np.abs(expected).max(axis=2))
    # and so is what comes in several waves
    start = columns.coef * np.float32(1.001), columns.intercept
    whole = np.zeros(len(which), dtype=bool)
    refined = solver.refine(np.arange(len(which)), start, np.full(len(which), 1e-9), whole)
    assert refined.solved.all()
    np.testing.assert_allclose(refined.scores.reshape(expected.shape), expected, atol=1e-6)


def test_a_step_that_leads_nowhere_is_followed_by_one_along_the_gradient():
    K, Y, omega = folds_of(6)
    n, low_rank = len(K), leading_part(K.astype(np.float32), 16)
    models, single = empty_models(low_rank, 1), (Y.astype(np.float32), omega.astype(np.float32))
    system = KernelSystem(
        LeakyHockeyStick().scalars, K.astype(np.float32), low_rank, models, *single, True
    )
    first, lam = np.zeros(1, dtype=np.int64), np.array([1e-4])
    f = np.random.default_rng(0).standard_normal((1, n)).astype(np.float32)
    at, room = (f, np.zeros_like(f), np.zeros(1)), empty_room(low_rank, 1)
    for stuck in (False, True):
        batch = Batch(first, lam, first, first, np.ones(1), np.array([stuck]), *at)
        from_python(find_steps)(system, batch, first, (np.empty((1, 0)), np.empty(0)), room)
        along = room.q[0] / np.linalg.norm(room.q[0])
        parallel = abs(along @ room.d[0]) >= 0.999 * np.linalg.norm(room.d[0])
        assert parallel == stuck


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_threads_share_the_columns_of_every_problem(n_threads):
    problem = np.array([0, 1, 5, 0, 1, 5, 0, 5, 5])
    shares = _shares(problem, n_threads)
    assert sorted(np.concatenate(shares).tolist()) == list(range(9))
    for one in (0, 1, 5):
        counts = [np.sum(problem[share] == one) for share in shares]
        assert max(counts) - min(counts) <= 1
    rows = np.arange(18).reshape(9, 2)
    parts = [(rows[share], rows[share, 0]) for share in shares]
    whole, first = _merged(parts, shares)
    np.testing.assert_array_equal(whole, rows)
    np.testing.assert_array_equal(first, rows[:, 0])


def test_a_single_column_needs_one_thread():
    assert [share.tolist() for share in _shares(np.array([3]), 4)] == [[0]]


def test_steps_that_cancel_are_counted_as_rounding():
    K, Y, omega = folds_of(6)
    n, random = len(K), np.random.default_rng(0)
    matrix = K.astype(np.float32)
    d = 1e6 * random.standard_normal((1, n)).astype(np.float32)
    a, f = np.zeros((2, 1, n), np.float32)
    first, lam = np.zeros(1, dtype=np.int64), np.array([1e-4])
    y, weight = Y[:1].astype(np.float32), omega[:1].astype(np.float32)
    low_rank, at = leading_part(matrix, 16), (f, a, np.zeros(1))
    models = empty_models(low_rank, 1)
    system = KernelSystem(LeakyHockeyStick().scalars, matrix, low_rank, models, y, weight, True)
    batch = Batch(first, lam, first, first - 1, np.ones(1), np.zeros(1, dtype=bool), *at)
    moves, room = new_moves(1, n, first), empty_room(low_rank, 1)
    moves.seat[:] = moves.iterations[:] = moves.e0[:] = 0
    moves.e[:] = -d + random.standard_normal((1, n)).astype(np.float32)  # most of it cancels
    moves.Q[:] = moves.e @ matrix
    room.d[:], room.d0[:], room.q[:] = d, 0.0, -y * weight
    room.promise[:], room.sums[:] = 0.0, 0.0
    limits = Limits(1e-10, 0.0, False, 100)
    from_python(advance)(system, batch, moves, room, first.copy(), first[:0], limits)
    drift = np.abs(f[0] - a[0].astype(np.float64) @ K).max()
    assert drift > 50 * ROUNDOFF * np.abs(f).max()
    assert drift <= 10 * ROUNDOFF * moves.history[0, DRIFT]


def test_refinement_stops_when_the_signs_are_settled():
    K, Y, omega = folds_of(1)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    alphas = ALPHAS[8:11]
    exact = solve_problems(geometry, Y, omega, alphas, loss, tol=1e-12, method="newton")
    problem, index = np.array([0, 1, 2]), np.arange(3)
    solver = columns_of(geometry, Y, omega, alphas / geometry.scale, kept=[0, 2])
    noise = 1.0 + 0.01 * np.random.default_rng(0).standard_normal((3, len(K)))
    near = np.stack([exact.coefs[q][k] for k, q in enumerate(problem)])
    start = noise * near, exact.intercept[problem, index]
    which, signs_only = 3 * problem + index, np.array([True, True, False])
    found = solver.refine(which, start, np.full(3, 1e-13), signs_only)
    assert np.all(found.solved)
    assert np.all(found.residual[:2] > 1e-13)
    expected = exact.scores[problem, index] + exact.intercept[problem, index, None]
    f = found.scores + found.intercept[:, None]
    for k in range(3):
        held_out = omega[problem[k]] == 0
        np.testing.assert_array_equal(f[k, held_out] > 0, expected[k, held_out] > 0)
    np.testing.assert_allclose(f[2], expected[2], atol=1e-9)


def test_the_error_of_scores_is_bounded_by_what_is_left_of_the_objective():
    K, Y, omega = folds_of(2)
    geometry, loss, alpha = from_gram(K), LeakyHockeyStick(), np.array([1e-2])
    exact = solve_problems(geometry, Y, omega, alpha, loss, tol=1e-12, method="newton")
    lam = float(alpha[0] / geometry.scale)

    def value(coef, intercept):
        g = geometry.matrix @ coef
        return omega[0] @ loss.value(Y[0] * (g + intercept)) + lam * coef @ g

    best = exact.coefs[0][0], exact.intercept[0, 0]
    random = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        coef = best[0] * (1.0 + size * random.standard_normal(len(best[0])))
        left = value(coef, best[1]) - value(*best)
        norm = float(np.sqrt(np.diagonal(geometry.matrix).max()))
        moved = np.abs(geometry.matrix @ (coef - best[0])).max()
        assert moved <= score_error(left, lam, norm)


def test_the_rate_is_the_slower_of_the_last_and_the_mean_of_two():
    assert measured_rate(1 / 16, 1 / 4, 1.0) == pytest.approx(1 / 4)
    assert measured_rate(1 / 8, 1 / 4, 1.0) == pytest.approx(1 / 2)
    assert measured_rate(1 / 16, 1 / 8, 1 / 4) == pytest.approx(1 / 2)
    assert measured_rate(2.0, 1.0, 1.0) == 0.9
    # with too few steps before
    assert measured_rate(0.1, np.inf, np.inf) == measured_rate(0.1, 1.0, np.inf) == 0.5
    assert measured_rate(0.7, 1.0, np.inf) == pytest.approx(0.7)
    # nothing is left to gain, or was before
    assert measured_rate(0.0, 0.0, 0.0) == 0.0
    assert measured_rate(1e-20, 0.0, 1.0) == measured_rate(1e-20, 1.0, 0.0) == 0.9


def test_rounding_of_scores_is_bounded():
    K, *_ = folds_of(2, gamma=0.03)
    # with an intercept coefficients sum to zero
    a = np.random.default_rng(0).standard_normal((50, len(K)))
    a = (a - a.mean(axis=1, keepdims=True)).astype(np.float32)
    single = a @ K.astype(np.float32)
    error = np.abs(single - a @ K).max(axis=1)
    bound = [score_rounding(1.0, norm) for norm in np.linalg.norm(a, axis=1)]
    assert np.all(error <= bound)


def test_only_held_out_rows_count_for_certainty():
    f = np.array([0.1, -2.0, -4.0], dtype=np.float32)
    part, whole = np.array([[0.5, 0.0, 0.0], [0.5, 0.25, 0.25]], dtype=np.float32)
    norm = np.sqrt(0.01 + 4 + 16)
    step = np.array([9.0, -0.25, 0.125], dtype=np.float32)
    assert column_sizes(f, step, f, part) == pytest.approx((2.0, -4.0, 0.1, norm, 0.25))
    assert column_sizes(f, step, f, whole) == pytest.approx((np.inf, -4.0, 0.1, norm, 0.0))


def test_models_changed_in_part_are_those_made_anew():
    K, Y, omega = folds_of(4)
    low_rank = leading_part(K.astype(np.float32), 48)
    random, n = np.random.default_rng(0), len(K)
    y, weights = Y.astype(np.float32), omega.astype(np.float32)
    f = (1.5 * random.standard_normal((1, n))).astype(np.float32)
    a = np.zeros_like(f)
    moved = f.copy()
    moved[0, :7] += 3.0 * y[0, :7]
    first, lam = np.zeros(1, dtype=np.int64), np.array([1e-4])
    models, scalars = empty_models(low_rank, 3), LeakyHockeyStick().scalars
    system = KernelSystem(scalars, K.astype(np.float32), low_rank, models, y, weights, False)

    def rows(scores, slot, slack=1.0001):
        slots, free, at = np.array([slot]), np.array([slack]), (scores, a, np.zeros(1))
        batch = Batch(first, lam, slots, slots, free, np.zeros(1, dtype=bool), *at)
        none = np.empty((1, 0)), np.empty(0)
        from_python(find_steps)(system, batch, first, none, empty_room(low_rank, 1))

    rows(f, 0)
    rows(moved, 1)  # made from nothing
    expected = models.packed[1].copy(), models.inner[1].copy()
    models.source[2] = 0  # borrowed, then changed where it differs
    rows(moved, 2, slack=np.inf)
    assert models.source[2] == 0
    rows(moved, 2)
    assert models.source[2] == 2
    assert models.level[2] == models.level[0]
    np.testing.assert_allclose(models.weight[2], models.weight[1], rtol=1e-3)
    m = low_rank.ranks[models.level[2]]
    size = m * (m + 1) // 2
    scale = np.abs(expected[0][:size]).max()
    np.testing.assert_allclose(models.packed[2, :size], expected[0][:size], atol=1e-4 * scale)
    factors = (np.tril(inner[:m, :m]) for inner in (models.inner[2], expected[1]))
    np.testing.assert_allclose(*factors, atol=1e-3 * scale)


def test_the_leading_part_is_that_of_the_eigenvectors():
    K, *_ = folds_of(0)
    found = leading_part(K.astype(np.float32), 64)
    values = np.linalg.eigvalsh(K)[::-1]
    left = K - found.factor.astype(float) @ found.factor.T
    assert np.abs(np.linalg.eigvalsh(left)).max() <= 1.5 * values[64] + 1e-3
    m = found.factor.shape[1]
    rows, columns = np.tril_indices(m)
    products = found.factor[:, rows] * found.factor[:, columns]
    np.testing.assert_allclose(found.pairs, products.T, rtol=1e-6)
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
    first, second, promise = plane_minimum(
        loss.scalars, f, along, before, y, omega, (0.0, 0.0), hessian
    )
    here = value((first, second))
    assert promise > 0
    for direction in random.standard_normal((20, 2)):
        assert here <= value(np.array([first, second]) + 0.05 * direction) + 1e-6


def test_results_do_not_depend_on_where_arrays_are():
    K, Y, omega = folds_of(5, n=117)
    random = np.random.default_rng(0)
    found = []
    for _ in range(10):
        parts = [np.empty(size, dtype=np.float32) for size in random.integers(10, 60_000, 30)]
        paths = solve_problems(
            from_gram(K), Y, omega, ALPHAS, LeakyHockeyStick(), tol=1e-6, method="batched"
        )
        del parts[::3]
        found.append(paths.scores)
    for scores in found[1:]:
        np.testing.assert_array_equal(scores, found[0])


@pytest.mark.parametrize("r", [np.inf, 2.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_largest_of_several_scores_is_that_of_the_exact_path(seed, r):
    X, y = make_classification(
        320, 6, n_informative=4, n_classes=4, n_clusters_per_class=1, flip_y=0.1, random_state=seed
    )
    geometry, loss = from_gram(make_kernel("rbf", gamma=0.2)(X)), LeakyHockeyStick(r)
    targets = np.where(y == np.arange(4)[:, None], 1.0, -1.0)
    omega = np.ones((3, len(y)))
    omega[0, ::4] = omega[1, 1::4] = 0.0
    omega = np.repeat(omega / omega.sum(axis=1, keepdims=True), 4, axis=0)
    problems = geometry, np.tile(targets, (3, 1)), omega, ALPHAS, loss
    exact = solve_problems(*problems, tol=1e-12, method="newton")
    answers = np.repeat([0, 1, -1], 4)
    found = solve_problems(*problems, tol=1e-6, method="batched", answers=answers)
    assert found.converged.all()
    for fold in range(2):
        out, members = omega[4 * fold] == 0, slice(4 * fold, 4 * fold + 4)
        expected = decision(exact)[members][:, :, out].argmax(axis=0)
        np.testing.assert_array_equal(decision(found)[members][:, :, out].argmax(axis=0), expected)
    # folds stop earlier than when every score is wanted
    whole = solve_problems(*problems, tol=1e-6, method="batched")
    assert found.iterations[:8].sum() < whole.iterations[:8].sum()
