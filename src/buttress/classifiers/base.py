"""The shared behaviour of all classifiers: fit atomically, predict, describe themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import Array
from buttress._documented import DocumentedMixin
from buttress._frames import validate_data
from buttress.classifiers.array_api import foreign_labels, foreign_scores, namespace_of
from buttress.classifiers.kernel_source import check_finite, kernel_of
from buttress.classifiers.parameters import check_common
from buttress.classifiers.stopping import ended_by_limit, warn_not_converged
from buttress.classifiers.training import TrainingSet, validate_training_set
from buttress.kernels import CHECKED_GRAM, Kernel, resolve_gamma

Fit = TypeVar("Fit", bound=Callable[..., Any])

# Similarities of new rows to support vectors are computed in blocks of about this many (64 MB).
_BLOCK_ENTRIES = 8_000_000
# Optimality conditions to which single precision can be brought, on the scale of the scores.
_SINGLE_TOLERANCE = 1e-4
# The largest certificate, relative to the objective, that rounding in this precision explains: a
# solver that ends with a larger one has stopped short, and the estimator warns.
_ROUNDING = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 1e-4}


def all_or_nothing(learn: Fit, *, afresh: bool = False) -> Fit:
    """Make a method that learns leave the estimator as it was when it raises.

    Parameters
    ----------
    learn : function
        A method of an estimator.
    afresh : bool
        Whether it starts over, so that fitted attributes of an earlier call go first.
    """

    @functools.wraps(learn)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(self).copy()
        try:
            if afresh:
                for name in [name for name in before if name.endswith("_")]:
                    delattr(self, name)
            return learn(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return wrapper  # type: ignore[return-value]


def fitted_afresh(fit: Fit) -> Fit:
    """Make a `fit` all or nothing, and forget the fit before it."""
    return all_or_nothing(fit, afresh=True)


class Solution(Protocol):
    """What every solver returns for one binary problem, among other things."""

    @property
    def objective(self) -> float: ...

    @property
    def gap(self) -> float: ...

    @property
    def n_iter(self) -> int: ...

    @property
    def converged(self) -> bool: ...


class BaseMarginClassifier(DocumentedMixin, ClassifierMixin, BaseEstimator):
    """Labels from the sign (or the largest) of `decision_function`."""

    classes_: NDArray[Any]
    n_features_in_: int
    # Scores of validated rows as a matrix with one column per binary problem.
    _scores: Callable[[Any], Array]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "intercept_")

    def decision_function(self, X: Any) -> Array:
        """Signed score of every row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"``, similarities to the training rows, shape
            (n_samples, n_training_rows).

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column per class when there are more than two. Positive values speak for
            ``classes_[1]`` (two classes) or for the column's class. An array of `X`'s own library
            where scikit-learn's ``array_api_dispatch`` is on and the kernel is one of products.
        """
        check_is_fitted(self)
        xp = namespace_of(X)
        if xp is not None:
            return foreign_scores(self, X, xp)
        return self._decide(self._validate_rows(X))

    def _decide(self, X: Any) -> Array:
        """The scores of rows that are validated: callers of many single rows do that themselves."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._scores(X)
        # A score that is no number would be taken for class 0, with all confidence.
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
            raise ValueError(
                f"the decision value of row {row} is not a finite number: its features are too "
                "large for this model. Check them, or scale all features before fitting."
            )
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of every row; a score of exactly zero is ``classes_[0]``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        xp = namespace_of(X)
        if xp is not None:
            return foreign_labels(self.classes_, scores, xp)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    def _validate_rows(self, X: Any) -> Any:
        return validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32]
        )


