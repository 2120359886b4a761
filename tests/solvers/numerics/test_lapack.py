"""Routines of BLAS and LAPACK as compiled code calls them."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from buttress.solvers.numerics import lapack


@numba.njit
def single_product(a, b, turned, out, sizes):
    lapack.single_product(a, b, turned, out, sizes)


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_parts_of_arrays(turned):
    random = np.random.default_rng(0)
    rows, depth, columns = 3, 4, 6
    shapes = (rows, depth), (depth, columns)
    parts = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    whole = [np.full((9, 8), np.nan, dtype=np.float32) for _ in parts]
    for part, array, over in zip(parts, whole, turned, strict=True):
        part = part.T if over else part
        array[: len(part), : part.shape[1]] = part
    out = np.zeros((5, 7), dtype=np.float32)
    single_product(*whole, turned, out, (rows, depth, columns))
    np.testing.assert_allclose(out[:rows, :columns], parts[0] @ parts[1], rtol=1e-5, atol=1e-6)
    assert not out[rows:].any()
    assert not out[:, columns:].any()


def test_factors_and_solutions():
    random = np.random.default_rng(1)
    A = random.standard_normal((6, 6))
    A = A @ A.T + np.eye(6)
    factor, right = A.copy(), random.standard_normal((2, 6))
    assert lapack.cholesky_in_place(factor) == 0
    found = right.copy()
    lapack.cholesky_solve(factor, found)
    np.testing.assert_allclose(found @ A, right, atol=1e-12)


def test_the_inverse_from_a_factor():
    random = np.random.default_rng(2)
    A = random.standard_normal((6, 6))
    A = A @ A.T + np.eye(6)
    inverse = A.copy()
    assert lapack.cholesky_in_place(inverse) == 0
    assert lapack.inverse_from_cholesky(inverse) == 0
    np.testing.assert_allclose(np.tril(inverse), np.tril(np.linalg.inv(A)), atol=1e-12)


def test_the_first_minor_that_is_not_definite_is_named():
    A = np.diag([1.0, 2.0, -1.0, 4.0])
    assert lapack.cholesky_in_place(A) == 3
