"""scikit-learn's callbacks on searches and passes: told of every task, able to end it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from buttress import (
    DoubleRampClassifierCV,
    LabelAudit,
    LeakyHockeyStickClassifierCV,
    NoiseAwareClassifier,
    PARampClassifier,
    RampClassifierCV,
    load,
    save,
)

callback = pytest.importorskip("sklearn.callback")

GAMMAS = [0.1, 1.0, 10.0]


class Recorder:
    """Notes every call; asks for an end after some tasks."""

    def __init__(self, stop_after=None):
        self.calls, self.stop_after = [], stop_after

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.calls.append(f"end {context.task_name}")
        return self.stop_after is not None and context.task_id + 1 >= self.stop_after


@pytest.fixture(scope="module")
def moons():
    return make_moons(60, noise=0.2, random_state=0)


@pytest.mark.parametrize(
    "search",
    [
        LeakyHockeyStickClassifierCV(alphas=5, gammas=GAMMAS, cv=3),
        RampClassifierCV(Cs=[1.0], gammas=GAMMAS, cv=3),
        DoubleRampClassifierCV(Cs=[1.0], gammas=GAMMAS, cv=3),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_search_tells_of_every_width_and_of_the_refit(search, moons):
    recorder = Recorder()
    watched = clone(search).set_callbacks(recorder).fit(*moons)
    assert recorder.calls[0] == "setup"
    assert recorder.calls[-1] == "teardown"
    assert recorder.calls.count("end width") == 3
    assert recorder.calls.count("end refit") == 1
    alone = clone(search).fit(*moons)
    np.testing.assert_array_equal(
        watched.decision_function(moons[0]), alone.decision_function(moons[0])
    )


def test_a_search_ends_when_a_callback_asks_for_it(moons):
    search = LeakyHockeyStickClassifierCV(alphas=5, gammas=GAMMAS, cv=3)
    search.set_callbacks(Recorder(stop_after=2)).fit(*moons)
    assert len(search.cv_results_["params"]) == 10
    assert {params["gamma"] for params in search.cv_results_["params"]} == {0.1, 1.0}
    assert search.best_params_["gamma"] in (0.1, 1.0)


def test_callbacks_are_torn_down_when_the_fit_fails(moons):
    recorder = Recorder()
    search = RampClassifierCV(Cs=[1.0], kernel="sigmoid", coef0=-5.0, cv=3)
    search.set_callbacks(recorder)
    with pytest.raises(ValueError, match="eigenvalue"):
        search.fit(*moons)
    assert recorder.calls[-1] == "teardown"
    assert not hasattr(search, "best_params_")


def test_a_pass_in_tasks_is_the_same_pass_and_can_be_scored_and_stopped(moons):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2))
    y = (X[:, 0] > 0).astype(int)
    alone = PARampClassifier(gamma=0.5, budget=30).fit(X, y)
    monitor = callback.ScoringMonitor(scoring="accuracy")
    watched = PARampClassifier(gamma=0.5, budget=30).set_callbacks(monitor).fit(X, y)
    np.testing.assert_array_equal(watched.support_, alone.support_)
    scores = [entry["accuracy"] for entry in monitor.get_logs().data]
    assert len(scores) >= 3
    assert scores[-1] == pytest.approx(alone.score(X, y))
    stopped = PARampClassifier(gamma=0.5).set_callbacks(Recorder(stop_after=1)).fit(X, y)
    assert 0 < stopped.n_seen_ < 5000


def test_a_watched_model_can_be_saved(moons, tmp_path):
    pytest.importorskip("skops")
    recorder = Recorder()
    model = LeakyHockeyStickClassifierCV(alphas=5, cv=3).set_callbacks(recorder).fit(*moons)
    save(model, tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    np.testing.assert_array_equal(again.predict(moons[0]), model.predict(moons[0]))
    assert model._skl_callbacks == [recorder]


WITNESSES = [LogisticRegression(), GaussianNB()]


def watched_scores(kind, recorder, moons, **options):
    """What an audit, or the classifier of true labels, was told and has found."""
    options = {"estimators": WITNESSES, "cv": 3, "n_repeats": 2, "random_state": 0} | options
    judge = kind(**options)
    if recorder is not None:
        judge.set_callbacks(recorder)
    found = judge.audit(*moons) if kind is LabelAudit else judge.fit(*moons).suspects_
    return found.held_out_scores


@pytest.mark.parametrize("kind", [LabelAudit, NoiseAwareClassifier])
def test_witnesses_tell_of_every_fold_and_of_the_noise_model(kind, moons):
    recorder = Recorder()
    scores = watched_scores(kind, recorder, moons)
    np.testing.assert_array_equal(scores, watched_scores(kind, None, moons))
    assert recorder.calls[:3] == ["setup", "begin fit", "begin witness LogisticRegression"]
    assert recorder.calls.count("end fold") == 2 * 3 * 2
    assert recorder.calls.index("end witness LogisticRegression") < recorder.calls.index(
        "begin witness GaussianNB"
    )
    assert recorder.calls[-3:] == ["end noise model", "end fit", "teardown"]


@pytest.mark.parametrize("kind", [LabelAudit, NoiseAwareClassifier])
def test_default_witnesses_tell_too(kind, moons):
    recorder = Recorder()
    watched_scores(kind, recorder, moons, estimators="auto")
    assert recorder.calls.count("end witness KernelWitness") == 1
    assert recorder.calls.count("end witness ForestWitness") == 1


@pytest.mark.parametrize("kind", [LabelAudit, NoiseAwareClassifier])
def test_a_callback_that_asks_for_an_end_leaves_the_witnesses_that_are_done(kind, moons):
    recorder = Recorder(stop_after=1)
    stopped = watched_scores(kind, recorder, moons)
    whole = watched_scores(kind, None, moons)
    assert whole.shape[1] == 2
    # the first witness has all its folds: a row without a held-out score could not be judged
    np.testing.assert_array_equal(stopped, whole[:, :1])
    assert "begin witness GaussianNB" not in recorder.calls
    assert recorder.calls[-1] == "teardown"


def test_a_stopped_classifier_answers_with_the_witnesses_it_has(moons):
    model = NoiseAwareClassifier(WITNESSES, cv=3, random_state=0)
    model.set_callbacks(Recorder(stop_after=1)).fit(*moons)
    assert [type(witness) for witness in model.estimators_] == [LogisticRegression]
    assert model.predict_proba(moons[0]).shape == (60, 2)


def test_scikit_learns_own_progress_bar_watches_an_audit(moons, capsys):
    pytest.importorskip("rich")
    found = LabelAudit(WITNESSES, cv=3, n_repeats=1, random_state=0)
    assert len(found.set_callbacks(callback.ProgressBar()).audit(*moons).order) == 60
