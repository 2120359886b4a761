"""Running: what is finished is kept, what fails is named."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from buttress import experiments
from buttress.experiments import Cell, Check, Experiment, Plan, Task, get_experiment, reproduce
from buttress.experiments._reports import as_json, merged, rejudged
from buttress.experiments._runner import run_experiment
from buttress.experiments._sampling import (
    folds,
    random_split,
    seed_of,
    standardised,
    stratified_folds,
)


class Toy:
    """An experiment that counts its runs."""

    def __init__(self):
        self.calls = []
        self.broken = set()

    def run(self, plan, repeat):
        self.calls.append(repeat)
        if repeat in self.broken:
            raise RuntimeError("no luck")
        warnings.warn("slow", _ConvergenceWarning, stacklevel=1)
        return {"a": 1.0 + repeat, "curve": np.arange(2)}

    def experiment(self, **changes):
        facts = {
            "name": "toy",
            "title": "A toy",
            "paper": "none",
            "protocol": ("one",),
            "cells": (
                Cell("a", "g", {"data": "d"}, "2.0", "1.0", paper_runs=3),
                Cell("b", "g", {"data": "e"}, "2.0"),
            ),
            "tasks": lambda plan: [
                Task(f"r{k}", "g" if k < 2 else "h", {"repeat": k}) for k in range(plan.runs(3, 2))
            ],
            "run": self.run,
            "check": lambda values: [Check("has a curve", "curve" in values, "yes")],
        }
        return Experiment(**(facts | changes))


class _ConvergenceWarning(UserWarning):
    pass


_ConvergenceWarning.__name__ = "ConvergenceWarning"


@pytest.fixture
def toy():
    return Toy()


@pytest.mark.smoke
def test_finished_tasks_are_not_run_again(toy, tmp_path):
    plan = Plan(out=tmp_path)
    first = run_experiment(toy.experiment(), plan)
    second = run_experiment(toy.experiment(), plan)
    assert toy.calls == [0, 1, 2]
    assert first["cells"] == second["cells"]
    assert first["cells"][0]["values"] == [1.0, 2.0, 3.0]
    assert first["cells"][1]["verdict"] == "not run"
    assert first["solver_warnings"] == 3
    assert first["series"] == {"curve": [[0, 1]] * 3}
    assert first["checks"][0]["holds"] is True


def test_more_repeats_add_to_what_is_there(toy, tmp_path):
    run_experiment(toy.experiment(), Plan(out=tmp_path, repeats=1))
    report = run_experiment(toy.experiment(), Plan(out=tmp_path, repeats=4))
    assert toy.calls == [0, 1, 2, 3]
    assert report["cells"][0]["runs"] == 4


def test_finished_only_reports_without_computing(toy, tmp_path):
    empty = run_experiment(toy.experiment(), Plan(out=tmp_path, finished=True))
    assert empty["tasks"] == 0
    assert empty["checks"] == []
    run_experiment(toy.experiment(), Plan(out=tmp_path, repeats=2))
    report = run_experiment(toy.experiment(), Plan(out=tmp_path, finished=True))
    assert toy.calls == [0, 1]
    assert report["cells"][0]["runs"] == 2


def test_an_unfinished_run_claims_nothing(toy, tmp_path):
    toy.broken = {2}
    report = run_experiment(toy.experiment(), Plan(out=tmp_path))
    assert report["tasks"] < report["planned"]
    assert report["checks"] == []


def test_a_part_claims_nothing_about_the_whole(toy, tmp_path):
    for plan in (Plan(out=tmp_path, only=("g",)), Plan(out=tmp_path, cells=("a",))):
        assert run_experiment(toy.experiment(), plan)["checks"] == []


def test_one_cell_runs_only_the_tasks_that_fill_it(toy, tmp_path):
    chosen = toy.experiment(fills=lambda task, cell: task.key == "r1" and cell == "a")
    report = run_experiment(chosen, Plan(out=tmp_path, cells=("a",)))
    assert toy.calls == [1]
    assert [cell["id"] for cell in report["cells"]] == ["a"]


def test_a_task_may_bring_many_runs_of_a_cell(toy, tmp_path):
    many = toy.experiment(run=lambda plan, repeat: {"a": [1.0, 2.0], "curve": [1.0, 2.0]})
    report = run_experiment(many, Plan(out=tmp_path))
    assert report["cells"][0]["values"] == [1.0, 2.0] * 3
    assert report["series"]["curve"] == [[1.0, 2.0]] * 3


def test_a_new_column_is_put_into_an_older_report(toy, tmp_path):
    old = run_experiment(toy.experiment(), Plan(out=tmp_path / "old"))
    more = toy.experiment(run=lambda plan, repeat: {"b": 7.0})
    new = run_experiment(more, Plan(out=tmp_path / "new", cells=("b",)))
    both = merged(toy.experiment(), old, new)
    assert [cell["values"] for cell in both["cells"]] == [[1.0, 2.0, 3.0], [7.0] * 2]
    assert [part["command"] for part in both["parts"]] == [old["command"], new["command"]]
    assert both["tasks"] == both["planned"] == 5
    assert both["checks"][0]["holds"] is True
    again = merged(toy.experiment(), both, new)
    assert len(again["parts"]) == 2
    assert again["tasks"] == 5


def test_reports_of_older_forms_get_the_present_one(toy, tmp_path):
    report = run_experiment(toy.experiment(), Plan(out=tmp_path))
    old = {k: v for k, v in report.items() if k not in ("parts", "pairs", "commit", "seed")}
    old["machine"] = {"buttress": "0.0.1", "python": "3.11", "numpy": "2", "cpus": 1}
    new = rejudged(toy.experiment(), old)
    assert list(new) == list(rejudged(toy.experiment(), report))
    assert new["commit"] is None
    assert set(new["machine"]) >= {"scipy", "scikit-learn", "numba"}
    assert new["cells"] == report["cells"]


def test_torn_last_line_is_computed_again(toy, tmp_path):
    plan = Plan(out=tmp_path)
    run_experiment(toy.experiment(), plan)
    path = tmp_path / "toy.runs.jsonl"
    text = path.read_text()
    path.write_text(text[: len(text) - 20])
    run_experiment(toy.experiment(), plan)
    assert toy.calls == [0, 1, 2, 2]


def test_other_version_seed_or_quickness_is_another_run(toy, tmp_path):
    run_experiment(toy.experiment(), Plan(out=tmp_path))
    run_experiment(toy.experiment(version=2), Plan(out=tmp_path))
    run_experiment(toy.experiment(), Plan(out=tmp_path, seed=1))
    run_experiment(toy.experiment(), Plan(out=tmp_path, quick=True))
    assert len(toy.calls) == 3 + 3 + 3 + 2


def test_a_failing_task_is_reported_and_tried_again(toy, tmp_path):
    toy.broken = {1}
    report = run_experiment(toy.experiment(), Plan(out=tmp_path))
    assert report["failures"] == [{"task": "r1", "reason": "RuntimeError: no luck"}]
    assert report["cells"][0]["runs"] == 2
    toy.broken = set()
    report = run_experiment(toy.experiment(), Plan(out=tmp_path))
    assert report["failures"] == []
    assert report["cells"][0]["runs"] == 3


def test_only_selects_groups_and_refuses_others(toy, tmp_path):
    report = run_experiment(toy.experiment(), Plan(out=tmp_path, only=("h",)))
    assert toy.calls == [2]
    assert "--only h" in report["command"]
    with pytest.raises(ValueError, match="only must be among"):
        run_experiment(toy.experiment(), Plan(out=tmp_path, only=("x",)))


def test_command_repeats_the_run(toy, tmp_path):
    plan = Plan(out=tmp_path, quick=True, repeats=2, seed=5)
    report = run_experiment(toy.experiment(), plan)
    assert report["command"] == "buttress reproduce toy --quick --repeats 2 --seed 5"


def test_processes_give_the_same_as_one(tmp_path):
    one = reproduce("double-ramp-fig4", Plan(quick=True, out=tmp_path / "one"))
    two = reproduce("double-ramp-fig4", Plan(quick=True, jobs=2, out=tmp_path / "two"))
    assert two["failures"] == []
    assert one["series"] == two["series"]


def test_reproduce_writes_json_page_and_figure(tmp_path):
    report = reproduce("pa-ramp-fig1", Plan(quick=True, out=tmp_path))
    names = {"pa-ramp-fig1.quick.json", "pa-ramp-fig1.quick.md", "pa-ramp-fig1.quick.png"}
    assert names <= {path.name for path in tmp_path.iterdir()}
    stored = json.loads((tmp_path / "pa-ramp-fig1.quick.json").read_text())
    assert stored["experiment"] == "pa-ramp-fig1"
    assert len(report["files"]) == 4
    assert "pa-ramp-fig1.quick.png" in (tmp_path / "pa-ramp-fig1.quick.md").read_text()


def test_unknown_experiment_lists_the_names():
    with pytest.raises(ValueError, match="lhs-table2"):
        get_experiment("lhs-table9")
    assert len(set(experiments.experiment_names())) == len(experiments.experiment_names())


def test_json_has_no_numpy_and_no_nan():
    value = {"a": np.float64(1.5), 2: [np.nan, np.int64(3)], "c": np.array([1.0, np.inf])}
    assert as_json(value) == {"a": 1.5, "2": [None, 3], "c": [1.0, None]}


def test_splits_and_folds_partition_the_rows():
    random = np.random.default_rng(0)
    train, test = random_split(10, 0.8, random)
    assert (len(train), len(test)) == (8, 2)
    assert sorted([*train, *test]) == list(range(10))
    tested = np.concatenate([part for _, part in folds(11, 3, random)])
    assert sorted(tested) == list(range(11))
    y = np.array([0] * 6 + [1] * 3)
    for train, test in stratified_folds(y, 3, random):
        assert np.bincount(y[test]).tolist() == [2, 1]
        assert len(np.intersect1d(train, test)) == 0


def test_standardised_uses_the_given_rows_and_survives_constants():
    X = np.array([[0.0, 5.0], [2.0, 5.0], [100.0, 5.0]])
    Z = standardised(X, np.array([0, 1]))
    np.testing.assert_allclose(Z[:, 0], [-1, 1, 99])
    assert np.all(Z[:, 1] == 0)
    assert seed_of(1, 2) == seed_of(1, 2) != seed_of(2, 1)
