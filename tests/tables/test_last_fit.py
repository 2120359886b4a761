"""The last fit to a table ends in time: what was done by then is the model."""

from __future__ import annotations

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_moons

from buttress import LeakyHockeyStickClassifier, _deadline
from buttress._deadline import OutOfTime
from buttress.model_selection import planning
from buttress.model_selection.candidates import Request
from buttress.model_selection.cost_model import Size
from buttress.model_selection.planning import Planner
from buttress.model_selection.racing import RaceRules
from buttress.tables import last_fit
from buttress.tables.automatic import choose_model
from buttress.tables.table import Table


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(600, noise=0.3, random_state=0)
    return X, np.array(["no", "yes"])[y]


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch):
    """No time passes for limits: a process that is paused for minutes is late for nothing."""
    monkeypatch.setattr(_deadline, "time", SimpleNamespace(perf_counter=lambda: 0.0))


def unhurried(rows):
    """A planner that learns nothing from how long fits take, however busy the machine is."""
    planner = Planner(Size(rows, 2), budget=120.0, threads=1, speed=1.0, folds=3, clock=lambda: 0.0)
    planner.observe = planner.observe_approximate = lambda *measured: None
    return planner


def table_of(moons):
    X, y = moons
    return Table({"a": X[:, 0], "b": X[:, 1]}), y


def chosen(moons, kind, **options):
    table, y = table_of(moons)
    told = []
    of_rules = {field.name for field in fields(RaceRules)} & set(options)
    rules = RaceRules(unhurried(len(y)), jobs=1, say=told.append, yardstick=False)
    rules = replace(rules, **{name: options.pop(name) for name in of_rules})
    return choose_model(table, y, [kind], rules, **options), told


def test_without_time_for_a_fit_the_model_of_the_comparison_is_kept(moons, monkeypatch):
    monkeypatch.setattr(planning, "MOST_EXACT_ROWS", 200)
    monkeypatch.setattr(Planner, "fitting_left", lambda self: -1.0)
    table, y = table_of(moons)
    for kind in ("leaky", "online"):
        found, told = chosen(moons, kind)
        assert found.final.rows == 200
        assert found.final.components is None
        assert "the model of 200 rows is kept" in told[-1]
        assert (found.model.predict(table) == y).mean() > 0.75
    found, told = chosen(moons, "leaky", approximation="nystroem")
    assert found.model.estimator_.approximation_ == "nystroem"
    assert found.final.components == 200
    request = Request(folds=3, target_coverage=0.6)
    found, told = chosen(moons, "reject", request=request)
    assert found.model.estimator_.target_coverage == 0.6


@pytest.mark.parametrize(("allowed", "rows"), [(1, 200), (2, 480), (99, 600)])
def test_the_last_fit_that_was_done_in_time_is_kept(moons, monkeypatch, allowed, rows):
    """The fits are: one that measures, those that tune, the last one to all rows."""
    monkeypatch.setattr(planning, "MOST_EXACT_ROWS", 200)
    monkeypatch.setattr(planning, "COMPONENTS", (40,))
    monkeypatch.setattr(last_fit, "larger_grid", lambda estimator, share: [{}])
    fits = []
    settled = last_fit.settled

    class Counted(LeakyHockeyStickClassifier):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(X))
            if len(fits) > allowed:
                raise OutOfTime
            return super().fit(X, y)

    def counted(search):
        plain = settled(search)
        return Counted(**plain.get_params(deep=False))

    monkeypatch.setattr(last_fit, "settled", counted)
    found, _ = chosen(moons, "leaky")
    assert found.final.rows == rows
    assert fits[0] == 480  # four fifths: the rest is held out
    table, y = table_of(moons)
    assert (found.model.predict(table) == y).mean() > 0.75
