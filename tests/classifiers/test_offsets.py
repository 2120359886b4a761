"""With an intercept, a linear machine does not care where the origin of the features is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import buttress

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 3)) * 64) / 64  # exact in float32, offset included
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0, 1, -1)
Y3 = np.where(X[:, 1] > 0.7, 2, Y)
MACHINES = {
    "RampClassifier": {},
    "RampClassifierCV": {"Cs": [1.0], "cv": 3},
    "DoubleRampClassifier": {},
    "DoubleRampClassifierCV": {"Cs": [1.0], "cv": 3},
    "DoubleHingeClassifier": {},
    "GeneralizedHingeClassifier": {},
    "LeakyHockeyStickClassifier": {},
}


def fitted(name: str, rows: Any, labels: Any, **more: Any) -> Any:
    return getattr(buttress, name)(kernel="linear", **MACHINES[name], **more).fit(rows, labels)


@pytest.mark.parametrize("labels", [Y, Y3], ids=["two classes", "three classes"])
@pytest.mark.parametrize(
    ("dtype", "offset", "accuracy"), [("float32", 2048.0, 5e-3), ("float64", 2.0**26, 1e-5)]
)
@pytest.mark.parametrize("name", MACHINES)
def test_an_offset_of_the_features_changes_nothing(name, dtype, offset, accuracy, labels):
    near = fitted(name, X.astype(dtype), labels)
    far = fitted(name, (X + offset).astype(dtype), labels)
    np.testing.assert_allclose(far.objective_, near.objective_, rtol=1e-4)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=accuracy)
    np.testing.assert_allclose(
        far.decision_function((X + offset).astype(dtype)),
        near.decision_function(X.astype(dtype)),
        atol=accuracy,
    )


@pytest.mark.parametrize("name", ["RampClassifier", "DoubleRampClassifier"])
def test_rows_from_a_cache_are_centred_too(name):
    whole = fitted(name, X + 2.0**20, Y)
    cached = fitted(name, X + 2.0**20, Y, cache_size=0.01)
    np.testing.assert_allclose(cached.coef_, whole.coef_, atol=1e-6)
    np.testing.assert_allclose(cached.intercept_, whole.intercept_, rtol=1e-6)


def test_without_an_intercept_the_origin_counts():
    model = buttress.RampClassifier(kernel="linear", fit_intercept=False).fit(X + 1.0, Y)
    np.testing.assert_allclose(model.decision_function(np.zeros((1, 3))), 0.0)
