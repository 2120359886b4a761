"""What all online learners share: one pass in order, `partial_fit`, bookkeeping."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from buttress._arrays import Array, IntArray
from buttress._frames import validate_data
from buttress.classifiers.base import BaseMarginClassifier, all_or_nothing, describe_kernel_input
from buttress.classifiers.callbacks import (
    CallbackSupportMixin,
    FitTasks,
    has_callbacks,
    watched,
)
from buttress.classifiers.kernel_source import check_finite, kernel_of
from buttress.classifiers.online._state import COUNTERS, CheckpointMixin
from buttress.classifiers.online._warnings import warn_of_few_rows, warn_of_growth, warn_of_labels
from buttress.classifiers.online.drift import Rivalry, learn_with_rival
from buttress.classifiers.online.history import History, Window
from buttress.classifiers.online.labels import answers, encode, split_labels, targets
from buttress.classifiers.online.river_bridge import is_detector, make_drift_test
from buttress.classifiers.parameters import check_common, check_number, check_option
from buttress.kernels import Kernel, check_symmetric, resolve_gamma
from buttress.solvers.stream.budget import POLICIES
from buttress.solvers.stream.model import OnlineModel
from buttress.solvers.stream.rules import StreamOutcome

# Rows between two calls of a callback: some 50 ms of learning on a small model.
_TASK_ROWS = 2048


class BaseOnlineClassifier(CheckpointMixin, CallbackSupportMixin, BaseMarginClassifier):
    """A kernel expansion without a bias, learned in one pass.

    A subclass lists its parameters in `__init__` and makes its update rule in `_rule`.
    """

    kernel: Any
    gamma: Any
    degree: float
    coef0: float
    kernel_params: Any
    budget: Any
    budget_policy: str
    block_size: int
    window: int
    drift: Any
    _rule: Callable[[], Any]
    # which row stands at every position of the stream, while `fit` draws them
    _drawn: IntArray | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        describe_kernel_input(tags, self.kernel)
        return tags

    def _order(self, n_rows: int) -> IntArray | None:
        """The order in which `fit` takes the rows; None is the given one."""
        return None

    # -- learning --------------------------------------------------------------------------

    @watched
    def fit(self, X: Any, y: Any) -> Any:
        """Learn the rows in one pass, in the given order, from scratch.

        scikit-learn's callbacks are told every few thousand rows; one that asks for an end stops
        the pass there.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"`` the square Gram matrix.
        y : array-like of shape (n_samples,)
            Labels; rows whose label is None or NaN are answered and not learned.

        Returns
        -------
        self
        """
        self._check_parameters()
        X = self._validated(X, y, reset=True)
        y, known = split_labels(y, X.shape[0])
        classes = np.unique(y[known])
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, but "
                f"the data contains only one class: {classes.tolist()}."
            )
        self._start(X, classes)
        codes = encode(y, known, classes)
        if self.kernel == "precomputed":
            X = np.arange(X.shape[0], dtype=X.dtype)[:, None]
        if self._drawn is not None:
            self._advance(X[self._drawn], codes[self._drawn])
            for model in (self._model, self._rival):
                if model is not None:
                    model.end_draws()
            self._drawn = None
        elif has_callbacks(self) and self.kernel != "precomputed":
            self._advance_in_tasks(X, y, codes)
        else:
            self._advance(X, codes)
        if self.kernel == "precomputed":
            self._model.forget_gram()
            self._rival = None  # the stream is over
        return self

    def _advance_in_tasks(self, X: Any, y: NDArray[Any], codes: IntArray) -> None:
        """`_advance` in pieces, with callbacks told of each; the model is the same."""
        starts = range(0, X.shape[0], _TASK_ROWS)
        tasks = FitTasks(self, len(starts), X, y)
        for start in starts:
            rows = slice(start, start + _TASK_ROWS)
            with tasks.task("rows", fitted=dict):
                self._advance(X[rows], codes[rows])
            if tasks.stopped:
                break
        tasks.end()

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        """Continue the stream.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels; rows whose label is None or NaN are answered and not learned.
        classes : array-like, optional
            All labels that can ever come; needed on the first call only.

        Returns
        -------
        self
        """
        self._continue(X, y, classes)
        return self

    @all_or_nothing
    def answer_and_learn(self, X: Any, y: Any, classes: Any = None) -> NDArray[Any]:
        """`partial_fit` that returns the label each row was given *before* it was learned.

        Parameters
        ----------
        X, y, classes
            As in `partial_fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        outcome = self._continue(X, y, classes)
        return np.asarray(self.classes_[answers(outcome.scores)])

    def _continue(self, X: Any, y: Any, classes: Any) -> StreamOutcome:
        if self.kernel == "precomputed":
            raise ValueError(
                "kernel='precomputed' is not accepted by partial_fit: a stream has no Gram "
                "matrix. Use fit, or another kernel."
            )
        first = not hasattr(self, "_model")
        if first:
            self._check_parameters(continuing=True)
        X = self._validated(X, y, reset=first)
        y, known = split_labels(y, X.shape[0], first=first)
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            announced = np.unique(np.asarray(classes))
            if len(announced) < 2:
                raise ValueError(
                    f"classes={announced.tolist()}: at least 2 classes are needed, not one class."
                )
            encode(y, known, announced)
            self._start(X, announced)
            warn_of_few_rows(self, X.shape[0])
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError(
                f"classes={np.unique(classes).tolist()} is not the same as on the first call: "
                f"{self.classes_.tolist()}."
            )
        return self._advance(X, encode(y, known, self.classes_))

    def _open_stream(self, X: Any, classes: Any) -> None:
        """Fix kernel and classes from rows that are not learned yet."""
        self._check_parameters(continuing=True)
        self._start(self._validated(X, classes, reset=True), np.unique(classes))

    def _check_parameters(self, *, continuing: bool = False) -> None:
        check_common(self)
        if self.budget is not None:
            check_number("budget", self.budget, "[1, inf)", integer=True)
        check_option("budget_policy", self.budget_policy, POLICIES)
        check_number("block_size", self.block_size, "[1, inf)", integer=True)
        check_number("window", self.window, "[1, 1000000000]", integer=True)
        if not is_detector(self.drift):
            check_option("drift", self.drift, (None, "page-hinkley"))
        self._rule()

    def _validated(self, X: Any, y: Any, *, reset: bool) -> Any:
        if y is None:
            validate_data(self, X, y, reset=reset)  # raises with scikit-learn's words
        known = [np.float64, np.float32] if reset else self._model.dtype
        accept = False if self.kernel == "precomputed" else "csr"
        X = validate_data(self, X, reset=reset, accept_sparse=accept, dtype=known)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. "
                f"Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        if self.kernel == "precomputed":
            check_symmetric(X)
        return X

    def _start(self, X: Any, classes: NDArray[Any]) -> None:
        """An empty model whose kernel is fixed from the rows of the first call."""
        self._rival = None
        self._drawn = self._order(X.shape[0])
        self.classes_ = classes
        dense = isinstance(X, np.ndarray)
        needs_width = not callable(self.kernel) and self.kernel not in ("precomputed", "linear")
        width = resolve_gamma(self.gamma, X) if needs_width else None
        center = X.mean(axis=0, dtype=np.float64) if dense and needs_width else None
        self._prepare(width, center, X.dtype, not dense, X if not needs_width else None)
        n_problems = 1 if len(classes) == 2 else len(classes)
        self.intercept_ = np.zeros(n_problems, dtype=X.dtype)
        self.solver_ = "stream"
        for name in COUNTERS:
            setattr(self, name, 0)
        self._history = History(int(self.block_size))
        self._window = Window(int(self.window))
        self._rivalry = None if self.drift is None else Rivalry(test=make_drift_test(self.drift))
        self._told = {"one_sided": False, "refusing": False, "memory": False}

    def _prepare(
        self, width: float | None, center: Array | None, dtype: Any, is_sparse: bool, gram: Any
    ) -> None:
        self.kernel_: Kernel = kernel_of(self, width, center)
        self.gamma_ = self.kernel_.params.get("gamma")
        precomputed = self.kernel == "precomputed"
        self._storage = (np.dtype(dtype), is_sparse)
        self._model = self._new_model(gram if precomputed else None)

    def _new_model(self, gram: Array | None = None) -> OnlineModel:
        dtype, is_sparse = self._storage
        precomputed = self.kernel == "precomputed"
        return OnlineModel(
            self._rule(),
            self.kernel_,
            n_problems=1 if len(self.classes_) == 2 else len(self.classes_),
            n_features=1 if precomputed else self.n_features_in_,
            dtype=dtype,
            is_sparse=is_sparse,
            budget=None if self.budget is None else int(self.budget),
            budget_policy=self.budget_policy,
            block_size=int(self.block_size),
            gram=gram,
            drawn=self._drawn,
        )

    def _advance(
        self,
        X: Any,
        codes: IntArray,
        positions: IntArray | None = None,
        answered: IntArray | None = None,
    ) -> StreamOutcome:
        """Answer and learn validated rows, and keep the books.

        `positions` are given for rows that were seen before (their label came late), and
        `answered` the class codes they were answered with then.
        """
        if self._model.is_sparse and not sparse.issparse(X):
            X = sparse.csr_matrix(X)
        late = answered is not None
        if positions is None:
            positions = self.n_seen_ + np.arange(X.shape[0])
        if not late:
            self.n_seen_ += X.shape[0]
        Y = targets(codes, len(self.classes_))
        capacity = self._model.store.capacity
        if self._rivalry is None:
            outcome = self._model.learn(X, Y, positions, codes)
        else:
            afresh = partial(self._new_model, getattr(self._model.source, "gram", None))
            outcome, self._model, self._rival = learn_with_rival(
                self._rivalry, self._model, self._rival, afresh, (X, Y, positions, codes)
            )
        check_finite(self.kernel_, outcome.scores)
        labelled = codes >= 0
        given = answers(outcome.scores) if answered is None else answered
        mistakes = labelled & (given != codes)
        self.n_labelled_ += int(labelled.sum())
        self.n_updates_ += int(outcome.updated.sum())
        self.n_skipped_ += int(outcome.refused.sum())
        self.n_mistakes_ += int(mistakes.sum())
        self._window.add(mistakes[labelled])
        self._history.add(
            positions,
            labelled,
            outcome.updated,
            outcome.refused,
            mistakes,
            outcome.vectors,
            self.n_seen_,
        )
        warn_of_labels(self)
        if self.budget is None and self._model.store.capacity > capacity:
            warn_of_growth(self)
        return outcome

    # -- the model -------------------------------------------------------------------------

    @property
    def support_(self) -> IntArray:
        return self._model.store.position[: self._model.store.n].copy()

    @property
    def support_vectors_(self) -> Any:
        if self.kernel == "precomputed":
            return np.empty((0, 0), dtype=self._model.dtype)
        return self._model.store.vectors().copy()

    @property
    def dual_coef_(self) -> Array:
        return self._model.coefficients.astype(self._model.dtype)

    @property
    def n_support_(self) -> IntArray:
        store = self._model.store
        return np.bincount(store.code[: store.n], minlength=len(self.classes_))

    @property
    def coef_(self) -> Array:
        if self._model.kernel.name != "linear":
            raise AttributeError("coef_ exists for the linear kernel only.")
        return self._model.linear_weights.astype(self._model.dtype)

    @property
    def history_(self) -> dict[str, IntArray]:
        return self._history.as_dict()

    @property
    def progressive_error_(self) -> float:
        return self.n_mistakes_ / self.n_labelled_ if self.n_labelled_ else 0.0

    @property
    def windowed_error_(self) -> float:
        return self._window.error

    @property
    def n_drifts_(self) -> int:
        return 0 if self._rivalry is None else self._rivalry.n_drifts

    def _scores(self, X: Any) -> Array:
        if self.kernel == "precomputed":
            return np.asarray(X[:, self.support_] @ self.dual_coef_.T)
        return self._model.scores(X).astype(self._model.dtype)
