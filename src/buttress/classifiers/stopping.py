"""Fits that end before they are done: one warns, those on the folds of a search share a warning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from buttress._arrays import BoolArray
from buttress._user_warnings import warn_user

# Where fits of this thread put down that they ended early, instead of warning.
_NOTES: ContextVar[list[bool] | None] = ContextVar("_NOTES", default=None)


def ended_by_limit(converged: Any, steps: Any, max_iter: float) -> BoolArray:
    """Whether `max_iter` is why a solution is not converged; rounding is no such reason.

    Examples
    --------
    >>> ended_by_limit([True, False, False], [5, 5, 3], 5).tolist()
    [False, True, False]
    """
    short: BoolArray = ~np.asarray(converged, dtype=bool) & (np.asarray(steps) >= max_iter)
    return short


@contextmanager
def noted_not_warned() -> Iterator[list[bool]]:
    """A context in which fits that end early do not warn.

    Its list gets an entry for each of them: whether `max_iter` was the reason.
    """
    notes: list[bool] = []
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


def warn_not_converged(
    estimator: Any, kind: str, reached: float, *, by_limit: bool, certified: bool
) -> None:
    """Say that the solver ended before it was done, and what to change.

    Parameters
    ----------
    estimator : object
        With `tol` and `max_iter`.
    kind : {"duality_gap", "kkt_residual"}
    reached : float
        That of the solution.
    by_limit : bool
        Whether `max_iter` ended it.
    certified : bool
        Whether `reached` is within the tolerance: outer steps were left to do.
    """
    notes = _NOTES.get()
    if notes is not None:
        notes.append(by_limit)
        return
    name, certificate = type(estimator).__name__, f"{kind.replace('_', ' ')} {reached:.3g}"
    if by_limit and certified:
        text = (
            f"{name} stopped at max_iter={estimator.max_iter} with outer steps left to do (the "
            f"{certificate} is that of the last one). Increase max_iter."
        )
    else:
        text = (
            f"{name} stopped before reaching its tolerance ({certificate}, "
            f"tol={estimator.tol:g}). Increase max_iter, raise tol, or standardise the features."
        )
    warn_user(text, ConvergenceWarning)


def warn_of_fold_fits(search: Any, short: BoolArray) -> None:
    """Say once how many fits on the folds of a search `max_iter` ended, if any."""
    if short.any():
        warn_user(
            f"{type(search).__name__}: max_iter={search.max_iter} ended {int(short.sum())} of the "
            f"{short.size} fits on folds before they were done, and their scores take part in the "
            "choice. Increase max_iter, or standardise the features.",
            ConvergenceWarning,
        )
