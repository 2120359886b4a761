"""Pages: everything in the report is on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from buttress.experiments import Cell, Check, Experiment, Plan, Task, reproduce, write_pages
from buttress.experiments._errata import contradictions, write_errata
from buttress.experiments._errata_list import MISPRINTS
from buttress.experiments._figures import (
    COLOURS,
    DASHES,
    MARKERS,
    draw_comparison,
    pictures_of,
    save_figures,
)
from buttress.experiments._index import verdict_sentence, write_index
from buttress.experiments._reports import as_json
from buttress.experiments._runner import run_experiment
from buttress.experiments.pages import Markdown, RestructuredText, number, write_page

PICTURES = [Path("toy.png"), Path("toy.svg")]


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

    def run(plan, k):
        shift = 0.01 * k
        values = dict.fromkeys("abcd", 2.0 + shift) | {"g": None}
        return values | ({"e": 4.0, "f": 1.0} if k == 0 else {})

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
    return experiment, run_experiment(experiment, Plan(out=tmp_path))


@pytest.mark.parametrize("kind", [Markdown, RestructuredText])
def test_page_shows_every_cell_verdict_and_reason(report, kind):
    page = write_page(report[1], kind(), PICTURES)
    for text in ("first", "sixth", "tried both", "no scaling given", "toy.png", "toy.svg"):
        assert text in page
    for text in ("agrees", "better", "differs", "protocol unknown", "not printed", "too few runs"):
        assert text in page
    assert "water is wet" in page
    assert "buttress reproduce toy" in page
    assert "standard deviation over runs or a standard error" in page


def test_restructured_text_tables_are_rectangular_and_titles_underlined(report):
    lines = write_page(report[1], RestructuredText(), []).splitlines()
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


def test_a_page_without_printed_numbers_counts_no_agreement(report):
    ours = report[1] | {"verdicts": dict.fromkeys(report[1]["verdicts"], 0) | {"not printed": 7}}
    page = write_page(ours, Markdown(), [])
    assert "None of the 7 cells is judged against a printed number. 7 cells are ours only." in page
    assert "0 agree" not in page
    assert "by chance" not in page.split("## Statements")[0]


def test_an_unfinished_run_says_so(report):
    page = write_page(report[1] | {"planned": 9}, Markdown(), [])
    assert "5 of 9 tasks" in page
    assert "unfinished" not in write_page(report[1], Markdown(), [])


def test_characters_with_a_meaning_are_escaped():
    page = RestructuredText()
    page.paragraph("|f| <= 1*")
    page.table(["a"], [["||x||"], [":doc:`x`"]])
    text = str(page)
    assert r"\|f\| <= 1\*" in text
    assert r"\|\|x\|\|" in text
    assert ":doc:`x`" in text
    for line in ("O. Kwon, H. Zou", "3. of them", "(a) or b"):
        page.paragraph(line)
        assert str(page).endswith(f"\n\n\\{line}\n")
    page.paragraph("In all. 0.05 is no number of a list")
    assert str(page).endswith("\n\nIn all. 0.05 is no number of a list\n")
    plain = Markdown()
    plain.table(["a"], [["|f|"]], widths=(1,))
    assert r"| \|f\| |" in str(plain)


def test_numbers_keep_the_digits_asked_for():
    shown = [number(v) for v in (0, 12345.6, 98.94321, 0.0251234, 0.0002, 1e-9)]
    assert shown == ["0", "12346", "98.94", "0.02512", "0.0002000", "1.000e-09"]
    assert [number(v, 2) for v in (1.925, 213.57, 0.0004)] == ["1.9", "214", "0.00040"]


def test_a_quick_run_says_so_and_claims_nothing(report, tmp_path):
    quick = run_experiment(report[0], Plan(quick=True, out=tmp_path / "quick"))
    assert "quick run" in write_page(quick, Markdown(), [])
    assert quick["checks"] == []


def test_pictures_are_drawn_as_pixels_and_as_vectors(report, tmp_path):
    experiment, content = report
    written = save_figures(experiment, content, tmp_path / "toy")
    assert [path.name for path in written] == ["toy.png", "toy.svg"]
    assert all(path.stat().st_size > 1000 for path in written)
    assert pictures_of(tmp_path / "toy") == written
    assert save_figures(experiment, content | {"tasks": 0}, tmp_path / "none") == []
    assert not draw_comparison(None, {"cells": []})
    assert save_figures(experiment, content | {"cells": []}, tmp_path / "none") == []


def test_the_same_numbers_give_the_same_vector_file(report, tmp_path):
    experiment, content = report
    first, second = (
        save_figures(experiment, content, tmp_path / name)[1].read_bytes() for name in "ab"
    )
    assert first == second


def linear(colour):
    """The linear light of a colour such as #0072B2."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


