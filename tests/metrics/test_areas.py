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


@pytest.mark.long
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


def error_rate(y, pred, *, sample_weight=None):
    return np.average(y != pred, weights=sample_weight)


@pytest.mark.parametrize(
    ("second", "options", "message"),
    [
        (([0, 1, 0], [0, 1, 0]), {}, "first has 4 rows and second 3"),
        (([0, 1, 0, 1], [0, 1, 0]), {}, "second 4, 3"),
        (([], []), {}, "second 0"),
        (([0, 1, 1, 0], [0, 1, 0, 1]), {}, "differ in 2 of 4 rows"),
        (([0, 1, 0, 1], [0, 1, 0, 1]), {"n_resamples": 0}, "n_resamples=0"),
        (([0, 1, 0, 1], [0, 1, 0, 1]), {"n_resamples": 2.5}, "n_resamples=2.5"),
    ],
)
def test_a_paired_test_of_other_rows_or_no_resamples_is_refused(second, options, message):
    y = np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match=message):
        paired_difference(error_rate, (y, 1 - y), tuple(map(np.array, second)), **options)


def test_a_metric_that_is_not_a_number_is_no_evidence():
    y = np.array([0, 1] * 10)

    def sometimes(y, pred, *, sample_weight=None):
        return np.nan if sample_weight[0] == 0 else error_rate(y, pred, sample_weight=sample_weight)

    found = paired_difference(sometimes, (y, y), (y, y))
    assert found == (0.0, 0.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="NaN on every resample"):
        paired_difference(lambda y, pred, *, sample_weight: np.nan, (y, y), (y, 1 - y))


@pytest.mark.parametrize("n", [40, 150])
def test_the_paired_test_agrees_with_mcnemar_s(n):
    """Over draws without a difference both reject about as often, and mostly the same draws."""
    from scipy.stats import binomtest

    rng = np.random.default_rng(n)
    ours, exact = [], []
    for _ in range(100):
        wrong = rng.uniform(size=(2, n)) < 0.2
        y = np.zeros(n, dtype=int)
        ours.append(paired_difference(error_rate, (y, wrong[0]), (y, wrong[1]), n_resamples=200))
        split = [int((wrong[0] & ~wrong[1]).sum()), int((wrong[1] & ~wrong[0]).sum())]
        exact.append(binomtest(split[0], max(sum(split), 1)).pvalue if sum(split) else 1.0)
    p_values = np.array([each.p_value for each in ours])
    inside = np.mean([each.low <= 0 <= each.high for each in ours])
    assert 0.88 <= inside <= 1.0  # 95 % of a hundred, give or take three deviations
    assert np.mean((p_values < 0.05) == (np.array(exact) < 0.05)) >= 0.9
    assert np.corrcoef(p_values, exact)[0, 1] > 0.95
