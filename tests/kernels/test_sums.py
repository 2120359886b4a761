"""Sums of similarities are those of the matrix, which is not formed."""

import numpy as np
import pytest
from scipy import sparse

from buttress.kernels import make_kernel


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 7, 3000])
def test_sums_of_the_gaussian_kernel_are_those_of_its_matrix(dtype, n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)).astype(dtype)
    Z, coefs = rng.normal(size=(400, 5)).astype(dtype), rng.normal(size=(3, 400)).astype(dtype)
    kernel = make_kernel("rbf", gamma=0.3, center=np.full(5, 0.5))
    exact = np.exp(-0.3 * ((X[:, None].astype(float) - Z) ** 2).sum(axis=2)) @ coefs.T
    found = kernel.sums(X, Z, coefs)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, exact, atol=1e-10 if dtype == np.float64 else 1e-3)


@pytest.mark.parametrize("name", ["linear", "poly", "laplacian"])
def test_sums_of_other_kernels_are_products_with_their_matrix(name):
    rng = np.random.default_rng(1)
    X, Z, coefs = rng.normal(size=(6, 3)), rng.normal(size=(9, 3)), rng.normal(size=(2, 9))
    kernel = make_kernel(name, gamma=0.5)
    np.testing.assert_allclose(kernel.sums(X, Z, coefs), kernel(X, Z) @ coefs.T)


def test_sparse_rows_have_sums_too():
    rng = np.random.default_rng(2)
    X, Z, coefs = rng.normal(size=(6, 3)), rng.normal(size=(9, 3)), rng.normal(size=(1, 9))
    kernel = make_kernel("rbf", gamma=0.5)
    found = kernel.sums(sparse.csr_matrix(X), sparse.csr_matrix(Z), coefs)
    np.testing.assert_allclose(found, kernel.sums(X, Z, coefs), atol=1e-12)
