"""Predictions on arrays of another library, and a clear no where there are none."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from buttress import RampClassifier
from buttress.classifiers.array_api import foreign_labels, foreign_scores, namespace_of

xp = pytest.importorskip("array_api_strict")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)) + 5.0, rng.integers(0, 3, 60)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_and_labels_equal_numpy_s(rows, kernel, n_classes):
    X, y = rows[0], rows[1] % n_classes
    model = RampClassifier(kernel=kernel, degree=2, coef0=1.0, gamma=0.1).fit(X, y)
    foreign = foreign_scores(model, xp.asarray(X), xp)
    wanted = model.decision_function(X)
    np.testing.assert_allclose(np.asarray(foreign), wanted, rtol=1e-9, atol=1e-9)
    labels = foreign_labels(model.classes_, foreign, xp)
    np.testing.assert_array_equal(np.asarray(labels), model.predict(X))


def test_what_cannot_be_done_is_named(rows):
    X, y = rows
    model = RampClassifier(kernel="laplacian").fit(X, y)
    with pytest.raises(TypeError, match="kernel='laplacian' predicts with NumPy only"):
        foreign_scores(model, xp.asarray(X), xp)
    model = RampClassifier().fit(X, y)
    with pytest.raises(ValueError, match="expecting 3 features"):
        foreign_scores(model, xp.asarray(X[:, :2]), xp)
    with pytest.raises(TypeError, match="labels that are text"):
        foreign_labels(np.array(["a", "b"]), xp.zeros(2), xp)


def test_without_dispatch_nothing_is_foreign(rows):
    assert namespace_of(xp.asarray(rows[0])) is None
    assert namespace_of(rows[0]) is None


PROGRAM = """
import array_api_strict as xp, numpy as np, sklearn
from buttress import LeakyHockeyStickClassifier, NoiseAwareClassifier
X = np.array([[-2.0, 0.0], [-1.0, 1.0], [1.0, 0.0], [2.0, 1.0]]); y = np.array([0, 0, 1, 1])
model = LeakyHockeyStickClassifier().fit(X, y)
with sklearn.config_context(array_api_dispatch=True):
    found = model.decision_function(xp.asarray(X))
    assert type(found).__module__.startswith("array_api_strict"), type(found)
    assert np.allclose(np.asarray(found), model.decision_function(X))
    labels = model.predict(xp.asarray(X))
    assert type(labels).__module__.startswith("array_api_strict")
    assert np.asarray(labels).tolist() == y.tolist()
    try:
        LeakyHockeyStickClassifier().fit(xp.asarray(X), y)
    except TypeError as error:
        print(error)
"""


@pytest.mark.long
def test_with_scikit_learn_s_dispatch(rows):
    """The switch must be set before SciPy is imported, hence a process of its own."""
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "computes with NumPy here" in done.stdout
