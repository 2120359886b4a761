"""Sets of labels: coverage over draws, by class, and MAPIE as an oracle."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from buttress import ChowRejector


class Told(ClassifierMixin, BaseEstimator):
    """The rows are the probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.asarray(X)


def uneven(n, seed):
    """Three classes of very different size that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=[0.7, 0.2, 0.1])
    centres = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])
    return rng.normal(size=(n, 2)) + centres[y], y


@pytest.mark.long
@pytest.mark.parametrize("by_class", [False, True])
def test_coverage_holds_over_draws(by_class):
    hits, sizes = [], []
    for seed in range(40):
        X, y = uneven(900, seed)
        model = ChowRejector(LogisticRegression()).fit(X[:300], y[:300])
        model.calibrate_sets(X[300:600], y[300:600], 0.85, by_class=by_class)
        sets = model.predict_set(X[600:])
        inside = sets[np.arange(300), y[600:]]
        hits.append([inside.mean(), *(inside[y[600:] == k].mean() for k in range(3))])
        sizes.append(sets.sum(axis=1).mean())
    overall, *classes = np.mean(hits, axis=0)
    if by_class:
        assert min(classes) > 0.83  # standard error below .01
    else:
        assert 0.835 < overall < 0.875
        assert min(classes) < 0.75  # the price of asking for all rows together
    assert 1.0 < np.mean(sizes) < 2.5


def test_the_threshold_is_a_rank():
    p = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    model = ChowRejector(Told()).fit(p, [0, 0, 0, 1])
    model.calibrate_sets(p, [0, 0, 0, 0], 0.6)
    assert model.set_thresholds_.tolist() == [0.7, 0.7]  # the third of four
    assert model.predict_set([[0.65, 0.35], [0.75, 0.25]]).tolist() == [[True, False]] * 2
    model.calibrate_sets(p, [0, 0, 0, 0], 0.95)
    assert model.predict_set([[0.99, 0.01]]).all()  # too few rows: nothing is ruled out
    assert model.predict_set([[0.99, 0.01]], max_labels=1).sum() == 0


def test_large_sets_are_refused_on_request():
    X, y = uneven(900, 0)
    model = ChowRejector(LogisticRegression()).fit(X[:300], y[:300])
    model.calibrate_sets(X[300:600], y[300:600], 0.95)
    free, capped = model.predict_set(X[600:]), model.predict_set(X[600:], max_labels=2)
    large = free.sum(axis=1) > 2
    assert large.any()
    assert (capped[large].sum(axis=1) == 0).all()
    assert np.array_equal(capped[~large], free[~large])


def test_sets_agree_with_mapie():
    classification = pytest.importorskip("mapie.classification")
    X, y = make_blobs(900, centers=4, cluster_std=4.0, random_state=0)
    inner = LogisticRegression().fit(X[:300], y[:300])
    model = ChowRejector(LogisticRegression()).fit(X[:300], y[:300])
    model.calibrate_sets(X[300:600], y[300:600], 0.9)
    rival = classification.SplitConformalClassifier(
        inner, confidence_level=0.9, conformity_score="lac", prefit=True
    ).conformalize(X[300:600], y[300:600])
    theirs = rival.predict_set(X[600:])[1][:, :, 0]
    ours = model.predict_set(X[600:])
    lonely = theirs.sum(axis=1) == 0  # empty sets: here the most probable label
    assert np.array_equal(ours[~lonely], theirs[~lonely])
    assert (ours[lonely].sum(axis=1) == 1).all()


def test_wrong_use_is_named():
    X, y = uneven(60, 0)
    model = ChowRejector(LogisticRegression()).fit(X, y)
    with pytest.raises(NotFittedError, match=r"call calibrate_sets"):
        model.predict_set(X)
    with pytest.raises(ValueError, match=r"coverage=1.0"):
        model.calibrate_sets(X, y, 1.0)
    with pytest.raises(ValueError, match=r"labels \[9\]"):
        model.calibrate_sets(X, np.full(60, 9))
    with pytest.raises(ValueError, match="max_labels=0"):
        model.calibrate_sets(X, y).predict_set(X, max_labels=0)
