"""A kernel that is never held gives what the whole matrix gives."""

import numpy as np
import pytest

from buttress import DoubleRampClassifier, RampClassifier
from buttress.kernels import make_kernel
from buttress.solvers.hinge.kernel_rows import KernelMatrix
from buttress.solvers.hinge.smo import BoxTerms, solve_box_qp
from buttress.solvers.hinge.streamed_kernel import StreamedKernel


def solve(K, *, sign, linear, lower, upper, row=None, group=None, **until):
    return solve_box_qp(BoxTerms(K, sign, linear, row, group), lower, upper, **until)


def rows_and_labels(n=900, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, np.where(rng.random(n) < 0.1, -y, y)


def streamed(K, digits=None):
    """Sums that are rounded to some digits where the solver says that it does with few."""

    def rough(rows, steps):
        return (K[:, rows].astype(digits) @ steps.astype(digits)).astype(float)

    return StreamedKernel(
        lambda rows, columns: K[np.ix_(rows, columns)],
        lambda rows, steps: K[:, rows] @ steps,
        np.diagonal(K),
        None if digits is None else rough,
    )


def test_sums_and_parts_are_those_of_the_matrix():
    X, _ = rows_and_labels(700)
    K = make_kernel("rbf", gamma=0.3)(X)
    held, never_held = KernelMatrix(K), streamed(K)
    c = np.where(np.arange(700) % 3, np.sin(np.arange(700.0)), 0.0)
    np.testing.assert_allclose(never_held.times(c), held.times(c), atol=1e-11)
    rows = np.array([5, 2, 600])
    assert np.array_equal(never_held.part(rows, rows), held.part(rows, rows))
    again = np.array([3, 3, 1])
    assert np.array_equal(never_held.submatrix(again), held.submatrix(again))


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("digits", [None, np.float32])
def test_rough_sums_on_the_way_do_not_show_in_the_result(digits, C, tol):
    X, y = rows_and_labels()
    K = make_kernel("rbf", gamma=0.3)(X)
    problem = {
        "sign": y,
        "linear": -np.ones(900),
        "lower": np.zeros(900),
        "upper": C * np.ones(900),
    }
    found = solve(streamed(K, digits), tol=tol, **problem)
    exact = solve(K, tol=1e-8, **problem)
    assert found.converged
    assert found.violation <= 2.0 * tol
    # the certificate is that of all digits, and bounds the distance to the optimum
    np.testing.assert_allclose(found.g, K @ found.c, atol=1e-9 * C)
    rounding = 1e-12 * abs(exact.objective)
    above = found.objective - exact.objective
    assert -exact.gap - rounding <= above <= found.gap + rounding


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_small_cache_gives_the_model_of_the_whole_matrix(kernel, dtype):
    X, y = rows_and_labels()
    X = X.astype(dtype)
    whole = RampClassifier(kernel=kernel, gamma=0.3).fit(X, y)
    small = RampClassifier(kernel=kernel, gamma=0.3, cache_size=0.1).fit(X, y)
    tolerance = 1e-6 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(
        small.decision_function(X), whole.decision_function(X), atol=tolerance
    )
    np.testing.assert_allclose(small.objective_, whole.objective_, rtol=tolerance)


def test_mirrored_rows_of_a_kernel_that_is_not_held():
    X, y = rows_and_labels()
    options = {"d": 0.2, "gamma": 0.3, "fit_intercept": False}
    whole = DoubleRampClassifier(**options).fit(X, y)
    small = DoubleRampClassifier(**options, cache_size=0.1).fit(X, y)
    np.testing.assert_allclose(small.objective_, whole.objective_, rtol=1e-7)
