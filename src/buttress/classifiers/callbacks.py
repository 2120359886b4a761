"""scikit-learn's callbacks on long fits, where scikit-learn has them (1.9 and later).

`CallbackSupportMixin` gives an estimator `set_callbacks`; before scikit-learn 1.9 it gives nothing.
A fit tells its callbacks of every task through `FitTasks`, and ends early when one asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from buttress.classifiers.base import Fit, fitted_afresh

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


def watched(fit: Fit) -> Fit:
    """Make a `fit` one that starts afresh, with callbacks that are torn down however it ends."""
    # The callbacks' teardown needs what a failed fit forgets, so it comes first.
    return fitted_afresh(with_callbacks(fit))  # type: ignore[no-any-return]


class FitTasks:
    """The tasks of one fit, told to its callbacks; silent without any.

    Parameters
    ----------
    estimator : estimator
    n_tasks : int
        No more than this many.
    X, y : array-like, optional
        The training rows, for callbacks that score.

    Attributes
    ----------
    stopped : bool
        Whether a callback asked for the fit to end.

    Examples
    --------
    >>> from buttress import PARampClassifier
    >>> tasks = FitTasks(PARampClassifier(), 1)
    >>> with tasks.task("a block of rows"):
    ...     pass
    >>> tasks.stopped
    False
    """

    def __init__(self, estimator: Any, n_tasks: int, X: Any = None, y: Any = None) -> None:
        self.estimator, self.stopped = estimator, False
        self._told = {"X": X, "y": y}
        self._root: Any = None
        if has_callbacks(estimator):
            self._root = estimator._init_callback_context(max_subtasks=n_tasks)
            self._root.call_on_fit_task_begin(estimator=estimator, **self._told)

    @contextmanager
    def task(
        self,
        name: str,
        fitted: Callable[[], dict[str, Any]] | None = None,
        n_tasks: int = 0,
    ) -> Iterator[FitTasks]:
        """Run one task, which may have tasks of its own.

        Parameters
        ----------
        name : str
        fitted : callable, optional
            Gives the attributes of a model that could predict after it.
        n_tasks : int
            How many tasks it has itself: those of the `FitTasks` that the context gives.
        """
        inner = FitTasks(None, 0)
        if self._root is None:
            yield inner
            return
        inner.estimator, inner._told = self.estimator, self._told
        inner._root = self._root.subcontext(task_name=name, max_subtasks=n_tasks)
        inner._root.call_on_fit_task_begin(estimator=self.estimator, **self._told)
        yield inner
        stop = inner._root.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=fitted, **self._told
        )
        self.stopped = self.stopped or inner.stopped or bool(stop)

    def end(self) -> None:
        """Tell that the fit is over."""
        if self._root is not None:
            self._root.call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes=dict, **self._told
            )


def has_callbacks(estimator: Any) -> bool:
    """Whether somebody wants to be told of this estimator's fit."""
    return bool(getattr(estimator, "_skl_callbacks", None))


__all__ = ["CallbackSupportMixin", "FitTasks", "has_callbacks", "watched"]
