"""Metrics of classifiers that may give no answer."""

from __future__ import annotations

import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
import sklearn
from hypothesis import given
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from buttress.metrics import (
    Estimate,
    accepted_accuracy,
    area_under_generalized_risk,
    area_under_risk_coverage,
    cost_on_noisy_labels,
    excess_area,
    reject_risk,
    reject_scorer,
    rejection_rate,
    risk_coverage_curve,
)
from buttress.metrics.scorer import answers, confidence_scores


class Shy(ClassifierMixin, BaseEstimator):
    """Says whether the first feature is positive, and nothing when it is small."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)

    def reject(self, X):
        return np.abs(np.asarray(X)[:, 0]) < 0.5


@st.composite
def outcomes(draw):
    n = draw(st.integers(1, 25))
    bits = st.lists(st.integers(0, 1), min_size=n, max_size=n)
    weights = st.lists(st.integers(1, 4), min_size=n, max_size=n)
    return tuple(np.array(draw(part)) for part in (bits, bits, bits, weights))


@pytest.mark.smoke
@given(outcomes(), st.sampled_from([0.0, 0.1, 0.3, 0.5]))
def test_risk_is_the_mean_cost(outcome, d):
    y, pred, rejected, weight = outcome
    cost = [d if r else float(a != b) for a, b, r in zip(y, pred, rejected, strict=True)]
    assert reject_risk(y, pred, rejected, d) == pytest.approx(np.mean(cost))
    weighted = reject_risk(y, pred, rejected, d, sample_weight=weight)
    assert weighted == pytest.approx(np.average(cost, weights=weight))
    copies = [np.repeat(part, weight) for part in (y, pred, rejected)]
    assert weighted == pytest.approx(reject_risk(*copies, d))
    estimate = reject_risk(y, pred, rejected, d, confidence=0.9)
    assert isinstance(estimate, Estimate)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


@given(outcomes())
def test_risk_follows_from_rate_and_accuracy(outcome):
    y, pred, rejected, _ = outcome
    if rejected.all():
        return
    rate = rejection_rate(rejected)
    accuracy = accepted_accuracy(y, pred, rejected)
    risk = reject_risk(y, pred, rejected, 0.3)
    assert risk == pytest.approx((1 - rate) * (1 - accuracy) + 0.3 * rate)


def test_masked_answers_carry_their_rejections():
    pred = np.ma.MaskedArray([1, 0, 0], mask=[False, True, False])
    assert reject_risk([1, 1, 1], pred, None, 0.2) == pytest.approx(1.2 / 3)
    assert accepted_accuracy([1, 1, 1], pred, None) == 0.5
    assert rejection_rate(pred) == pytest.approx(1 / 3)


def test_nothing_accepted_is_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning, match="every row was rejected"):
        assert np.isnan(accepted_accuracy([0, 1], [0, 1], [True, True]))
    with pytest.warns(UndefinedMetricWarning):
        estimate = accepted_accuracy([0, 1], [0, 1], [True, True], confidence=0.9)
    assert np.isnan(estimate.value)
    assert estimate[1:] == (0.0, 1.0)


def test_intervals_of_shares_are_clopper_pearson():
    rejected = np.arange(40) < 7
    exact = stats.binomtest(7, 40).proportion_ci(0.95, method="exact")
    found = rejection_rate(rejected, confidence=0.95)
    assert found[1:] == pytest.approx((exact.low, exact.high))
    assert rejection_rate([False] * 5, confidence=0.9).low == 0.0
    assert rejection_rate([True] * 5, confidence=0.9).high == 1.0


def test_intervals_cover_as_often_as_they_say():
    rng = np.random.default_rng(0)
    hits = np.zeros(3)
    for _ in range(400):
        wrong, rejected = rng.uniform(size=60) < 0.15, rng.uniform(size=60) < 0.2
        y = np.zeros(60, dtype=int)
        pred = wrong.astype(int)
        truth = (0.8 * 0.15 + 0.3 * 0.2, 0.2, 0.85)
        found = (
            reject_risk(y, pred, rejected, 0.3, confidence=0.9),
            rejection_rate(rejected, confidence=0.9),
            accepted_accuracy(y, pred, rejected, confidence=0.9),
        )
        hits += [e.low <= t <= e.high for e, t in zip(found, truth, strict=True)]
    assert (hits / 400 >= 0.88).all()


def test_curve_takes_the_surest_first():
    y = np.array([1, 1, 0, 0, 1])
    pred = np.array([1, 0, 0, 1, 1])
    score = np.array([0.9, 0.2, 0.7, 0.2, 0.5])
    coverage, risk, thresholds = risk_coverage_curve(y, pred, score)
    assert coverage.tolist() == [0.2, 0.4, 0.6, 1.0]
    assert risk.tolist() == [0.0, 0.0, 0.0, 0.4]
    assert thresholds.tolist() == [0.9, 0.7, 0.5, 0.2]


@given(outcomes(), st.integers(0, 1000))
def test_area_is_the_integral_over_coverage(outcome, seed):
    y, pred, _, weight = outcome
    score = np.random.default_rng(seed).integers(0, 4, size=len(y)).astype(float)
    area = area_under_risk_coverage(y, pred, score)
    # rows of one level come in evenly: a very fine grid of coverages
    values = []
    total, levels = len(y), np.unique(score)[::-1]
    for coverage in (np.arange(500) + 0.5) / 500 * total:
        seen = errors = 0.0
        for level in levels:
            mine = score == level
            size, wrong = mine.sum(), (y != pred)[mine].sum()
            part = min(1.0, max(0.0, (coverage - seen) / size))
            errors += part * wrong
            seen += size
        values.append(errors / coverage)
    assert area == pytest.approx(np.mean(values), abs=1e-2)
    copies = [np.repeat(part, weight) for part in (y, pred, score)]
    weighted = area_under_risk_coverage(y, pred, score, sample_weight=weight)
    assert weighted == pytest.approx(area_under_risk_coverage(*copies))


def test_area_of_perfect_and_useless_confidence():
    y = np.array([0] * 10)
    pred = np.array([0] * 8 + [1] * 2)
    perfect = area_under_risk_coverage(y, pred, 1.0 - pred)
    useless = area_under_risk_coverage(y, pred, np.ones(10))
    assert useless == pytest.approx(0.2)
    assert perfect == pytest.approx(0.2 - 0.8 * np.log(1 / 0.8))
    assert area_under_risk_coverage(y, y, pred) == 0.0


def test_scorer_charges_rejections_through_pipelines_and_searches():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(int)
    scorer = reject_scorer(0.2)
    rate = (np.abs(X[:, 0]) < 0.5).mean()
    assert scorer(Shy().fit(X, y), X, y) == pytest.approx(-0.2 * rate)
    piped = make_pipeline(StandardScaler(), Shy()).fit(X, y)
    assert scorer(piped, X, y) < 0
    assert scorer(make_pipeline(Shy()).fit(X, y), X, y) == pytest.approx(-0.2 * rate)
    search = GridSearchCV(LogisticRegression(), {"C": [1.0, 10.0]}, scoring=scorer).fit(X, y)
    assert scorer(search, X, y) == pytest.approx(search.score(X, y))
    assert not answers(search, X)[1].any()
    assert (cross_val_score(Shy(), X, y, scoring=scorer) <= 0).all()


def test_scorer_is_cloned_pickled_and_takes_routed_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
    scorer = reject_scorer(0.3)
    assert clone(scorer).d == 0.3
    assert pickle.loads(pickle.dumps(scorer)).d == 0.3
    model = LogisticRegression().fit(X, y)
    weight = rng.uniform(size=60)
    assert scorer.score(model, X, y, weight) == scorer(model, X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = reject_scorer(0.3).set_score_request(sample_weight=True)
        found = cross_validate(
            LogisticRegression().set_fit_request(sample_weight=True),
            X,
            y,
            scoring=routed,
            params={"sample_weight": weight},
        )
    assert (found["test_score"] <= 0).all()


def test_confidence_comes_from_scores_or_probabilities():
    X = np.array([[0.0, 1.0, 3.0], [2.0, 2.0, 0.0]])

    class Scores(BaseEstimator):
        def decision_function(self, X):
            return X

    class Probabilities(BaseEstimator):
        def predict_proba(self, X):
            return X

    assert confidence_scores(Scores(), X).tolist() == [1.0, 0.0]
    assert confidence_scores(Scores(), X[:, 2]).tolist() == [3.0, 0.0]
    assert confidence_scores(Probabilities(), X).tolist() == [3.0, 2.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reject_risk([0], [0], [0], 0.7), r"d=0.7.*\[0, 0.5\]"),
        (lambda: reject_risk([0], [0], [2], 0.2), "booleans"),
        (lambda: reject_risk([0, 1], [0], [0], 0.2), "inconsistent"),
        (lambda: reject_risk([0], [0], [0], 0.2, confidence=1.0), "confidence=1.0"),
        (lambda: reject_risk([0], [0], [0], 0.2, sample_weight=[1, 2]), "2 entries"),
        (lambda: reject_risk([0], [0], [0], 0.2, sample_weight=[-1]), "non-negative"),
        (lambda: rejection_rate([]), "empty"),
        (lambda: accepted_accuracy(["a", "b"], [1, 2], [0, 0]), "Mix of label.*'a' in y"),
        (lambda: reject_risk([1, 2], np.array(["1", "2"], object), [0, 0], 0.2), "Mix of label"),
        (lambda: risk_coverage_curve([0], [0], [np.nan]), "no NaN"),
        (lambda: reject_scorer(0.0), r"d=0.0.*\(0, 0.5\]"),
        (lambda: reject_scorer(True), "d=True"),
        (lambda: reject_scorer("0.2"), "d='0.2'"),
        (lambda: reject_risk([0], [0], [0], "0.2"), "d='0.2'"),
        (lambda: reject_risk([0], [0], [0], 0.2, confidence="0.9"), "confidence='0.9'"),
        (lambda: reject_risk([0, 1], None, [0, 0], 0.2), "pred has shape"),
        (lambda: reject_risk([0], [0], [0], 0.2, sample_weight=1.0), "sample_weight has shape"),
        (lambda: risk_coverage_curve([0], [0], 0.5), "score has shape"),
        (lambda: reject_risk([0, np.nan], [0, 1], [0, 0], 0.2), "y holds NaN"),
        (lambda: accepted_accuracy([0, 1], [0, np.nan], [0, 0]), "pred holds NaN"),
        (lambda: reject_risk(["a", None], ["a", "b"], [0, 0], 0.2), "y holds NaN or None"),
        (lambda: risk_coverage_curve([np.nan, 0], [0, 0], [1, 2]), "y holds NaN or None: leave"),
        (
            lambda: area_under_risk_coverage([0, 1, np.nan], [0, 1, 0], [1, 2, 3.0]),
            "y holds NaN or None: leave rows without a label or an answer out.$",
        ),
        (lambda: area_under_risk_coverage([0, 1], [0, np.nan], [1, 2]), "pred holds .* out.$"),
        (lambda: cost_on_noisy_labels(None, 0.1), "d=None"),
        (lambda: cost_on_noisy_labels(0.1, "x"), "rate='x'"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_stands_in_rejected_rows_does_not_matter():
    answers_of_text = np.array(["a", None, "b"], dtype=object)
    assert accepted_accuracy(["a", "b", "b"], answers_of_text, [0, 1, 0]) == 1.0
    assert reject_risk(["a", "b"], [0, 0], [1, 1], 0.2) == pytest.approx(0.2)
    assert reject_risk([0, np.nan], [0, np.nan], [0, 1], 0.2) == pytest.approx(0.1)


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 3.0, 1e200, 1e307])
def test_only_ratios_of_weights_count(factor):
    y, pred, rejected, score = [0, 1, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [4, 2, 1, 3]
    weight = np.array([1.0, 2.0, 3.0, 4.0])
    for metric, extra in [
        (reject_risk, (rejected, 0.2)),
        (accepted_accuracy, (rejected,)),
        (area_under_risk_coverage, (score,)),
        (area_under_generalized_risk, (score,)),
        (excess_area, (score,)),
    ]:
        plain, scaled = (
            metric(y, pred, *extra, sample_weight=times * weight, confidence=0.9)
            for times in (1.0, factor)
        )
        np.testing.assert_allclose(scaled, plain, atol=1e-12)


def test_a_label_that_pandas_misses_is_refused_unless_its_row_is():
    pd = pytest.importorskip("pandas")
    y = np.array(["a", pd.NA], dtype=object)
    with pytest.raises(ValueError, match="y holds NaN or None"):
        reject_risk(y, ["a", "b"], [False, False], 0.2)
    assert reject_risk(y, ["a", "b"], [False, True], 0.2) == pytest.approx(0.1)
