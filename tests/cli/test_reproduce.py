"""``buttress reproduce``."""

from __future__ import annotations

import json

import pytest

from buttress.cli import main
from buttress.experiments import experiment_names


def test_list_names_every_experiment(capsys):
    assert main(["reproduce", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["experiments"]
    assert [row["name"] for row in rows] == experiment_names()
    assert main(["reproduce", "list"]) == 0
    assert "lhs-table2" in capsys.readouterr().out


def test_a_figure_is_written_and_its_statements_printed(tmp_path, capsys):
    assert main(["reproduce", "pa-ramp-fig1", "--quick", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "holds: the ramp is flat below s" in printed
    assert (tmp_path / "pa-ramp-fig1.quick.png").exists()


def test_a_table_prints_its_cells_and_counts(tmp_path, capsys):
    words = ["reproduce", "double-ramp-table3", "--quick", "--repeats", "1", "--out", str(tmp_path)]
    assert main([*words, "--only", "synthetic"]) == 0
    printed = capsys.readouterr().out
    assert "double hinge" in printed
    assert "would disagree by chance" in printed


def test_pages_are_made_from_reports(tmp_path, capsys):
    assert main(["reproduce", "pa-ramp-fig3", "--out", str(tmp_path), "--quiet"]) == 0
    assert main(["reproduce", "pages", "--out", str(tmp_path)]) == 0
    assert "wrote 3 pages" in capsys.readouterr().out
    assert (tmp_path / "index.rst").exists()


def test_json_holds_the_report(tmp_path, capsys):
    assert main(["reproduce", "lhs-fig1", "--json", "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["experiment"] == "lhs-fig1"


def test_failed_tasks_end_with_code_one(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("BUTTRESS_DATA", raising=False)
    monkeypatch.setenv("BUTTRESS_CACHE", str(tmp_path / "cache"))
    from buttress.datasets import loading

    def refuse(record, folder):
        raise OSError("no network")

    monkeypatch.setattr(loading, "download", refuse)
    words = ["reproduce", "double-ramp-table4", "--quick", "--out", str(tmp_path)]
    assert main(words) == 1
    assert "4 of 4 tasks failed" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["no-such-table"], ["lhs-fig1", "--repeats", "0"]])
def test_wrong_use_is_code_two(words, capsys):
    assert main(["reproduce", *words]) == 2
    assert "buttress:" in capsys.readouterr().err


def test_unknown_group_is_named(tmp_path, capsys):
    assert main(["reproduce", "lhs-fig1", "--only", "x", "--out", str(tmp_path)]) == 1
    assert "only must be among" in capsys.readouterr().err


def test_help_names_the_folder_of_the_data_and_how_to_fill_it(capsys):
    assert main(["reproduce", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "BUTTRESS_DATA" in shown
    assert "buttress datasets fetch" in shown


def test_repeats_hold_for_timings_too():
    from buttress.experiments import Plan, get_experiment

    tasks = get_experiment("lhs-table2").tasks(Plan(repeats=7))
    for kind in ("error", "time", "mm"):
        sonar = [
            task
            for task in tasks
            if task.arguments["kind"] == kind and task.key.startswith(f"{kind}/sonar/linear")
        ]
        assert len(sonar) == 7
    timed = get_experiment("pa-ramp-table2").tasks(Plan(repeats=4))
    assert sum(task.key.startswith("time/banana_ida/0/") for task in timed) == 4


def test_a_new_column_goes_into_an_older_report(tmp_path, capsys):
    old, new = tmp_path / "old", tmp_path / "new"
    whole = ["reproduce", "double-ramp-table2", "--repeats", "1", "--quiet", "--out"]
    assert main([*whole, str(old)]) == 0
    cell = ["--cell", "synthetic above", "--into", str(old)]
    assert main([*whole, str(new), *cell]) == 0
    stored = json.loads((old / "double-ramp-table2.json").read_text())
    assert len(stored["parts"]) == 2
    assert stored["parts"][1]["command"].endswith('--cell "synthetic above" --repeats 1')
    assert any(cell["values"] for cell in stored["cells"] if cell["group"] == "noisy band")
    capsys.readouterr()
