"""What an online learner says of its stream, each once: a poor width, classes or memory at risk."""

from __future__ import annotations

from typing import Any

from buttress._memory import free_memory
from buttress._user_warnings import warn_user

# Labelled rows after which a class without a support vector is worth a word.
_ONE_SIDED_AFTER = 300
# Refusals settle after some hundred rows; then so large a share is rarely label noise alone.
_REFUSING_AFTER = 1000
_REFUSING_SHARE = 0.25
# Rows from which a width or a mean is still a poor guess.
_FEW_ROWS = 50


def warn_of_few_rows(learner: Any, n_rows: int) -> None:
    """The first call of `partial_fit` was too short to fix the kernel's width."""
    guessed = learner.gamma_ is not None and learner.gamma in ("scale", "median")
    if guessed and n_rows < _FEW_ROWS:
        warn_user(
            f"gamma={learner.gamma!r} was fixed at {learner.gamma_:.4g} from the {n_rows} row(s) "
            "of the first call to partial_fit. Give gamma as a number, or a larger first call.",
        )


def warn_of_labels(learner: Any) -> None:
    """A class has no support vector, or too many labels are refused."""
    told, labelled = learner._told, learner.n_labelled_
    if not told["one_sided"] and labelled >= _ONE_SIDED_AFTER:
        told["one_sided"] = True
        without = learner.classes_[learner.n_support_ == 0].tolist()
        if without:
            warn_user(
                f"After {labelled} labelled rows the classes {without} have no support "
                "vector: the first rows of the others may have locked them out. Lower s, narrow "
                "the kernel (larger gamma), or shuffle the start of the stream.",
            )
    share = learner.n_skipped_ / max(labelled, 1)
    if not told["refusing"] and labelled >= _REFUSING_AFTER and share > _REFUSING_SHARE:
        told["refusing"] = True
        warn_user(
            f"{share:.0%} of {labelled} labelled rows were refused as label errors. "
            "Unless that many labels are wrong, early rows with wrong labels have closed a "
            "region to the right ones. Fit again with the rows in another order, lower s, or "
            "narrow the kernel (larger gamma).",
        )


def warn_of_growth(learner: Any) -> None:
    """The model will not fit in memory if it goes on like this."""
    free = None if learner._told["memory"] else free_memory()
    if free is None:
        return
    store = learner._model.store
    message = forecast(learner.n_seen_, store.n, store.bytes_per_vector, free)
    if message is not None:
        learner._told["memory"] = True
        warn_user(message)


def forecast(n_seen: int, n_vectors: int, bytes_per_vector: float, free: int) -> str | None:
    """A warning when a stream twice as long would take more than half of the free memory.

    The growth so far is continued; storage that grows by doubling may hold twice as much as
    it uses.

    Examples
    --------
    >>> forecast(1000, 100, 1000.0, free=10**9) is None
    True
    >>> print(forecast(1000, 500, 1e6, free=10**9))
    At the growth seen so far (500 support vectors per 1000 rows) ... after about 0 more rows. ...
    """
    if n_vectors == 0 or n_seen == 0:
        return None
    per_row = 2.0 * bytes_per_vector * n_vectors / n_seen
    room = 0.5 * free
    if per_row * n_seen <= room:
        return None
    rows = max(0, int(room / per_row - n_seen))
    return (
        f"At the growth seen so far ({1000 * n_vectors / n_seen:.0f} support vectors per 1000 "
        f"rows) the model passes half of the free memory ({free / 1e9:.1f} GB) after about "
        f"{rows} more rows. Set a budget to bound it."
    )
