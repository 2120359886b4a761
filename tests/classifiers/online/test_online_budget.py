"""Budgets: never exceeded, and worth what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from buttress import KernelPegasos, KernelPerceptron, Norma, PARampClassifier
from buttress.kernels import make_kernel
from buttress.solvers.stream.budget import Budget, best_merge
from buttress.solvers.stream.similarity import KernelSource, RbfSource
from buttress.solvers.stream.store import VectorStore

POLICIES = ["merge", "project", "forget", "forget_oldest"]


def stream(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1, 0)


def filled(source: Any, n: int, n_problems: int = 1, seed: int = 0) -> VectorStore:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    store = VectorStore(
        2, n_problems, np.float64, is_sparse=False, augmented=3 * isinstance(source, RbfSource)
    )
    store.append(
        X,
        source.augmented(source.prepare(X)),
        rng.normal(size=(n_problems, n)),
        np.diagonal(source.within(source.prepare(X))),
        np.arange(n),
        np.zeros(n, dtype=int),
    )
    return store


def squared_loss(source: Any, before: Any, after: Any) -> float:
    """The squared distance of the two expansions, from the full kernel matrix."""
    points = np.vstack([before[0], after[0]])
    K = source.within(source.prepare(points))
    total = 0.0
    for a, b in zip(before[1], after[1], strict=True):
        c = np.concatenate([a, -b])
        total += float(c @ K @ c)
    return total


def snapshot(store: VectorStore) -> tuple[np.ndarray, np.ndarray]:
    return store.vectors().copy(), store.coef[:, : store.n].copy()


@pytest.mark.parametrize("learner", [PARampClassifier, KernelPerceptron, KernelPegasos, Norma])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_the_budget_holds_and_the_model_still_learns(
    learner: Any, policy: str, kernel: str
) -> None:
    X, y = stream(500)
    options = {"kernel": kernel, "gamma": 1.0, "degree": 2}
    model = learner(budget=40, budget_policy=policy, **options).fit(X, y)
    assert len(model.support_) <= 40
    assert max(model.history_["support_vectors"]) <= 40
    assert np.isfinite(model.dual_coef_).all()
    if kernel == "rbf" and policy in ("merge", "project"):
        assert model.score(X, y) > 0.85
    if policy == "project":
        # rank three or two: forty vectors lose nothing
        assert (
            kernel == "rbf" or model.score(X, y) > learner(**options).fit(X, y).score(X, y) - 0.05
        )


def test_a_budget_never_reached_changes_nothing() -> None:
    X, y = stream(300)
    for learner in (PARampClassifier, KernelPerceptron, KernelPegasos, Norma):
        free = learner(gamma=1.0).fit(X, y)
        wide = learner(gamma=1.0, budget=1000).fit(X, y)
        np.testing.assert_array_equal(free.support_, wide.support_)
        np.testing.assert_allclose(free.dual_coef_, wide.dual_coef_, atol=1e-10)


@pytest.mark.parametrize("n_problems", [1, 3])
def test_a_merge_loses_no_more_than_any_other_point_on_any_line(n_problems: int) -> None:
    source = RbfSource(0.7, np.zeros(2))
    for seed in range(5):
        store = filled(source, 9, n_problems, seed)
        before = snapshot(store)
        light = int(np.argmin(np.abs(before[1]).sum(axis=0)))
        Budget(8, "merge", source).shrink(store)
        lost = squared_loss(source, before, snapshot(store))
        best = np.inf
        for partner in set(range(9)) - {light}:
            for h in np.linspace(0, 1, 201):
                z = h * before[0][light] + (1 - h) * before[0][partner]
                k = np.exp(-0.7 * ((before[0][[light, partner]] - z) ** 2).sum(axis=1))
                coef = before[1][:, [light, partner]] @ k
                rest = [i for i in range(9) if i not in (light, partner)]
                after = (
                    np.vstack([before[0][rest], z]),
                    np.column_stack([before[1][:, rest], coef]),
                )
                best = min(best, squared_loss(source, before, after))
        assert lost <= best * (1 + 1e-3) + 1e-12


def test_a_projection_is_the_best_combination_of_the_others() -> None:
    source = RbfSource(0.7, np.zeros(2))
    budget = Budget(11, "project", source)
    store = filled(source, 12)
    for step in range(5):
        before = snapshot(store)
        removed = budget.shrink(store)[0]
        lost = squared_loss(source, before, snapshot(store))
        best = np.inf
        for out in range(12):
            rest = [i for i in range(12) if i != out]
            K = source.within(source.prepare(before[0]))
            share = np.linalg.lstsq(K[np.ix_(rest, rest)], K[rest, out], rcond=None)[0]
            after = (before[0][rest], before[1][:, rest] + before[1][:, [out]] * share)
            best = min(best, squared_loss(source, before, after))
        assert 0 <= removed < 12
        assert lost == pytest.approx(best, rel=1e-3, abs=1e-5)
        # one more vector: the inverse is updated from here on
        extra = np.random.default_rng(100 + step).normal(size=(1, 2))
        right = source.augmented(source.prepare(extra))
        store.append(
            extra, right, np.ones((1, 1)), np.ones(1), np.array([99 + step]), np.array([0])
        )


def test_projection_notices_copies_and_indefinite_kernels() -> None:
    source = RbfSource(0.7, np.zeros(2))
    budget = Budget(6, "project", source)
    store = filled(source, 7)
    budget.shrink(store)
    before = snapshot(store)
    copy = before[0][:1]
    right = source.augmented(source.prepare(copy))
    store.append(copy, right, np.full((1, 1), 0.5), np.ones(1), np.array([99]), np.array([0]))
    grown = snapshot(store)
    budget.shrink(store)
    assert squared_loss(source, grown, snapshot(store)) < 1e-5
    indefinite = KernelSource(make_kernel("sigmoid", gamma=1.0, coef0=-1.0))
    with pytest.raises(ValueError, match="positive semidefinite"):
        Budget(6, "project", indefinite).shrink(filled(indefinite, 7))


def test_forgetting_takes_the_lightest_or_the_oldest() -> None:
    source = RbfSource(0.7, np.zeros(2))
    store = filled(source, 6)
    lightest = int(np.argmin(np.abs(store.coef[0, :6])))
    Budget(5, "forget", source).shrink(store)
    assert lightest not in store.position[:5]
    oldest = int(store.position[:5].min())
    Budget(4, "forget_oldest", source).shrink(store)
    assert oldest not in store.position[:4]
    X, y = stream(300)
    model = KernelPerceptron(gamma=1.0, budget=10, budget_policy="forget").fit(X, y)
    oldest_gone = KernelPerceptron(gamma=1.0, budget=10, budget_policy="forget_oldest").fit(X, y)
    np.testing.assert_array_equal(np.sort(model.support_), np.sort(oldest_gone.support_))


def test_copies_merge_without_loss() -> None:
    partner, _ = best_merge(np.array([1.0, 0.2, 1.0]), np.array([[0.5, 3.0, 0.7]]), 0)
    assert partner == 2


@pytest.mark.parametrize("policy", POLICIES)
def test_vectors_that_died_make_room_first(policy: str) -> None:
    X, y = stream(400)
    free = Norma(gamma=1.0, eta=0.1, alpha=1.0, tau=1e-3).fit(X, y)
    assert len(free.support_) <= 45  # they live for 44 rows
    for budget in (10, 43, 44):
        model = Norma(
            gamma=1.0, eta=0.1, alpha=1.0, tau=1e-3, budget=budget, budget_policy=policy
        ).fit(X, y)
        assert len(model.support_) <= budget
        assert (np.abs(model.dual_coef_) >= 1e-3).any(axis=0).all()
