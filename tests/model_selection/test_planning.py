"""Plans keep within their budget, and racing follows them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_moons

from buttress.model_selection import Measure, planning
from buttress.model_selection.candidates import Request
from buttress.model_selection.cost_model import (
    Size,
    machine_factor,
    processor_factor,
    search_seconds,
)
from buttress.model_selection.judging import plain_rows
from buttress.model_selection.planning import Planner, available_threads, spoken
from buttress.model_selection.racing import RaceRules, race, sample_rows
from buttress.tables import Table
from buttress.tables.automatic import choose_model
from buttress.tables.row_encoding import encoded_width

KINDS = ["leaky", "ramp", "uncertainty", "online"]


def planner(rows, budget=120.0, features=10, classes=2, speed=1.0, **options):
    options = {"clock": lambda: 0.0, "threads": 2} | options
    return Planner(Size(rows, features, classes), budget, speed=speed, **options)


@pytest.mark.parametrize("rows", [50, 300, 1000, 5000, 20_000, 1_000_000])
@pytest.mark.parametrize("budget", [10.0, 60.0, 600.0])
@pytest.mark.parametrize("classes", [2, 6])
def test_the_plan_fits_the_budget_where_there_is_a_choice(rows, budget, classes):
    plan = planner(rows, budget, classes=classes)
    sizes = plan.samples(KINDS)
    assert sizes == sorted(sizes)
    assert sizes[-1] <= rows
    compared = sum(plan.together(KINDS, size) for size in sizes)
    assert compared <= budget or sizes[-1] <= 400
    for kind in KINDS:
        final = plan.final(kind, sizes[-1])
        assert final.rows <= rows
        assert final.seconds <= 0.7 * budget or final.rows == sizes[-1]
        assert final.components is None or 100 <= final.components <= 1000


def test_more_time_buys_more_rows_and_more_landmarks():
    small, large = planner(50_000, 20), planner(50_000, 600)
    assert small.samples(KINDS)[-1] <= large.samples(KINDS)[-1]
    assert small.final("ramp", 400).components <= large.final("ramp", 400).components


def test_everything_is_used_when_there_is_little():
    plan = planner(200)
    assert plan.samples(KINDS) == [200]
    assert plan.final("leaky", 200).seconds == 0.0
    assert plan.tunes_in_folds(["leaky"], 200)
    assert not planner(5000).tunes_in_folds(KINDS, 5000)
    assert planner(5000, 1e5, generous=True).tunes_in_folds(KINDS, 5000)


def test_the_planner_learns_from_what_it_sees():
    plan = planner(5000, 60)
    before = plan.samples(["ramp", "leaky"])[-1]
    plan.observe("ramp", 400, 50 * plan.search_seconds("ramp", 400))
    assert plan.samples(["ramp", "leaky"])[-1] < before
    assert plan.search_seconds("ramp", 400) == pytest.approx(
        50 * search_seconds("ramp", 400, plan.size)
    )


def test_time_that_has_passed_is_not_planned_again():
    now = [0.0]
    plan = planner(50_000, 100, clock=lambda: now[0])
    early = plan.final("ramp", 2000)
    now[0] = 90.0
    late = plan.final("ramp", 2000)
    assert plan.remaining() == 10.0
    assert late.seconds < early.seconds


def test_the_estimate_is_said_in_words():
    text = planner(100_000).sentence(KINDS, report=True)
    assert "comparing 4 kinds of models on a random" in text
    assert "about" in text
    assert "at most 2 min" in text
    assert "tuning the model on all rows" in planner(300).sentence(["leaky"])
    assert spoken(0.01) == "1 s"
    assert spoken(125) == "2 min"


def test_this_machine_has_a_speed_and_threads():
    assert 0.2 <= processor_factor() <= machine_factor() <= 128.0
    assert available_threads(3) == 3
    assert available_threads(-1) >= 1


# -- racing ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(260, noise=0.3, random_state=0)
    return X, np.array(["no", "yes"])[y]


def test_a_sample_is_stratified_sorted_and_seeded(moons):
    _, y = moons
    rows = sample_rows(y, 100, 3)
    assert len(rows) == 100
    assert (np.diff(rows) > 0).all()
    assert (y[rows] == "no").mean() == pytest.approx((y == "no").mean(), abs=0.01)
    np.testing.assert_array_equal(rows, sample_rows(y, 100, 3))
    np.testing.assert_array_equal(sample_rows(y, 500, 3), np.arange(len(y)))


def test_the_hopeless_drop_out_on_the_first_sample(moons, monkeypatch):
    X, y = moons
    monkeypatch.setattr(planning, "SMALLEST_SAMPLE", 100)
    monkeypatch.setattr(planning, "_FIRST_LOOK", 1.0)  # however cheap all rows are
    # on a busy machine it would learn that there is no time for all rows
    monkeypatch.setattr(Planner, "observe", lambda *arguments: None)
    rng = np.random.default_rng(0)
    told = []

    def encode(train, test):
        return X[train], X[test]

    def spoiled(kind, request=None, **options):
        from buttress.model_selection.candidates import make_candidate

        if kind == "online":
            from sklearn.dummy import DummyClassifier

            return DummyClassifier(strategy="uniform", random_state=int(rng.integers(9)))
        return make_candidate(kind, request, **options)

    monkeypatch.setattr("buttress.model_selection.racing.make_candidate", spoiled)
    found = race(
        ["leaky", "online"],
        encode,
        y,
        RaceRules(planner(len(y), folds=3), request=Request(folds=3), jobs=1, say=told.append),
    )
    assert found.winner(Measure()) == "leaky"
    assert "dropped after 100 rows" in found.of("online").dropped
    assert "PA-RAMP" in told[0]
    assert found.searched_on == {"leaky": len(y), "online": 100}
    assert [each.kind for each in found.judged] == ["leaky", "online", "svc"]
    assert len(found.of("svc").rows) == len(y)


def test_every_fold_is_tuned_when_there_is_time(moons, monkeypatch):
    X, y = moons
    monkeypatch.setattr(Planner, "observe", lambda *arguments: None)
    options = {"request": Request(folds=3), "jobs": 1}
    slow = planner(len(y), folds=3, speed=1e4)
    long = race(["leaky"], plain_rows(X), y, RaceRules(planner(len(y), folds=3), **options))
    short = race(["leaky"], plain_rows(X), y, RaceRules(slow, **options))
    assert long.tuned_in_folds
    assert not short.tuned_in_folds
    assert len(short.rows) == len(y)


def test_whether_folds_are_tuned_is_decided_by_what_the_search_took(moons, monkeypatch):
    X, y = moons
    options = {"request": Request(folds=3), "jobs": 1}
    seen = Planner.observe
    for took, tuned in ((1e-3, True), (1e3, False)):
        with monkeypatch.context() as patch:
            patch.setattr(
                Planner, "observe", lambda self, kind, rows, _, s=took: seen(self, kind, rows, s)
            )
            # whatever was expected before: that there is no time, and that there is
            plan = planner(len(y), folds=3, speed=1e4 if tuned else 1e-3)
            found = race(["leaky"], plain_rows(X), y, RaceRules(plan, **options))
        assert found.tuned_in_folds is tuned


# -- from a table to a model ---------------------------------------------------------------------


def test_a_large_table_gets_landmarks_and_an_error_of_rows_held_out(moons, monkeypatch):
    X, y = moons
    monkeypatch.setattr(planning, "MOST_EXACT_ROWS", 80)
    table = Table({"a": X[:, 0], "b": X[:, 1]})
    for kind in ("leaky", "ramp"):
        found = choose_model(table, y, [kind], RaceRules(planner(len(y), folds=3), jobs=1))
        assert len(found.race.rows) == 80
        assert found.final.components is not None
        assert found.model.estimator_.approximation_ == "nystroem"
        assert len(found.judged.rows) == int(0.2 * len(y))
        assert (found.model.predict(table) == y).mean() > 0.8


def test_a_learner_of_one_pass_sees_more_rows_in_random_order(moons, monkeypatch):
    X, y = moons
    order = np.argsort(y, kind="stable")
    monkeypatch.setattr(planning, "MOST_EXACT_ROWS", 80)
    table = Table({"a": X[order, 0], "b": X[order, 1]})
    rules = RaceRules(planner(len(y), folds=3), jobs=1)
    found = choose_model(table, y[order], ["online"], rules)
    assert found.model.estimator_.n_seen_ == len(y)
    assert (found.model.predict(table) == y[order]).mean() > 0.75


def test_the_wanted_coverage_is_kept(moons):
    X, y = moons
    table = Table({"a": X[:, 0], "b": X[:, 1]})
    request = Request(folds=3, target_coverage=0.6)
    rules = RaceRules(planner(len(y), folds=3), request=request, jobs=1)
    found = choose_model(table, y, ["reject"], rules)
    assert found.model.estimator_.target_coverage == 0.6
    assert 0.5 < 1 - found.model.reject(table).mean() < 0.8
    assert 0.45 < found.judged.coverage < 0.85


def test_a_lead_that_may_be_chance_is_called_so(moons, monkeypatch):
    X, y = moons
    monkeypatch.setattr(Planner, "observe", lambda *arguments: None)
    table = Table({"a": X[:, 0], "b": X[:, 1]})
    plan = planner(len(y), folds=3, speed=1e3)
    found = choose_model(table, y, ["leaky", "ramp"], RaceRules(plan, jobs=1))
    best = found.race.of(found.kind)
    near = [
        each.title
        for each in found.race.judged
        if each.kind != found.kind and Measure().worse(each, best) < 1.96
    ]
    assert near
    assert found.why.endswith(f"its lead over {' and '.join(near)} may be chance")


def test_the_width_of_a_table_counts_categories():
    table = Table({"a": np.zeros(3), "b": np.array(["x", None, "y"], dtype=object)})
    assert encoded_width(table) == 3


def test_a_first_sample_is_drawn_only_where_it_is_cheap_beside_the_last():
    for rows in (500, 844, 1500, 2000):
        plan = planner(rows)
        sizes = plan.samples(KINDS)
        costs = [plan.together(KINDS, size) for size in sizes]
        assert sizes[-1] == rows
        assert len(sizes) == 1 or costs[0] <= costs[1] / 4
    assert len(planner(500).samples(KINDS)) == 1
    assert len(planner(2000).samples(KINDS)) == 2


def test_searches_that_may_take_long_are_begun_first():
    plan = planner(900)
    kinds = ["online", "ramp", "leaky"]
    assert plan.longest_first(kinds, 900)[0] == "leaky"
    # what was seen counts more than what might be
    plan.observe("leaky", 400, 1e-3)
    assert plan.longest_first(kinds, 900)[-1] == "leaky"
