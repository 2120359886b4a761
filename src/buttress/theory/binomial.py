"""Exact bounds of a probability from counts, and how many rows a bound needs."""

from __future__ import annotations

import math

from scipy import stats

# `rows_needed` looks no further.
MOST_ROWS = 100_000_000


def binomial_upper(errors: int, n: int, level: float) -> float:
    """The exact (Clopper-Pearson) upper bound of a probability.

    Parameters
    ----------
    errors, n : int
        Errors seen in `n` independent trials.
    level : float in (0, 1)
        Probability with which the bound may fail.

    Returns
    -------
    float
        The largest p for which `errors` or fewer have a probability of at least `level`; 1
        without trials.

    Examples
    --------
    >>> round(binomial_upper(0, 45, 0.1), 4)
    0.0499
    """
    if errors >= n:
        return 1.0
    return float(stats.beta.ppf(1.0 - level, errors + 1, n - errors))


def rows_needed(target: float, error: float, level: float) -> int | None:
    """How many answered rows with this share of errors would pass the test.

    Parameters
    ----------
    target : float in (0, 1)
        The error rate to be promised.
    error : float in [0, 1)
        The error rate expected among the answers.
    level : float in (0, 1)
        Probability with which the promise may fail.

    Returns
    -------
    int or None
        The smallest such number; None when `error` is not below `target`, where no number
        suffices, or when it is beyond a hundred million.

    Examples
    --------
    >>> rows_needed(0.05, 0.0, 0.1), rows_needed(0.05, 0.03, 0.1), rows_needed(0.05, 0.06, 0.1)
    (45, 282, None)
    """
    if error >= target:
        return None

    def passes(n: int) -> bool:
        return binomial_upper(math.ceil(error * n - 1e-9), n, level) <= target

    high = 1
    while not passes(high):
        high *= 2
        if high > MOST_ROWS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high
