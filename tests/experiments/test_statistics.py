"""Standard errors and verdicts."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.experiments import Cell
from buttress.experiments._statistics import (
    compare,
    compare_times,
    count_verdicts,
    expected_by_chance,
    paper_error,
    rounding_unit,
    standard_error,
)

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def cell(**changes):
    facts = {"id": "a", "group": "g", "labels": {"data": "d"}, "printed": "10.0", "spread": "1.0"}
    return Cell(**(facts | changes))


@pytest.mark.smoke
def test_the_standard_error_is_the_plain_one():
    values = [1.0, 2.0, 4.0, 5.0]
    assert standard_error(values) == pytest.approx(np.std(values, ddof=1) / 2)
    assert math.isnan(standard_error([1.0]))


def stored_runs():
    """The values of every judged cell with enough runs for two halves."""
    for path in sorted(RESULTS.glob("*.json")):
        for found in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            values = [v for v in found["values"] if v is not None]
            if len(values) >= 20 and np.std(values) > 0:
                yield np.array(values)


def test_two_halves_of_our_own_runs_disagree_as_often_as_chance_says():
    # Two laboratories that split the same data: each half of the runs stands for one of them.
    random = np.random.default_rng(0)
    cells = list(stored_runs())
    assert len(cells) > 150
    disagree = []
    for values in cells:
        for _ in range(5):
            shuffled = random.permutation(values)
            ours, theirs = shuffled[: len(values) // 2], shuffled[len(values) // 2 :]
            printed = cell(
                printed=f"{theirs.mean():.6f}",
                spread=f"{theirs.std(ddof=1):.6f}",
                paper_runs=len(theirs),
                better=None,
            )
            disagree.append(compare(printed, list(ours))["verdict"] == "differs")
    assert 0.04 < np.mean(disagree) < 0.06


@pytest.mark.parametrize(("printed", "unit"), [("0.068", 1e-3), ("100", 1.0), ("91.5", 0.1)])
def test_rounding_unit(printed, unit):
    assert rounding_unit(printed) == pytest.approx(unit)


def test_paper_error_from_a_deviation_and_from_an_error():
    rounding = 0.1**2 / 12
    assert paper_error(cell(paper_runs=4), 0.0) == pytest.approx(math.sqrt(0.25 + rounding))
    assert paper_error(cell(spread_is="se"), 0.0) == pytest.approx(math.sqrt(1 + rounding))
    assert paper_error(cell(spread=None), 0.0) == pytest.approx(math.sqrt(rounding))
    # runs that vary as ours do, where the paper prints no spread
    assert paper_error(cell(spread=None, paper_runs=9), 3.0) == pytest.approx(
        math.sqrt(1 + rounding)
    )
    assert paper_error(cell(spread_is="se", one_draw=True), 3.0) == pytest.approx(
        math.sqrt(1 + 9 + rounding)
    )
    assert math.isnan(paper_error(cell(printed=None, spread=None), 0.0))


@pytest.mark.parametrize(
    ("values", "changes", "verdict"),
    [
        ([10.1, 9.9], {"paper_runs": 9}, "agrees"),
        ([10.1, 9.9], {}, "cannot tell"),
        ([15.0, 15.1], {"better": None}, "differs"),
        ([15.0, 15.1], {"other_machine": True}, "other machine"),
        ([15.0, 15.1], {}, "worse"),
        ([5.0, 5.1], {}, "better"),
        ([15.0, 15.1], {"better": "higher"}, "better"),
        ([15.0, 15.1], {"unknown": "no scaling given"}, "protocol unknown"),
        ([], {}, "not run"),
        ([10.0, 10.1, 9.9, 10.2], {}, "too few runs"),
        ([1.0], {"printed": None, "spread": None}, "not printed"),
        ([10.0], {"exact": True}, "agrees"),
        ([11.0], {"exact": True}, "differs"),
        ([None, None], {"printed": "NA", "spread": None}, "agrees"),
        ([90.0], {"printed": "NA", "spread": None}, "differs"),
        ([None, None], {}, "differs"),
    ],
)
def test_verdicts(values, changes, verdict):
    judged = verdict not in ("too few runs", "not run") and "exact" not in changes
    many = values * 3 if judged else values
    result = compare(cell(**changes), many)
    assert result["verdict"] == verdict
    assert result["runs"] == len(many)


def test_the_half_width_that_would_have_been_accepted_is_two_combined_errors():
    result = compare(cell(paper_runs=4), [10.0, 10.2, 9.8, 10.1, 9.9])
    assert result["accepted"] == pytest.approx(2 * math.hypot(result["se"], result["paper_se"]))
    assert result["difference"] == pytest.approx(0.0)


def test_times_of_another_computer_are_compared_by_rank_and_ratio():
    times = [
        compare(cell(printed=str(10 * t), spread=None, other_machine=True), [t, t])
        for t in (1.0, 2.0, 5.0, 9.0)
    ]
    found = compare_times(times)
    assert found["rank_correlation"] == pytest.approx(1.0)
    assert found["ratio"] == pytest.approx(10.0)
    assert compare_times(times[:2]) is None


def test_reason_is_the_note_or_the_remark():
    assert compare(cell(unknown="because"), [1.0, 2.0])["reason"] == "because"
    assert compare(cell(remark="tried x"), [30.0, 30.1] * 3)["reason"] == "tried x"


@given(st.floats(-50, 50), st.integers(2, 12))
def test_scale_applies_to_values_and_errors(shift, count):
    values = [0.1 + 0.01 * k + shift / 1000 for k in range(count)]
    plain = compare(cell(), [100 * v for v in values])
    scaled = compare(cell(scale=100.0), values)
    assert scaled["mean"] == pytest.approx(plain["mean"])
    assert scaled["se"] == pytest.approx(plain["se"])
    assert scaled["verdict"] == plain["verdict"]


def test_chance_counts_only_cells_with_a_test():
    judged = compare(cell(paper_runs=9), [10.0, 10.1, 9.9, 10.2, 9.8])
    results = [judged, compare(cell(exact=True), [10.0])]
    assert expected_by_chance(results) == pytest.approx(results[0]["chance"])
    assert 0.04 < results[0]["chance"] < 0.13
    assert count_verdicts(results)["agrees"] == 2
