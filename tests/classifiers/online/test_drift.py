"""Drift: noticed, and answered by a model that has proved better."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from buttress import KernelPegasos, PARampClassifier
from buttress.classifiers.online.drift import PageHinkley, Rivalry


def changing(n: int = 4000, at: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, 0)
    y[at:] = 1 - y[at:]
    return X, y


@pytest.mark.smoke
def test_a_reset_model_answers_better_after_a_change() -> None:
    X, y = changing()
    old = PARampClassifier(gamma=1.0).fit(X, y)
    new = PARampClassifier(gamma=1.0, drift="page-hinkley").fit(X, y)
    assert old.n_drifts_ == 0
    assert new.n_drifts_ >= 1
    assert new.windowed_error_ < 0.5 * old.windowed_error_
    assert new.support_.min() >= 2000
    assert new.n_mistakes_ == new.history_["mistakes"].sum()


def test_nothing_happens_while_nothing_changes() -> None:
    X, y = changing(at=4000)
    model = PARampClassifier(gamma=1.0, drift="page-hinkley").fit(X, y)
    plain = PARampClassifier(gamma=1.0).fit(X, y)
    assert model.n_drifts_ == 0
    np.testing.assert_array_equal(model.support_, plain.support_)


def test_the_cut_does_not_move_the_swap() -> None:
    X, y = changing(3000, 1200)
    whole = PARampClassifier(gamma=1.0, drift="page-hinkley").fit(X, y)
    parts = PARampClassifier(gamma=1.0, drift="page-hinkley", block_size=17)
    for begin in range(0, 3000, 101):
        rows = slice(begin, begin + 101)
        parts.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert whole.n_drifts_ == parts.n_drifts_ >= 1
    np.testing.assert_array_equal(whole.support_, parts.support_)
    assert whole.n_mistakes_ == parts.n_mistakes_


def test_a_challenger_that_is_no_better_is_given_up() -> None:
    rivalry = Rivalry(trial=10)
    assert rivalry.watch(np.array([False] * 200 + [True] * 100)) is not None
    assert rivalry.rows == 0
    same = np.zeros(60, dtype=bool)
    assert rivalry.compare(same, same) == (49, False)
    assert rivalry.rows == -1
    assert rivalry.n_swaps == 0
    restored = Rivalry.from_state(rivalry.state())
    assert restored.state()["counts"].tolist() == rivalry.state()["counts"].tolist()


def test_the_test_is_patient() -> None:
    test = PageHinkley(threshold=0.1, patience=30)
    assert not any(test.add(i % 2 == 0) for i in range(29))


class AlarmAt:
    """A drift detector that signals a change at one row, whatever it is told."""

    def __init__(self, row: int) -> None:
        self.row = row
        self.n_told = 0

    def update(self, value: int) -> None:
        self.n_told += 1

    @property
    def drift_detected(self) -> bool:
        return self.n_told == self.row


@pytest.mark.parametrize("budget", [None, 20])
def test_a_challenger_alive_at_the_end_of_fit_goes_on_by_rows_not_draws(budget: int | None) -> None:
    X, y = changing(600, 600)
    model = KernelPegasos(
        gamma=1.0, sampling="with_replacement", random_state=0, drift=AlarmAt(500), budget=budget
    ).fit(X, y)
    assert model._rival is not None
    # the other way round from here on: the challenger, which has less to forget, takes over
    new = np.random.default_rng(1).normal(size=(1200, 2))
    model.partial_fit(new, np.where(new[:, 0] * new[:, 1] > 0, 0, 1))
    assert model._rivalry.n_swaps == 1
    stood = np.concatenate([X, new])[model.support_]
    if budget is None:
        np.testing.assert_array_equal(model.support_vectors_, stood)
        old = model.support_[model.support_ < 600]
        assert len(old) == len(np.unique(old)) > 0
    else:
        assert len(model.support_) <= budget


def test_a_learner_pickled_before_rows_were_drawn_learns_on() -> None:
    X, y = changing(300, 300)
    for budget in (None, 10):
        learner = KernelPegasos(gamma=1.0, budget=budget).fit(X[:200], y[:200])
        wanted = pickle.loads(pickle.dumps(learner)).partial_fit(X[200:], y[200:])
        del learner._model.drawn
        old = pickle.loads(pickle.dumps(learner)).partial_fit(X[200:], y[200:])
        np.testing.assert_array_equal(old.dual_coef_, wanted.dual_coef_)
