"""Exact bounds of a probability from counts, and how many rows a bound needs."""

from __future__ import annotations

import math

from scipy import special, stats

# `rows_needed` looks no further.
MOST_ROWS = 100_000_000
# Numbers of errors below the first that bisection finds, where the test may be passed too.
_TEETH = 50


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
    (45, 258, None)
    """
    if error >= target:
        return None

    def passes(errors: int) -> bool:
        n = _rows_for(errors, target, level)
        return n <= MOST_ROWS and math.ceil(error * n - 1e-9) <= errors

    # A larger sample has more whole errors: the test is passed and failed in turns, tooth by
    # tooth of ``ceil(error n)``, before it is passed for good.
    low, high = -1, 0
    while not passes(high):
        low, high = high, 2 * high + 1
        if high > MOST_ROWS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    earlier = [errors for errors in range(max(0, high - _TEETH), high) if passes(errors)]
    return _rows_for(earlier[0] if earlier else high, target, level)


def _rows_for(errors: int, target: float, level: float) -> int:
    """The fewest rows of which so many errors keep the bound at the target."""

    def keeps(n: int) -> bool:
        # the bound is at most p where so few errors have no more than this probability under p
        return bool(special.bdtr(errors, n, target) <= level)

    low, high = errors, 2 * errors + 1
    while not keeps(high) and high <= MOST_ROWS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high
