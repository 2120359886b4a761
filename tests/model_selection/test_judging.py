"""Models are judged on rows they have not seen, and losers drop out."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_moons
from sklearn.dummy import DummyClassifier
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    recall_score,
)
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from buttress import PARampClassifier
from buttress.metrics import reject_risk
from buttress.model_selection import Judged, Measure, judge
from buttress.model_selection.candidates import Request, make_candidate, settled
from buttress.model_selection.judging import Dropping, plain_rows, together


@pytest.fixture(scope="module")
def data():
    X, y = make_moons(240, noise=0.35, random_state=0)
    return X, np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def folds(data):
    return list(StratifiedKFold(4, shuffle=True, random_state=1).split(*data))


def made(true, answers, rejected=None, scores=None, rows=None):
    n = len(true)
    return Judged(
        "a",
        "A",
        np.arange(n) if rows is None else rows,
        np.asarray(true),
        np.asarray(answers),
        np.zeros(n, bool) if rejected is None else np.asarray(rejected),
        np.zeros(n) if scores is None else np.asarray(scores),
        np.zeros(n, int),
        1.0,
    )


def test_answers_are_those_of_cross_validation(data, folds):
    X, y = data
    (judged,) = judge({"svc": SVC()}, plain_rows(X), y, folds, jobs=1)
    expected = cross_val_predict(SVC(), X, y, cv=folds)
    np.testing.assert_array_equal(judged.answers, expected[judged.rows])
    np.testing.assert_array_equal(np.sort(judged.rows), np.arange(len(y)))
    assert not judged.dropped


def test_a_table_is_encoded_once_per_fold_whatever_the_number_of_models(data, folds):
    X, y = data
    calls = []

    def encode(train, test):
        calls.append(len(train))
        return X[train], X[test]

    judge({"a": SVC(), "b": SVC(C=10.0), "c": SVC(C=0.1)}, encode, y, folds, jobs=2)
    assert len(calls) == len(folds)


def test_candidates_that_cannot_win_are_dropped_and_yardsticks_are_not(data, folds):
    X, y = data
    worst = DummyClassifier(strategy="constant", constant="no")
    models = {"good": SVC(), "bad": worst, "yardstick": worst}
    found = judge(
        models, plain_rows(X), y, folds, dropping=Dropping(Measure(), ("yardstick",)), jobs=1
    )
    good, bad, yardstick = found
    assert not good.dropped
    assert not yardstick.dropped
    assert "after" in bad.dropped
    assert len(bad.rows) < len(y) == len(good.rows) == len(yardstick.rows)


def test_threads_change_neither_who_is_dropped_nor_after_how_many_folds(data, folds):
    X, y = data
    worst = DummyClassifier(strategy="constant", constant="no")
    models = {"bad": worst, "good": SVC(), "worse": worst, "poor": SVC(C=1e-3)}
    alone, beside = (
        judge(models, plain_rows(X), y, folds, dropping=Dropping(Measure()), jobs=jobs)
        for jobs in (1, 2)
    )
    for one, other in zip(alone, beside, strict=True):
        assert (one.kind, one.dropped) == (other.kind, other.dropped)
        np.testing.assert_array_equal(one.rows, other.rows)
        np.testing.assert_array_equal(one.answers, other.answers)


class Waiting(BaseEstimator, ClassifierMixin):
    """A fit ends only when another one is under way with it."""

    meeting = threading.Barrier(2, timeout=20)

    def fit(self, X, y):
        self.meeting.wait()
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def decision_function(self, X):
        return np.zeros(len(X))


def test_a_race_fits_the_next_fold_while_the_last_fit_of_one_runs(data, folds):
    X, y = data
    # three fits a fold in two threads: the third of one fold meets the first of the next
    models = {"a": Waiting(), "b": Waiting(), "c": Waiting()}
    found = judge(models, plain_rows(X), y, folds[:4], dropping=Dropping(Measure()), jobs=2)
    assert [len(each.rows) for each in found] == 3 * [sum(len(test) for _, test in folds[:4])]


def test_equal_candidates_all_run_to_the_end(data, folds):
    X, y = data
    models = {"one": SVC(), "same": SVC(), "alike": SVC(C=1.5)}
    found = judge(models, plain_rows(X), y, folds, dropping=Dropping(Measure()), jobs=1)
    assert [each.dropped for each in found] == ["", "", ""]


def test_flipped_labels_are_for_training_only(data, folds):
    X, y = data
    seen = []

    def flip(labels, fold):
        seen.append(fold)
        return np.where(labels == "no", "yes", "no")

    (judged,) = judge({"svc": SVC()}, plain_rows(X), y, folds, flip=flip, jobs=1)
    assert sorted(seen) == [0, 1, 2, 3]
    np.testing.assert_array_equal(judged.true, y[judged.rows])
    assert judged.accuracy < 0.5


def test_a_sorted_file_does_not_defeat_a_learner_of_one_pass(data):
    X, y = data
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    folds = list(StratifiedKFold(4, shuffle=True, random_state=1).split(X, y))
    (judged,) = judge({"online": PARampClassifier()}, plain_rows(X), y, folds, jobs=1)
    assert judged.accuracy > 0.75


class Unsure(ClassifierMixin, BaseEstimator):
    """Knows probabilities only, and would rather not answer the first column's middle."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-X[:, 0]))
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]

    def reject(self, X):
        return np.abs(X[:, 0]) < 0.3


