"""Noticing that the stream has changed, and proving a fresh model better before the swap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.classifiers.online.labels import answers
from buttress.solvers.stream.model import OnlineModel
from buttress.solvers.stream.rules import StreamOutcome


class PageHinkley:
    """Page-Hinkley test for an increase of the mean of a 0/1 series.

    Let ``m_t`` be the running sum of ``x_i - mean_i - delta`` since the last reset; a change
    is signalled when ``m_t`` exceeds its minimum by `threshold`, after `patience` values.

    References
    ----------
    E. S. Page, "Continuous inspection schemes", Biometrika 41 (1954).

    Examples
    --------
    >>> test = PageHinkley()
    >>> any(test.add(False) for _ in range(500))
    False
    >>> any(test.add(True) for _ in range(100))
    True
    """

    def __init__(self, delta: float = 0.005, threshold: float = 20.0, patience: int = 30) -> None:
        self.delta = delta
        self.threshold = threshold
        self.patience = patience
        self.reset()

    def reset(self) -> None:
        """Forget everything seen."""
        self.n = 0
        self.mean = 0.0
        self.total = 0.0
        self.least = 0.0

    def add(self, value: bool) -> bool:
        """Take one value; True when a change is signalled."""
        self.n += 1
        self.mean += (value - self.mean) / self.n
        self.total += value - self.mean - self.delta
        self.least = min(self.least, self.total)
        return self.n >= self.patience and self.total - self.least > self.threshold


class Rivalry:
    """When to start a challenger and when it takes over.

    Both models answer every row once a challenger runs. It takes over when, after at least
    `trial` labelled rows, it made fewer mistakes than the old model on those rows; it is
    given up after ``5 * trial`` rows.
    """

    def __init__(self, trial: int = 200, test: Any = None) -> None:
        self.trial = trial
        self.test = PageHinkley() if test is None else test
        self.n_drifts = 0
        self.n_swaps = 0
        self.rows = -1
        self.lead = 0

    def watch(self, mistakes: BoolArray) -> int | None:
        """Feed the mistakes of the only model; the index of the row that signalled drift."""
        for i, mistake in enumerate(mistakes):
            if self.test.add(bool(mistake)):
                self.n_drifts += 1
                self.rows, self.lead = 0, 0
                return i
        return None

    def compare(self, old: BoolArray, new: BoolArray) -> tuple[int, bool] | None:
        """Feed the mistakes of both; the index of the deciding row and whether to swap."""
        for i, (was_wrong, is_wrong) in enumerate(zip(old, new, strict=True)):
            self.rows += 1
            self.lead += int(was_wrong) - int(is_wrong)
            better = self.rows >= self.trial and self.lead > 0
            if better or self.rows >= 5 * self.trial:
                self.rows, self.lead = -1, 0
                self.n_swaps += better
                self.test.reset()
                return i, bool(better)
        return None

    def state(self) -> dict[str, Any]:
        test = self.test
        if not isinstance(test, PageHinkley):
            raise ValueError(
                "a drift detector of another library cannot be kept in a checkpoint: use "
                "drift='page-hinkley', or pickle the learner"
            )
        numbers = [test.n, test.mean, test.total, test.least]
        return {
            "test": np.array(numbers, dtype=np.float64),
            "counts": np.array([self.n_drifts, self.n_swaps, self.rows, self.lead, self.trial]),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Rivalry:
        counts = [int(count) for count in state["counts"]]
        rivalry = cls(counts[4])
        rivalry.n_drifts, rivalry.n_swaps, rivalry.rows, rivalry.lead = counts[:4]
        test = rivalry.test
        n, test.mean, test.total, test.least = (float(number) for number in state["test"])
        test.n = int(n)
        return rivalry


def learn_with_rival(
    rivalry: Rivalry,
    model: OnlineModel,
    rival: OnlineModel | None,
    new_model: Callable[[], OnlineModel],
    call: tuple[Any, Array, IntArray, IntArray],
) -> tuple[StreamOutcome, OnlineModel, OnlineModel | None]:
    """Learn the rows of one call; a challenger takes over at the very row that decides.

    Parameters
    ----------
    rivalry : Rivalry
    model, rival : OnlineModel
        The one that answers, and the challenger if there is one.
    new_model : callable
        Makes an empty model.
    call : tuple
        ``X, Y, position, code`` as for `OnlineModel.learn`.

    Returns
    -------
    outcome : StreamOutcome
        Every row as seen by the model that answered it.
    model, rival : OnlineModel
        The two after the call.
    """
    X, Y, positions, codes = call
    rows = np.flatnonzero(codes >= 0)
    known = codes[rows]
    main = model.learn(*call)
    challenger = main if rival is None else rival.learn(*call)
    answered: list[tuple[slice, StreamOutcome]] = []
    begin, done = 0, 0
    while done < len(rows):
        wrong = answers(main.scores[rows[done:]]) != known[done:]
        if rival is None:
            index = rivalry.watch(wrong)
            if index is None:
                break
            done += index + 1
            after = slice(int(rows[done - 1]) + 1, None)
            rival = new_model()
            challenger = StreamOutcome.empty(len(codes), Y.shape[1])
            learned = rival.learn(X[after], Y[after], positions[after], codes[after])
            challenger.rows(after).copy_from(learned)
        else:
            rival_wrong = answers(challenger.scores[rows[done:]]) != known[done:]
            verdict = rivalry.compare(wrong, rival_wrong)
            if verdict is None:
                break
            done += verdict[0] + 1
            if verdict[1]:
                end = int(rows[done - 1]) + 1
                answered.append((slice(begin, end), main))
                begin, main, model = end, challenger, rival
            rival = None
    outcome = StreamOutcome.empty(len(codes), Y.shape[1])
    for answered_rows, source in [*answered, (slice(begin, None), main)]:
        outcome.rows(answered_rows).copy_from(source.rows(answered_rows))
    return outcome, model, rival
