"""A moment by which work must end, and the question that long loops ask of it.

Whoever has a budget of time sets the moment with `finish_within`; loops that may take long call
`check_time` once per step, which raises `OutOfTime` when the moment has passed. The moment holds
for the whole process: the work of one job is spread over threads that the solvers start
themselves. Nobody who sets none pays more than a look at an empty list.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class OutOfTime(Exception):
    """The moment by which the work had to end has passed."""


_moments: list[float] = []


@contextmanager
def finish_within(seconds: float) -> Iterator[None]:
    """Let loops inside end with `OutOfTime` when `seconds` have passed.

    Inside another limit the earlier of the two holds.

    Parameters
    ----------
    seconds : float
        From now; infinity sets no limit.

    Examples
    --------
    >>> with finish_within(60.0):
    ...     check_time()
    >>> with finish_within(-1.0):
    ...     check_time()
    Traceback (most recent call last):
    buttress._deadline.OutOfTime: the time for this work is over
    """
    moment = time.perf_counter() + seconds
    _moments.append(min(moment, *_moments) if _moments else moment)
    try:
        yield
    finally:
        _moments.pop()


def check_time() -> None:
    """Raise `OutOfTime` when a limit is set and has passed."""
    if _moments and time.perf_counter() > _moments[-1]:
        raise OutOfTime("the time for this work is over")
