"""Between river and this library: our learners in river, river's drift detectors in ours."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.classifiers.online.drift import PageHinkley


class RiverDetector:
    """A drift detector of river, with the interface of our own test.

    Parameters
    ----------
    detector : river.base.DriftDetector
        Anything with ``update(x)`` and ``drift_detected``: `river.drift.ADWIN`,
        `river.drift.PageHinkley`, `river.drift.KSWIN`, and those of `river.drift.binary`. It is
        copied, and fed 1 for every mistake and 0 for every right answer.
    """

    def __init__(self, detector: Any) -> None:
        self._fresh = copy.deepcopy(detector)
        self.reset()

    def reset(self) -> None:
        """Forget everything seen."""
        self.detector = copy.deepcopy(self._fresh)

    def add(self, value: bool) -> bool:
        """Take one value; True when a change is signalled."""
        self.detector.update(int(value))
        return bool(self.detector.drift_detected)


def make_drift_test(drift: Any) -> PageHinkley | RiverDetector:
    """The test that ``drift=`` of a learner asks for."""
    return PageHinkley() if isinstance(drift, str) else RiverDetector(drift)


def is_detector(drift: Any) -> bool:
    """Whether an object has the interface of river's drift detectors."""
    return callable(getattr(drift, "update", None)) and hasattr(drift, "drift_detected")


def as_river(learner: Any, classes: Sequence[Any]) -> Any:
    """An online learner of this library as a classifier of river.

    The result is a `river.base.MiniBatchClassifier`: it goes into river's pipelines, its
    `evaluate.progressive_val_score` and its ensembles. The features are those of the first row;
    one that a later row lacks is 0, one that is new is not looked at.

    Parameters
    ----------
    learner : online learner
        Unfitted, or fitted on rows whose columns have names. Give `gamma` as a number: "scale"
        would be fixed from the first row alone.
    classes : sequence
        All labels that can ever come.

    Examples
    --------
    >>> from buttress import PARampClassifier
    >>> model = as_river(PARampClassifier(gamma=1.0), classes=[False, True])
    >>> for k in range(40):
    ...     model.learn_one({"x": k % 2 - 0.5}, bool(k % 2))
    >>> model.predict_one({"x": 0.5}), model.predict_one({"x": -0.5})
    (True, False)
    """
    try:
        from river import base
    except ImportError:
        raise ImportError("this needs river: pip install river") from None
    global _bridge
    if _bridge is None:
        _bridge = type("RiverLearner", (_Bridge, base.MiniBatchClassifier), {})
    return _bridge(learner, list(classes))


# Made on first use: the base class is river's.
_bridge: Any = None


class _Bridge:
    """What river asks of a classifier, by `partial_fit` and `predict`."""

    def __init__(self, learner: Any, classes: list[Any]) -> None:
        self.learner, self.classes = learner, classes
        names = getattr(learner, "feature_names_in_", None)
        self._names: list[Any] | None = None if names is None else list(names)

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Mapping[Any, float], y: Any) -> None:
        """Learn one row."""
        self.learner.partial_fit(self._row(x), np.array([y]), classes=self._announced())

    def predict_one(self, x: Mapping[Any, float]) -> Any:
        """The label of one row; None before anything was learned."""
        if not hasattr(self.learner, "classes_"):
            return None
        return self.learner.predict(self._row(x))[0].item()

    def predict_proba_one(self, x: Mapping[Any, float]) -> dict[Any, float]:
        """1 for the label of a row and 0 for the others: the learners have margins only."""
        answer = self.predict_one(x)
        return {} if answer is None else {label: float(label == answer) for label in self.classes}

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a pandas frame."""
        self.learner.partial_fit(self._rows(X), np.asarray(y), classes=self._announced())

    def predict_many(self, X: Any) -> Any:
        """The labels of the rows of a pandas frame."""
        import pandas as pd

        if not hasattr(self.learner, "classes_"):
            return pd.Series(dtype=object)
        return pd.Series(self.learner.predict(self._rows(X)), index=X.index)

    def predict_proba_many(self, X: Any) -> Any:
        """As `predict_proba_one`, for the rows of a pandas frame."""
        import pandas as pd

        answers = self.predict_many(X)
        return pd.DataFrame({c: (answers == c).astype(float) for c in self.classes}, index=X.index)

    def _announced(self) -> list[Any] | None:
        return None if hasattr(self.learner, "classes_") else self.classes

    def _row(self, x: Mapping[Any, float]) -> Array:
        if self._names is None:
            self._names = list(x)
        return np.array([[float(x.get(name, 0.0)) for name in self._names]])

    def _rows(self, X: Any) -> Array:
        if self._names is None:
            self._names = list(X.columns)
        return np.asarray(X.reindex(columns=self._names, fill_value=0.0), dtype=float)
