"""Cross-validation of a classifier with a reject option over a grid of rejection costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Bunch, column_or_1d, indexable

from buttress._arrays import Array, BoolArray
from buttress._frames import collected
from buttress._threads import one_blas_thread
from buttress.classifiers.chow import ChowRejector
from buttress.classifiers.kernel_source import centred_gram_matrix
from buttress.classifiers.parameters import check_number
from buttress.classifiers.reject import BaseRejectClassifier
from buttress.classifiers.training import TrainingSet, with_class_weight
from buttress.metrics.scorer import answers
from buttress.model_selection._folds import Fold, classification_folds, fold_kernels
from buttress.noise.core.crossfit import PartFits
from buttress.solvers.hinge.kernel_rows import KernelMatrix

Answers = list[tuple[NDArray[Any], BoolArray]]


def cross_validate_reject(
    estimator: Any,
    X: Any,
    y: Any,
    d_values: Any,
    cv: Any = 10,
    n_jobs: int | None = None,
    *,
    sample_weight: Any = None,
    groups: Any = None,
) -> Bunch:
    """Risk, rejection rate and accuracy for a grid of rejection costs, by cross-validation.

    Parameters
    ----------
    estimator : classifier
        With a parameter ``d`` and the reject interface, or a pipeline that ends in one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    d_values : sequence of floats in (0, 0.5]
        Costs of giving no answer.
    cv : int, splitter or iterable, default=10
        Folds; an integer means stratified ones.
    n_jobs : int, optional
        Folds worked on at the same time, in threads.
    sample_weight : array-like of shape (n_samples,), optional
        Used in the fits and in the counts.
    groups : array-like of shape (n_samples,), optional
        For splitters that take groups.

    Returns
    -------
    Bunch
        Arrays with one entry per value of `d_values`, in its order: ``d``, ``risk``,
        ``rejection_rate``, ``accuracy`` (on the accepted rows; NaN where none is), and the
        counts over all folds behind them, ``n_errors``, ``n_rejected``, ``n_rows`` (sums of
        weights when these are given). ``fold_errors``, ``fold_rejected`` and ``fold_rows`` have
        the same counts per fold as columns.

    Notes
    -----
    Counts are pooled over the folds before ratios are taken, because a fold may reject all its
    rows. The kernel machines of this package share one Gram matrix (its width fixed from all
    rows), and the double ramp starts each value of d from its neighbour's dual variables; for
    `ChowRejector` one fit per fold serves all values of d. Any other estimator is cloned and
    fitted for each.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from buttress import DoubleRampClassifier
    >>> X, y = make_moons(120, noise=0.3, random_state=0)
    >>> result = cross_validate_reject(DoubleRampClassifier(), X, y, [0.1, 0.3, 0.5], cv=3)
    >>> bool(result.rejection_rate[0] > result.rejection_rate[2] == 0)
    True
    """
    costs = [check_number("d_values", d, "(0, 0.5]") for d in np.ravel(d_values).tolist()]
    if not costs:
        raise ValueError("d_values is empty: at least one rejection cost is needed.")
    X, y = indexable(collected(X), column_or_1d(y, warn=True))
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight is not None and weight.shape != (len(y),):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected one weight per row.")
    shared = isinstance(estimator, BaseRejectClassifier) and estimator.target_coverage is None
    folds = classification_folds(cv, X, y, groups)
    job = (_SharedKernel if shared else _Refits)(estimator, X, y, weight, costs)
    with one_blas_thread():
        counts = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(_fold_counts)(job, fold, y, weight) for fold in folds
        )
    errors, rejected, rows = np.array(counts).transpose(1, 2, 0)
    return _summary(costs, errors, rejected, rows)


def _fold_counts(job: Any, fold: Fold, y: NDArray[Any], weight: Array | None) -> Array:
    """Errors, rejections and rows of one fold, one column per cost."""
    train, test = fold
    w = np.ones(len(test)) if weight is None else weight[test]
    answered = job.answers(train, test)
    errors = [float(w @ ((label != y[test]) & ~rejected)) for label, rejected in answered]
    rejections = [float(w @ rejected) for _, rejected in answered]
    return np.array([errors, rejections, np.full(len(answered), w.sum())])


def _summary(costs: list[float], errors: Array, rejected: Array, rows: Array) -> Bunch:
    n_errors, n_rejected, n_rows = errors.sum(axis=1), rejected.sum(axis=1), rows.sum(axis=1)
    d = np.array(costs)
    accepted = n_rows - n_rejected
    answered = accepted > 1e-12 * n_rows
    accuracy = np.full(len(d), np.nan)
    accuracy[answered] = 1.0 - n_errors[answered] / accepted[answered]
    return Bunch(
        d=d,
        risk=(n_errors + d * n_rejected) / n_rows,
        rejection_rate=n_rejected / n_rows,
        accuracy=accuracy,
        n_errors=n_errors,
        n_rejected=n_rejected,
        n_rows=n_rows,
        fold_errors=errors,
        fold_rejected=rejected,
        fold_rows=rows,
    )


class _SharedKernel:
    """Kernel machines: one Gram matrix, folds as index sets, d from its neighbour."""

    def __init__(
        self, estimator: Any, X: Any, y: NDArray[Any], weight: Array | None, costs: list[float]
    ) -> None:
        self.costs = costs
        self.estimators = [clone(estimator).set_params(d=d) for d in costs]
        first = self.estimators[0]
        for each in self.estimators:
            each._check_parameters()
        # the weights come later: rows of weight zero would be removed, and folds count them
        self.data: TrainingSet = replace(first._training_set(X, y, None), weight=weight)
        self.weight = weight
        self.kernel = first._make_kernel(self.data)
        self.K = centred_gram_matrix(self.kernel, self.data.X)

    def answers(self, train: Any, test: Any) -> Answers:
        data = self.data
        if self.weight is not None:
            train = train[self.weight[train] > 0]
        factors = self._weights(train)
        inner, outside = fold_kernels(self.K, (train, test))
        K = KernelMatrix(inner)
        targets = data.targets[train].T
        warm: list[Any] = [None] * len(targets)
        by_cost: Answers = [None] * len(self.costs)  # type: ignore[list-item]
        for k in np.argsort(self.costs):
            model = self.estimators[k]
            warm = [
                model._solve(K, target, factors, model._tolerance(data), start)
                for target, start in zip(targets, warm, strict=True)
            ]
            by_cost[k] = model._answers(warm, data.classes, outside)
        return by_cost

    def _weights(self, train: Any) -> Array | None:
        if self.weight is None and self.estimators[0].class_weight is None:
            return None
        weight = None if self.weight is None else self.weight[train]
        model = self.estimators[0]
        return with_class_weight(
            weight, model.class_weight, self.data.classes, self.data.codes[train]
        )


class _Refits:
    """Any estimator with a parameter d; Chow's rule needs one fit for all of them."""

    def __init__(
        self, estimator: Any, X: Any, y: NDArray[Any], weight: Array | None, costs: list[float]
    ) -> None:
        params = {} if weight is None else {"sample_weight": weight}
        self.estimator, self.rows, self.costs = estimator, PartFits(estimator, X, y, params), costs
        self.name = _cost_parameter(estimator)

    def answers(self, train: Any, test: Any) -> Answers:
        X, y, params = self.rows.given(train)
        held_out = self.rows.taken(test, train)
        once = isinstance(self.estimator, ChowRejector) and self.estimator.target_coverage is None
        by_cost: Answers = []
        model = None
        for d in self.costs:
            if model is None or not once:
                model = clone(self.estimator).set_params(**{self.name: d})
                model.fit(X, y, **params)
            model.set_params(**{self.name: d})
            by_cost.append(answers(model, held_out))
        return by_cost


def _cost_parameter(estimator: Any) -> str:
    """``d``, or the ``..__d`` of the step of a pipeline that rejects."""
    if not hasattr(estimator, "get_params"):
        raise TypeError(f"estimator={estimator!r} is not a scikit-learn estimator.")
    names: list[str] = [
        name for name in estimator.get_params() if name == "d" or name.endswith("__d")
    ]
    if not names:
        raise ValueError(
            f"{type(estimator).__name__} has no parameter d to vary. Wrap it in ChowRejector."
        )
    return min(names, key=lambda name: name.count("__"))
