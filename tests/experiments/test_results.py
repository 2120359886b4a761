"""The committed results: complete, and the pages are made from them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from buttress.experiments import experiment_names, get_experiment, write_pages
from buttress.experiments._figures import pictures_of
from buttress.experiments._reports import SCHEMA

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize("name", experiment_names())
def test_every_cell_of_the_experiment_is_in_the_report(name):
    report = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    cells = get_experiment(name).cells
    assert [cell["id"] for cell in report["cells"]] == [cell.id for cell in cells]
    assert [cell["paper"] for cell in report["cells"]] == [cell.printed for cell in cells]
    assert report["failures"] == []
    assert not report["quick"]
    assert report["tasks"] >= report["planned"]


# Kinds of rows that no machine of the run had: the page shows them empty.
EMPTY = {"double-ramp-table2": 3}


@pytest.mark.parametrize("name", experiment_names())
def test_no_cell_is_announced_and_never_run(name):
    report = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert report["verdicts"]["not run"] == EMPTY.get(name, 0)


def test_all_reports_have_one_schema():
    reports = [
        json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        for name in experiment_names()
    ]
    assert len({tuple(report) for report in reports}) == 1
    assert len({tuple(report["machine"]) for report in reports}) == 1
    for report in reports:
        assert report["schema"] == SCHEMA
        assert report["parts"]
        for part in report["parts"]:
            assert {"command", "seed", "commit", "machine", "tasks", "seconds"} == set(part)


@pytest.mark.parametrize("name", experiment_names())
def test_every_report_has_its_picture_as_pixels_and_as_vectors(name):
    assert [path.suffix for path in pictures_of(RESULTS / name)] == [".png", ".svg"]


def test_only_quantities_with_a_direction_are_better_or_worse():
    for name in experiment_names():
        report = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        directed = {cell.id for cell in get_experiment(name).cells if cell.better is not None}
        judged = {c["id"] for c in report["cells"] if c["verdict"] in ("better", "worse")}
        assert judged <= directed


def test_an_unknown_protocol_names_the_missing_sentence():
    for name in experiment_names():
        for cell in get_experiment(name).cells:
            if cell.unknown and not cell.other_machine:
                assert cell.unknown.startswith('missing in the paper: "')


def test_pages_are_those_of_the_reports(tmp_path):
    for ending in ("json", "png", "svg"):
        for path in RESULTS.glob(f"*.{ending}"):
            shutil.copy(path, tmp_path)
    for page in write_pages(tmp_path, draw=False):
        assert page.read_text(encoding="utf-8") == (RESULTS / page.name).read_text(encoding="utf-8")
