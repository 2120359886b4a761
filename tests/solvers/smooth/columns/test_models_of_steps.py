"""The models that steps of columns are taken from, and the search in a plane after them."""

import numba
import numpy as np
import pytest

from buttress.losses import LeakyHockeyStick
from buttress.solvers.smooth.columns import _plane_search
from buttress.solvers.smooth.columns._low_rank import leading_part
from buttress.solvers.smooth.columns._model_steps import find_steps
from buttress.solvers.smooth.columns._models import (
    Batch,
    KernelSystem,
    empty_models,
    empty_room,
)
from buttress.solvers.smooth.columns._moves import DRIFT, Limits, advance, new_moves
from buttress.solvers.smooth.columns._sign_certificate import (
    ROUNDOFF,
)


@numba.njit(error_model="numpy")
def plane_minimum(loss, f, along, before, y, omega, gradient, hessian):
    return _plane_search.plane_minimum(loss, f, along, before, y, omega, gradient, hessian)


def from_python(function):
    """A door to a function that is for compiled code."""
    return numba.njit(error_model="numpy")(lambda *arguments: function(*arguments))


def test_steps_that_cancel_are_counted_as_rounding(folds_of):
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
    room.d[:], room.d0[:], room.residuals[:] = d, 0.0, -y * weight
    room.promise[:], room.sums[:] = 0.0, 0.0
    limits = Limits(1e-10, 0.0, False, 100)
    from_python(advance)(system, batch, moves, room, first.copy(), first[:0], limits)
    drift = np.abs(f[0] - a[0].astype(np.float64) @ K).max()
    assert drift > 50 * ROUNDOFF * np.abs(f).max()
    assert drift <= 10 * ROUNDOFF * moves.history[0, DRIFT]


def test_models_changed_in_part_are_those_made_anew(folds_of):
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


def test_the_leading_part_is_that_of_the_eigenvectors(folds_of):
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
