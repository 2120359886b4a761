"""Kernel rows in memory and in a cache."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.solvers.hinge.kernel_rows import KernelMatrix, KernelRowCache, as_kernel_rows


def make(n=150, dtype=np.float64):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(n, n)).astype(dtype)
    return A + A.T


@pytest.mark.smoke
def test_matrix_products():
    K = make()
    rows = KernelMatrix(K)
    c = np.where(np.arange(150) % 7 == 0, np.arange(150.0), 0.0)
    np.testing.assert_allclose(rows.times(c), K @ c)
    index = np.array([3, 1, 149])
    np.testing.assert_array_equal(rows.submatrix(index), K[np.ix_(index, index)])
    np.testing.assert_array_equal(rows.diagonal, np.diagonal(K))
    assert as_kernel_rows(rows) is rows
    assert as_kernel_rows(K).n == rows.most_rows == 150


@given(st.lists(st.lists(st.integers(0, 149), min_size=1, max_size=64), min_size=1, max_size=8))
def test_cache_always_returns_the_right_rows(requests):
    K = make()
    cache = KernelRowCache(lambda rows: K[rows], np.diagonal(K), cache_size=1e-6)
    assert cache.most_rows == 64
    for request in requests:
        rows = np.array(request)
        np.testing.assert_array_equal(cache.submatrix(rows), K[np.ix_(rows, rows)])
        g = np.zeros(150)
        cache.add(rows, np.ones(len(rows)), g)
        np.testing.assert_allclose(g, K[rows].sum(axis=0), atol=1e-10)


def test_cache_computes_a_row_once_while_it_is_held():
    K = make(dtype=np.float32)
    computed = []

    def compute(rows):
        computed.extend(rows.tolist())
        return K[rows]

    cache = KernelRowCache(compute, np.diagonal(K), cache_size=10.0, dtype=np.float32)
    for _ in range(3):
        cache.submatrix(np.arange(40))
    assert computed == list(range(40))
    assert cache.n == cache.most_rows == 150
    np.testing.assert_allclose(cache.times(np.ones(150)), K.sum(axis=0), rtol=1e-4, atol=1e-4)


def test_rank_of_a_kernel_from_a_sample_of_its_rows():
    rng = np.random.default_rng(0)
    few = rng.normal(size=(1000, 7))
    assert KernelMatrix(few @ few.T).rank() == 7
    # the sample's rank is full: no more is known than that the kernel's is high
    many = rng.normal(size=(1000, 900))
    high = KernelMatrix(many @ many.T)
    assert high.known_rank() is None
    assert high.rank() == high.known_rank() == 1000
    assert KernelMatrix(few @ few.T, few).known_rank() == 7


@pytest.mark.parametrize("accuracy", [0.0, 1e-10, 1e-4])
def test_points_give_the_kernel_to_the_accuracy_asked_for(accuracy):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 2))
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    rows = KernelMatrix(K)
    points = rows.points(accuracy)
    assert np.abs(points @ points.T - K).max() <= max(accuracy, 1e-13)
    assert points.shape[1] == rows.rank(accuracy)
    assert rows.points(accuracy) is points
    if accuracy > 0.0:
        assert points.shape[1] < rows.points().shape[1]
