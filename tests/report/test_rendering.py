"""What the report says, without a browser."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.metrics import reject_risk
from buttress.report import (
    Coverage,
    NoiseComparison,
    Picture,
    Report,
    Suspects,
    charts,
    data_health,
    render,
    sections,
    write_report,
)
from buttress.report._svg import Chart, ticks
from buttress.tables import as_table

spec = importlib.util.spec_from_file_location("sample", Path(__file__).with_name("sample.py"))
sample = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sample)

SECTIONS = [
    "health", "comparison", "classes", "noise", "path", "coverage", "suspects", "picture",
]  # fmt: skip


@pytest.mark.smoke
def test_every_section_is_there_and_text_is_escaped():
    page = render(sample.report())
    for name in SECTIONS:
        assert f'<section id="{name}"' in page
    assert "ramp &lt;b&gt;" in page
    assert "ramp <b>" not in page
    assert "30 labels look wrong &amp; more." in page


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_can_be_left_out(name):
    whole = sample.report()
    values = {field.name: getattr(whole, field.name) for field in fields(whole)}
    page = render(Report(**(values | {name: None})))
    assert f'id="{name}"' not in page
    assert f'href="#{name}"' not in page


def test_shares_are_percentages_and_columns_are_explained():
    page = render(
        Report(
            "a",
            comparison=sample.report().comparison,
            classes=sample.report().classes,
            suspects=Suspects(["row", "chance wrong"], [[3, 0.934], [7, 0.5]], 20),
        )
    )
    assert '<td class="number">93\u00a0%</td>' in page  # no line ends before the sign
    assert "0.934" in page.split('id="data"')[1]  # the download keeps the number
    assert "share of wrong answers" in page
    assert "<dt>seconds</dt><dd>of all &lt;i&gt;fits&lt;/i&gt;</dd>" in page
    assert "91.7\u00a0%" in page  # 110 of 120
    assert "75.0\u00a0%" in page


def test_nothing_points_outside_the_file(tmp_path):
    write_report(sample.report(), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    links = re.findall(r"""(?:src|href)=["']([^"']*)|\burl\(([^)]*)""", page)
    assert links
    assert all("".join(link).startswith(("#", "data:")) for link in links)
    assert "default-src 'none'" in page


def test_the_data_inside_the_page_are_json():
    page = render(sample.report())
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    data = json.loads(text)
    assert data["coverage"]["n"] == 200
    assert data["coverage"]["thresholds"][0] is None
    assert len(data["suspects"]["rows"]) == 30


def test_no_suspects_is_said_in_words():
    page = render(Report("t", suspects=Suspects(["row"], [], 10)))
    assert "None of 10 rows." in page
    assert 'id="suspect-table"' not in page


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=40),
    st.floats(0.01, 0.5),
)
def test_the_level_for_a_cost_has_the_smallest_risk_of_all(rows, d):
    right = np.array([r for r, _ in rows])
    confidence = np.array([c for _, c in rows], dtype=float)
    coverage = Coverage.from_answers(np.ones(len(rows)), right.astype(float), confidence, d)
    level = coverage.best_level(d)
    threshold = coverage.thresholds[level]
    best = min(
        reject_risk(np.ones(len(rows)), right, confidence < t, d)
        for t in [*np.unique(confidence), np.inf]
    )
    got = reject_risk(np.ones(len(rows)), right, confidence < threshold, d)
    assert got == pytest.approx(best, abs=1e-9)


def test_long_curves_are_thinned(monkeypatch):
    monkeypatch.setattr(sections, "_MOST_LEVELS", 50)
    coverage = Coverage.from_answers(np.ones(500), np.ones(500), np.arange(500.0), 0.2)
    assert len(coverage.accepted) == 51
    assert coverage.accepted[-1] == 500


def test_health_counts_what_is_odd():
    table = as_table(
        {
            "a": [1.0, 1.0, 2.0, np.nan, np.nan],
            "b": ["x", "x", "y", None, None],
            "c": [5.0] * 5,
        }
    )
    health = data_health(table, np.array(["p", "n", "p", "p", "p"]))
    assert health.missing == {"a": 2, "b": 2}
    assert health.constant == ["c"]
    assert health.n_duplicates == 2
    assert (health.n_conflicts, health.conflicts) == (2, [1, 2])
    assert health.classes == {"n": 1, "p": 4}


def test_shares_of_flipped_labels_are_told_as_on_the_console_and_drawn_if_there_are_several():
    cells = {"values": [[0.1]], "lows": [[0.05]], "highs": [[0.2]]}
    one = NoiseComparison("error", [0.025], ["ramp"], **cells, how="Five folds.")
    text = render(Report(title="x", noise=one)).replace("\u00a0", " ")
    assert "2.5 % flipped" in text
    assert "share of flipped training labels" not in text
    cells = {name: [values[0] * 2] for name, values in cells.items()}
    two = NoiseComparison("error", [0.0, 0.1], ["ramp"], **cells, how="Five folds.")
    assert "share of flipped training labels" in render(Report(title="x", noise=two))


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_and_inside(low, width):
    found = ticks(low, low + width)
    assert 0 <= len(found) <= 12
    slack = 1e-6 * max(1.0, abs(low), width)
    assert all(low - slack <= value <= low + width + slack for value in found)


def test_a_chart_of_a_single_value_has_a_width():
    chart = Chart((1.0, 1.0), (0.0, 0.0))
    assert np.isfinite(chart.px(1.0))
    assert np.isfinite(chart.py(0.0))


def test_a_picture_of_many_points_shows_some_and_all_suspects(monkeypatch):
    monkeypatch.setattr(charts, "_MOST_POINTS", 30)
    n = 100
    picture = Picture(
        np.arange(n) * 1.0,
        np.zeros(n),
        np.zeros(n, dtype=int),
        ["a"],
        ("x", "y"),
        suspects=np.arange(n) >= 95,
    )
    svg = str(charts.picture_chart(picture))
    assert svg.count('class="ring"') == 5
    assert 30 <= svg.count('class="point') <= 35
    plain = Picture(np.arange(n) * 1.0, np.zeros(n), np.zeros(n, dtype=int), ["a"], ("x", "y"))
    assert str(charts.picture_chart(plain)).count('class="point') == 30