class BaseKernelClassifier(BaseMarginClassifier):
    """A batch classifier ``f(x) = sum_i a_i k(x_i, x) + b`` for every binary problem.

    A subclass lists its parameters in `__init__` and checks those that are its own in
    `_check_parameters`. Its `_fit_exact` calls `_make_kernel`, its solver, and then
    `_store_expansion` and `_store_certificates`.
    """

    kernel: Any
    gamma: Any
    degree: float
    coef0: float
    kernel_params: Any
    class_weight: Any
    tol: float
    # Steps of the solver that count as one of `max_iter`.
    _steps_each = 1
    # Whether a linear machine with an intercept is trained on centred rows.
    _centres_rows = False
    _check_parameters: Any
    _fit_exact: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        describe_kernel_input(tags, self.kernel)
        return tags

    # -- fitting ---------------------------------------------------------------------------

    @fitted_afresh
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` their square Gram matrix. Machines with the
            parameter `approximation` also take a path or a Dask collection, when it is set or the
            kernel is linear.
        y : array-like of shape (n_samples,)
            Labels, two or more kinds; the name of their column when `X` is a path.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of the losses; an integer equals that many copies of the row.

        Returns
        -------
        self
        """
        return self._train(X, y, sample_weight)

    def _train(self, X: Any, y: Any, sample_weight: Any) -> Any:
        self._check_parameters()
        self._fit_exact(self._training_set(X, y, sample_weight))
        return self

    def _training_set(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingSet:
        check_common(self)
        return validate_training_set(
            self,
            X,
            y,
            sample_weight,
            class_weight=self.class_weight,
            precomputed=self.kernel == "precomputed",
        )

    def _make_kernel(self, data: TrainingSet, gamma: Any = None) -> Kernel:
        """The kernel with its width fixed from all training rows."""
        if self.kernel in ("precomputed", "linear") or callable(self.kernel):
            width = None
        else:
            width = resolve_gamma(self.gamma if gamma is None else gamma, data.X, data.weight)
        dense = isinstance(data.X, np.ndarray)
        center = np.average(data.X, axis=0, weights=data.weight) if dense else None
        kernel = kernel_of(self, width, center)
        if kernel.name == "linear":
            with np.errstate(over="ignore"):
                check_finite(kernel, kernel.diagonal(data.X))
            _check_no_underflow(data.X)
            if self._centres_rows and getattr(self, "fit_intercept", False):
                kernel = replace(kernel, center=center)
        return kernel

    def _ready_for_folds(self, data: TrainingSet) -> tuple[Any, Any]:
        """A copy of this machine, and rows of which it can be fitted to some and asked of others.

        One Gram matrix, its width fixed from all rows, serves all folds of an exact kernel.
        """
        machine = clone(self)
        if getattr(self, "approximation", None) is not None or self.kernel == "precomputed":
            return machine, data.X
        return machine.set_params(**CHECKED_GRAM), self._make_kernel(data).gram(data.X)

    def _store_expansion(
        self,
        data: TrainingSet,
        kernel: Kernel,
        dual_coef: Array,
        intercept: Array,
        coef: Array | None = None,
    ) -> None:
        """Keep the model: support vectors, their coefficients, and `coef_` when linear.

        Parameters
        ----------
        data : TrainingSet
        kernel : Kernel
        dual_coef : array of shape (n_problems, n)
            Signed coefficients on the rows of `data`; rows with all zeros are dropped.
        intercept : array of shape (n_problems,)
        coef : array of shape (n_problems, p), optional
            The linear kernel's weight vectors; computed from `dual_coef` when not given.
        """
        dtype = data.X.dtype
        used = np.flatnonzero(np.any(dual_coef != 0, axis=0))
        self.classes_ = data.classes
        self.support_ = data.rows[used]
        self.dual_coef_ = np.ascontiguousarray(dual_coef[:, used], dtype=dtype)
        self.n_support_ = np.bincount(data.codes[used], minlength=len(data.classes))
        precomputed = kernel.name == "precomputed"
        self.support_vectors_ = np.empty((0, 0), dtype=dtype) if precomputed else data.X[used]
        self.gamma_ = kernel.params.get("gamma")
        self.kernel_ = kernel
        if kernel.name == "linear":
            if coef is None and kernel.center is not None:
                # the intercept belongs to centred rows
                coef = dual_coef[:, used] @ (data.X[used] - kernel.center)
                intercept = intercept - coef @ kernel.center
            elif coef is None:
                coef = dual_coef[:, used] @ data.X[used]
            self.coef_ = np.ascontiguousarray(coef, dtype=dtype)
        self.intercept_ = np.asarray(intercept, dtype=dtype)
        if not (np.isfinite(self.dual_coef_).all() and np.isfinite(self.intercept_).all()):
            raise ValueError(
                f"{type(self).__name__} found coefficients that are not finite numbers: the "
                "features or the weights are too large or too small. Scale them."
            )

    def _tolerance(self, data: TrainingSet) -> float:
        """`tol`, or what rows of single precision allow."""
        single = data.X.dtype == np.float32
        return max(self.tol, _SINGLE_TOLERANCE) if single else self.tol

    def _store_certificates(
        self,
        solutions: Sequence[Solution],
        *,
        kind: str,
        limited: bool = True,
        outer_steps: bool = True,
    ) -> None:
        """Keep objective, certificate and iterations; warn when a problem stopped short.

        Parameters
        ----------
        solutions : sequence of solver results, one per binary problem
        kind : {"duality_gap", "kkt_residual"}
        limited : bool
            Whether `max_iter` limits what the solutions call their steps.
        outer_steps : bool
            Whether steps may be left to do after the last certificate, as `converged` then says;
            without them the certificate alone says whether a solution is done.
        """
        gaps = np.array([solution.gap for solution in solutions])
        setattr(self, f"{kind}_", float(gaps.max()))
        setattr(self, f"{kind}s_", gaps)
        objectives = np.array([solution.objective for solution in solutions])
        self.objective_ = of_problems(objectives.tolist())
        self.n_iter_ = max(1, max(int(solution.n_iter) for solution in solutions))
        accepted = max(self.tol, _ROUNDING[self.intercept_.dtype])
        certified = gaps <= accepted * (1.0 + np.abs(objectives))
        converged = np.array([solution.converged for solution in solutions])
        steps = [solution.n_iter for solution in solutions]
        limit = self._steps_each * getattr(self, "max_iter", np.inf)
        by_limit = limited and bool(ended_by_limit(converged, steps, limit).any())
        if not certified.all():
            warn_not_converged(self, kind, float(gaps.max()), by_limit=by_limit, certified=False)
        elif outer_steps and not converged.all():
            # residuals may be small and their sum, the gap, not
            short = "duality_gap" if hasattr(self, "duality_gap_") else kind
            reached = float(getattr(self, f"{short}_"))
            warn_not_converged(self, short, reached, by_limit=by_limit, certified=True)

    # -- prediction ------------------------------------------------------------------------

    def _scores(self, X: Any) -> Array:
        if hasattr(self, "coef_"):
            scores = X @ self.coef_.T
            scores = scores.toarray() if sparse.issparse(scores) else np.asarray(scores)
            return np.asarray(scores + self.intercept_)
        # a kernel may make a block of sparse rows dense
        n, m = X.shape[0], max(len(self.support_), X.shape[1])
        scores = np.empty((n, len(self.intercept_)), dtype=np.result_type(X, self.dual_coef_))
        step = max(1, _BLOCK_ENTRIES // m)
        for start in range(0, n, step):
            block = X[start : start + step]
            if self._precomputed or len(self.support_) == 0:
                block_scores = block[:, self.support_] @ self.dual_coef_.T
            else:
                block_scores = self.kernel_.sums(block, self.support_vectors_, self.dual_coef_)
            scores[start : start + step] = block_scores + self.intercept_
        return scores

    @property
    def _precomputed(self) -> bool:
        return bool(self.kernel_.name == "precomputed")


def of_problems(values: Any) -> Any:
    """A fitted attribute: the value of the one binary problem, or those of all.

    Examples
    --------
    >>> of_problems([0.5]), of_problems([0.5, 0.25, 0.5])
    (0.5, array([0.5 , 0.25, 0.5 ]))
    """
    return values[0] if len(values) == 1 else np.asarray(values)


def describe_kernel_input(tags: Any, kernel: Any) -> None:
    """Say in scikit-learn's tags which rows a kernel takes."""
    # of these k(x, z) needs features that are not negative, and dense ones
    histogram = kernel in ("chi2", "additive_chi2")
    tags.input_tags.sparse = kernel != "precomputed" and not histogram
    tags.input_tags.pairwise = kernel == "precomputed"
    tags.input_tags.positive_only = histogram


def _check_no_underflow(X: Any) -> None:
    """Raise a ValueError where the squares of all features vanish although they are not zero."""
    largest = float(max(X.max(), -X.min()))
    if largest > 0.0 and largest**2 < np.finfo(np.float64).smallest_normal:
        raise ValueError(
            "kernel='linear': squares of the features are below the range of floating point "
            "numbers. Scale the features."
        )
