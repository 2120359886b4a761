"""How far a review is: errors found, errors left with an interval, when to stop, agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from buttress._arrays import Array
from buttress.review.records import Decision
from buttress.review.store import ReviewStore

# Share of wrong labels among the next rows below which the advice is to stop.
STOP_SHARE = 0.05
# Rows ahead that the advice speaks of.
NEXT_ROWS = 20
# The probabilities may be off by a common factor of the odds; its logarithm has this standard
# deviation before anybody has looked. With 1, the intervals of tests/review/test_progress.py
# cover in 97 % of simulated reviews whose probabilities are off by a factor of 0.4 to 2.5.
_SHIFT_SPREAD = 1.0
_SHIFTS = np.linspace(-3.5, 3.5, 29)
# Equal probabilities are counted together; finer bins change the quantiles by less than one.
_BINS = 100
# Sums with a mean above this are as good as normal.
_NORMAL_ABOVE = 400.0


@dataclass(frozen=True)
class Progress:
    """Where a review stands.

    Attributes
    ----------
    reviewed, total : int
        Rows looked at, and those with what is left of the queue.
    n_wrong : int
        Wrong labels found.
    left, low, high : float
        Wrong labels among all rows nobody has looked at: estimate and 95 % interval.
    next_share : float or None
        Expected share of wrong labels in the next rows; None when the queue is empty.
    disputed, waiting : int
        Rows in dispute, and rows that wait for another opinion.
    curve : tuple of int
        Errors found after every decision.
    """

    reviewed: int
    total: int
    n_wrong: int
    left: float
    low: int
    high: int
    next_share: float | None
    disputed: int
    waiting: int
    curve: tuple[int, ...]

    @property
    def sentence(self) -> str:
        """One line for people."""
        return (
            f"{self.reviewed} of {self.total} reviewed, about {self.left:.0f} errors left, "
            f"95 % interval {self.low}–{self.high}"
        )

    @property
    def advice(self) -> str:
        """Whether to go on."""
        if self.next_share is None:
            return "The queue is empty."
        if self.next_share < STOP_SHARE:
            return "You may stop: fewer than 1 in 20 of the next rows would be wrong."
        one_in = 1 / self.next_share
        if one_in < 1.5:
            return "Go on: most of the next rows are wrong."
        return f"Go on: about 1 in {one_in:.0f} of the next rows is wrong."


def progress_of(store: ReviewStore) -> Progress:
    """Where the review in a store stands."""
    decisions = store.decisions()
    outcomes = store.outcomes()
    counts = store.counts()
    given = store.given_where_decided()
    asked: dict[int, float] = {}
    for decision in decisions:
        asked.setdefault(decision.item, decision.wrong)
    known = [item for item in asked if item in outcomes]
    ahead = np.array(store.next_wrong(NEXT_ROWS))
    wrong, n_rows = store.open_wrong(_BINS)
    was_wrong = np.array([outcomes[item] != given[item] for item in known], dtype=bool)
    seen = np.array([asked[item] for item in known])
    left = errors_left(np.array(wrong), seen, was_wrong, np.array(n_rows))
    reviewed = counts["second"] + counts["disputed"] + counts["done"]
    return Progress(
        reviewed=reviewed,
        total=reviewed + counts["open"],
        n_wrong=int(was_wrong.sum()),
        left=left.mean,
        low=left.low,
        high=left.high,
        next_share=left.share(ahead) if len(ahead) else None,
        disputed=counts["disputed"],
        waiting=counts["second"],
        curve=_curve(decisions, outcomes, given),
    )


def _curve(
    decisions: Sequence[Decision], outcomes: dict[int, str], given: dict[int, str | None]
) -> tuple[int, ...]:
    n_wrong, seen, curve = 0, set(), []
    for decision in decisions:
        new = decision.item not in seen and decision.item in outcomes
        n_wrong += new and outcomes[decision.item] != given[decision.item]
        seen.add(decision.item)
        curve.append(n_wrong)
    return tuple(curve)


@dataclass(frozen=True, eq=False)
class ErrorsLeft:
    """The number of wrong labels among rows nobody has looked at.

    Attributes
    ----------
    mean : float
    low, high : int
        Ends of the 95 % interval.
    shifts, weights : ndarray
        By how much the log odds of the probabilities are off, and how probable that is.
    """

    mean: float
    low: int
    high: int
    shifts: Array
    weights: Array

    def share(self, wrong: Array) -> float:
        """Expected share of wrong labels among rows of these probabilities."""
        return float(self.weights @ _shifted(wrong, self.shifts).mean(axis=1))


def errors_left(
    unseen: Array, asked: Array, was_wrong: Array, n_rows: Array | None = None
) -> ErrorsLeft:
    """Wrong labels among unseen rows, judged by how the probabilities did on those seen.

    The log odds of all probabilities are taken to be off by one common amount, normal around
    zero; the rows looked at say how much (Bayes' rule on a grid). The number left is then a
    mixture of sums of independent 0/1 variables, whose quantiles are the interval.

    Parameters
    ----------
    unseen : ndarray
        P(wrong) of the rows nobody has looked at.
    asked, was_wrong : ndarray
        P(wrong) of the rows looked at, as it was then, and what came out.
    n_rows : ndarray, optional
        How many rows stand behind every entry of `unseen`; one each when not given.

    Examples
    --------
    >>> left = errors_left(np.full(100, 0.1), np.full(50, 0.1), np.arange(50) < 5)
    >>> 8 < left.mean < 13, left.low < 10 < left.high
    (True, True)
    """
    log_weights = -0.5 * (_SHIFTS / _SHIFT_SPREAD) ** 2
    if len(asked):
        chances = np.clip(_shifted(asked, _SHIFTS), 1e-12, 1 - 1e-12)
        log_weights = log_weights + np.where(was_wrong, np.log(chances), np.log1p(-chances)).sum(1)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    if not len(unseen):
        return ErrorsLeft(0.0, 0, 0, _SHIFTS, weights)
    each = np.ones(len(unseen)) if n_rows is None else n_rows
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    counts, _ = np.histogram(unseen, bins=edges, weights=each)
    sums, _ = np.histogram(unseen, bins=edges, weights=each * unseen)
    used = counts > 0
    chances = _shifted(sums[used] / counts[used], _SHIFTS)
    kept = weights > 1e-6
    means = chances @ counts[used]
    cumulative: Array = np.zeros(1)
    for weight, chance in zip(weights[kept], chances[kept], strict=True):
        cumulative = _added(cumulative, weight * _distribution(chance, counts[used]))
    cumulative = cumulative / cumulative[-1]
    low, high = np.searchsorted(cumulative, [0.025, 0.975])
    return ErrorsLeft(float(weights @ means), int(low), int(high), _SHIFTS, weights)


def _shifted(wrong: Array, shifts: Array) -> Array:
    """The probabilities with their log odds moved, one row for every shift."""
    odds = np.exp(shifts)[:, None] * wrong[None, :]
    return np.asarray(odds / (odds + 1 - wrong[None, :]))


def _distribution(chances: Array, counts: Array) -> Array:
    """P(sum <= 0), P(sum <= 1), ... of independent 0/1 variables."""
    mean = float(counts @ chances)
    spread = float(np.sqrt(counts @ (chances * (1 - chances))))
    size = int(min(counts.sum(), np.ceil(mean + 8 * spread + 30))) + 1
    if mean > _NORMAL_ABOVE:
        from scipy.special import ndtr

        return np.asarray(ndtr((np.arange(size) + 0.5 - mean) / max(spread, 1e-9)))
    # The characteristic function at the roots of unity; the tail beyond `size` is negligible.
    angles = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    factors = 1 - chances[:, None] + chances[:, None] * angles[None, :]
    with np.errstate(divide="ignore"):
        transform = np.exp((counts[:, None] * np.log(factors)).sum(axis=0))
    masses = np.fft.irfft(transform, n=size)
    return np.asarray(np.cumsum(np.clip(masses, 0, 1)))


def _added(first: Array, second: Array) -> Array:
    """The sum of two cumulative functions, each continued by its last value."""
    size = max(len(first), len(second))
    return np.asarray(
        np.pad(first, (0, size - len(first)), mode="edge")
        + np.pad(second, (0, size - len(second)), mode="edge")
    )


@dataclass(frozen=True)
class Agreement:
    """How often two reviewers of one row agree.

    Attributes
    ----------
    rows : int
        Rows on which two reviewers gave a firm opinion, independently.
    share : float or None
        Of them, with equal labels.
    kappa : float or None
        Cohen's kappa: 0 is what chance gives, 1 is perfect.
    """

    rows: int
    share: float | None
    kappa: float | None

    @property
    def sentence(self) -> str:
        """One line for people."""
        if self.share is None:
            return "No row has been seen by two reviewers yet."
        kappa = "" if self.kappa is None else f", kappa {self.kappa:.2f}"
        return f"Reviewers agree on {100 * self.share:.0f} % of {self.rows} rows{kappa}."


def agreement_of(decisions: Sequence[Decision]) -> Agreement:
    """How well reviewers agree where two saw the same row; second looks do not count.

    References
    ----------
    J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
    Measurement 20 (1960).
    """
    labels: dict[int, list[str]] = {}
    for decision in decisions:
        if decision.label is not None and not decision.second_look:
            labels.setdefault(decision.item, []).append(decision.label)
    pairs = [pair for each in labels.values() for pair in pairwise(each)]
    if not pairs:
        return Agreement(0, None, None)
    share = sum(a == b for a, b in pairs) / len(pairs)
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(first[label] * second[label] for label in first) / len(pairs) ** 2
    kappa = (share - chance) / (1 - chance) if chance < 1 else None
    return Agreement(len(pairs), share, kappa)
