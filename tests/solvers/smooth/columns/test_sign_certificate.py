"""What certifies the sign of a score: its error, its rounding, and how fast both fall."""

import numba
import numpy as np
import pytest

from buttress.losses import LeakyHockeyStick
from buttress.solvers.smooth.columns import _sign_certificate
from buttress.solvers.smooth.columns._sign_certificate import (
    measured_rate,
    score_error,
    score_rounding,
)
from buttress.solvers.smooth.geometry import from_gram
from buttress.solvers.smooth.problems import Problems
from buttress.solvers.smooth.spectral import solve_problems


@numba.njit
def column_sizes(f, step, a, omega):
    return _sign_certificate.column_sizes(f, step, a, omega)


def test_the_error_of_scores_is_bounded_by_what_is_left_of_the_objective(folds_of):
    K, Y, omega = folds_of(2)
    geometry, loss, alpha = from_gram(K), LeakyHockeyStick(), np.array([1e-2])
    exact = solve_problems(Problems.at(geometry, Y, omega, alpha, loss, tol=1e-12), method="newton")
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


def test_rounding_of_scores_is_bounded(folds_of):
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
