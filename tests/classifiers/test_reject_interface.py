"""The reject interface: rules for two and more classes, labels in place, bands for a coverage."""

from __future__ import annotations

import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.linear_model import LogisticRegression

from buttress import NoiseAwareClassifier
from buttress.classifiers import (
    ChowRejector,
    DoubleHingeClassifier,
    DoubleRampClassifier,
    GeneralizedHingeClassifier,
    GroupwiseRejector,
    PARampClassifier,
)
from buttress.classifiers.reject import RejectMixin, coverage_threshold, may_refuse

ALL = [DoubleRampClassifier, DoubleHingeClassifier, GeneralizedHingeClassifier]


class Scores(RejectMixin):
    """The rows are the scores."""

    def __init__(self, thresholds, classes, target_coverage=None):
        self.thresholds_ = np.asarray(thresholds, dtype=float)
        self.classes_ = np.asarray(classes)
        self.target_coverage = target_coverage

    def decision_function(self, X):
        return np.asarray(X, dtype=float)


@pytest.mark.smoke
def test_two_classes_reject_the_closed_band():
    model = Scores([-1.0, 1.0], ["no", "yes"])
    scores = [-1.1, -1.0, 0.0, 1.0, 1.1]
    assert model.reject(scores).tolist() == [False, True, True, True, False]
    assert model.predict(scores).tolist() == ["no", "no", "no", "yes", "yes"]


def test_a_band_of_no_width_rejects_nothing():
    model = Scores([0.0, 0.0], [0, 1])
    assert not model.reject([0.0, -1.0, 2.0]).any()
    assert model.predict([0.0]).tolist() == [0]
    three = Scores(np.zeros((3, 2)), [0, 1, 2])
    assert not three.reject([[-1.0, -2.0, -3.0]]).any()


def test_three_classes_need_exactly_one_accepted():
    model = Scores([[-1, 1], [-1, 1], [-2, 2]], [10, 20, 30])
    scores = [
        [0.5, 0.2, -1.0],  # none
        [1.5, 0.2, -1.0],  # one
        [1.5, 1.2, -1.0],  # several
        [1.5, 1.5, 1.5],  # a tie, several accepted
        [1.0, 0.0, 0.0],  # on the edge: not accepted
        [1.1, 0.0, 1.9],  # the accepted class is not the largest score
    ]
    assert model.reject(scores).tolist() == [True, False, True, True, True, False]
    assert model.predict(scores).tolist() == [10, 10, 10, 10, 10, 10]
    answer = model.predict_or_reject(scores, reject_label=-1)
    assert answer.tolist() == [-1, 10, -1, -1, -1, 10]


def test_a_coverage_band_looks_at_the_two_largest_scores():
    model = Scores([-0.5, 0.5], [0, 1, 2], target_coverage=0.9)
    assert model.reject([[0.0, 1.0, 3.0], [0.0, 2.5, 3.0], [3.0, 2.0, 0.0]]).tolist() == [
        False,
        True,
        True,
    ]


def test_masked_array_without_a_label_and_label_in_place_with_one():
    model = Scores([-1.0, 1.0], [0, 1])
    answer = model.predict_or_reject([2.0, 0.0])
    assert isinstance(answer, np.ma.MaskedArray)
    assert answer.mask.tolist() == [False, True]
    assert model.predict_or_reject([2.0, 0.0], reject_label=-1).tolist() == [1, -1]
    assert model.predict_or_reject([2.0, 0.0], reject_label=-1).dtype.kind == "i"
    with_nan = model.predict_or_reject([2.0, 0.0], reject_label=np.nan)
    assert np.isnan(with_nan[1])
    mixed = model.predict_or_reject([2.0, 0.0], reject_label="ask")
    assert mixed.tolist() == [1, "ask"]
    words = Scores([-1.0, 1.0], ["a", "b"])
    assert words.predict_or_reject([2.0, 0.0], reject_label="nobody").tolist() == ["b", "nobody"]


def test_a_reject_label_must_be_new_and_single():
    model = Scores([-1.0, 1.0], [0, 1])
    with pytest.raises(ValueError, match="one of the classes"):
        model.predict_or_reject([2.0], reject_label=1)
    with pytest.raises(ValueError, match="single label"):
        model.predict_or_reject([2.0], reject_label=[1, 2])


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=30),
    st.sampled_from([0.1, 0.5, 0.8, 0.95, 1.0]),
)
def test_a_coverage_threshold_rejects_no_more_than_allowed(values, target):
    scores = np.array(values, dtype=float) + 1.0
    threshold = coverage_threshold(scores, target)
    allowed = int((1 - target) * (len(scores) + 1) + 1e-9)
    assert (scores <= threshold).sum() <= allowed
    larger = scores[scores > threshold]
    if allowed < len(scores):
        # the next larger threshold would reject too many
        assert (scores <= larger.min()).sum() > allowed


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_coverage_is_held_on_average(kind, kernel):
    coverage = []
    for seed in range(25):
        X, y = make_moons(260, noise=0.4, random_state=seed)
        model = kind(kernel=kernel, gamma=2.0, target_coverage=0.75, random_state=seed)
        if kernel == "precomputed":
            K = np.exp(-2.0 * ((X[:, None] - X[None]) ** 2).sum(-1))
            model.fit(K[:100, :100], y[:100])
            rejected = model.reject(K[100:, :100])
        else:
            rejected = model.fit(X[:100], y[:100]).reject(X[100:])
        coverage.append(1 - rejected.mean())
    # 25 held-out rows: 0.77 exactly in expectation, standard error about 0.017
    assert 0.71 < np.mean(coverage) < 0.83


