"""Costs by class: the Bayes rule against brute force, machines, and impossible requests."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from buttress import (
    ChowRejector,
    DoubleHingeClassifier,
    DoubleRampClassifier,
    DoubleRampClassifierCV,
    GeneralizedHingeClassifier,
    NoiseAwareClassifier,
)
from buttress.classifiers._cost_hinges import double_cost_hinges, generalized_cost_hinges
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


class Drawn(ClassifierMixin, BaseEstimator):
    """Probabilities of the second class with a spread; the only feature is their mean."""

    spread = (-0.04, -0.01, 0.0, 0.01, 0.04)

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.mean(list(self.predict_proba_draws(X)), axis=0)

    def predict_proba_draws(self, X):
        for shift in self.spread:
            p = np.clip(X[:, 0] + shift, 0.0, 1.0)
            yield np.column_stack([1 - p, p])


def test_an_answer_must_be_worth_its_risk_under_most_draws():
    X = np.linspace(0.0, 1.0, 201)[:, None]
    y = (X[:, 0] > 0.5).astype(int)
    models = (
        Drawn(),
        make_pipeline(FunctionTransformer(), Drawn()),
        FrozenEstimator(make_pipeline(FunctionTransformer(), Drawn()).fit(X, y)),
    )
    costs = np.asarray(CREDIT, dtype=float)
    draws = list(Drawn().predict_proba_draws(X))
    expected = np.mean(draws, axis=0) @ costs
    answer = expected[:, :2].argmin(axis=1)
    by_mean = expected[:, 2] <= expected[:, :2].min(axis=1)
    paid = np.array([p @ costs for p in draws])
    share = (paid[:, np.arange(len(X)), answer] < paid[:, :, 2]).mean(axis=0)
    for confidence in (0.3, 0.7, 0.9):
        wanted = by_mean | (share < confidence)
        for inner in models:
            model = ChowRejector(inner, costs=costs, confidence=confidence).fit(X, y)
            np.testing.assert_array_equal(model.reject(X), wanted)
            np.testing.assert_array_equal(model.predict(X), answer)
        assert (wanted == by_mean).all() == (confidence == 0.3)
    with pytest.raises(ValueError, match="confidence"):
        ChowRejector(Drawn(), costs=costs, confidence=1.5).fit(X, y)


def test_with_costs_answers_must_hold_under_the_draws_of_the_noise():
    X, y = make_moons(120, noise=0.3, random_state=0)
    inner = NoiseAwareClassifier(LogisticRegression(), n_repeats=1, random_state=0)
    model = ChowRejector(inner, costs=CREDIT).fit(X, y)
    draws = list(model.estimator_.predict_proba_draws(X))
    inside = model.estimator_
    mean = inside.noise_.clean_proba(inside._witnessed(X))
    np.testing.assert_allclose(np.mean(draws, axis=0), mean, atol=1e-12)
    expected = mean @ np.asarray(CREDIT, dtype=float)
    by_mean = expected[:, 2] <= expected[:, :2].min(axis=1)
    assert (model.reject(X) >= by_mean).all()
    assert model.reject(X).sum() > by_mean.sum()
    refusing_nothing = [[0, 1, 3.0], [1, 0, 3.0]]
    with pytest.warns(UserWarning, match="never pays"):
        assert not ChowRejector(inner, costs=refusing_nothing).fit(X, y).reject(X).any()


def test_witnesses_are_asked_once_about_a_row(monkeypatch):
    X, y = make_moons(120, noise=0.3, random_state=0)
    inner = NoiseAwareClassifier(LogisticRegression(), n_repeats=1, random_state=0)
    model = ChowRejector(inner, costs=CREDIT).fit(X, y)
    asked = []
    witness = model.estimator_.estimators_[0]
    plain = type(witness).decision_function
    monkeypatch.setattr(
        LogisticRegression,
        "decision_function",
        lambda self, rows: asked.append(len(rows)) or plain(self, rows),
    )
    model.predict_or_reject(X)
    assert asked == [len(X)]


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


CONVEX = [DoubleHingeClassifier, GeneralizedHingeClassifier]
# The last has a refusal above half of an error's cost in one class: no hinge with knots at -1 and
# 1 is convex there.
MATRICES = [
    CREDIT,
    [[0, 1, 0.2], [1, 0, 0.2]],
    [[0.5, 2.0, 0.8], [7.0, 1.0, 3.0]],
    [[0, 1, 0.7], [9, 0, 1]],
]


def loss_values(hinges, label, f):
    t = f if label == 1 else -f
    terms = hinges.of_second if label == 1 else hinges.of_first
    return sum(w * np.maximum(m - t, 0.0) for w, m in terms)


@pytest.mark.parametrize("costs", MATRICES)
def test_the_generalised_hinge_has_the_cheapest_decision_as_its_minimiser(costs):
    costs = np.array(costs, dtype=float)
    hinges = generalized_cost_hinges(costs)
    low, high = hinges.band
    f = np.linspace(-12.0, 12.0, 24001)
    for p in np.linspace(0.003, 0.997, 61):
        expected = (1 - p) * loss_values(hinges, 0, f) + p * loss_values(hinges, 1, f)
        best = f[expected.argmin()]
        decision = 2 if low <= best <= high else int(best > 0)
        paid = np.array([1 - p, p]) @ costs
        assert paid[decision] <= paid.min() + 2e-3 * np.ptp(costs)
    # both losses are convex: no hinge has a negative weight
    assert min(w for w, _ in (*hinges.of_first, *hinges.of_second)) >= 0


@pytest.mark.parametrize("costs", MATRICES)
def test_the_double_hinge_is_the_largest_of_the_tangents(costs):
    hinges = double_cost_hinges(costs)
    band = probability_band(np.array(costs, dtype=float))
    assert np.allclose(1 / (1 + np.exp(-np.array(hinges.band))), band)
    f = np.linspace(-6.0, 6.0, 241)
    for label, sign in ((0, -1.0), (1, 1.0)):
        # tangents of log(1 + exp(-sign f)) at the ends of the band
        lines = [np.zeros_like(f)]
        for at in hinges.band:
            slope = -sign / (1 + np.exp(sign * at))
            lines.append(np.log1p(np.exp(-sign * at)) + slope * (f - at))
        assert np.allclose(loss_values(hinges, label, f), np.max(lines, axis=0))


@pytest.mark.parametrize("machine", CONVEX)
@pytest.mark.parametrize("costs", MATRICES)
def test_a_conic_solver_finds_the_same_machine(machine, costs):
    cvxpy = pytest.importorskip("cvxpy")
    X, y = make_moons(40, noise=0.4, random_state=3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=40)
    model = machine(costs=costs, C=2.0, gamma=0.7).fit(X, y, weight)
    K = np.exp(-0.7 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    root = np.linalg.cholesky(K + 1e-12 * np.eye(40))
    v, b = cvxpy.Variable(40), cvxpy.Variable()
    f = root @ v + b
    hinges = (generalized_cost_hinges if machine is CONVEX[1] else double_cost_hinges)(costs)
    loss = 0.0
    for i, label in enumerate(y.tolist()):
        terms = hinges.of_second if label == 1 else hinges.of_first
        t = f[i] if label == 1 else -f[i]
        loss += weight[i] * sum(w * cvxpy.pos(m - t) for w, m in terms)
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(v) + 2.0 * loss))
    precise = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    problem.solve(solver="CLARABEL", **precise)
    assert model.objective_ == pytest.approx(problem.value, rel=1e-8)
    assert np.allclose(model.decision_function(X) - model.intercept_[0], root @ v.value, atol=1e-5)
    assert model.duality_gap_ <= 1e-7 * (1 + model.objective_)
    low, high = model.thresholds_
    scores = model.decision_function(X)
    assert np.array_equal(model.reject(X), (scores >= low) & (scores <= high))


@pytest.mark.parametrize("costs", [*MATRICES[:3], [[0, 2, 0.3], [3, 0, 0.9]]])
def test_a_conic_solver_cannot_improve_on_the_double_ramp(costs):
    """The convex bound that touches the objective at the machine has its minimum there."""
    cvxpy = pytest.importorskip("cvxpy")
    X, y = make_moons(40, noise=0.4, random_state=3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=40)
    mu = 0.8
    model = DoubleRampClassifier(costs=costs, C=2.0, gamma=0.7, mu=mu).fit(X, y, weight)
    K = np.exp(-0.7 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    root = np.linalg.cholesky(K + 1e-12 * np.eye(40))
    v, b, rho = cvxpy.Variable(40), cvxpy.Variable(), cvxpy.Variable()
    sign, matrix = 2.0 * y - 1.0, np.array(costs, dtype=float)
    error = matrix[y, 1 - y] - matrix[y, y]
    refusal = matrix[y, 2] - matrix[y, y]
    loss = 0.0
    for share, side in ((refusal, -1.0), (error - refusal, 1.0)):
        margin = cvxpy.multiply(sign, root @ v + b) + side * rho
        reached = sign * model.decision_function(X) + side * model.rho_
        # minus [-mu^2 - t]_+ lies below its tangent, which is mu^2 + t left of the kink
        tangent = cvxpy.multiply((reached < -(mu**2)).astype(float), mu**2 + margin)
        loss += cvxpy.sum(cvxpy.multiply(weight * share, cvxpy.pos(mu - margin) + tangent)) / mu
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(v) + 2.0 * loss))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert model.objective_ == pytest.approx(problem.value, rel=1e-8)
    assert model.rho_ == pytest.approx(float(rho.value), abs=1e-5)


@pytest.mark.parametrize("machine", CONVEX)
def test_convex_machines_with_equal_costs_are_those_of_d(machine):
    X, y = make_moons(80, noise=0.3, random_state=0)
    plain = machine(d=0.2).fit(X, y)
    for costs in ([[0, 1, 0.2], [1, 0, 0.2]], [[30, 40, 32], [10, 0, 2]]):
        same = machine(costs=costs).fit(X, y)
        assert np.allclose(plain.decision_function(X), same.decision_function(X), atol=1e-7)
        assert np.allclose(plain.thresholds_, same.thresholds_)
    assert machine(costs=CREDIT, threshold=0.3).fit(X, y).thresholds_.tolist() == [-0.3, 0.3]
    # a coverage replaces the band, not the loss
    band = machine(costs=CREDIT, target_coverage=0.8, random_state=0).fit(X, y).thresholds_
    assert band[0] == -band[1]


@pytest.mark.parametrize("machine", CONVEX)
def test_convex_machines_pay_less_when_they_know_the_costs(machine):
    rng = np.random.default_rng(1)
    y = rng.permutation(np.arange(800) % 2)
    X = rng.normal(size=(800, 2)) + 0.5 * (2 * y - 1)[:, None]
    train, test = slice(0, 300), slice(300, 800)
    paid = []
    # the refusal's cost is known to both, that of the errors to the first only
    for known in ({"costs": CREDIT}, {"d": 0.4}):
        model = machine(**known, kernel="linear", C=0.1, tol=1e-6).fit(X[train], y[train])
        paid.append(cost_risk(y[test], model.predict(X[test]), model.reject(X[test]), CREDIT))
    assert paid[0] < 0.9 * paid[1]
    with pytest.raises(ValueError, match="never pays"), pytest.warns(UserWarning, match="never"):
        machine(costs=[[0, 1, 0.8], [1, 0, 0.8]]).fit(X[train], y[train])
    with pytest.raises(ValueError, match="two classes, and y has 3"):
        machine(costs=CREDIT).fit(*load_iris(return_X_y=True))
