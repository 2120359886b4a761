"""The paper's online learners on banana: 5300 rows, gamma = 1, labels flipped at 0, 5 and 10 %."""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold

from buttress import KernelPegasos, KernelPerceptron, Norma, PARampClassifier

pytestmark = pytest.mark.datasets

# Support vectors of PA-RAMP with s by cross-validation, and of the perceptron: means of an
# independent implementation over five splits.
EXPECTED = {0.0: (648.4, 602.0), 0.05: (694.0, 912.8), 0.1: (698.2, 1183.2)}


@lru_cache
def banana(data_dir: Path) -> tuple[np.ndarray, np.ndarray]:
    table = np.genfromtxt(data_dir / "banana_ida.csv", delimiter=",", skip_header=1)
    X, y = table[:, :2], np.where(table[:, 2] > 0, 1, -1)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def fitted_and_told(model: Any, X: np.ndarray, y: np.ndarray) -> bool:
    """Fit, and say whether the learner warned that it refused too many rows."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y)
    return any("were refused" in str(warning.message) for warning in told)


def tuned(X: np.ndarray, y: np.ndarray) -> PARampClassifier:
    """s by 5-fold cross-validation on the first 1000 rows."""
    search = GridSearchCV(
        PARampClassifier(gamma=1.0),
        {"s": [-1.0, -0.75, -0.5, -0.25]},
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
    )
    with warnings.catch_warnings():
        # Candidates close to 0 lock a class out on some folds; that is what they are scored for.
        warnings.simplefilter("ignore", UserWarning)
        search.fit(X[:1000], y[:1000])
    return search.best_estimator_


@pytest.mark.parametrize("noise", EXPECTED)
def test_accuracy_and_support_vectors(data_dir: Path, noise: float) -> None:
    """On twenty splits, the first of one seed.

    Other splits differ: at 10 % the mean is near the lower end of the band (the stream page).
    Where the learner says that it refused too many rows it is fitted again in another order.
    """
    X, y = banana(data_dir)
    vectors, mistakes = EXPECTED[noise]
    found = []
    for seed, (train, test) in enumerate(ShuffleSplit(20, test_size=0.2, random_state=0).split(X)):
        random = np.random.RandomState(seed)
        labels = np.where(random.rand(len(train)) < noise, -y[train], y[train])
        model = tuned(X[train], labels)
        order = np.arange(len(train))
        while fitted_and_told(model, X[train[order]], labels[order]):
            order = random.permutation(len(train))
        perceptron = KernelPerceptron(gamma=1.0).fit(X[train], labels)
        found.append([model.score(X[test], y[test]), len(model.support_), len(perceptron.support_)])
    means = np.mean(found, axis=0)
    assert 0.885 <= means[0] <= 0.905
    assert means[1:] == pytest.approx([vectors, mistakes], rel=0.08)


@pytest.mark.parametrize(("noise", "vectors"), [(0.0, 1526.6), (0.05, 1699.2), (0.1, 1880.4)])
def test_the_counts_of_pegasos(data_dir: Path, noise: float, vectors: float) -> None:
    X, y = banana(data_dir)
    train, _ = next(ShuffleSplit(1, test_size=0.2, random_state=0).split(X))
    labels = np.where(np.random.RandomState(0).rand(len(train)) < noise, -y[train], y[train])
    sampled = KernelPegasos(gamma=1.0, alpha=0.01, sampling="with_replacement", random_state=0)
    assert len(sampled.fit(X[train], labels).support_) == pytest.approx(vectors, rel=0.08)


def test_the_counts_of_norma(data_dir: Path) -> None:
    X, y = banana(data_dir)
    train, _ = next(ShuffleSplit(1, test_size=0.2, random_state=0).split(X))
    norma = Norma(gamma=1.0, eta=0.1, alpha=1.0, tau=1e-4).fit(X[train], y[train])
    assert len(norma.support_) == pytest.approx(66, abs=1)
