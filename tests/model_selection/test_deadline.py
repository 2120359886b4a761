"""A budget of time is kept: what runs out of it is stopped, and a model comes of it anyway."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_moons

from buttress import (
    DoubleRampClassifierCV,
    LeakyHockeyStickClassifierCV,
    PARampClassifier,
    RampClassifier,
    RampClassifierCV,
    UncertaintySetClassifierCV,
    _deadline,
)
from buttress._deadline import OutOfTime, check_time, finish_within
from buttress.model_selection import racing
from buttress.model_selection.candidates import Request, make_candidate
from buttress.model_selection.cost_model import Size
from buttress.model_selection.judging import judge, plain_rows
from buttress.model_selection.measures import Measure
from buttress.model_selection.planning import Planner
from buttress.model_selection.racing import RaceRules, race


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(600, noise=0.3, random_state=0)
    return X, np.array(["no", "yes"])[y]


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch):
    """No time passes for limits: a process that is paused for minutes is late for nothing."""
    monkeypatch.setattr(_deadline, "time", SimpleNamespace(perf_counter=lambda: 0.0))


def plan(rows, **options):
    """A planner on a machine of known speed whose clock stands still."""
    given = {"budget": 120.0, "threads": 1, "speed": 1.0, "folds": 3, "clock": lambda: 0.0}
    return Planner(Size(rows, 2), **(given | options))


def test_the_earlier_of_two_limits_holds_in_all_threads():
    check_time()
    late = []

    def look():
        try:
            check_time()
        except OutOfTime:
            late.append(1)

    with finish_within(-1.0), finish_within(1e6):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert late == [1]
    with finish_within(1e6):
        check_time()
    check_time()


@pytest.mark.parametrize(
    "model",
    [
        RampClassifierCV(cv=2),
        DoubleRampClassifierCV(cv=2),
        UncertaintySetClassifierCV(cv=2),
        LeakyHockeyStickClassifierCV(cv=2),
        PARampClassifier(),
        RampClassifier(approximation="nystroem", n_components=20),
    ],
)
def test_every_search_looks_at_the_limit_and_is_left_as_it_was(moons, model):
    X, y = moons
    with finish_within(-1.0), pytest.raises(OutOfTime):
        model.fit(X[:60], y[:60])
    assert not hasattr(model, "classes_")


class Late(ClassifierMixin, BaseEstimator):
    """Never ends in time on more rows than it is allowed."""

    def __init__(self, most=0):
        self.most = most

    def fit(self, X, y):
        if len(X) > self.most:
            raise OutOfTime
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.where(X[:, 1] > 0.25, *self.classes_)

    def decision_function(self, X):
        return 0.25 - X[:, 1]


def test_a_candidate_that_is_late_is_said_to_be(moons):
    X, y = moons
    rows = np.arange(90)
    folds = [(rows[30:], rows[:30]), (rows[:50], rows[50:])]
    found = judge({"late": Late(55), "never": Late(0)}, plain_rows(X), y, folds, jobs=1)
    assert [each.kind for each in found] == ["late"]  # the other has no answer at all
    assert found[0].dropped == "out of time after 0 of 2 folds"
    assert len(found[0].rows) == 40


def late_candidates(monkeypatch, most):
    """Let the learner of one pass be late on more than `most` rows."""

    def made(kind, request=None, **options):
        return Late(most) if kind == "online" else make_candidate(kind, request, **options)

    monkeypatch.setattr(racing, "make_candidate", made)


def unhurried(rows, **options):
    """A planner that learns nothing from how long fits take, however busy the machine is."""
    planner = plan(rows, **options)
    planner.observe = planner.observe_approximate = lambda *measured: None
    return planner


def run(moons, kinds, **options):
    X, y = moons
    told = []
    known = unhurried(len(y), speed=0.01)
    rules = RaceRules(known, request=Request(folds=3), jobs=1, say=told.append)
    return race(kinds, plain_rows(X), y, replace(rules, **options)), told


def test_a_late_search_keeps_the_parameters_of_the_sample_before(moons, monkeypatch):
    from buttress.model_selection import planning

    monkeypatch.setattr(planning, "SMALLEST_SAMPLE", 100)
    late_candidates(monkeypatch, most=450)
    found, told = run(moons, ["leaky", "online"])
    assert found.searched_on == {"leaky": 600, "online": 100}
    assert len(found.rows) == 600
    assert not found.tuned_in_folds
    # its choice was judged on the larger sample, a third of which is one fold
    assert len(found.of("online").rows) >= 200
    assert any("ran out of time: parameters of 100 rows" in text for text in told)


def test_who_was_not_judged_in_time_is_out_of_the_race(moons, monkeypatch):
    from buttress.model_selection import planning

    monkeypatch.setattr(planning, "SMALLEST_SAMPLE", 100)
    late_candidates(monkeypatch, most=150)
    found, _ = run(moons, ["leaky", "online"])
    assert found.of("online").dropped == "out of time on 600 rows"
    assert len(found.of("online").rows) == 100
    assert found.winner(Measure()) == "leaky"


def test_the_comparison_before_stands_when_nobody_is_done_in_time(moons, monkeypatch):
    from buttress.model_selection import planning

    monkeypatch.setattr(planning, "SMALLEST_SAMPLE", 100)
    monkeypatch.setattr(Planner, "comparing_left", lambda self: -1.0)
    found, told = run(moons, ["leaky", "ramp"])
    assert found.ended
    assert found.searched_on == {"leaky": 100, "ramp": 100}
    assert len(found.rows) == 100
    assert "that on fewer rows stands" in told[-1]


def test_a_single_sample_that_is_late_becomes_the_smallest(moons, monkeypatch):
    monkeypatch.setattr(Planner, "comparing_left", lambda self: -1.0)
    found, _ = run(moons, ["leaky"])
    assert found.ended
    assert len(found.rows) == racing.SMALLEST_SAMPLE


def test_a_plan_says_when_comparing_and_fitting_end():
    now = [0.0]
    planner = plan(100, budget=100.0, clock=lambda: now[0])
    assert 0 < planner.comparing_left() < planner.fitting_left() < 100.0
    now[0] = 97.0
    assert planner.comparing_left() < 0
    assert planner.fitting_left() < 0
    assert math.isclose(planner.remaining(), 3.0)


def test_the_planner_learns_what_a_fit_on_landmarks_takes():
    planner = plan(1_000_000, budget=600.0)
    before = planner.final("leaky", 2000)
    planner.observe_approximate("leaky", 4000, before.components, 1e5)
    after = planner.final("leaky", 2000)
    assert (after.components, after.rows) < (before.components, before.rows)
    assert planner.affordable_rows("leaky", 1_000_000, after.components, 4000) == 4000
    planner.observe_approximate("leaky", 4000, before.components, 1e-3)
    assert planner.affordable_rows("leaky", 1_000_000, before.components, 4000) == 1_000_000
    planner.observe("online", 2000, 1e7)
    assert planner.affordable_rows("online", 1_000_000, None, 2000) == 2000
