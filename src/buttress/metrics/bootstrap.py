"""Bootstrap intervals of any weighted metric, and a paired test of two classifiers."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from buttress._arrays import Array
from buttress.metrics.counts import Estimate, checked_confidence, row_weights
from buttress.metrics.ranking import RankedRows

# Metrics of the order of the rows and their formulas, which `paired_difference` evaluates fast.
RANKED: dict[Any, Any] = {}
# Of the resamples that `confidence=` takes; the ends of a 95 % interval then move by about a
# twentieth of its width from seed to seed.
RESAMPLES = 1000


class PairedDifference(NamedTuple):
    """First minus second classifier: the difference, its interval and the p-value of none."""

    value: float
    low: float
    high: float
    p_value: float


def bootstrap_estimate(
    metric: Callable[[Array], float],
    n: int,
    confidence: float,
    *,
    sample_weight: Any = None,
    n_resamples: int = RESAMPLES,
    random_state: Any = 0,
) -> Estimate:
    """A metric with the percentile interval over resampled rows.

    Parameters
    ----------
    metric : callable
        From the weights of the rows to the value; rows of weight zero do not count.
    n : int
        Number of rows.
    confidence : float in (0, 1)
        Level of the interval.
    sample_weight : array-like of shape (n,), optional
        Multiplied with the number of times that a row is drawn.
    n_resamples : int, default=1000
    random_state : int, RandomState or None, default=0

    Returns
    -------
    Estimate

    Notes
    -----
    The rows are taken as independent. The interval is approximate: it is right in the limit of
    many rows, and too narrow when few rows decide the value.

    References
    ----------
    B. Efron and R. J. Tibshirani, "An introduction to the bootstrap", Chapman and Hall, 1993.

    Examples
    --------
    >>> values = np.arange(100.0)
    >>> estimate = bootstrap_estimate(lambda w: float(w @ values / w.sum()), 100, 0.9)
    >>> estimate.value, estimate.low < 49.5 < estimate.high
    (49.5, True)
    """
    weight = row_weights(sample_weight, n)
    drawn = _resampled(metric, weight, n_resamples, random_state)
    tail = 0.5 * (1.0 - checked_confidence(confidence))
    low, high = np.quantile(drawn, [tail, 1.0 - tail])
    return Estimate(metric(weight), float(low), float(high))


# From the weights of rows and errors at every level of confidence, surest first, to the value.
Formula = Callable[[Array, Array], float]


def ranked_value(
    formula: Formula, rows: RankedRows, confidence: float | None, random_state: Any = 0
) -> float | Estimate:
    """A metric of the order of the rows, which are sorted only once, and its interval if asked."""
    if confidence is None:
        return formula(*rows.counts())
    return bootstrap_estimate(
        lambda times: formula(*rows.counts(times)),
        len(rows.wrong),
        confidence,
        random_state=random_state,
    )


def paired_difference(
    metric: Callable[..., float],
    first: tuple[Any, ...],
    second: tuple[Any, ...],
    *,
    confidence: float = 0.95,
    sample_weight: Any = None,
    n_resamples: int = RESAMPLES,
    random_state: Any = 0,
) -> PairedDifference:
    """How much a metric differs between two classifiers judged on the same rows.

    Parameters
    ----------
    metric : callable
        Of the entries of `first` and `second` and a keyword ``sample_weight``, such as
        `area_under_risk_coverage` or `reject_risk`. Metrics of this package that take ``y, pred,
        score`` and nothing else are evaluated without sorting the rows again.
    first, second : tuples of array-likes
        What the metric takes for each classifier, usually ``(y, pred, score)``, row by row the
        same rows. Where there are several arrays the first is the true labels, the same for both.
    confidence : float in (0, 1), default=0.95
    sample_weight : array-like of shape (n,), optional
    n_resamples : int, default=1000
    random_state : int, RandomState or None, default=0

    Returns
    -------
    PairedDifference
        Value of the first minus value of the second, the percentile interval, and the two-sided
        bootstrap p-value of no difference (no smaller than ``2 / (n_resamples + 1)``). Resamples
        on which the metric is NaN are left out of both.

    Notes
    -----
    Rows are drawn with replacement for both classifiers together, so that what makes a row hard
    for both cancels.

    Examples
    --------
    >>> from buttress.metrics import area_under_risk_coverage
    >>> rng = np.random.default_rng(0)
    >>> y, score = rng.integers(0, 2, 300), rng.uniform(size=300)
    >>> pred = np.where(rng.uniform(size=300) < 0.5 + score / 2, y, 1 - y)
    >>> test = paired_difference(
    ...     area_under_risk_coverage, (y, pred, score), (y, pred, rng.uniform(size=300))
    ... )
    >>> test.value < 0, test.p_value < 0.01
    (True, True)
    """
    n = _same_rows(first, second)
    weight = row_weights(sample_weight, n)

    formula = RANKED.get(metric)
    if formula is None:

        def difference(w: Array) -> float:
            return float(metric(*first, sample_weight=w) - metric(*second, sample_weight=w))

    else:
        ranked = [RankedRows.of(*arguments) for arguments in (first, second)]

        def difference(w: Array) -> float:
            return float(formula(*ranked[0].counts(w)) - formula(*ranked[1].counts(w)))

    drawn = _resampled(difference, weight, n_resamples, random_state)
    tail = 0.5 * (1.0 - checked_confidence(confidence))
    low, high = np.quantile(drawn, [tail, 1.0 - tail])
    side = 1 + min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    p_value = min(1.0, 2.0 * side / (len(drawn) + 1))
    return PairedDifference(difference(weight), float(low), float(high), p_value)


def _same_rows(first: tuple[Any, ...], second: tuple[Any, ...]) -> int:
    """The number of rows that two classifiers were judged on, which must be the same."""
    sizes = [[len(np.asarray(each)) for each in side if np.ndim(each)] for side in (first, second)]
    if not sizes[0] or not sizes[1] or len({*sizes[0], *sizes[1]}) > 1 or not sizes[0][0]:
        raise ValueError(
            f"first has {_counted(sizes[0])} rows and second {_counted(sizes[1])}: expected the "
            "same rows, at least one, for both classifiers"
        )
    labels, others = np.asarray(first[0]), np.asarray(second[0])
    if len(sizes[0]) > 1 and not np.array_equal(labels, others):
        raise ValueError(
            f"true labels of first and second differ in {np.sum(labels != others)} of "
            f"{len(labels)} rows: expected the same rows in the same order for both classifiers"
        )
    return sizes[0][0]


def _counted(sizes: list[int]) -> str:
    return ", ".join(map(str, dict.fromkeys(sizes))) or "no"


def _resampled(
    metric: Callable[[Array], float], weight: Array, n_resamples: int, random_state: Any
) -> Array:
    if not isinstance(n_resamples, Integral) or n_resamples < 1:
        raise ValueError(f"n_resamples={n_resamples!r} is not accepted: expected a number from 1.")
    rng = check_random_state(random_state)
    n = len(weight)
    estimates = []
    for _ in range(n_resamples):
        drawn = weight * np.bincount(rng.randint(n, size=n), minlength=n)
        if drawn.any():
            estimates.append(metric(drawn))
    values = np.array(estimates, dtype=np.float64)
    values = values[~np.isnan(values)]
    if not len(values):
        raise ValueError("the metric is NaN on every resample of the rows: there is no interval.")
    return values
