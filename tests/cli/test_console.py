"""What is printed, for whom, and what becomes of errors and warnings."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import typer

from buttress import _compile
from buttress.cli import _app, _console, main
from buttress.model_selection import Judged, Measure, RampClassifierCV, preparing
from buttress.report import picture, suspects_section
from buttress.tables import TableClassifier, as_table


@pytest.mark.smoke
def test_the_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("buttress ")


def test_no_command_prints_the_help_and_is_wrong_use(capsys):
    assert main([]) == 2
    assert "Commands:" in capsys.readouterr().out


def test_a_program_gets_json_and_a_quiet_person_nothing(capsys):
    for json_wanted, quiet in ((True, False), (False, True), (True, True)):
        out = _console.Output(json_wanted, quiet)
        out.say("words")
        out.note("more words")
        out.table(["a"], [["b"]])
        out.result({"x": np.float64(1.5), "y": {"z": np.inf}, "w": object, "v": (None, True)})
        captured = capsys.readouterr()
        assert captured.err == ""
        assert "words" not in captured.out
        assert bool(captured.out) == json_wanted
        if json_wanted:
            value = json.loads(captured.out)
            assert value["x"] == 1.5
            assert value["y"] == {"z": None}
            assert value["v"] == [None, True]


def test_a_warning_is_shown_once_in_one_line(capsys, monkeypatch):
    monkeypatch.setattr(_console, "_seen", set())
    for text in ("first\nsecond", "first second"):
        _console.warn_in_one_line(text, UserWarning, "f.py", 1)
    _console.warn_in_one_line("old", DeprecationWarning, "f.py", 1)
    _console.warn_in_one_line("The scores agree with every label, so", UserWarning, "f.py", 1)
    assert capsys.readouterr().err == "buttress: warning: first second\n"


def test_warnings_of_a_command_take_that_way(capsys, monkeypatch):
    monkeypatch.setattr(_console, "_seen", set())

    def noisy(*arguments, **options):
        warnings.warn("slow data", UserWarning, stacklevel=1)

    monkeypatch.setattr(_app, "app", noisy)
    assert main(["anything"]) == 0
    assert capsys.readouterr().err == "buttress: warning: slow data\n"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (_console.CommandError("a reason.", 2), 2, "a reason"),
        (typer.Abort(), 1, "interrupted"),
        (typer.BadParameter.__base__.__base__("of click"), 1, "of click"),
        (OSError(5, "Input/output error", "f.csv"), 1, "f.csv: input/output error"),
    ],
)
def test_every_kind_of_error_ends_as_one_line(capsys, monkeypatch, error, code, said):
    def failing(*arguments, **options):
        raise error

    monkeypatch.setattr(_app, "app", failing)
    assert main(["anything"]) == code
    assert said in capsys.readouterr().err


def test_the_list_of_commands_is_of_those_that_exist():
    group = typer.main.get_command(_app.app)
    names = group.list_commands(None)
    assert names[:3] == ["demo", "fit", "predict"]
    assert names[3:] == sorted(names[3:])
    assert group.get_command(None, "nothing") is None
    for name in names:
        assert len(group.get_command(None, name).help) > 10, name


def test_one_fold_has_no_interval_and_nothing_answered_no_accuracy():
    labels = np.array(["a", "b", "a"])
    rejected = np.ones(3, dtype=bool)
    zeros = np.zeros(3)
    judged = Judged(
        "svc", "SVC", np.arange(3), labels, labels, rejected, zeros, zeros.astype(int), 1
    )
    estimate = judged.risk_over_folds(Measure("cost", 0.2), 0.25)
    assert estimate.value == pytest.approx(0.2)
    assert np.isnan(estimate.low)
    assert np.isnan(judged.accuracy)
    assert judged.coverage == 0.0


def test_a_table_of_one_column_is_drawn_on_a_line():
    from sklearn.svm import SVC

    values = np.linspace(0, 1, 20)
    table, labels = as_table({"a": values}), np.repeat([0, 1], 10)
    model = TableClassifier(SVC()).fit(table, labels)
    drawn = picture(model, table, model.encode(table), labels)
    np.testing.assert_array_equal(drawn.y, 0.0)
    assert "100 %" in drawn.how


def test_clean_data_have_no_suspects():
    values = np.repeat([-1.0, 1.0], 20) + 0.01 * np.arange(40)
    labels = np.repeat(["a", "b"], 20)
    search = RampClassifierCV(cv=3).fit(values[:, None], labels)
    found = search.suspects(values[:, None], labels, cv=3)
    section, flagged = suspects_section(found, labels, np.arange(40), "ramp classifiers")
    assert not flagged.any()
    assert section.rows == []


def test_quiet_commands_compile_in_silence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_compile, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(preparing, "is_remembered", _compile.is_remembered)
    monkeypatch.setattr(preparing, "_search_few", lambda kind: None)
    _console.Output(quiet=True).compile(preparing.jobs_of_kinds(["ramp"]))
    assert capsys.readouterr() == ("", "")
    _console.Output().compile(preparing.jobs_of_kinds(["svc"]))
    assert capsys.readouterr() == ("", "")
    _console.Output().compile(preparing.jobs_of_kinds(["uncertainty"]))
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("compiling the solvers of uncertainty sets: about ")