def test_probabilities_serve_as_scores_and_rejections_are_counted(data, folds):
    X, y = data
    (judged,) = judge({"u": Unsure()}, plain_rows(X), y, folds, jobs=1)
    np.testing.assert_array_equal(judged.rejected, np.abs(X[judged.rows, 0]) < 0.3)
    assert judged.coverage == pytest.approx(1 - judged.rejected.mean())
    np.testing.assert_allclose(judged.confidence, np.abs(np.tanh(X[judged.rows, 0] / 2)))
    wrong = judged.true != judged.answers
    risk = (wrong & ~judged.rejected).mean() + 0.2 * judged.rejected.mean()
    assert Measure("cost", 0.2).value(judged) == pytest.approx(risk)
    expected = reject_risk(judged.true, judged.answers, judged.rejected, 0.2, confidence=0.95)
    assert Measure("cost", 0.2).estimate(judged) == expected


# -- measures ------------------------------------------------------------------------------


@pytest.fixture(params=[2, 3])
def answers(request):
    rng = np.random.default_rng(request.param)
    k = request.param
    true = rng.choice(
        np.array(["a", "b", "c"])[:k], 300, p=[0.7, 0.3] if k == 2 else [0.6, 0.3, 0.1]
    )
    scores = rng.standard_normal((300, k)) + 1.5 * (true[:, None] == np.array(["a", "b", "c"])[:k])
    names = np.array(["a", "b", "c"])[:k][scores.argmax(axis=1)]
    line = scores[:, 1] - scores[:, 0] if k == 2 else scores
    return made(true, names, scores=line)


def test_measures_agree_with_scikit_learn(answers):
    true, said = answers.true, answers.answers
    wanted = {
        "accuracy": (true == said).mean(),
        "balanced-accuracy": balanced_accuracy_score(true, said),
        "f1": f1_score(true, said, average="macro"),
    }
    if answers.scores.ndim == 1:
        wanted["average-precision"] = average_precision_score(true == "b", answers.scores)
    else:
        wanted["average-precision"] = np.mean(
            [average_precision_score(true == c, answers.scores[:, i]) for i, c in enumerate("abc")]
        )
    for name, score in wanted.items():
        assert Measure(name).value(answers) == pytest.approx(1 - score), name
    recalls = recall_score(true, said, average=None)
    np.testing.assert_allclose(list(answers.recalls().values()), recalls)


@pytest.mark.parametrize("name", ["accuracy", "balanced-accuracy", "f1", "average-precision"])
def test_intervals_hold_the_value_and_shrink_with_rows(answers, name):
    measure = Measure(name)
    found = measure.estimate(answers)
    assert found.low <= found.value <= found.high
    double = together([answers, answers, answers, answers])
    more = measure.estimate(double)
    assert more.high - more.low < 0.7 * (found.high - found.low)
    assert more.value == pytest.approx(found.value)


@pytest.mark.parametrize("name", ["accuracy", "cost", "balanced-accuracy", "f1"])
def test_a_worse_model_is_worse_by_many_standard_errors(name):
    rng = np.random.default_rng(0)
    true = rng.choice(["a", "b"], 400)
    good = made(true, np.where(rng.random(400) < 0.1, "a", true))
    bad = made(true, rng.choice(["a", "b"], 400))
    measure = Measure(name)
    assert measure.worse(bad, good) > 5
    assert measure.worse(good, bad) < -5
    assert measure.worse(good, good) == 0.0
    # only rows that both have judged count
    assert measure.worse(bad.take(np.arange(200)), good.take(np.arange(200, 400))) == 0.0


def test_unknown_measures_are_refused():
    with pytest.raises(ValueError, match="accuracy, cost"):
        Measure("beauty")


# -- what a search settled on ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["svc", "leaky", "ramp", "reject", "uncertainty", "online"])
def test_the_settled_estimator_answers_as_the_search(data, kind):
    X, y = data
    search = make_candidate(kind, Request(folds=3)).fit(X[:150], y[:150])
    fitted = settled(search).fit(X[:150], y[:150])
    # The search refits at its own accuracy; the answers are the same but for the boundary.
    agree = fitted.predict(X[150:]) == search.predict(X[150:])
    assert agree.mean() > 0.97
    assert settled(fitted).get_params().keys() == fitted.get_params().keys()


def test_what_does_not_apply_is_refused():
    with pytest.raises(ValueError, match="expected one of"):
        make_candidate("forest")
    with pytest.raises(ValueError, match="class_weight does not apply to PA-RAMP"):
        make_candidate("online", Request(class_weight="balanced"))
    with pytest.raises(ValueError, match="approximation does not apply"):
        make_candidate("online", approximation="nystroem")


def test_class_weights_reach_search_and_choice(data):
    X, y = data
    weight = {"no": 1.0, "yes": 4.0}
    for kind in ("leaky", "ramp", "uncertainty"):
        search = make_candidate(kind, Request(folds=3, class_weight=weight)).fit(X, y)
        assert settled(search).class_weight == weight
        share = (settled(search).fit(X, y).predict(X) == "yes").mean()
        plain = make_candidate(kind, Request(folds=3)).fit(X, y)
        assert share >= (plain.predict(X) == "yes").mean()
