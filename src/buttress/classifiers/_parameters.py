"""Checks of estimator parameters: every error names the parameter and what is accepted."""

from __future__ import annotations

from collections.abc import Iterable
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
    kind = "a whole number" if integer else "a number"
    wanted = Integral if integer else Real
    message = f"{name}={value!r} is out of range: expected {kind} in {interval}."
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, wanted):
        raise ValueError(message)
    low, high = (float(end) for end in interval[1:-1].split(","))
    number = float(value)
    above = number >= low if interval[0] == "[" else number > low
    below = number <= high if interval[-1] == "]" else number < high
    if not (above and below):
        raise ValueError(message)
    return number


def check_option(name: str, value: Any, options: Iterable[Any]) -> None:
    """Raise a ValueError unless `value` is one of `options`.

    Examples
    --------
    >>> check_option("solver", "magic", ["auto", "mm"])
    Traceback (most recent call last):
    ...
    ValueError: solver='magic' is not accepted: expected one of 'auto', 'mm'.
    """
    accepted = list(options)
    if not any(value is option or value == option for option in accepted):
        raise ValueError(
            f"{name}={value!r} is not accepted: expected one of "
            f"{', '.join(repr(option) for option in accepted)}."
        )
