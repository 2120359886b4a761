"""The problem that tests of columns share."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from buttress.kernels import make_kernel


def _folds_of(seed, n=240, gamma=0.3, **options):
    """A Gram matrix, and the labels and weights of four folds and of all rows."""
    X, y = make_classification(
        n, 4, n_informative=3, n_redundant=0, random_state=seed, **({"flip_y": 0.1} | options)
    )
    K = make_kernel("rbf", gamma=gamma)(X)
    omega = np.ones((5, n))
    for k in range(4):
        omega[k, k::4] = 0.0
    omega /= omega.sum(axis=1, keepdims=True)
    return K, np.tile(np.where(y > 0, 1.0, -1.0), (5, 1)), omega


@pytest.fixture
def folds_of():
    """The function that makes folds, by seed."""
    return _folds_of
