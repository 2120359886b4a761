"""How online learners did along the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import IntArray
from buttress._numbers import check_number
from buttress.inspection._axes import new_pair


class StreamDisplay:
    """Error and number of support vectors against the rows seen, several learners together.

    Use `from_estimator` for one learner and `from_estimators` for several.

    Parameters
    ----------
    histories : mapping of str to dict
        The ``history_`` of every learner by the name shown.

    Attributes
    ----------
    figure_ : matplotlib Figure
        Where it was drawn.
    axes_ : tuple of two matplotlib Axes
        The errors, and the support vectors.
    lines_ : dict of str to tuple of two lines
        What belongs to each learner.

    Examples
    --------
    >>> import numpy as np
    >>> from buttress import KernelPerceptron, PARampClassifier
    >>> from buttress.inspection import StreamDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> learners = [PARampClassifier(gamma=1.0).fit(X, y), KernelPerceptron(gamma=1.0).fit(X, y)]
    >>> display = StreamDisplay.from_estimators(learners)
    >>> sorted(display.lines_)
    ['KernelPerceptron', 'PARampClassifier']
    """

    def __init__(self, histories: Mapping[str, dict[str, IntArray]]) -> None:
        self.histories = dict(histories)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, name: str | None = None, window: int | None = None, axes: Any = None
    ) -> StreamDisplay:
        """Draw one learner.

        Parameters
        ----------
        estimator : online learner
            Fitted, by `fit` or `partial_fit`.
        name : str, optional
            In the legend; the class's name when not given.
        window : int, optional
            As in `plot`.
        axes : pair of matplotlib Axes, optional
            As in `plot`.
        """
        shown = type(estimator).__name__ if name is None else name
        return cls.from_estimators({shown: estimator}, window=window, axes=axes)

    @classmethod
    def from_estimators(
        cls, estimators: Any, *, window: int | None = None, axes: Any = None
    ) -> StreamDisplay:
        """Draw several learners.

        Parameters
        ----------
        estimators : mapping of str to learner, or sequence of learners
            A sequence is named by the classes, numbered where one comes twice.
        window : int, optional
            As in `plot`.
        axes : pair of matplotlib Axes, optional
            As in `plot`.
        """
        named = estimators if isinstance(estimators, Mapping) else _named(estimators)
        if not named:
            raise ValueError("estimators is empty: at least one learner is needed.")
        for estimator in named.values():
            check_is_fitted(estimator)
        histories = {name: estimator.history_ for name, estimator in named.items()}
        return cls(histories).plot(window=window, axes=axes)

    def plot(self, *, window: int | None = None, axes: Any = None) -> StreamDisplay:
        """Draw the display.

        Parameters
        ----------
        window : int, optional
            Number of history entries the error is taken over; the progressive error, over
            all rows so far, when not given.
        axes : pair of matplotlib Axes, optional
            For the errors and the support vectors; a new figure when not given.

        Returns
        -------
        self
        """
        if window is not None:
            check_number("window", window, "[1, inf)", integer=True)
        error_axis, vector_axis = new_pair(axes, 9.0, 3.6)
        self.axes_ = (error_axis, vector_axis)
        self.figure_ = error_axis.figure
        self.lines_ = {}
        for name, history in self.histories.items():
            seen = history["n_seen"]
            (error,) = error_axis.plot(seen, 100.0 * _error(history, window), label=name)
            (vectors,) = vector_axis.plot(seen, history["support_vectors"], label=name)
            self.lines_[name] = (error, vectors)
        what = "progressive error" if window is None else f"error of the last {window} blocks"
        error_axis.set(xlabel="rows seen", ylabel=f"{what} (%)")
        vector_axis.set(xlabel="rows seen", ylabel="support vectors")
        error_axis.legend()
        return self


def _named(estimators: Any) -> dict[str, Any]:
    kinds = [type(estimator).__name__ for estimator in estimators]
    named = {}
    for i, (kind, estimator) in enumerate(zip(kinds, estimators, strict=True)):
        number = f" {1 + kinds[:i].count(kind)}" if kinds.count(kind) > 1 else ""
        named[kind + number] = estimator
    return named


def _error(history: dict[str, IntArray], window: int | None) -> Any:
    """Share of mistakes up to every entry, or over the last `window` entries."""
    mistakes = np.cumsum(history["mistakes"], dtype=np.float64)
    labelled = np.cumsum(history["labelled"], dtype=np.float64)
    if window is not None:
        mistakes[window:] -= mistakes[:-window].copy()
        labelled[window:] -= labelled[:-window].copy()
    return mistakes / np.maximum(labelled, 1.0)
