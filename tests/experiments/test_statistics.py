"""Standard errors and verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.experiments import Cell
from buttress.experiments._statistics import (
    compare,
    corrected_error,
    count_verdicts,
    expected_by_chance,
    paper_error,
    rounding_unit,
)


def cell(**changes):
    facts = {"id": "a", "group": "g", "labels": {"data": "d"}, "printed": "10.0", "spread": "1.0"}
    return Cell(**(facts | changes))


@pytest.mark.smoke
def test_correction_adds_the_ratio_of_test_to_training_rows():
    values = [1.0, 2.0, 4.0, 5.0]
    plain = corrected_error(values, 0.0)
    assert plain == pytest.approx(np.std(values, ddof=1) / 2)
    assert corrected_error(values, 0.25) == pytest.approx(plain * math.sqrt(2))
    assert math.isnan(corrected_error([1.0], 0.0))


def test_corrected_error_covers_the_mean_of_overlapping_splits():
    # The mean of test errors over random splits of one sample varies from sample to sample
    # far more than the plain standard error says; the corrected one is of the right size.
    random = np.random.default_rng(0)
    means, plain, corrected = [], [], []
    for _ in range(200):
        y = random.random(60) < 0.5
        scores = [np.mean(y[random.permutation(60)[:20]]) for _ in range(30)]
        means.append(np.mean(scores))
        plain.append(corrected_error(scores, 0.0))
        corrected.append(corrected_error(scores, 20 / 40))
    truth = np.std(means)
    assert np.mean(plain) < 0.5 * truth
    assert 0.7 * truth < np.mean(corrected) < 1.6 * truth


@pytest.mark.parametrize(("printed", "unit"), [("0.068", 1e-3), ("100", 1.0), ("91.5", 0.1)])
def test_rounding_unit(printed, unit):
    assert rounding_unit(printed) == pytest.approx(unit)


def test_paper_error_from_a_deviation_and_from_an_error():
    rounding = 0.1**2 / 12
    assert paper_error(cell(paper_runs=4, overlap=0.25), 0.0) == pytest.approx(
        math.sqrt(0.5 + rounding)
    )
    assert paper_error(cell(spread_is="se"), 0.0) == pytest.approx(math.sqrt(1 + rounding))
    assert paper_error(cell(spread=None), 0.0) == pytest.approx(math.sqrt(rounding))
    assert paper_error(cell(spread=None, one_draw=True), 3.0) == pytest.approx(
        math.sqrt(9 + rounding)
    )
    assert math.isnan(paper_error(cell(printed=None, spread=None), 0.0))


@pytest.mark.parametrize(
    ("values", "changes", "verdict"),
    [
        ([10.1, 9.9], {}, "agrees"),
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
    many = values * 3 if verdict in ("agrees", "better", "worse") else values
    result = compare(cell(**changes), many)
    assert result["verdict"] == verdict
    assert result["runs"] == len(many)


def test_without_a_printed_spread_an_unknown_protocol_has_no_score():
    result = compare(cell(unknown="another computer", spread=None), [1.0, 2.0])
    assert math.isnan(result["difference_in_se"])
    assert result["difference"] == pytest.approx(-8.5)


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
    results = [compare(cell(), [10.0, 10.1, 9.9, 10.2, 9.8]), compare(cell(exact=True), [10.0])]
    assert expected_by_chance(results) == pytest.approx(results[0]["chance"])
    assert 0.04 < results[0]["chance"] < 0.13
    assert count_verdicts(results)["agrees"] == 2
