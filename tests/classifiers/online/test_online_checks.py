"""scikit-learn's own checks of the four online learners."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import KernelPegasos, KernelPerceptron, Norma, PARampClassifier


@pytest.mark.filterwarnings("ignore:gamma='scale' was fixed:UserWarning")
@parametrize_with_checks(
    [
        PARampClassifier(),
        PARampClassifier(budget=20, drift="page-hinkley"),
        KernelPerceptron(),
        KernelPegasos(),
        Norma(),
    ]
)
def test_scikit_learn_accepts_the_estimator(estimator: Any, check: Any) -> None:
    assert check(estimator) is None
