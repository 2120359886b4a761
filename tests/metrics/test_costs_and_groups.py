"""Costs by class, outcomes by group, reliability among the answered."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from buttress import ChowRejector
from buttress.metrics import (
    answered_reliability,
    cost_risk,
    cost_scorer,
    outcomes_by_group,
    reject_risk,
)


@pytest.mark.parametrize("labels", [[0, 1, 2], ["a", "b", "c"]])
def test_cost_risk_adds_up_row_by_row(labels):
    rng = np.random.default_rng(0)
    costs = rng.uniform(size=(3, 4))
    names = np.array(labels)
    y, pred = names[rng.integers(0, 3, 60)], names[rng.integers(0, 3, 60)]
    rejected, weight = rng.uniform(size=60) < 0.3, rng.integers(0, 3, 60).astype(float)
    place = {name: k for k, name in enumerate(labels)}
    paid = [
        costs[place[t], 3 if no else place[a]] for t, a, no in zip(y, pred, rejected, strict=True)
    ]
    assert cost_risk(y, pred, rejected, costs) == pytest.approx(np.mean(paid))
    found = cost_risk(y, pred, rejected, costs, sample_weight=weight)
    assert found == pytest.approx(np.average(paid, weights=weight))
    estimate = cost_risk(y, pred, rejected, costs, confidence=0.9)
    assert estimate.low < estimate.value < estimate.high


def test_the_costs_of_zero_d_one_give_its_risk():
    rng = np.random.default_rng(1)
    y, pred, rejected = rng.integers(0, 2, 50), rng.integers(0, 2, 50), rng.uniform(size=50) < 0.4
    costs = [[0, 1, 0.2], [1, 0, 0.2]]
    expected = reject_risk(y, pred, rejected, 0.2)
    assert cost_risk(y, pred, rejected, costs) == pytest.approx(expected)
    masked = np.ma.MaskedArray(pred, mask=rejected)
    assert cost_risk(y, masked, None, costs) == pytest.approx(expected)


def test_cost_scorer_works_in_cross_validation():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    costs = [[0, 1, 0.3], [5, 0, 0.3]]
    model = ChowRejector(LogisticRegression(), d=0.2)
    assert (cross_val_score(model, X, y, scoring=cost_scorer(costs), cv=3) < 0).all()
    always = DummyClassifier(strategy="constant", constant=1).fit(X, y)
    assert cost_scorer(costs)(always, X, y) == pytest.approx(-np.mean(y == 0))
    assert cost_scorer(costs).score(always, X, y) == pytest.approx(-np.mean(y == 0))


@pytest.mark.parametrize(
    ("y", "pred"),
    [
        ([0, 1, None], [0, 1, 1]),
        ([0.0, 1.0, np.nan], [0, 1, 1]),
        (np.array(["a", "b", None], dtype=object), ["a", "b", "b"]),
    ],
)
def test_a_missing_label_is_refused_in_refused_rows_too(y, pred):
    costs = [[0.0, 1.0, 0.5], [5.0, 0.0, 0.5]]
    for rejected in ([0, 0, 1], [0, 0, 0]):
        with pytest.raises(ValueError, match="y holds NaN or None: leave rows without a label"):
            cost_risk(y, pred, rejected, costs)


def test_wrong_costs_are_named():
    with pytest.raises(ValueError, match=r"shape \(2, 2\): expected \(2, 3\)"):
        cost_risk([0, 1], [0, 1], None, [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="finite"):
        cost_scorer([[0, np.inf, 1], [1, 0, 1]])
    with pytest.raises(ValueError, match=r"Labels \[2\] are not among"):
        cost_risk([0, 2], [0, 0], None, [[0, 1, 0.5], [1, 0, 0.5]], labels=[0, 1])


def test_groups_have_exact_intervals_and_honest_verdicts():
    rng = np.random.default_rng(0)
    groups = np.repeat(["big", "odd", "tiny"], [3000, 1000, 6])
    rejected = rng.uniform(size=4006) < np.where(groups == "odd", 0.4, 0.2)
    y = np.zeros(4006, dtype=int)
    pred = (rng.uniform(size=4006) < 0.1).astype(int)
    found = {one.group: one for one in outcomes_by_group(y, pred, rejected, groups)}
    odd = found["odd"]
    assert odd.refused_more == "more"
    assert odd.errs_more == "no difference seen"
    assert found["big"].refused_more == "less"
    assert (found["tiny"].refused_more, found["tiny"].errs_more) == ("cannot tell", "cannot tell")
    assert odd.n_answered == int(1000 - rejected[groups == "odd"].sum())
    k = int((pred[(groups == "odd") & ~rejected]).sum())
    exact = stats.binomtest(k, odd.n_answered).proportion_ci(0.95, method="exact")
    assert (odd.risk.low, odd.risk.high) == pytest.approx((exact.low, exact.high))
    assert odd.coverage.value == pytest.approx(1 - odd.rejection_rate.value)
    assert odd.coverage.low == pytest.approx(1 - odd.rejection_rate.high)


def test_a_group_without_answers_has_no_risk():
    found = outcomes_by_group([0, 0, 0], [0, 0, 0], [True, False, False], ["a", "b", "b"])
    assert np.isnan(found[0].risk.value)
    assert found[0].errs_more == "cannot tell"
    with pytest.raises(ValueError, match="difference=0"):
        outcomes_by_group([0], [0], [False], ["a"], difference=0)


def test_reliability_sees_overconfidence_among_the_answered():
    rng = np.random.default_rng(0)
    true = rng.uniform(0.5, 1.0, 6000)
    y = (rng.uniform(size=6000) < true).astype(int)
    pred = np.ones(6000, dtype=int)
    right = answered_reliability(y, pred, true, true < 0.7)
    assert abs(right.overconfidence) < 0.02
    assert len(right.stated) == 10
    assert (np.diff(right.stated) > 0).all()
    inside = [e.low <= p <= e.high for p, e in zip(right.stated, right.accuracy, strict=True)]
    assert sum(inside) >= 8
    vain = np.minimum(1.0, true + 0.1)
    assert answered_reliability(y, pred, vain, true < 0.7).overconfidence > 0.05
    # noise in the probabilities: calibrated on all rows, overconfident where they are large
    one = answered_reliability(y, pred, np.full(6000, 0.75), None)
    assert one.count.tolist() == [6000]
    assert one.calibration_error == pytest.approx(abs(one.overconfidence))


def test_reliability_needs_answers_and_probabilities():
    with pytest.raises(ValueError, match="No row is answered"):
        answered_reliability([0, 1], [0, 1], [0.9, 0.8], [True, True])
    with pytest.raises(ValueError, match="between 0 and 1"):
        answered_reliability([0, 1], [0, 1], [0.9, 1.8], None)
    with pytest.raises(ValueError, match="n_bins=0"):
        answered_reliability([0, 1], [0, 1], [0.9, 0.8], None, n_bins=0)
    with pytest.raises(ValueError, match="n_bins=None"):
        answered_reliability([0, 1], [0, 1], [0.9, 0.8], None, n_bins=None)
    with pytest.raises(ValueError, match="difference='x'"):
        outcomes_by_group([0, 1], [0, 1], None, [0, 1], difference="x")
