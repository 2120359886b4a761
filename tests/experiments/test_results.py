"""The committed results: complete, and the pages are made from them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from buttress.experiments import experiment_names, get_experiment, write_pages

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize("name", experiment_names())
def test_every_cell_of_the_experiment_is_in_the_report(name):
    report = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    cells = get_experiment(name).cells
    assert [cell["id"] for cell in report["cells"]] == [cell.id for cell in cells]
    assert [cell["paper"] for cell in report["cells"]] == [cell.printed for cell in cells]
    assert report["failures"] == []
    assert not report["quick"]


def test_pages_are_those_of_the_reports(tmp_path):
    for path in [*RESULTS.glob("*.json"), *RESULTS.glob("*.png")]:
        shutil.copy(path, tmp_path)
    for page in write_pages(tmp_path):
        assert page.read_text(encoding="utf-8") == (RESULTS / page.name).read_text(encoding="utf-8")
