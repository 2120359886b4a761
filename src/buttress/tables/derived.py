"""Dates and free text become numbers: one small encoder for a column of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.tables.table import TableError

_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.]\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?"
)
_DAY = 86_400.0
# Mean length of a year of the Gregorian calendar, in days.
_YEAR = 365.2425
# Thursday, 1 January 1970, is day 0; Monday is day 0 of the week.
_THURSDAY = 3
# Character sequences of these lengths, words with a blank on either side.
_LENGTHS = (2, 4)


def looks_like_dates(values: Iterable[Any]) -> bool:
    """Whether every value that is there is an ISO 8601 date, with or without a time.

    Examples
    --------
    >>> looks_like_dates(["2024-02-29", None, "2024-03-01T12:30"])
    True
    >>> looks_like_dates(["2024-02-30"]), looks_like_dates([None])
    (False, False)
    """
    present = [value for value in values if value is not None]
    return bool(present) and all(_seconds(value) is not None for value in present)


def date_names(column: str, clock: bool) -> list[str]:
    """Names of the columns that `date_parts` makes."""
    features = ["day", "year_sin", "year_cos", "week_sin", "week_cos"]
    return [
        f"{column}:{feature}" for feature in (*features, *(("day_sin", "day_cos") if clock else ()))
    ]


def date_parts(column: str, values: Sequence[str], clock: bool) -> Array:
    """Dates as numbers: how late, and where in the year, in the week and in the day.

    Parameters
    ----------
    column : str
        For the message.
    values : sequence of str
        ISO 8601; a time zone is converted to UTC.
    clock : bool
        Whether the time of the day matters.

    Returns
    -------
    ndarray of shape (n, 5) or (n, 7)
        Days since 1970; then sine and cosine of the year, the week and, with `clock`, the day:
        the 31st of December is next to the 1st of January.

    Examples
    --------
    >>> date_parts("when", ["1970-01-05"], clock=False).round(2)
    array([[4.  , 0.07, 1.  , 0.  , 1.  ]])
    """
    seconds = [_seconds(value) for value in values]
    for value, moment in zip(values, seconds, strict=True):
        if moment is None:
            raise TableError(f"column {column!r} holds dates such as 2024-02-29, but {value!r}")
    days = np.array(seconds, dtype=float).reshape(-1) / _DAY
    turns = [days / _YEAR, (days + _THURSDAY) / 7.0, *([days] if clock else [])]
    circles = [
        circular(2.0 * np.pi * (turn % 1.0)) for turn in turns for circular in (np.sin, np.cos)
    ]
    return np.column_stack([days, *circles])


def has_clock(values: Iterable[Any]) -> bool:
    """Whether any of some dates has a time of day other than midnight."""
    return any((_seconds(value) or 0.0) % _DAY for value in values if value is not None)


def hashed_text(values: Sequence[str], size: int) -> Array:
    """Text as a vector of its short character sequences, the same wherever it is computed.

    Texts that share most of their letters get vectors near each other, so that a misspelt word
    is near the word. Every vector has length 1 (0 for empty text).

    Parameters
    ----------
    values : sequence of str
    size : int
        Length of the vectors.

    Examples
    --------
    >>> near, far = hashed_text(["Trondheim", "Trondhjem", "Oslo"], 64)[0] @ hashed_text(
    ...     ["Trondhjem", "Oslo"], 64).T
    >>> bool(near > 0.4 > far)
    True
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        analyzer="char_wb", ngram_range=_LENGTHS, n_features=size, norm="l2", lowercase=True
    )
    return np.asarray(hashing.transform(values).toarray())


def _seconds(value: str) -> float | None:
    """Seconds since 1970 of an ISO 8601 date, in UTC; None for anything else."""
    if not _DATE.fullmatch(value):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
