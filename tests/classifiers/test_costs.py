"""Costs by class: the Bayes rule against brute force, machines, and impossible requests."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import LogisticRegression

from buttress import ChowRejector, DoubleRampClassifier, DoubleRampClassifierCV
from buttress.classifiers.costs import (
    cheapest_decisions,
    probability_band,
    refusing_always_pays,
    refusing_can_pay,
)
from buttress.metrics import cost_risk, cost_scorer

CREDIT = [[0.0, 1.0, 0.4], [5.0, 0.0, 0.4]]


class Told(ClassifierMixin, BaseEstimator):
    """The rows are the probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.asarray(X)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_rule_takes_the_smallest_expected_cost(k):
    rng = np.random.default_rng(k)
    p = rng.dirichlet(np.ones(k), size=200)
    for _ in range(10):
        costs = rng.uniform(0.5, 3.0, size=(k, k + 1))
        costs[np.arange(k), np.arange(k)] = 0.0
        costs[:, -1] *= 0.2
        answer, refused = cheapest_decisions(p, costs)
        expected = np.array(
            [[sum(q[j] * costs[j, a] for j in range(k)) for a in range(k + 1)] for q in p]
        )
        taken = np.where(refused, k, answer)
        assert np.allclose(expected[np.arange(200), taken], expected.min(axis=1))


def test_equal_costs_are_chows_rule():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=300)
    y = np.arange(300) % 3
    costs = np.column_stack([1.0 - np.eye(3), np.full(3, 0.3)])
    plain, matrix = (
        ChowRejector(Told(), d=0.3).fit(p, y),
        ChowRejector(Told(), costs=costs).fit(p, y),
    )
    assert np.array_equal(plain.reject(p), matrix.reject(p))
    assert np.array_equal(plain.predict(p), matrix.predict(p))


def test_the_band_of_two_classes_is_where_refusing_is_cheapest():
    p = np.linspace(0.0005, 0.9995, 1000)  # not at the ends, where rounding decides
    X = np.column_stack([1 - p, p])
    model = ChowRejector(Told(), costs=CREDIT).fit(X, (p > 0.5).astype(int))
    low, high = model.thresholds_
    assert np.array_equal(model.reject(X), (2 * p - 1 >= low) & (2 * p - 1 <= high))
    assert (low + 1) / 2 == pytest.approx(0.4 / (0.4 + 4.6))
    assert (high + 1) / 2 == pytest.approx(0.6 / (0.6 + 0.4))
    # a row with probability .3 of the costly class is called that, not its likelier rival
    assert model.predict([[0.7, 0.3]]) == [1]


@pytest.mark.parametrize(
    ("costs", "pays"),
    [
        ([[0, 1, 0.4], [1, 0, 0.4]], True),
        ([[0, 1, 0.5], [1, 0, 0.5]], False),
        ([[0, 1, 0.9], [5, 0, 0.4]], True),
        ([[0, 1, 0.9], [5, 0, 0.6]], False),
    ],
)
def test_whether_refusing_can_pay(costs, pays):
    costs = np.array(costs, dtype=float)
    ratios = costs[0, 2] / costs[0, 1] + costs[1, 2] / costs[1, 0]
    assert refusing_can_pay(costs) == pays == (ratios < 1)
    p = np.linspace(0, 1, 2001)
    expected = np.column_stack([1 - p, p]) @ costs
    brute = (expected[:, 2] < expected[:, :2].min(axis=1) - 1e-12).any()
    assert brute == pays
    low, high = probability_band(costs)
    assert (low < high) == pays


def test_costs_that_decide_everything_are_said():
    X, y = make_moons(60, random_state=0)
    free = [[0, 1, 0.0], [1, 0, -0.1]]
    assert refusing_always_pays(np.array(free))
    with pytest.raises(ValueError, match="refusing is right for every row"):
        ChowRejector(LogisticRegression(), costs=free).fit(X, y)
    dear = [[0, 1, 0.8], [1, 0, 0.8]]
    with pytest.warns(UserWarning, match="refusing never pays"):
        model = ChowRejector(LogisticRegression(), costs=dear).fit(X, y)
    assert not model.reject(X).any()
    with pytest.raises(ValueError, match="never pays"), pytest.warns(UserWarning, match="never"):
        DoubleRampClassifier(costs=dear).fit(X, y)
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        DoubleRampClassifier(costs=[[0, 1], [1, 0]]).fit(X, y)
    with pytest.raises(ValueError, match="costs cannot be combined"):
        ChowRejector(LogisticRegression(), costs=CREDIT, target_risk=0.1).fit(X, y)
    three = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="two classes, and y has 3"):
        DoubleRampClassifier(costs=CREDIT).fit(*three)
    with pytest.raises(ValueError, match="costs need an exact fit"):
        DoubleRampClassifier(costs=CREDIT, approximation="nystroem", n_components=10).fit(X, y)


def test_the_double_ramp_with_equal_costs_is_that_of_d():
    X, y = make_moons(80, noise=0.3, random_state=0)
    plain = DoubleRampClassifier(d=0.2).fit(X, y)
    same = DoubleRampClassifier(costs=[[0, 1, 0.2], [1, 0, 0.2]]).fit(X, y)
    assert np.allclose(plain.decision_function(X), same.decision_function(X))
    assert plain.rho_ == pytest.approx(same.rho_)
    # what a right answer costs changes nothing
    shifted = DoubleRampClassifier(costs=[[3, 4, 3.2], [1, 0, 0.2]]).fit(X, y)
    assert np.allclose(plain.decision_function(X), shifted.decision_function(X))


def test_the_double_ramp_pays_less_when_it_knows_the_costs():
    rng = np.random.default_rng(0)
    y = np.concatenate([np.zeros(200, dtype=int), np.ones(200, dtype=int)])[rng.permutation(400)]
    X = rng.normal(size=(400, 2)) + 0.4 * (2 * y - 1)[:, None]
    train, test = slice(0, 200), slice(200, 400)
    model = DoubleRampClassifierCV(costs=CREDIT, Cs=[0.1, 1.0], gammas=None, cv=3, tol=1e-4)
    blind = clone(model).set_params(costs=None)
    paid = []
    for one in (model, blind):
        one.fit(X[train], y[train])
        paid.append(cost_risk(y[test], one.predict(X[test]), one.reject(X[test]), CREDIT))
    assert paid[0] < paid[1]
    assert model.best_score_ == pytest.approx(model.cv_results_["mean_test_score"].max())
    # the fast path of the folds scores as the scorer does
    slow = clone(model).set_params(scoring=lambda *given: cost_scorer(CREDIT)(*given))
    slow.fit(X[train], y[train])
    assert np.allclose(
        slow.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"], atol=0.02
    )
