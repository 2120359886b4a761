"""``buttress datasets``."""

from __future__ import annotations

import json

import pytest

from buttress.cli import main


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    monkeypatch.delenv("BUTTRESS_DATA", raising=False)
    monkeypatch.setenv("BUTTRESS_CACHE", str(tmp_path))
    return tmp_path


def test_list_shows_the_sets_of_a_group(no_data, capsys):
    assert main(["datasets", "list", "--group", "reject2"]) == 0
    printed = capsys.readouterr().out
    assert "ionosphere" in printed
    assert "sonar" not in printed


def test_list_as_json_says_what_is_here(no_data, capsys):
    assert main(["datasets", "fetch", "wdbc", "--quiet"]) == 0
    assert main(["datasets", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["datasets"]}
    assert rows["wdbc"]["here"]
    assert not rows["sonar"]["here"]
    assert rows["sonar"]["rows"] == 208


def test_fetch_prints_the_file(no_data, capsys):
    assert main(["datasets", "fetch", "wdbc", "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert files == {"wdbc": str(no_data / "wdbc.csv")}


@pytest.mark.datasets
def test_fetch_takes_a_group_and_checks_what_is_here(data_dir, capsys):
    assert main(["datasets", "fetch", "reject2"]) == 0
    printed = capsys.readouterr().out
    assert "parkinsons:" in printed
    assert "ionosphere:" in printed


@pytest.mark.parametrize(
    "words", [["fetch", "no-such-set"], ["list", "--group", "no-such-group"], ["fetch"]]
)
def test_wrong_use_is_code_two(words, no_data, capsys):
    assert main(["datasets", *words]) == 2
    assert capsys.readouterr().err.startswith("buttress:")


@pytest.mark.parametrize("command", ["list", "fetch"])
def test_help_shows_the_example_as_other_commands_do(command, capsys):
    assert main(["datasets", command, "--help"]) == 0
    printed = capsys.readouterr().out
    assert f"Example: buttress datasets {command}" in printed
    assert "**" not in printed
