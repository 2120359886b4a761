"""cross_validate_reject: pooled counts over a grid of rejection costs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import buttress
from buttress import (
    ChowRejector,
    DoubleHingeClassifier,
    DoubleRampClassifier,
    GeneralizedHingeClassifier,
    cross_validate_reject,
)
from buttress.metrics import accepted_accuracy, reject_risk, rejection_rate

COSTS = [0.3, 0.1, 0.5]


@pytest.fixture(scope="module")
def moons():
    return make_moons(90, noise=0.4, random_state=0)


def by_hand(estimator, X, y, costs, cv, weight=None):
    """Fit every fold and cost from the beginning, and pool."""
    rows = []
    for d in costs:
        truth, pred, rejected, w = [], [], [], []
        for train, test in cv.split(X, y):
            options = {} if weight is None else {"sample_weight": weight[train]}
            model = type(estimator)(**{**estimator.get_params(deep=False), "d": d})
            model.fit(X[train], y[train], **options)
            truth.append(y[test])
            pred.append(model.predict(X[test]))
            rejected.append(model.reject(X[test]))
            w.append(np.ones(len(test)) if weight is None else weight[test])
        parts = [np.concatenate(part) for part in (truth, pred, rejected)]
        w = np.concatenate(w)
        rows.append(
            (
                reject_risk(*parts, d, sample_weight=w),
                rejection_rate(parts[2], sample_weight=w),
                accepted_accuracy(*parts, sample_weight=w),
            )
        )
    return np.array(rows).T


@pytest.mark.parametrize(
    "estimator",
    [
        DoubleRampClassifier(C=5.0, gamma=1.0),
        DoubleRampClassifier(C=5.0, gamma=1.0, init="best", class_weight="balanced"),
        DoubleHingeClassifier(C=5.0, gamma=1.0),
        GeneralizedHingeClassifier(C=5.0, kernel="linear"),
        ChowRejector(LogisticRegression()),
    ],
)
def test_equals_separate_fits(moons, estimator):
    X, y = moons
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    found = cross_validate_reject(estimator, X, y, COSTS, cv=folds)
    expected = by_hand(estimator, X, y, COSTS, folds)
    assert found.d.tolist() == COSTS
    assert np.allclose([found.risk, found.rejection_rate, found.accuracy], expected)
    assert found.fold_errors.shape == (3, 4)
    assert (found.fold_rows.sum(axis=1) == len(y)).all()


def test_weights_of_zero_included(moons):
    X, y = moons
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    for estimator in (DoubleRampClassifier(C=5.0, gamma=1.0), ChowRejector(LogisticRegression())):
        found = cross_validate_reject(estimator, X, y, COSTS, cv=folds, sample_weight=weight)
        expected = by_hand(estimator, X, y, COSTS, folds, weight)
        assert np.allclose([found.risk, found.rejection_rate, found.accuracy], expected)


def test_three_classes_matrices_sparse_rows_and_threads():
    X, y = load_iris(return_X_y=True)
    model = DoubleRampClassifier(gamma=0.5)
    plain = cross_validate_reject(model, X, y, [0.1, 0.4], cv=3)
    threads = cross_validate_reject(model, X, y, [0.1, 0.4], cv=3, n_jobs=2)
    thin = cross_validate_reject(model, sparse.csr_array(X), y, [0.1, 0.4], cv=3)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
    matrix = DoubleRampClassifier(kernel="precomputed")
    given = cross_validate_reject(matrix, K, y, [0.1, 0.4], cv=3)
    for other in (threads, thin, given):
        assert np.allclose(plain.risk, other.risk)


def test_pipelines_and_coverages_are_refitted(moons):
    X, y = moons
    pipeline = make_pipeline(StandardScaler(), DoubleRampClassifier(C=5.0))
    found = cross_validate_reject(pipeline, X, y, [0.1, 0.5], cv=3)
    assert found.rejection_rate[0] > found.rejection_rate[1] == 0
    fixed = DoubleRampClassifier(target_coverage=0.8, random_state=0)
    found = cross_validate_reject(fixed, X, y, [0.1, 0.3], cv=3)
    assert (found.rejection_rate < 0.5).all()


def test_accuracy_is_nan_where_everything_is_rejected(moons):
    X, y = moons
    found = cross_validate_reject(DoubleRampClassifier(C=1e-5), X, y, [0.05], cv=3)
    assert found.rejection_rate.tolist() == [1.0]
    assert np.isnan(found.accuracy).all()
    assert found.risk == pytest.approx([0.05])


def test_the_function_stays_a_function():
    assert callable(buttress.cross_validate_reject)
    assert callable(buttress.model_selection.cross_validate_reject)


def test_bad_input_is_named(moons):
    X, y = moons
    with pytest.raises(ValueError, match=r"d_values=0.7.*\(0, 0.5\]"):
        cross_validate_reject(DoubleRampClassifier(), X, y, [0.7])
    with pytest.raises(ValueError, match="d_values is empty"):
        cross_validate_reject(DoubleRampClassifier(), X, y, [])
    with pytest.raises(ValueError, match="ChowRejector"):
        cross_validate_reject(LogisticRegression(), X, y, [0.2])
    with pytest.raises(TypeError, match="not a scikit-learn estimator"):
        cross_validate_reject(3, X, y, [0.2])
    with pytest.raises(ValueError, match="sample_weight"):
        cross_validate_reject(DoubleRampClassifier(), X, y, [0.2], sample_weight=[1.0])
    with pytest.raises(ValueError, match="no training rows of class"):
        cross_validate_reject(DoubleRampClassifier(), X, np.sort(y), [0.2], cv=KFold(2))
