"""``buttress cost`` says what the planner knows."""

from __future__ import annotations

import json

import pytest

from buttress.cli import main
from buttress.model_selection.cost_model import Size, processor_factor, search_seconds


def cost(capsys, *words):
    assert main(["cost", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_seconds_are_those_of_the_cost_model(capsys):
    said = cost(capsys, "--rows", 1000, "--features", 12, "--classes", 3, "--folds", 10)
    by_kind = {each["model"]: each for each in said["processor_seconds"]}
    for kind, each in by_kind.items():
        expected = processor_factor() * search_seconds(kind, 1000, Size(1000, 12, 3), 10)
        assert each["search"] == pytest.approx(expected)
        assert 0 < each["fit"] < each["search"]
    assert by_kind["online"]["on_landmarks"] is None
    assert said["gram_megabytes"] == 8


def test_more_rows_cost_more_and_the_plan_follows_the_time(capsys):
    small, large = (cost(capsys, "--rows", n, "--features", 10) for n in (500, 4000))
    for one, other in zip(small["processor_seconds"], large["processor_seconds"], strict=True):
        assert one["search"] < other["search"]
    assert (
        "at most 10 min" in cost(capsys, "--rows", 10**6, "--features", 9, "--time", "10m")["plan"]
    )


def test_people_get_a_table(capsys):
    assert main(["cost", "--rows", "20000", "--features", "10"]) == 0
    out = capsys.readouterr().out
    assert "processor seconds for 20000 rows" in out
    assert "3200 MB; fit searches exactly up to 5000 rows only" in out
    assert "buttress fit: comparing 4 kinds" in out


@pytest.mark.parametrize("words", ["--rows 5 --features 3", "--rows 100", "--rows 99 --features 0"])
def test_sizes_that_are_none_are_refused(words, capsys):
    assert main(["cost", *words.split()]) == 2
    assert capsys.readouterr().err.startswith("buttress: ")
