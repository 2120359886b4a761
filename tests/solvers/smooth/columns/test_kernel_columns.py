"""Columns in kernel form against Newton's method in double precision."""

import numba
import numpy as np
import pytest
from sklearn.datasets import make_classification

from buttress.kernels import make_kernel
from buttress.losses import LeakyHockeyStick
from buttress.solvers.smooth.columns import _threads
from buttress.solvers.smooth.columns._low_rank import leading_part
from buttress.solvers.smooth.columns._model_steps import find_steps
from buttress.solvers.smooth.columns._models import (
    Batch,
    KernelSystem,
    empty_models,
    empty_room,
    no_columns,
)
from buttress.solvers.smooth.columns._threads import KernelColumns, _merged, _shares
from buttress.solvers.smooth.geometry import from_gram
from buttress.solvers.smooth.problems import Problems
from buttress.solvers.smooth.spectral import solve_problems

ALPHAS = 10.0 ** np.linspace(0, -7, 29)


def from_python(function):
    """A door to a function that is for compiled code."""
    return numba.njit(error_model="numpy")(lambda *arguments: function(*arguments))


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
def test_signs_of_held_out_scores_are_those_of_the_exact_path(folds_of, options, r, method):
    K, Y, omega = folds_of(3, **options)
    geometry, loss = from_gram(K), LeakyHockeyStick(r)
    exact = solve_problems(
        Problems.at(geometry, Y, omega, ALPHAS, loss, tol=1e-12), method="newton", n_threads=2
    )
    found = solve_problems(
        Problems.at(geometry, Y, omega, ALPHAS, loss, tol=1e-6, answers=np.array([0, 1, 2, 3, -1])),
        method=method,
        n_threads=2,
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


def test_refined_columns_are_solutions_in_double_precision(folds_of):
    K, Y, omega = folds_of(1)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    lam = ALPHAS[[0, 6, 12]] / geometry.scale
    exact = solve_problems(
        Problems.at(geometry, Y, omega, ALPHAS[[0, 6, 12]], loss, tol=1e-12), method="newton"
    )
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


def test_one_model_of_a_path_is_refined_to_double_precision(folds_of):
    K, Y, omega = folds_of(3, n=320)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    paths = solve_problems(
        Problems.at(geometry, Y, omega, ALPHAS, loss, tol=1e-6), method="batched", n_threads=2
    )
    exact = solve_problems(
        Problems.at(geometry, Y, omega, ALPHAS, loss, tol=1e-12), method="newton"
    )
    for q, index in ((0, 3), (4, 12), (4, 28)):
        (found,) = paths.refine(np.array([q]), index, 1e-9)
        expected = exact.scores[q, index]
        np.testing.assert_allclose(found.scores[0, 0], expected, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(found.coefficients(0)[0] @ geometry.matrix, expected, atol=1e-6)
        assert found.intercept[0, 0] == pytest.approx(exact.intercept[q, index], rel=1e-6)
        assert found.converged.all()


@pytest.mark.parametrize("copies", [1, 10])
@pytest.mark.parametrize("from_nowhere", [False, True])
def test_all_rows_are_solved_from_the_mean_of_the_folds(folds_of, copies, from_nowhere):
    K, Y, omega = folds_of(4, n=320)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    folds = solve_problems(
        Problems.at(geometry, Y[:4], omega[:4], ALPHAS, loss), method="batched", n_threads=2
    )
    exact = solve_problems(
        Problems.at(geometry, Y[4:], omega[4:], ALPHAS, loss, tol=1e-12), method="newton"
    )
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
def test_columns_find_their_way_down_to_a_few_penalties(folds_of, penalties):
    K, Y, omega = folds_of(5, n=320)
    geometry, loss, penalties = from_gram(K), LeakyHockeyStick(), np.array(penalties)
    exact = solve_problems(
        Problems.at(geometry, Y, omega, penalties, loss, tol=1e-12), method="newton"
    )
    paths = solve_problems(
        Problems.at(geometry, Y, omega, penalties, loss), method="batched", n_threads=2
    )
    assert paths.intercept.shape == exact.intercept.shape
    assert paths.converged.all()
    for index in range(len(penalties)):
        expected = decision(exact)[:, index]
        size = np.abs(expected).max()
        np.testing.assert_allclose(decision(paths)[:, index], expected, atol=1e-4 * size)
        for q, found in enumerate(paths.refine(np.arange(5), index, 1e-9)):
            if found is not None:
                np.testing.assert_allclose(decision(found)[0, 0], expected[q], atol=1e-6 * size)


def test_newton_and_columns_share_single_fits_by_work(folds_of):
    K, Y, omega = folds_of(6, n=700)
    geometry, chosen = from_gram(K), {}
    for copies, penalty in ((1, 0.1), (1, 1e-5), (19, 0.1), (19, 1e-5)):
        whole = np.tile(Y[4], (copies, 1)), np.tile(omega[4], (copies, 1))
        paths = solve_problems(
            Problems.at(geometry, *whole, np.array([penalty]), LeakyHockeyStick())
        )
        chosen[copies, penalty] = paths.method
    assert chosen.pop((19, 1e-5)) == "batched"
    assert set(chosen.values()) == {"newton"}


def test_refinement_that_falls_short_says_so(folds_of):
    K, Y, omega = folds_of(3, n=320)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    paths = solve_problems(
        Problems.at(geometry, Y, omega, ALPHAS, loss, tol=1e-6), method="batched"
    )
    assert paths.refine(np.array([0]), 10, 1e-18) == [None]


def test_refinement_leaves_free_intercepts_alone(folds_of):
    K, Y, _ = folds_of(3, n=320, flip_y=0.0)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    omega = np.where(Y[:1] > 0, 0.5 / np.sum(Y[0] > 0), 0.5 / np.sum(Y[0] < 0))
    paths = solve_problems(
        Problems.at(geometry, Y[:1], omega, ALPHAS, loss, tol=1e-6), method="batched"
    )
    low, high = paths.interval[0, 0]
    assert low < high
    assert paths.refine(np.array([0]), 0, 1e-9) == [None]


def test_models_are_lent_to_columns_near_them_that_are_not_solved_with_their_owner(folds_of):
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
def test_seats_are_taken_again_until_all_columns_are_solved(folds_of, monkeypatch, n_threads):
    monkeypatch.setattr(_threads, "_SEATS", 3)
    K, Y, omega = folds_of(3)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    exact = solve_problems(
        Problems.at(geometry, Y, omega, ALPHAS[:16], loss, tol=1e-12), method="newton"
    )
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


def test_a_step_that_leads_nowhere_is_followed_by_one_along_the_gradient(folds_of):
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
        along = room.residuals[0] / np.linalg.norm(room.residuals[0])
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


def test_refinement_stops_when_the_signs_are_settled(folds_of):
    K, Y, omega = folds_of(1)
    geometry, loss = from_gram(K), LeakyHockeyStick()
    alphas = ALPHAS[8:11]
    exact = solve_problems(
        Problems.at(geometry, Y, omega, alphas, loss, tol=1e-12), method="newton"
    )
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


def test_results_do_not_depend_on_where_arrays_are(folds_of):
    K, Y, omega = folds_of(5, n=117)
    random = np.random.default_rng(0)
    found = []
    for _ in range(10):
        parts = [np.empty(size, dtype=np.float32) for size in random.integers(10, 60_000, 30)]
        paths = solve_problems(
            Problems.at(from_gram(K), Y, omega, ALPHAS, LeakyHockeyStick(), tol=1e-6),
            method="batched",
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
    exact = solve_problems(Problems.at(*problems, tol=1e-12), method="newton")
    answers = np.repeat([0, 1, -1], 4)
    found = solve_problems(Problems.at(*problems, tol=1e-6, answers=answers), method="batched")
    assert found.converged.all()
    for fold in range(2):
        out, members = omega[4 * fold] == 0, slice(4 * fold, 4 * fold + 4)
        expected = decision(exact)[members][:, :, out].argmax(axis=0)
        np.testing.assert_array_equal(decision(found)[members][:, :, out].argmax(axis=0), expected)
    # folds stop earlier than when every score is wanted
    whole = solve_problems(Problems.at(*problems, tol=1e-6), method="batched")
    assert found.iterations[:8].sum() < whole.iterations[:8].sum()


@pytest.mark.parametrize(
    ("seed", "largest", "gamma", "r"),
    [(17, 10.0, 0.1, 1.5), (46, 1.0, 0.3, 1.5), (1, 100.0, 0.1, 3.0), (6, 10.0, 0.3, np.inf)],
)
def test_classes_that_tie_at_large_penalties_are_told_apart(seed, largest, gamma, r):
    n_classes = 6
    # Intercepts of rare classes are large and nearly equal, and hardly any curvature holds them.
    X, y = make_classification(
        200, 8, n_informative=5, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.2,
        random_state=seed,
    )  # fmt: skip
    geometry, loss = from_gram(make_kernel("rbf", gamma=gamma)(X)), LeakyHockeyStick(r)
    targets = np.where(y == np.arange(n_classes)[:, None], 1.0, -1.0)
    omega = np.ones((3, len(y)))
    for fold in range(3):
        omega[fold, fold::3] = 0.0
    omega = np.repeat(omega / omega.sum(axis=1, keepdims=True), n_classes, axis=0)
    alphas = largest * 10.0 ** np.linspace(0, -5, 30)
    problems = geometry, np.tile(targets, (3, 1)), omega, alphas, loss
    exact = decision(solve_problems(Problems.at(*problems, tol=1e-13), method="newton"))
    answers = np.repeat(np.arange(3), n_classes)
    found = decision(
        solve_problems(Problems.at(*problems, tol=1e-6, answers=answers), method="batched")
    )
    for fold in range(3):
        members, out = slice(fold * n_classes, (fold + 1) * n_classes), omega[fold * n_classes] == 0
        expected = exact[members][:, :, out]
        ordered = np.sort(expected, axis=0)
        told = ordered[-1] - ordered[-2] > 1e-9 * np.abs(ordered[-1])
        assert told.mean() > 0.99
        right = found[members][:, :, out].argmax(axis=0) == expected.argmax(axis=0)
        assert right[told].all()
