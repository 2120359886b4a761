"""Feature maps reproduce their kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from buttress.kernels import make_kernel
from buttress.kernels.approximate import (
    LinearMap,
    fourier_map,
    inverse_root,
    nystroem_map,
    transform,
)


def rows(n: int, p: int, seed: int = 0, offset: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p)) + offset


@pytest.mark.smoke
@pytest.mark.parametrize(
    "kernel",
    [
        make_kernel("rbf", gamma=0.3),
        make_kernel("laplacian", gamma=0.3),
        make_kernel("poly", gamma=0.5, degree=2, coef0=1.0),
        make_kernel("linear"),
        make_kernel(lambda a, b: a @ b.T + 1.0),
    ],
)
def test_with_all_rows_as_landmarks_nystroem_is_the_kernel(kernel) -> None:
    X = rows(30, 4)
    mapped = transform(nystroem_map(kernel, X), X)
    np.testing.assert_allclose(mapped @ mapped.T, kernel(X), atol=1e-5, rtol=1e-6)


@given(st.integers(1, 25), st.integers(1, 5), st.integers(0, 5))
def test_nystroem_never_overstates_the_kernel(m: int, p: int, seed: int) -> None:
    X = rows(40, p, seed)
    kernel = make_kernel("rbf", gamma=0.5)
    mapped = transform(nystroem_map(kernel, X[:m]), X)
    rest = kernel(X) - mapped @ mapped.T
    assert np.linalg.eigvalsh(rest).min() > -1e-8
    np.testing.assert_allclose(rest[:m, :m], 0.0, atol=1e-5)


def test_repeated_landmarks_are_dropped_from_the_basis() -> None:
    X = rows(10, 3)
    features = nystroem_map(make_kernel("rbf", gamma=1.0), np.vstack([X, X]))
    assert features.basis.shape == (20, 10)
    assert features.n_raw == 20


def test_one_product_of_augmented_rows_is_the_rbf_kernel_far_from_the_origin() -> None:
    X = rows(50, 3, offset=1000.0)
    kernel = make_kernel("rbf", gamma=0.5, center=X.mean(axis=0))
    features = nystroem_map(kernel, X[:20])
    np.testing.assert_allclose(features.raw(X), kernel(X, X[:20]), atol=1e-10)


def test_sparse_rows_map_as_dense_ones() -> None:
    X = rows(20, 6) * (rows(20, 6, seed=1) > 0.5)
    kernel = make_kernel("rbf", gamma=0.5)
    dense = transform(nystroem_map(kernel, X[:8]), X)
    thin = transform(nystroem_map(kernel, sparse.csr_matrix(X[:8])), sparse.csr_matrix(X))
    np.testing.assert_allclose(thin, dense, atol=1e-10)
    drawn = fourier_map(kernel, 6, 10, seed=0)
    np.testing.assert_allclose(drawn.raw(sparse.csr_matrix(X)), drawn.raw(X), atol=1e-12)
    np.testing.assert_array_equal(LinearMap(6).raw(sparse.csr_matrix(X)), X)


@pytest.mark.parametrize(("name", "orthogonal"), [("rbf", True), ("rbf", False), ("laplacian", 0)])
def test_random_features_converge_to_the_kernel(name: str, orthogonal: bool) -> None:
    X = rows(25, 3)
    kernel = make_kernel(name, gamma=0.4)
    mapped = fourier_map(kernel, 3, 20_000, seed=1, orthogonal=orthogonal).raw(X)
    np.testing.assert_allclose(mapped @ mapped.T, kernel(X), atol=0.04)


def test_orthogonal_frequencies_have_less_variance() -> None:
    X = rows(40, 16)
    kernel = make_kernel("rbf", gamma=0.02)
    exact = kernel(X)

    def error(orthogonal: bool) -> float:
        drawn = [fourier_map(kernel, 16, 64, seed=s, orthogonal=orthogonal) for s in range(30)]
        return float(np.mean([(f.raw(X) @ f.raw(X).T - exact) ** 2 for f in drawn]))

    assert error(True) < error(False)


def test_float32_rows_give_float32_features() -> None:
    X = rows(20, 3).astype(np.float32)
    kernel = make_kernel("rbf", gamma=0.5, center=X.mean(axis=0))
    for features in (nystroem_map(kernel, X[:5]), fourier_map(kernel, 3, 7, seed=0)):
        assert transform(features, X).dtype == np.float32
        assert features.flops_per_row > 0


def test_what_has_no_map_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="precomputed"):
        nystroem_map(make_kernel("precomputed"), np.eye(3))
    with pytest.raises(ValueError, match="'rbf' or 'laplacian'"):
        fourier_map(make_kernel("poly", gamma=1.0), 3, 5, seed=0)
    with pytest.raises(ValueError, match="smallest eigenvalue"):
        nystroem_map(make_kernel(lambda a, b: -(a @ b.T)), rows(5, 2))


def test_inverse_root_has_fixed_signs() -> None:
    A = rows(6, 6)
    K = A @ A.T
    root = inverse_root(K)
    np.testing.assert_allclose(root.T @ K @ root, np.eye(6), atol=1e-8)
    assert (root[np.abs(root).argmax(axis=0), np.arange(6)] > 0).all()
