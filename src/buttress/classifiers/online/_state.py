"""Saving an online learner in the middle of its stream, and taking it up again."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from buttress.classifiers.online.checkpoint import (
    CheckpointError,
    read_checkpoint,
    write_checkpoint,
)
from buttress.classifiers.online.drift import Rivalry
from buttress.classifiers.online.history import History, Window
from buttress.solvers.stream.model import OnlineModel

COUNTERS = ("n_seen_", "n_labelled_", "n_updates_", "n_skipped_", "n_mistakes_")


class _Loader:
    """``Learner.load_checkpoint(path)`` makes a learner, ``learner.load_checkpoint(path)``
    turns that learner into the saved one."""

    def __get__(self, instance: Any, owner: Any) -> Callable[..., Any]:
        def load_checkpoint(path: str | os.PathLike[str]) -> Any:
            """Read a checkpoint; a damaged file raises a ValueError and changes nothing.

            Parameters
            ----------
            path : path-like
                Written by `save_checkpoint`.
            """
            content = read_checkpoint(path)
            learner = owner()
            try:
                learner._restore(content["learner"])
            except Exception as error:  # the file is whole, but not what a learner wrote
                raise CheckpointError(f"{os.fspath(path)} does not fit: {error}") from None
            if instance is None:
                return learner
            vars(instance).clear()
            vars(instance).update(vars(learner))
            return instance

        return load_checkpoint


class CheckpointMixin:
    """`save_checkpoint` and `load_checkpoint` of `BaseOnlineClassifier`."""

    # What the learner brings along.
    classes_: Any
    n_features_in_: int
    kernel_: Any
    gamma_: Any
    get_params: Any
    set_params: Any
    _model: OnlineModel
    _rival: OnlineModel | None
    _storage: Any
    _prepare: Any
    _new_model: Any

    load_checkpoint = _Loader()

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to `path`, atomically and with a checksum, without pickle.

        Parameters
        ----------
        path : path-like
            A process killed at any moment leaves either the old file or the new one.
        """
        check_is_fitted(self)
        write_checkpoint(path, {"learner": self._state()})

    def _state(self) -> dict[str, Any]:
        dtype, is_sparse = self._storage
        state: dict[str, Any] = {
            "class": type(self).__name__,
            "params": self.get_params(deep=False),
            "classes": self.classes_,
            "n_features": self.n_features_in_,
            "gamma": self.gamma_,
            "dtype": dtype.name,
            "is_sparse": is_sparse,
            "counters": {name: getattr(self, name) for name in COUNTERS},
            "told": self._told,
            "model": self._model.state(),
            "history": self._history.state(),
            "window": self._window.state(),
        }
        if self.kernel_.center is not None:
            state["center"] = self.kernel_.center
        if hasattr(self, "feature_names_in_"):
            state["feature_names"] = self.feature_names_in_
        if self._rivalry is not None:
            state["rivalry"] = self._rivalry.state()
        if self._rival is not None:
            state["rival"] = self._rival.state()
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        if state["class"] != type(self).__name__:
            raise ValueError(
                f"The checkpoint holds a {state['class']}, not a {type(self).__name__}."
            )
        for name in [name for name in vars(self) if name.endswith("_") or name.startswith("_")]:
            delattr(self, name)
        self.set_params(**state["params"])
        self.classes_ = state["classes"]
        self.n_features_in_ = int(state["n_features"])
        if "feature_names" in state:
            self.feature_names_in_ = state["feature_names"]
        dtype = np.dtype(state["dtype"])
        gram = np.empty((0, 0), dtype=dtype)
        self._prepare(state["gamma"], state.get("center"), dtype, state["is_sparse"], gram)
        self._model.restore(state["model"])
        self.intercept_ = np.zeros(len(self._model.store.coef), dtype=dtype)
        self.solver_ = "stream"
        for name, count in state["counters"].items():
            setattr(self, name, count)
        self._told = dict(state["told"])
        self._history = History.from_state(state["history"])
        self._window = Window.from_state(state["window"])
        self._rivalry = Rivalry.from_state(state["rivalry"]) if "rivalry" in state else None
        self._rival = None
        if "rival" in state:
            self._rival = self._new_model()
            self._rival.restore(state["rival"])
