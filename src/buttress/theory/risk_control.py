"""Promising an error rate among the answers: exact binomial bounds tested in a fixed sequence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.theory.binomial import MOST_ROWS, binomial_upper, rows_needed
from buttress.theory.label_errors import LabelErrors

# Coverages tested between a start and all rows. From 25 to 200 the mean coverage that was
# certified on 400 draws of a Gaussian pair changed by less than .005.
STEPS = 50
# Starts, as shares of the coverage at which other rows put the target, and the share of the
# allowed failure probability that the cautious one gets. On 400 draws of a Gaussian pair (error
# .178, target .05) starts of .5 and .6 certified .29 and .28 of the rows at n = 1000 and .40 at
# n = 3000; .8 certified .22 and .39.
MAIN_START = 0.5
CAUTIOUS_START = 0.25
CAUTIOUS_SHARE = 0.2
# Starts where nothing says where the target is: so many, each this many times as many rows as the
# one before. One start at the fewest rows fails by chance however many rows there are. On 400
# draws of seven distributions, 200 to 3000 rows: never less from 800 rows on than one start (at
# 3000 rows .02 to .7 more), at 200 rows up to .05 less and .12 more; four or five starts the same.
_BLIND_STARTS, _BLIND_RATIO = 3, 3.0
# A start needs this many times the rows with which zero errors would pass.
_ROOM = 1.5
# What more rows would do is read off this many of the surest at least.
_FEWEST_SEEN = 10


@dataclass(frozen=True, eq=False)
class CalibrationRows:
    """Rows that neither the model nor the thresholds have seen.

    Attributes
    ----------
    confidence : array of shape (n,)
        How sure the model is of each answer; larger is surer, never negative.
    wrong : array of bool of shape (n,)
        Whether the answer differs from the given label.
    answer : integer array of shape (n,), optional
        Index of the class answered; needed with noise rates.
    noise : LabelErrors, optional
        Bounds are then on the true labels.
    """

    confidence: Array
    wrong: BoolArray
    answer: IntArray | None = None
    noise: LabelErrors | None = None

    def answered(self, threshold: float) -> BoolArray:
        """Rows above the threshold; a threshold of zero answers all."""
        if threshold <= 0.0:
            return np.ones(len(self.wrong), dtype=bool)
        return np.asarray(self.confidence > threshold)

    def bound(self, kept: BoolArray, level: float) -> float:
        """Upper bound on the error among the rows `kept`."""
        n, errors = int(kept.sum()), int(self.wrong[kept].sum())
        if self.noise is None:
            return binomial_upper(errors, n, level)
        return self.noise.true_error_bound(errors, self._answers(kept), level)

    def error(self, kept: BoolArray) -> float:
        """The error among the rows `kept`, on true labels where rates are given."""
        if not kept.any():
            return 0.0
        observed = float(self.wrong[kept].mean())
        if self.noise is None:
            return observed
        counts = self._answers(kept)
        return self.noise.middle.true_error(observed, counts / counts.sum())

    def _answers(self, kept: BoolArray) -> IntArray:
        if self.answer is None or self.noise is None:
            raise AssertionError("noise rates need the class of every answer")
        return np.bincount(self.answer[kept], minlength=len(self.noise.low))


@dataclass(frozen=True, eq=False)
class ThresholdPlan:
    """Thresholds in the order in which they are tested, fixed before the test.

    Attributes
    ----------
    sequences : tuple of arrays
        Each from a start of its own down to, but not including, the start of the next; the last
        down to 0, which answers every row.
    shares : tuple of float
        Share of the allowed failure that each sequence has; they add up to 1.
    """

    sequences: tuple[Array, ...]
    shares: tuple[float, ...]


def plan_thresholds(rows: CalibrationRows, target: float, level: float, n: int) -> ThresholdPlan:
    """Choose starts and steps on rows that are not those of the test.

    Parameters
    ----------
    rows : CalibrationRows
        Scores of models trained on other rows, as those of cross-validation.
    target : float
        The error rate to be promised.
    level : float
        Probability with which the promise may fail.
    n : int
        Number of rows that the test will have.

    Notes
    -----
    The start is a little more cautious than the coverage at which these rows have the target's
    error, and never so small that even a test without errors would fail.
    """
    ordered = np.sort(rows.confidence)[::-1]
    coverages = np.arange(1, len(ordered) + 1) / len(ordered)
    errors = _running_error(rows)
    within = np.flatnonzero(errors <= target)
    reached = float(coverages[within[-1]]) if len(within) else 0.0
    fewest = _ROOM * math.log(level) / math.log1p(-target) / max(n, 1)
    main = min(1.0, max(MAIN_START * reached, fewest))
    cautious = min(main, max(CAUTIOUS_START * reached, fewest))
    return _plan(ordered, [cautious, main], [CAUTIOUS_SHARE, 1.0 - CAUTIOUS_SHARE])


def plan_blindly(confidence: Array, target: float, level: float) -> ThresholdPlan:
    """Starts at fixed numbers of rows, where no other rows say how large the errors are.

    Parameters
    ----------
    confidence : array of shape (n,)
        Of the rows of the test; their labels are not looked at.
    target, level : float
        As in `plan_thresholds`.

    Examples
    --------
    >>> plan = plan_blindly(np.linspace(1.0, 2.0, 2000), target=0.1, level=0.1)
    >>> [round(2000 * (2.0 - t[0])) for t in plan.sequences]
    [48, 145, 436]
    """
    n = len(confidence)
    share = 1.0 / _BLIND_STARTS
    fewest = _ROOM * math.log(share * level) / math.log1p(-target) / max(n, 1)
    starts = [fewest * _BLIND_RATIO**k for k in range(_BLIND_STARTS)]
    starts = [start for start in starts if start < 1.0] or [1.0]
    return _plan(np.sort(confidence)[::-1], starts, [1.0 / len(starts)] * len(starts))


def _plan(ordered: Array, starts: list[float], shares: list[float]) -> ThresholdPlan:
    """Steps of equal length, so many from the last start to all rows."""
    last = starts[-1]
    step = max((1.0 - last) / (STEPS - 1), 1e-3) if last < 1.0 else 1.0
    coverages = [np.arange(a, b - 1e-12, step) for a, b in pairwise(starts)]
    coverages.append(np.linspace(last, 1.0, STEPS))
    return ThresholdPlan(tuple(_at(ordered, coverage) for coverage in coverages), tuple(shares))


def _running_error(rows: CalibrationRows) -> Array:
    """The error among the surest rows, for every number of them."""
    order = np.argsort(-rows.confidence, kind="stable")
    counts = np.arange(1, len(order) + 1)
    if rows.noise is None:
        return np.asarray(np.cumsum(rows.wrong[order]) / counts)
    middle = rows.noise.middle.low
    expected = np.cumsum(middle[np.asarray(rows.answer)[order]])
    room = 1.0 - float(np.sort(middle)[-2:].sum())
    return np.asarray((np.cumsum(rows.wrong[order]) - expected) / counts / room)


def _at(ordered: Array, coverages: Array) -> Array:
    """Thresholds, zero at full coverage, that give these coverages on the ordered rows."""
    n = len(ordered)
    last = np.minimum(np.round(coverages * n).astype(int), n)
    return np.array([0.0 if k >= n else float(ordered[k]) for k in last])


@dataclass(frozen=True)
class RiskCertificate:
    """What is promised about the error among the answers.

    Attributes
    ----------
    target : float
        The error rate asked for.
    confidence : float
        Probability, over the draw of the calibration rows, with which it is kept.
    threshold : float
        Answers are given above this confidence; infinite when nothing could be promised.
    n, errors : int
        Answered calibration rows, and wrong answers among them (by the given labels).
    bound : float
        The upper bound at the level of the test, at most `target` when certified. Where
        nothing could be promised: `n`, `errors` and `bound` are those of the start that came
        nearest to the target.
    n_rows : int
        Calibration rows in all.
    method : str
        "held_out": exact for independent rows, whatever their distribution. "folds": the
        calibration rows were scored by models trained on the other folds; the statement is
        about those models and only approximately about the one trained on all rows.
    rows_missing : int or None
        Where nothing could be promised: calibration rows that would be needed in addition, at
        the error seen among the surest, or where the test started if only that failed; None when
        no error seen is below the target, where no number suffices.
    uncertified_threshold : float or None
        Where nothing could be promised: the smallest threshold tested at which the error among
        the calibration rows themselves is at most the target. It is a guess, not a promise.
    """

    target: float
    confidence: float
    threshold: float
    n: int
    errors: int
    bound: float
    n_rows: int
    method: str = "held_out"
    rows_missing: int | None = None
    uncertified_threshold: float | None = None

    @property
    def certified(self) -> bool:
        """Whether the target is promised."""
        return bool(self.threshold < math.inf)

    @property
    def coverage(self) -> float:
        """Share of the calibration rows that are answered."""
        return self.n / self.n_rows if self.certified else 0.0


def certify_risk(
    rows: CalibrationRows,
    plan: ThresholdPlan,
    target: float,
    confidence: float,
    method: str = "held_out",
) -> RiskCertificate:
    """The smallest threshold of the plan at which the error is at most `target`.

    Parameters
    ----------
    rows : CalibrationRows
        Independent rows that neither the model nor the plan has seen.
    plan : ThresholdPlan
    target : float in (0, 1)
    confidence : float in (0, 1)
        Probability that the promise is kept.
    method : str
        Noted in the certificate.

    Returns
    -------
    RiskCertificate

    Notes
    -----
    Given how many rows a threshold answers, the errors among them are binomial, so the bound
    at level delta is exact. Hypotheses "the error is above the target" are tested one after
    the other, each at the full level, and the first that cannot be refuted ends the sequence: a
    false promise requires that the first true hypothesis is refuted, which has probability
    delta at most. Several starts share delta; when a sequence arrives at the start of the next,
    its share is passed on (the fallback procedure).

    References
    ----------
    C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in
    the case of the binomial", Biometrika 26, 1934. B. L. Wiens, "A fixed sequence Bonferroni
    procedure for testing multiple endpoints", Pharmaceutical Statistics 2, 2003. A. N.
    Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan and L. Lei, "Learn then test: calibrating
    predictive algorithms to achieve risk control", Annals of Applied Statistics 19, 2025.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sure = rng.uniform(size=2000)
    >>> wrong = rng.uniform(size=2000) < 0.3 * (1 - sure)
    >>> seen, new = (CalibrationRows(sure[k::2], wrong[k::2]) for k in (0, 1))
    >>> plan = plan_thresholds(seen, target=0.1, level=0.1, n=1000)
    >>> certificate = certify_risk(new, plan, target=0.1, confidence=0.9)
    >>> certificate.bound <= 0.1, round(certificate.coverage, 1)
    (True, 0.7)
    """
    best: tuple[float, float] | None = None
    level, passed = 0.0, True
    for thresholds, share in zip(plan.sequences, plan.shares, strict=True):
        level = share * (1.0 - confidence) + (level if passed else 0.0)
        reached, passed = _test_in_order(rows, thresholds, target, level)
        best = best if reached is None else (reached, level)
    threshold, missing, guess = math.inf, None, None
    if best is None:
        starts = [(rows.answered(t), level) for t, level in _starts(plan, 1.0 - confidence)]
        kept, level = min(starts, key=lambda start: rows.bound(*start))
        missing, guess = _missing(rows, kept, target, level), _guess(rows, plan, target)
    else:
        threshold, level = best
        kept = rows.answered(threshold)
    return RiskCertificate(
        target=target,
        confidence=confidence,
        threshold=threshold,
        n=int(kept.sum()),
        errors=int(rows.wrong[kept].sum()),
        bound=rows.bound(kept, level),
        n_rows=len(rows.wrong),
        method=method,
        rows_missing=missing,
        uncertified_threshold=guess,
    )


def _test_in_order(
    rows: CalibrationRows, thresholds: Array, target: float, level: float
) -> tuple[float | None, bool]:
    """The last threshold before the first failure, and whether there was none."""
    best = None
    for threshold in thresholds.tolist():
        if rows.bound(rows.answered(threshold), level) > target:
            return best, False
        best = threshold
    return best, True


def _starts(plan: ThresholdPlan, delta: float) -> Iterator[tuple[float, float]]:
    """Where each sequence starts, and its level when none before it arrived there."""
    waiting = 0.0
    for thresholds, share in zip(plan.sequences, plan.shares, strict=True):
        waiting += share * delta
        if len(thresholds):
            yield float(thresholds[0]), waiting
            waiting = 0.0


def _guess(rows: CalibrationRows, plan: ThresholdPlan, target: float) -> float | None:
    tested = np.concatenate(plan.sequences).tolist()
    within = [
        t for t in tested if rows.answered(t).any() and rows.error(rows.answered(t)) <= target
    ]
    return min(within, default=None)


def _missing(rows: CalibrationRows, start: BoolArray, target: float, level: float) -> int | None:
    """Calibration rows that lack, at the error seen among the surest, whichever needs fewest."""
    ordered = np.sort(rows.confidence)[::-1]
    n = len(ordered)
    certified = []
    for k in np.unique(np.linspace(min(_FEWEST_SEEN, n), n, STEPS).astype(int)).tolist():
        kept = rows.answered(float(ordered[k]) if k < n else 0.0)
        needed = _needed(rows, kept, target, level) if kept.any() else None
        if needed is not None:
            certified.append(math.ceil(needed / float(kept.mean())) - n)
    if not certified or min(certified) >= 1:
        return min(certified, default=None)
    # others would pass, but the test had ended at its start: what lacks there
    needed = _needed(rows, start, target, level) if start.any() else None
    return 1 if needed is None else max(1, math.ceil(needed / float(start.mean())) - n)


def _needed(rows: CalibrationRows, kept: BoolArray, target: float, level: float) -> int | None:
    """Answered rows with which the bound passes, at the error seen among those `kept`."""
    if rows.noise is None:
        return rows_needed(target, rows.error(kept), level)
    n = size = int(kept.sum())
    share, answers = float(rows.wrong[kept].mean()), rows._answers(kept) / n
    settled = rows.noise if rows.noise.draws is None else rows.noise.middle
    if settled.true_error(share, answers) >= target:
        return None
    while size < MOST_ROWS:
        counts = np.round(answers * size).astype(int)
        noise = rows.noise.narrowed(math.sqrt(n / size))
        if noise.true_error_bound(math.ceil(share * size), counts, level) <= target:
            return size
        size = math.ceil(1.25 * size)
    return None
