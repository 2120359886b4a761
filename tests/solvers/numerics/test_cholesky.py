"""Factors of small and larger matrices against NumPy's solutions."""

import numba
import numpy as np
import pytest

from buttress.solvers.numerics import cholesky
from buttress.solvers.numerics.cholesky import row_length


# The functions are for compiled code; these are doors to them.
@numba.njit
def factorise_small(a, size):
    return cholesky.factorise_small(a, size)


@numba.njit
def solve_small(a, right):
    cholesky.solve_small(a, right)


@numba.njit
def solve_row_by_row(a, right):
    definite = cholesky.factorise_few(a)
    cholesky.solve_few(a, right)
    return definite


@numba.njit
def factorise(a):
    return cholesky.factorise(a)


@numba.njit
def solve(a, right):
    cholesky.solve(a, right)


def rows_of(A, dtype=np.float64):
    """The lower triangle in rows of whole lines; everything else is NaN."""
    rows = np.full((len(A), row_length(len(A), np.dtype(dtype).itemsize)), np.nan, dtype=dtype)
    lower = np.tril_indices(len(A))
    rows[lower] = A[lower]
    return rows


def definite_matrix(size):
    B = np.random.default_rng(size).standard_normal((size, 2 * size))
    return np.eye(size) + B @ B.T / size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [*range(1, 21), 33, 63, 64, 65, 96])
def test_loops_solve_systems(size, dtype):
    A, right = definite_matrix(size), np.random.default_rng(0).standard_normal(size)
    factor, found = rows_of(A, dtype), right.astype(dtype)
    assert factorise_small(factor, size)
    solve_small(factor, found)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(found, np.linalg.solve(A, right), rtol=0, atol=200 * eps)


@pytest.mark.parametrize("size", [1, 2, 5, 15])
def test_row_by_row_solves_systems(size):
    A, right = definite_matrix(size), np.random.default_rng(0).standard_normal(size)
    found = right.copy()
    assert solve_row_by_row(rows_of(A), found)
    np.testing.assert_allclose(found, np.linalg.solve(A, right), rtol=0, atol=1e-13)
    assert not solve_row_by_row(rows_of(-A), found)


@pytest.mark.parametrize("size", [3, 255, 256, 257, 300])
def test_either_way_solves_systems(size):
    A, right = definite_matrix(size), np.random.default_rng(0).standard_normal(size)
    factor, found = rows_of(A), right.copy()
    assert factorise(factor)
    solve(factor, found)
    np.testing.assert_allclose(found, np.linalg.solve(A, right), rtol=0, atol=1e-13)


def test_leading_part_of_larger_room():
    A, right = definite_matrix(10), np.ones(10)
    factor = np.full((20, row_length(20, 8)), np.nan)
    factor[:10, :10] = A
    assert factorise_small(factor, 10)
    solve_small(factor, right)
    np.testing.assert_allclose(A @ right, 1.0, atol=1e-14)
    assert np.all(np.isnan(factor[10:]))


@pytest.mark.parametrize("size", [2, 4, 7, 12, 257])
@pytest.mark.parametrize("at", [0, 1, -1])
def test_matrices_that_are_not_definite_are_told(size, at):
    A = np.eye(size)
    A[at, at] = -1e-3
    assert not factorise(rows_of(A))


def test_factors_of_singular_matrices_are_finite():
    A = np.array([[1e9, 1e9, 0.0], [1e9, 1e9, 0.0], [0.0, 0.0, 1.0]])
    factor, found = rows_of(A, np.float32), np.array([1.0, 2.0, 3.0], dtype=np.float32)
    assert not factorise_small(factor, 3)
    solve_small(factor, found)
    assert np.all(np.isfinite(found))
    assert found[2] == pytest.approx(3.0)
