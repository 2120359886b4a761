"""scikit-learn's own checks of the four online learners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import KernelPegasos, KernelPerceptron, Norma, PARampClassifier
from buttress.classifiers import online
from buttress.classifiers.online import learner_names


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


@pytest.mark.parametrize("name", sorted(learner_names()))
def test_rows_whose_similarities_overflow_are_refused_and_not_taken_for_learned(name):
    learner = getattr(online, learner_names()[name])
    X = np.array([[1.0, 2.0], [-1.0, 1.0], [2.0, -1.0], [-3.0, 0.5]] * 5) * 1e160
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ValueError, match="similarities that are not finite"),
    ):
        learner(kernel="linear").fit(X, [0, 1] * 10)
