"""The one check of a number that a user gives: its interval, in mathematical notation."""

from __future__ import annotations

import math
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(
    name: str,
    value: Any,
    interval: str,
    *,
    integer: bool = False,
) -> float:
    """Return `value` as a float when it lies in `interval`, else raise a ValueError.

    Parameters
    ----------
    name : str
        The parameter's name, for the message.
    value : object
        What the user gave.
    interval : str
        In mathematical notation: "(0, inf)", "[0, 1)", "(0, 0.5]", "(1, inf]".
    integer : bool
        Whether only whole numbers are accepted.

    Examples
    --------
    >>> check_number("alpha", 0.5, "(0, inf)")
    0.5
    >>> check_number("d", 0.7, "(0, 0.5]")
    Traceback (most recent call last):
    ...
    ValueError: d=0.7 is out of range: expected a number in (0, 0.5].
    """
    if not isinstance(value, (bool, np.bool_)) and isinstance(value, Integral if integer else Real):
        low, high = interval_ends(interval)
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond the largest float
            number = math.nan
        above = number >= low if interval[0] == "[" else number > low
        below = number <= high if interval[-1] == "]" else number < high
        if above and below:
            return number
    kind = "a whole number" if integer else "a number"
    raise ValueError(f"{name}={value!r} is out of range: expected {kind} in {interval}.")


@cache
def interval_ends(interval: str) -> tuple[float, float]:
    """The two ends of an interval such as "(0, inf)"."""
    low, high = interval[1:-1].split(",")
    return float(low), float(high)
