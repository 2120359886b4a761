"""The weights of a linear machine are the sum of its dual coefficients, also where they vanish."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from buttress import (
    DoubleHingeClassifier,
    DoubleRampClassifier,
    GeneralizedHingeClassifier,
    RampClassifier,
)

MACHINES = [
    RampClassifier(kernel="linear"),
    RampClassifier(kernel="linear", s=-np.inf),
    DoubleRampClassifier(kernel="linear"),
    DoubleHingeClassifier(kernel="linear"),
    GeneralizedHingeClassifier(kernel="linear"),
]


def test_a_machine_that_can_learn_nothing_has_no_weights():
    X = np.array([[1.0], [1.0], [1.0], [-5.0], [-5.0]])
    model = RampClassifier(C=100.0, s=-np.inf, kernel="linear").fit(X, [1, -1, -1, -1, -1])
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), -1.0, atol=1e-12)
    assert model.objective_ == pytest.approx(200.0, abs=1e-12)


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_weights_are_those_of_the_dual_coefficients(machine):
    rng = np.random.default_rng(0)
    for _ in range(100):
        n, p = int(rng.integers(6, 25)), int(rng.integers(1, 4))
        X = rng.normal(size=(n, p)) * 10 ** rng.uniform(-1, 1)
        X[rng.integers(0, n, size=n // 2)] = X[0]
        y = -np.ones(n)
        copies = np.flatnonzero((X == X[0]).all(axis=1))
        y[rng.choice(copies, size=max(1, len(copies) // 4), replace=False)] = 1.0
        machine.set_params(C=10 ** rng.uniform(-1, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            model = machine.fit(X, y)
        weights = model.dual_coef_[0] @ X[model.support_]
        np.testing.assert_allclose(X @ weights, X @ model.coef_[0], atol=1e-6)
