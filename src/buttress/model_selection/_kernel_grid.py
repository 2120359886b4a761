"""Grid search over kernel machines with one Gram matrix per width, shared by all folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.metrics import check_scoring

from buttress._arrays import Array
from buttress._progress import progress
from buttress._threads import one_blas_thread
from buttress.classifiers.base import BaseKernelClassifier, all_or_nothing
from buttress.classifiers.kernel_source import centred_gram_matrix
from buttress.classifiers.parameters import check_widths
from buttress.classifiers.training import TrainingSet
from buttress.model_selection._folds import Fold, classification_folds


class BaseKernelGridCV(BaseKernelClassifier):
    """Choose a kernel machine's parameters by cross-validation and refit on all rows.

    The Gram matrix is computed once per kernel width, whatever the number of folds and
    parameters; a fold is a pair of index sets into it. A subclass names its grid (`_grid`)
    and makes one estimator for given values (`_make_estimator`); where values of a parameter
    are cheaper together than one by one it overrides `_fold_scores`.

    After `fit` the attributes of the refitted estimator are this object's own (``dual_coef_``,
    ``intercept_``, certificate and so on), beside ``best_params_``, ``best_score_``,
    ``cv_results_`` (parameters and scores of every candidate) and ``best_estimator_``.
    """

    cv: Any
    scoring: Any
    gammas: Any
    n_jobs: int | None
    verbose: int
    _centres_rows = True

    def _grid(self, data: TrainingSet) -> Mapping[str, Sequence[Any]]:
        """Parameter names and the values to try, without the kernel width."""
        raise AssertionError(f"{type(self).__name__} does not define _grid")

    def _make_estimator(self, **parameters: Any) -> Any:
        """An unfitted estimator with these parameters; kernel parameters come separately."""
        raise AssertionError(f"{type(self).__name__} does not define _make_estimator")

    def _prefer(self, candidates: list[dict[str, Any]], means: Array) -> int:
        """Index of the candidate to choose; the first of the best unless overridden."""
        return int(np.argmax(means))

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Search the grid, then refit on all rows with the best values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Used in the fits and in the scores of the held-out rows.

        Returns
        -------
        self
        """
        data = self._training_set(X, y, sample_weight)
        grid = self._grid(data)
        labels = data.classes[data.codes]
        folds = classification_folds(self.cv, data.X, labels, rows=data.rows)
        widths = check_widths(self.gammas) or [None]
        names = list(grid)
        combinations = [dict(zip(names, values, strict=True)) for values in product(*grid.values())]

        candidates: list[dict[str, Any]] = []
        scores: list[Array] = []
        best: tuple[float, Any] | None = None
        total = len(widths) * len(folds)
        with progress(type(self).__name__, total * len(combinations), self.verbose) as advance:
            for width in widths:
                kernel = self._make_kernel(data, gamma=width)
                K = centred_gram_matrix(kernel, data.X)
                with one_blas_thread():
                    columns = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                        delayed(self._fold_scores)(K, data, labels, fold, combinations)
                        for fold in folds
                    )
                advance(len(folds) * len(combinations))
                block = np.array(columns).T  # (candidates, folds)
                scores.extend(block)
                chosen_gamma = kernel.params.get("gamma")
                candidates += [{**values, "gamma": chosen_gamma} for values in combinations]
                here = float(block.mean(axis=1).max())
                if best is None or here > best[0]:
                    best = (here, (kernel, K))

        table = np.array(scores)
        means = table.mean(axis=1)
        index = self._prefer(candidates, means)
        self.best_params_ = candidates[index]
        self.best_score_ = float(means[index])
        self.cv_results_ = {
            "params": candidates,
            "scores": table,
            "mean_score": means,
            "std_error": table.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
            if table.shape[1] > 1
            else np.zeros(len(means)),
        }
        assert best is not None
        kernel, K = best[1]
        if kernel.params.get("gamma") != self.best_params_["gamma"]:
            kernel = self._make_kernel(data, gamma=self.best_params_["gamma"])
            K = centred_gram_matrix(kernel, data.X)
        self._refit(data, kernel, K, labels)
        return self

    def _fold_scores(
        self,
        K: Array,
        data: TrainingSet,
        labels: NDArray[Any],
        fold: Fold,
        combinations: list[dict[str, Any]],
    ) -> list[float]:
        """The score of every combination on one fold."""
        train, test = fold
        inner, outer = K[np.ix_(train, train)], K[np.ix_(test, train)]
        weight = data.weight
        found = []
        for values in combinations:
            estimator = self._make_estimator(**values).set_params(kernel="precomputed")
            estimator.fit(
                inner, labels[train], sample_weight=None if weight is None else weight[train]
            )
            scorer = check_scoring(estimator, scoring=self.scoring)
            options = {} if weight is None else {"sample_weight": weight[test]}
            found.append(float(scorer(estimator, outer, labels[test], **options)))
        return found

    def _refit(self, data: TrainingSet, kernel: Any, K: Array, labels: NDArray[Any]) -> None:
        """Fit the chosen estimator on the Gram matrix at hand and take over its attributes."""
        values = {name: v for name, v in self.best_params_.items() if name != "gamma"}
        estimator = self._make_estimator(**values).set_params(kernel="precomputed")
        estimator.fit(K, labels, sample_weight=data.weight)
        dual = np.zeros((estimator.dual_coef_.shape[0], len(data.codes)), dtype=np.float64)
        dual[:, estimator.support_] = estimator.dual_coef_
        intercept = estimator.intercept_
        input_attributes = ("n_features_in_", "feature_names_in_")
        for name, value in vars(estimator).items():
            if name.endswith("_") and name not in input_attributes:
                setattr(self, name, value)
        self._store_expansion(data, kernel, dual, intercept)
        # Outside, the best estimator is one that takes rows, as if fitted on them.
        estimator.set_params(kernel=self.kernel)
        if self.gamma_ is not None:
            estimator.set_params(gamma=self.gamma_)
        estimator._store_expansion(data, kernel, dual, intercept)
        for name in input_attributes:
            if hasattr(self, name):
                setattr(estimator, name, getattr(self, name))
        self.best_estimator_ = estimator
