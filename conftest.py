"""Settings for every test and doctest, inside and outside the package."""

import os

import numpy as np
import pytest

os.environ.setdefault("MPLBACKEND", "Agg")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What takes scikit-learn's default `random_state=None` draws the same numbers each time."""
    np.random.seed(0)  # noqa: NPY002
