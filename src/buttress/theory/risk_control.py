"""Promising an error rate among the answers: exact binomial bounds tested in a fixed sequence."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
    cautious : array
        From the more cautious start down to, but not including, the first of `main`.
    main : array
        From the start proper down to 0, which answers every row.
    """

    cautious: Array
    main: Array


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
    fewest = _ROOM * math.log(level) / math.log(1.0 - target) / max(n, 1)
    main = min(1.0, max(MAIN_START * reached, fewest))
    cautious = min(main, max(CAUTIOUS_START * reached, fewest))
    main_coverage = np.linspace(main, 1.0, STEPS)
    step = (1.0 - main) / (STEPS - 1) if main < 1.0 else 1.0
    cautious_coverage = np.arange(cautious, main - 1e-12, max(step, 1e-3))
    return ThresholdPlan(_at(ordered, cautious_coverage), _at(ordered, main_coverage))


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
        nothing could be promised: the bound of the surest rows that were tested.
    n_rows : int
        Calibration rows in all.
    method : str
        "held_out": exact for independent rows, whatever their distribution. "folds": the
        calibration rows were scored by models trained on the other folds; the statement is
        about those models and only approximately about the one trained on all rows.
    rows_missing : int or None
        Where nothing could be promised: calibration rows that would be needed in addition, at
        the error seen among the surest; None when no error seen is below the target, where no
        number suffices.
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
    delta at most. A fifth of delta serves the cautious start; when that sequence arrives at the
    main start, its share is passed on (the fallback procedure).

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
    delta = 1.0 - confidence
    cautious_level = CAUTIOUS_SHARE * delta if len(plan.cautious) else 0.0
    best, passed = _test_in_order(rows, plan.cautious, target, cautious_level)
    main_level = delta if passed else delta - cautious_level
    level = cautious_level
    reached, _ = _test_in_order(rows, plan.main, target, main_level)
    if reached is not None:
        best, level = reached, main_level
    if best is None:
        return _nothing_promised(rows, plan, target, confidence, method)
    kept = rows.answered(best)
    return RiskCertificate(
        target=target,
        confidence=confidence,
        threshold=best,
        n=int(kept.sum()),
        errors=int(rows.wrong[kept].sum()),
        bound=rows.bound(kept, level),
        n_rows=len(rows.wrong),
        method=method,
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


def _nothing_promised(
    rows: CalibrationRows, plan: ThresholdPlan, target: float, confidence: float, method: str
) -> RiskCertificate:
    first = float(plan.main[0])
    kept = rows.answered(first)
    level = (1.0 - confidence) * (1.0 - CAUTIOUS_SHARE if len(plan.cautious) else 1.0)
    return RiskCertificate(
        target=target,
        confidence=confidence,
        threshold=math.inf,
        n=int(kept.sum()),
        errors=int(rows.wrong[kept].sum()),
        bound=rows.bound(kept, level),
        n_rows=len(rows.wrong),
        method=method,
        rows_missing=_missing(rows, target, level),
        uncertified_threshold=_guess(rows, plan, target),
    )


def _guess(rows: CalibrationRows, plan: ThresholdPlan, target: float) -> float | None:
    tested = np.concatenate([plan.cautious, plan.main]).tolist()
    within = [
        t for t in tested if rows.answered(t).any() and rows.error(rows.answered(t)) <= target
    ]
    return min(within, default=None)


def _missing(rows: CalibrationRows, target: float, level: float) -> int | None:
    """Calibration rows that lack, at the error seen among the surest, whichever needs fewest."""
    ordered = np.sort(rows.confidence)[::-1]
    n = len(ordered)
    found = []
    for k in np.unique(np.linspace(min(_FEWEST_SEEN, n), n, STEPS).astype(int)).tolist():
        kept = rows.answered(float(ordered[k]) if k < n else 0.0)
        if kept.any():
            needed = _needed(rows, kept, target, level)
            if needed is not None:
                found.append(math.ceil(needed / float(kept.mean())) - n)
    return max(1, min(found)) if found else None


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
