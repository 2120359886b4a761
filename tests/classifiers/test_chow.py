"""ChowRejector: the generalised Bayes rule around any classifier."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    make_blobs,
    make_classification,
    make_moons,
)
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OutputCodeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress.classifiers.chow import ChowRejector
from buttress.metrics import reject_risk, reject_scorer


class Told(ClassifierMixin, BaseEstimator):
    """The rows are the probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.asarray(X)


@parametrize_with_checks([ChowRejector(LogisticRegression())])
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.smoke
def test_rejects_exactly_where_no_probability_exceeds_one_minus_d():
    p = np.array([0.1, 0.19, 0.2, 0.5, 0.8, 0.81])
    X = np.column_stack([1 - p, p])
    model = ChowRejector(Told(), d=0.2).fit(X, [0, 0, 0, 1, 1, 1])
    assert model.reject(X).tolist() == [False, False, True, True, True, False]
    assert model.predict(X).tolist() == [0, 0, 0, 0, 1, 1]
    assert np.allclose(model.thresholds_, [-0.6, 0.6])
    answer = model.predict_or_reject(X)
    assert answer.mask.tolist() == model.reject(X).tolist()


def test_one_half_never_rejects_two_classes_and_rejects_minorities_of_three():
    X = np.array([[0.5, 0.5], [0.4, 0.6]])
    assert not ChowRejector(Told(), d=0.5).fit(X, [0, 1]).reject(X).any()
    X = np.array([[0.4, 0.3, 0.3], [0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
    model = ChowRejector(Told(), d=0.5).fit(X, [0, 1, 2])
    assert model.reject(X).tolist() == [True, False, False]
    assert model.thresholds_.shape == (3, 2)


def test_rule_is_optimal_for_true_probabilities():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=4000)
    X, y = np.column_stack([1 - p, p]), (rng.uniform(size=4000) < p).astype(int)
    for d in (0.1, 0.3):
        model = ChowRejector(Told(), d=d).fit(X, y)
        best = reject_risk(y, model.predict(X), model.reject(X), d)
        for other in (0.02, 0.2, 0.45):
            rival = ChowRejector(Told(), d=other).fit(X, y)
            assert best < reject_risk(y, rival.predict(X), rival.reject(X), d) + 0.01


def test_margins_are_calibrated_when_there_are_no_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    svm = make_pipeline(StandardScaler(), SVC())
    model = ChowRejector(svm, d=0.1).fit(X[::2], y[::2])
    p = model.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1)
    assert 0.0 < model.reject(X).mean() < 0.3
    isotonic = ChowRejector(svm, d=0.1, calibration="isotonic", cv=3).fit(X[::2], y[::2])
    assert len(isotonic.estimator_.calibrated_classifiers_) == 3
    with pytest.raises(ValueError, match="calibration='sigmoid'"):
        ChowRejector(SVC(), calibration=None).fit(X, y)


def test_three_classes_answer_the_most_probable():
    X, y = load_iris(return_X_y=True)
    model = ChowRejector(LogisticRegression(max_iter=500), d=0.1).fit(X, y)
    p = model.predict_proba(X)
    assert (model.predict(X) == p.argmax(axis=1)).all()
    assert (model.reject(X) == (p.max(axis=1) <= 0.9)).all()
    assert np.allclose(model.decision_function(X), 2 * p - 1)


def test_works_with_searches_pipelines_and_fitted_models():
    X, y = make_classification(200, random_state=0)
    search = GridSearchCV(
        ChowRejector(LogisticRegression()),
        {"d": [0.2, 0.4], "estimator__C": [0.1, 1.0]},
        scoring=reject_scorer(0.2),
        cv=3,
    ).fit(X, y)
    assert -0.2 <= search.best_score_ < 0
    piped = make_pipeline(StandardScaler(), ChowRejector(LogisticRegression()))
    assert (cross_val_score(piped, X, y, scoring=reject_scorer(0.2), cv=3) > -0.2).all()
    ready = LogisticRegression().fit(X, y)
    model = ChowRejector(FrozenEstimator(ready)).fit(X[:5], y[:5])
    assert (model.predict(X) == ready.predict(X)).all()


@pytest.mark.long
def test_coverage_is_held_over_many_draws():
    coverage = []
    for seed in range(60):
        X, y = make_blobs(400, centers=3, cluster_std=3.0, random_state=seed)
        model = ChowRejector(LogisticRegression(), target_coverage=0.7, random_state=seed)
        model.fit(X[:200], y[:200])
        assert model.thresholds_.shape == (2,)
        coverage.append(1 - model.reject(X[200:]).mean())
    # 50 held-out rows: between 0.7 and 0.7 + 1/51 on average, standard error about 0.01
    assert 0.67 < np.mean(coverage) < 0.75


def test_coverage_with_a_matrix_of_pairs():
    X, y = make_blobs(120, centers=2, cluster_std=9.0, random_state=1)
    neighbours = KNeighborsClassifier(15, metric="precomputed")
    model = ChowRejector(neighbours, target_coverage=0.5, random_state=0)
    assert model.__sklearn_tags__().input_tags.pairwise
    assert model.fit(euclidean_distances(X), y).thresholds_[1] > 0


def test_weights_are_routed_or_refused():
    X, y = make_classification(100, random_state=0)
    weight = np.where(y == 1, 5.0, 1.0)
    plain = ChowRejector(LogisticRegression()).fit(X, y)
    weighted = ChowRejector(LogisticRegression()).fit(X, y, sample_weight=weight)
    assert weighted.decision_function(X).mean() > plain.decision_function(X).mean()
    half = ChowRejector(LogisticRegression(), target_coverage=0.9, random_state=0)
    assert half.fit(X, y, sample_weight=weight).thresholds_.shape == (2,)
    with pytest.raises(ValueError, match="takes no weights"):
        ChowRejector(KNeighborsClassifier()).fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        routed = ChowRejector(inner).fit(X, y, sample_weight=weight)
    assert np.allclose(routed.decision_function(X), weighted.decision_function(X))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"d": 0.0}, r"d=0.0 is out of range.*\(0, 0.5\]"),
        ({"d": 0.6}, r"\(0, 0.5\]"),
        ({"calibration": "magic"}, "calibration='magic'"),
        ({"target_coverage": 1.5}, r"target_coverage=1.5.*\(0, 1\]"),
    ],
)
def test_bad_parameters_are_named(params, message):
    X, y = make_classification(30, random_state=0)
    with pytest.raises(ValueError, match=message):
        ChowRejector(LogisticRegression(), **params).fit(X, y)


def test_too_few_rows_for_a_coverage():
    with pytest.raises(ValueError, match="at least 8 rows"):
        ChowRejector(LogisticRegression(), target_coverage=0.5).fit([[0], [1]], [0, 1])


@pytest.mark.parametrize("options", [{}, {"calibration": "isotonic"}, {"target_coverage": 0.8}])
@pytest.mark.parametrize(
    "estimator",
    [
        StackingClassifier([("a", LogisticRegression())]),
        VotingClassifier([("a", LogisticRegression())]),
        SelfTrainingClassifier(),
        OutputCodeClassifier(LogisticRegression()),
        LinearRegression(),
    ],
)
def test_what_has_no_scores_before_it_is_fitted_is_refused_in_our_words(estimator, options):
    X, y = make_moons(60, noise=0.3, random_state=0)
    with pytest.raises(ValueError, match="neither predict_proba nor decision_function"):
        ChowRejector(estimator, **options).fit(X, y)


def test_a_stack_that_is_told_its_last_classifier_is_accepted():
    X, y = make_moons(60, noise=0.3, random_state=0)
    stack = StackingClassifier([("a", LogisticRegression())], LogisticRegression())
    assert ChowRejector(stack).fit(X, y).reject(X).shape == (60,)
