"""What the leaky hockey stick classifier refuses, and how it says so."""

import math

import numpy as np
import pytest

from buttress import LeakyHockeyStickClassifier


def noisy(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.8 * rng.normal(size=n) > 0, 1, -1)


def rbf(X):
    return np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, r"alpha=0.0 .* \(0, inf\)"),
        ({"alpha": -1}, r"alpha=-1 .* \(0, inf\)"),
        ({"alpha": "small"}, r"alpha='small'"),
        ({"r": 1.0}, r"r=1.0 .* \(1, inf\]"),
        ({"r": math.nan}, "r=nan"),
        ({"kernel": "magic"}, "Unknown kernel 'magic'"),
        ({"gamma": -2.0}, "gamma=-2.0"),
        ({"solver": "magic"}, "solver='magic' .*'newton'"),
        ({"tol": 0}, "tol=0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"max_iter": 2.5}, "max_iter=2.5 .*whole number"),
        ({"class_weight": "heavy"}, "class_weight='heavy'"),
        ({"class_weight": {5: 1.0}}, r"class_weight names labels that are not in y: \[5\]"),
        ({"class_weight": {1: -1.0}}, "must be positive"),
        ({"class_weight": 3}, "class_weight=3"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = noisy(20)
    with pytest.raises(ValueError, match=message):
        LeakyHockeyStickClassifier(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(20), "Negative values in data passed to `sample_weight`"),
        (np.ones(19), r"sample_weight.shape == \(19,\), expected \(20,\)"),
        (np.ones((20, 2)), "1D array or scalar"),
        (np.full(20, np.nan), "sample_weight contains NaN"),
        (np.zeros(20), "zero"),
    ],
)
def test_bad_weights_are_named(weight, message):
    X, y = noisy(20)
    with pytest.raises(ValueError, match=message):
        LeakyHockeyStickClassifier().fit(X, y, sample_weight=weight)


def test_bad_gram_matrices_are_refused():
    X, y = noisy(20)
    model = LeakyHockeyStickClassifier(kernel="precomputed")
    with pytest.raises(ValueError, match=r"square matrix\. Input is a 20x3 matrix"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="smallest eigenvalue is -"):
        model.fit(rbf(X) - 0.5, y)
    with pytest.raises(ValueError, match="not symmetric"):
        model.fit(rbf(X) + np.triu(np.ones((20, 20))), y)


def test_one_class_is_an_error_and_leaves_the_old_model_alone():
    X, y = noisy(20)
    model = LeakyHockeyStickClassifier().fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X[:, :2], np.ones(20))
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.n_features_in_ == 3