def test_rows_of_weight_zero_and_held_out_rows_are_out_of_training():
    X, y = make_moons(80, noise=0.3, random_state=0)
    weight = np.ones(80)
    weight[:10] = 0.0
    model = DoubleRampClassifier(target_coverage=0.8, random_state=0).fit(X, y, weight)
    unused = model.support_kind_ == "not_used"
    assert unused[:10].all()
    assert unused.sum() == 10 + 18
    assert not np.isin(model.support_, np.flatnonzero(unused)).any()
    K = np.exp(-model.gamma_ * ((X[:, None] - X[None]) ** 2).sum(-1))
    matrix = DoubleRampClassifier(kernel="precomputed", target_coverage=0.8, random_state=0)
    matrix.fit(K, y, weight)
    assert np.allclose(matrix.decision_function(K), model.decision_function(X), atol=1e-6)
    assert np.allclose(matrix.thresholds_, model.thresholds_, atol=1e-6)


@pytest.mark.parametrize("kind", ALL)
def test_iris_answers_are_consistent(kind):
    X, y = load_iris(return_X_y=True)
    model = kind(d=0.1, C=5.0).fit(X, y)
    rejected, labels = model.reject(X), model.predict(X)
    answer = model.predict_or_reject(X, reject_label=9)
    assert (answer[rejected] == 9).all()
    assert (answer[~rejected] == labels[~rejected]).all()
    assert (labels[~rejected] == y[~rejected]).mean() > 0.95
    assert model.thresholds_.shape == (3, 2)
    accepted = model.decision_function(X) > model.thresholds_[:, 1]
    assert np.array_equal(rejected, accepted.sum(axis=1) != 1)
    assert model.rejection_rate_ == pytest.approx(rejected.mean())
    assert not kind(d=0.5).fit(X, y).reject(X).any()


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"d": 0.0}, r"d=0.0 is out of range.*\(0, 0.5\]"),
        ({"d": 0.51}, r"\(0, 0.5\]"),
        ({"C": 0.0}, r"C=0.0 is out of range.*\(0, inf\)"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"cache_size": 0}, "cache_size=0"),
        ({"target_coverage": 0.0}, r"target_coverage=0.0.*\(0, 1\]"),
        ({"kernel": "magic"}, "Unknown kernel 'magic'"),
    ],
)
def test_bad_parameters_are_named(kind, params, message):
    X, y = make_moons(20, random_state=0)
    model = kind(**params)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


THREE = make_blobs(90, centers=3, cluster_std=3.0, random_state=0)
TWO = THREE[0][THREE[1] < 2], THREE[1][THREE[1] < 2]
COSTS = [[0.0, 1.0, 0.1], [1.0, 0.0, 0.1]]


@pytest.mark.parametrize(
    ("model", "two", "three"),
    [
        (DoubleRampClassifier(d=0.2), True, True),
        (DoubleHingeClassifier(d=0.5), False, False),
        (ChowRejector(LogisticRegression(), d=0.2), True, True),
        (ChowRejector(LogisticRegression(), d=0.5), False, True),
        (ChowRejector(LogisticRegression(), d=0.5, novelty=0.1), True, True),
        (ChowRejector(LogisticRegression(), costs=COSTS), True, None),
        (NoiseAwareClassifier(LogisticRegression()), False, False),
        (NoiseAwareClassifier(LogisticRegression(), d=0.2), True, True),
        (NoiseAwareClassifier(LogisticRegression(), d=0.5), False, True),
        (PARampClassifier(), False, False),
        (PARampClassifier(target_coverage=0.9), True, True),
        (GroupwiseRejector(LogisticRegression(), target_coverage=0.9), True, True),
        (LogisticRegression(), False, False),
    ],
    ids=repr,
)
def test_whether_a_model_refuses_is_known_of_it(model, two, three):
    for (X, y), wanted in ((TWO, two), (THREE, three)):
        if wanted is None:
            continue
        assert may_refuse(clone(model)) is hasattr(model, "reject")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = clone(model).fit(X, y)
        assert may_refuse(fitted) is wanted
        if hasattr(model, "reject") and not wanted:
            assert not fitted.reject(50.0 * X).any()
            assert not fitted.reject(X).any()
