"""Pages: everything in the report is on them."""

from __future__ import annotations

import json

import pytest

from buttress.experiments import Cell, Check, Experiment, Plan, Task, reproduce, write_pages
from buttress.experiments._figures import draw_comparison, save_figure
from buttress.experiments._runner import as_json, run_experiment
from buttress.experiments.pages import Markdown, RestructuredText, number, write_page


@pytest.fixture
def report(tmp_path):
    cells = (
        Cell("a", "g", {"data": "first"}, "2.0", "0.1", paper_runs=5, unit="error"),
        Cell("b", "g", {"data": "second"}, "9.0", remark="tried both", unit="error"),
        Cell("c", "g", {"data": "third"}, "1.0", unknown="no scaling given", unit="error"),
        Cell("d", "g", {"data": "fourth"}, unit="error"),
        Cell("e", "g", {"data": "fifth"}, "3", exact=True, unit="error"),
        Cell("f", "g", {"data": "sixth"}, "1.0", "0.2", spread_is="se", unit="other"),
        Cell("g", "g", {"data": "seventh"}, "1.0", unit="error"),
    )

    def run(arguments, plan):
        shift = 0.01 * arguments["k"]
        values = dict.fromkeys("abcd", 2.0 + shift) | {"g": None}
        return values | ({"e": 4.0, "f": 1.0} if arguments["k"] == 0 else {})

    experiment = Experiment(
        name="toy",
        title="A toy",
        paper="Nobody, 1900.",
        protocol=("Five runs.",),
        cells=cells,
        tasks=lambda plan: [Task(f"r{k}", "g", {"k": k}) for k in range(5)],
        run=run,
        check=lambda values: [Check("water is wet", False, "dry")],
    )
    return experiment, run_experiment(experiment, Plan(quick=True, out=tmp_path))


@pytest.mark.parametrize("kind", [Markdown, RestructuredText])
def test_page_shows_every_cell_verdict_and_reason(report, kind):
    page = write_page(report[1], kind(), "toy.png")
    for text in ("first", "sixth", "tried both", "no scaling given", "quick run", "toy.png"):
        assert text in page
    for text in ("agrees", "better", "differs", "protocol unknown", "not printed", "too few runs"):
        assert text in page
    assert "water is wet" in page
    assert "buttress reproduce toy --quick" in page
    assert "standard deviation over runs or a standard error" in page


def test_restructured_text_tables_are_rectangular_and_titles_underlined(report):
    lines = write_page(report[1], RestructuredText(), None).splitlines()
    tables: list[list[int]] = []
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith(".. list-table::"):
            tables.append([])
        elif line.startswith("   * -"):
            tables[-1].append(1)
        elif line.startswith("     -"):
            tables[-1][-1] += 1
        elif line and set(line) <= set("=-~"):
            assert len(line) == len(before)
    assert len(tables) == 3
    assert all(len(set(rows)) == 1 for rows in tables)


def test_an_unfinished_run_says_so(report):
    page = write_page(report[1] | {"planned": 9}, Markdown(), None)
    assert "5 of 9 tasks" in page
    assert "unfinished" not in write_page(report[1], Markdown(), None)


def test_characters_with_a_meaning_are_escaped():
    page = RestructuredText()
    page.paragraph("|f| <= 1*")
    page.table(["a"], [["||x||"], [":doc:`x`"]])
    text = str(page)
    assert r"\|f\| <= 1\*" in text
    assert r"\|\|x\|\|" in text
    assert ":doc:`x`" in text
    plain = Markdown()
    plain.table(["a"], [["|f|"]])
    assert r"| \|f\| |" in str(plain)


def test_numbers_keep_the_digits_asked_for():
    shown = [number(v) for v in (0, 12345.6, 98.94321, 0.0251234, 0.0002, 1e-9)]
    assert shown == ["0", "12346", "98.94", "0.02512", "0.0002000", "1.000e-09"]
    assert [number(v, 2) for v in (1.925, 213.57, 0.0004)] == ["1.9", "214", "0.00040"]


def test_comparison_picture_has_one_panel_per_unit(report, tmp_path):
    experiment, content = report
    assert save_figure(experiment, content, tmp_path / "toy.png")
    assert (tmp_path / "toy.png").stat().st_size > 1000
    assert not save_figure(experiment, content | {"tasks": 0}, tmp_path / "none.png")
    assert not draw_comparison(None, {"cells": []})
    assert not save_figure(experiment, content | {"cells": []}, tmp_path / "none.png")


def test_summary_counts_over_all_reports(report, tmp_path):
    reproduce("pa-ramp-fig1", Plan(out=tmp_path / "full"))
    (tmp_path / "full" / "lhs-table2.json").write_text(
        json.dumps(as_json(report[1] | {"experiment": "lhs-table2"}))
    )
    written = write_pages(tmp_path / "full")
    assert [path.name for path in written] == ["pa-ramp-fig1.rst", "lhs-table2.rst", "index.rst"]
    index = (tmp_path / "full" / "index.rst").read_text()
    assert ":doc:`pa-ramp-fig1`" in index
    assert "3 of 3" in index
    assert "toctree" in index
