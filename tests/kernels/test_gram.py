"""Gram matrices and widths against scikit-learn and against the definitions."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from buttress.kernels import (
    check_positive_semidefinite,
    kernel_names,
    make_kernel,
    resolve_gamma,
)


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(12, 3))


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "sigmoid", "laplacian", "cosine"])
def test_equals_scikit_learn(name, rows):
    kernel = make_kernel(name, gamma=0.3, degree=2, coef0=0.5, center=rows.mean(axis=0))
    params = {
        "poly": {"gamma": 0.3, "degree": 2, "coef0": 0.5},
        "sigmoid": {"gamma": 0.3, "coef0": 0.5},
        "rbf": {"gamma": 0.3},
        "laplacian": {"gamma": 0.3},
    }.get(name, {})
    other = rows[:5] + 1.0
    expected = pairwise_kernels(rows, other, metric=name, **params)
    np.testing.assert_allclose(kernel(rows, other), expected, atol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(rows), np.diag(kernel(rows)), atol=1e-13)


def test_sparse_rows_give_the_same_matrix(rows):
    for name in ("linear", "rbf"):
        kernel = make_kernel(name, gamma=0.3)
        np.testing.assert_allclose(kernel(sparse.csr_matrix(rows)), kernel(rows), atol=1e-13)
        np.testing.assert_allclose(
            kernel.diagonal(sparse.csr_matrix(rows)), kernel.diagonal(rows), atol=1e-13
        )


def test_callables_get_their_own_parameters_only(rows):
    def shifted(x, z, offset=0.0):
        return float(x @ z) + offset

    kernel = make_kernel(shifted, gamma=7.0, kernel_params={"offset": 2.0})
    np.testing.assert_allclose(kernel(rows), rows @ rows.T + 2.0, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(rows), np.diag(rows @ rows.T) + 2.0, atol=1e-12)
    assert not kernel.always_definite


def test_a_large_offset_costs_no_digits(rows):
    far = rows + 1e6
    centred = make_kernel("rbf", gamma=0.5, center=far.mean(axis=0))
    np.testing.assert_allclose(centred(far), make_kernel("rbf", gamma=0.5)(rows), atol=1e-8)


def test_indefinite_matrices_are_refused_with_their_smallest_eigenvalue():
    with pytest.raises(ValueError, match=r"smallest eigenvalue is -1\b"):
        check_positive_semidefinite(np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="not symmetric"):
        check_positive_semidefinite(np.array([[1.0, 0.5], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="smallest eigenvalue"):
        make_kernel("sigmoid", gamma=1.0, coef0=-5.0).gram(np.array([[0.1], [1.0], [3.0]]))


def test_singular_and_zero_matrices_are_accepted():
    rows = np.ones((4, 2))
    assert make_kernel("poly", gamma=1.0).gram(rows).shape == (4, 4)
    check_positive_semidefinite(np.zeros((3, 3)))
    check_positive_semidefinite((rows @ rows.T).astype(np.float32))
    assert make_kernel("poly", gamma=1.0, coef0=-1.0).always_definite is False


def test_unknown_kernel_names_the_accepted_ones():
    with pytest.raises(ValueError, match=r"Unknown kernel 'magic'.*'rbf'"):
        make_kernel("magic")
    assert "precomputed" in kernel_names()


def test_scale_is_scikit_learns(rows):
    y = np.arange(12) % 2
    model = SVC(gamma="scale").fit(rows, y)
    assert resolve_gamma("scale", rows) == pytest.approx(model._gamma)
    assert resolve_gamma("scale", sparse.csr_matrix(rows)) == pytest.approx(model._gamma)
    assert resolve_gamma("scale", np.ones((3, 2))) == 1.0


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_squares_beyond_the_range_of_numbers_are_refused(scale, form):
    rows = form(scale * np.random.default_rng(0).normal(size=(20, 3)))
    with pytest.raises(ValueError, match="Scale the features"):
        resolve_gamma("scale", rows)


def test_median_is_one_over_the_median_squared_distance():
    line = np.array([[0.0], [1.0], [3.0]])  # squared distances 1, 4, 9
    assert resolve_gamma("median", line) == pytest.approx(0.25)
    assert resolve_gamma("median", np.ones((3, 2))) == 1.0


@pytest.mark.parametrize("gamma", ["scale", "median"])
def test_integer_weights_equal_copies(gamma, rows):
    weight = np.array([1.0, 2.0, 3.0] * 4)
    copies = np.repeat(rows, weight.astype(int), axis=0)
    assert resolve_gamma(gamma, rows, weight) == pytest.approx(resolve_gamma(gamma, copies))


def test_median_of_many_rows_uses_an_even_sample():
    many = np.random.default_rng(0).normal(size=(5000, 2))
    assert resolve_gamma("median", many) == pytest.approx(1 / (4 * np.log(2)), rel=0.1)
    assert resolve_gamma("median", sparse.csr_matrix(many[:100])) > 0


@pytest.mark.parametrize("gamma", ["wide", -1.0, np.inf, None, True])
def test_bad_width(gamma, rows):
    with pytest.raises(ValueError, match=r"gamma=.*expected 'scale', 'auto', 'median'"):
        resolve_gamma(gamma, rows)