# Machado, Oliveira and Fernandes, 2009: what protanopes, deuteranopes and tritanopes see.
BLINDNESS = {
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_are_told_apart_by_the_colour_blind(kind):
    seen = [
        [sum(m * c for m, c in zip(row, linear(colour), strict=True)) for row in BLINDNESS[kind]]
        for colour in COLOURS[:4]
    ]
    apart = [
        max(abs(a - b) for a, b in zip(one, other, strict=True))
        for k, one in enumerate(seen)
        for other in seen[:k]
    ]
    assert min(apart) > 0.05
    assert len(set(MARKERS)) == len(set(map(str, DASHES))) == len(COLOURS)


def test_the_index_is_one_screen_of_verdicts_then_the_rest(report, tmp_path):
    reproduce("pa-ramp-fig1", Plan(out=tmp_path / "full"))
    (tmp_path / "full" / "lhs-table2.json").write_text(
        json.dumps(as_json(report[1] | {"experiment": "lhs-table2"}))
    )
    written = write_pages(tmp_path / "full")
    names = ["pa-ramp-fig1.rst", "lhs-table2.rst", "errata.rst", "index.rst"]
    assert [path.name for path in written] == names
    index = (tmp_path / "full" / "index.rst").read_text()
    assert ":doc:`pa-ramp-fig1`" in index
    assert "3 of 3" in index
    assert "toctree" in index
    assert index.index("verdict") < index.index("Disagreements") < index.index("All experiments")


def test_a_question_of_ours_does_not_count_against_a_paper(report):
    content = dict(report[1])
    content["checks"] = [check | {"ours": True} for check in content["checks"]]
    assert "water is wet" in write_index([report[1]], Markdown())
    assert "water is wet" not in write_index([content], Markdown())
    assert "a question of ours" in write_page(content, Markdown(), [])


def test_the_verdict_on_a_paper_follows_from_its_counts():
    refuted = [{"statement": "x is less"}, {"statement": "y is less"}]
    assert verdict_sentence(95, 100, []) == "Reproduced; none of its statements fails."
    assert verdict_sentence(75, 100, refuted).startswith("Mostly reproduced; it does not hold")
    assert "1 more" in verdict_sentence(30, 100, refuted)
    assert verdict_sentence(0, 0, []).startswith("No number is printed")


def test_columns_are_compared_run_by_run(report):
    pair = {"what": "sonar", "columns": "a - b", "difference": -1.0, "error": 0.1}
    page = write_page(report[1] | {"pairs": [pair, pair | {"error": 2.0}]}, Markdown(), [])
    assert "-1.00 ± 0.10" in page
    assert page.count("clear |") == 1


def test_contradictions_are_found_in_the_printed_numbers():
    denied = {(c.paper, c.table, c.sentence[:12]): c.denied_by for c in contradictions()}
    rates = next(c for c in contradictions() if c.table == "Table 5" and "rejection" in c.sentence)
    assert [place.split(":")[0] for place in rates.denied_by] == ["d = 0.15", "d = 0.2"]
    counted = [c for c in contradictions() if c.paper == "Leaky hockey stick"]
    assert all(not c.denied_by for c in counted)
    assert len(denied) > 8


@pytest.mark.parametrize("kind", [Markdown, RestructuredText])
def test_the_errata_page_has_every_misprint(kind):
    page = write_errata(kind())
    for paper, rows in MISPRINTS.items():
        assert paper in page
        assert all(len(row) == 4 and all(row) for row in rows)
    assert page.count("* - ") >= sum(map(len, MISPRINTS.values())) or kind is Markdown
