"""Areas under risk-coverage curves against brute force, with intervals and paired tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buttress.metrics import (
    area_under_generalized_risk,
    area_under_risk_coverage,
    bootstrap_estimate,
    excess_area,
    paired_difference,
    risk_coverage_band,
    risk_coverage_curve,
    selective_risk,
)

ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=25)


def unpack(rows):
    wrong, score = (np.array(column) for column in zip(*rows, strict=True))
    return np.zeros(len(rows), dtype=int), wrong.astype(int), score.astype(float)


def sample(n, seed, knows=True):
    rng = np.random.default_rng(seed)
    score = rng.uniform(size=n)
    wrong = rng.uniform(size=n) < (0.5 * (1 - score) if knows else 0.25)
    return np.zeros(n, dtype=int), wrong.astype(int), score


@settings(deadline=None, max_examples=20)
@given(ROWS)
def test_the_generalized_area_is_the_integral_of_many_copies(rows):
    """Brute force: every row as many small pieces, errors spread evenly over equal scores."""
    y, pred, score = unpack(rows)
    area = area_under_generalized_risk(y, pred, score)
    coverage = (np.arange(100) + 0.5) / 100
    risk = np.array([selective_risk(y, pred, score, c) * c for c in coverage])
    assert area == pytest.approx(risk.mean(), abs=1e-3)


@given(ROWS, st.integers(1, 4))
def test_copies_equal_weights(rows, times):
    y, pred, score = unpack(rows)
    weight = 1 + np.arange(len(y)) % times
    many = [np.repeat(column, weight) for column in (y, pred, score)]
    for metric in (area_under_generalized_risk, area_under_risk_coverage, excess_area):
        assert metric(*many) == pytest.approx(metric(y, pred, score, sample_weight=weight))
    found = selective_risk(*many, 0.6)
    assert found == pytest.approx(selective_risk(y, pred, score, 0.6, sample_weight=weight))


@given(ROWS)
def test_selective_risk_goes_through_the_points_of_the_curve(rows):
    y, pred, score = unpack(rows)
    coverage, risk, _ = risk_coverage_curve(y, pred, score)
    for c, r in zip(coverage, risk, strict=True):
        assert selective_risk(y, pred, score, c) == pytest.approx(r)


@pytest.mark.parametrize("curve", ["risk", "generalized"])
def test_the_excess_is_zero_for_the_ideal_and_one_for_no_ranking(curve):
    y, pred, _ = sample(200, 0)
    ideal = excess_area(y, pred, 1.0 - pred, curve=curve)
    assert ideal == pytest.approx(0.0, abs=1e-12)
    assert excess_area(y, pred, np.ones(200), curve=curve) == pytest.approx(1.0)
    assert excess_area(y, pred, pred, curve=curve) > 1.0
    assert excess_area(y, y, np.arange(200), curve=curve) == 0.0
    with pytest.raises(ValueError, match="curve='roc'"):
        excess_area(y, pred, pred, curve="roc")


def test_intervals_cover_about_as_often_as_they_say():
    y, pred, score = sample(200_000, 0)
    truth = {
        "aurc": area_under_risk_coverage(y, pred, score),
        "augrc": area_under_generalized_risk(y, pred, score),
        "risk": selective_risk(y, pred, score, 0.5),
    }
    hits = dict.fromkeys(truth, 0)
    for seed in range(20):
        rows = sample(300, 1000 + seed)
        found = {
            "aurc": area_under_risk_coverage(*rows, confidence=0.9),
            "augrc": area_under_generalized_risk(*rows, confidence=0.9),
            "risk": selective_risk(*rows, 0.5, confidence=0.9),
        }
        for name, estimate in found.items():
            assert estimate.low <= estimate.value <= estimate.high
            hits[name] += estimate.low <= truth[name] <= estimate.high
    # 18 expected, standard deviation 1.3
    assert all(hit >= 14 for hit in hits.values()), hits


def test_the_bootstrap_of_a_mean_is_the_normal_interval():
    values = np.random.default_rng(0).normal(size=500)
    estimate = bootstrap_estimate(lambda w: w @ values / w.sum(), 500, 0.9, n_resamples=4000)
    half = 1.645 * values.std() / np.sqrt(500)
    assert estimate.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert estimate.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_a_paired_test_finds_what_is_there_and_no_more():
    y, pred, score = sample(400, 1)
    rng = np.random.default_rng(0)
    blind = rng.uniform(size=400)
    found = paired_difference(area_under_generalized_risk, (y, pred, score), (y, pred, blind))
    assert found.high < 0
    assert found.p_value < 0.01
    same = paired_difference(area_under_generalized_risk, (y, pred, score), (y, pred, score))
    assert (same.value, same.p_value) == (0.0, 1.0)
    # under equality of two coin tosses the p-value is small about as often as it says
    small = 0
    for seed in range(30):
        y, pred, _ = sample(150, seed, knows=False)
        a, b = np.random.default_rng(1000 + seed).uniform(size=(2, 150))
        test = paired_difference(
            area_under_risk_coverage, (y, pred, a), (y, pred, b), n_resamples=200
        )
        small += test.p_value < 0.1
    assert small <= 8


def test_the_band_holds_the_curve_and_narrows():
    for n, width in ((100, 0.4), (4000, 0.06)):
        y, pred, score = sample(n, 2)
        coverage, low, high = risk_coverage_band(y, pred, score, confidence=0.9)
        risk = np.array([selective_risk(y, pred, score, c) for c in coverage])
        inside = (low - 1e-12 <= risk) & (risk <= high + 1e-12)
        assert inside[10:].all()
        assert (high - low)[20:].max() < width


def test_wrong_arguments_are_named():
    y, pred, score = sample(20, 0)
    with pytest.raises(ValueError, match=r"coverage=0.0.*\(0, 1\]"):
        selective_risk(y, pred, score, 0.0)
    with pytest.raises(ValueError, match=r"confidence=1\.5"):
        area_under_risk_coverage(y, pred, score, confidence=1.5)
