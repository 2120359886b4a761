"""A search on rows in memory: one Gram matrix per kernel width, folds are index sets into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import check_scoring

from buttress._arrays import Array
from buttress._threads import one_blas_thread
from buttress.classifiers.kernel_source import centred_gram_matrix
from buttress.classifiers.training import TrainingSet
from buttress.model_selection._folds import Fold, classification_folds
from buttress.model_selection._results import Metadata, Solved

Advance = Callable[[int], None]
_INPUT = ("n_features_in_", "feature_names_in_")


class ExactSearch:
    """The folds of one fit, and scores of candidates on them.

    Parameters
    ----------
    model : SearchMixin
    data : TrainingSet
    metadata : Metadata
    """

    def __init__(self, model: Any, data: TrainingSet, metadata: Metadata) -> None:
        self.model, self.data, self.metadata = model, data, metadata
        self.labels = data.classes[data.codes]
        told = {name: np.asarray(values)[data.rows] for name, values in metadata.split.items()}
        self.folds = classification_folds(model.cv, data.X, self.labels, told=told, rows=data.rows)
        self.n_folds = len(self.folds)

    def own_width(self) -> float | None:
        """The width of `gamma` as a number."""
        width: float | None = self._kernel(None).params.get("gamma")
        return width

    def n_steps(self, n_combinations: int) -> int:
        """Steps of progress for one width."""
        return self.n_folds * n_combinations

    def solve(self, width: Any, combinations: list[dict[str, Any]], advance: Advance) -> Solved:
        """Score all combinations at one kernel width."""
        kernel = self._kernel(width)
        K = centred_gram_matrix(kernel, self.data.X)
        with one_blas_thread():
            columns = Parallel(n_jobs=self.model.n_jobs, prefer="threads")(
                delayed(self.model._fold_scores)(self, K, fold, combinations) for fold in self.folds
            )
        advance(self.n_steps(len(combinations)))
        return Solved(kernel.params.get("gamma"), np.array(columns).T, (kernel, K))

    def weight(self, rows: Any) -> Array | None:
        """Weights of some rows; None when all are one."""
        return None if self.data.weight is None else self.data.weight[rows]

    def score(self, estimator: Any, X: Any, test: Any) -> float:
        """The score of a fitted estimator on held-out rows."""
        scorer = check_scoring(estimator, scoring=self.model._scorer())
        options = self.metadata.for_scorer(self.data.rows[test], self.weight(test))
        return float(scorer(estimator, X, self.labels[test], **options))

    def fold_scores(self, K: Array, fold: Fold, combinations: list[dict[str, Any]]) -> list[float]:
        """The score of every combination on one fold, each fitted by itself."""
        train, test = fold
        inner, outer = K[np.ix_(train, train)], K[np.ix_(test, train)]
        found = []
        for values in combinations:
            estimator = self.model._make_estimator(**values).set_params(kernel="precomputed")
            estimator.fit(inner, self.labels[train], sample_weight=self.weight(train))
            found.append(self.score(estimator, outer, test))
        return found

    def refit(self, params: dict[str, Any], solved: Solved | None) -> Any:
        """The chosen estimator, fitted on all rows.

        `solved` is what the search found for the width of `params`, None when it was let go.
        """
        if solved is None:
            kernel = self._kernel(params["gamma"])
            K = centred_gram_matrix(kernel, self.data.X)
        else:
            kernel, K = solved.kept
        values = {name: value for name, value in params.items() if name != "gamma"}
        data = self.model._refit_data(self, K, values)
        estimator = self.model._make_estimator(**values).set_params(kernel="precomputed")
        estimator.fit(K, self.labels, sample_weight=data.weight)
        dual = np.zeros((estimator.dual_coef_.shape[0], len(data.codes)), dtype=np.float64)
        dual[:, estimator.support_] = estimator.dual_coef_
        # Outside, the best estimator is one that takes rows, as if fitted on them.
        estimator.set_params(kernel=self.model.kernel)
        if params["gamma"] is not None:
            estimator.set_params(gamma=params["gamma"])
        estimator._store_expansion(data, kernel, dual, estimator.intercept_)
        for name in _INPUT:
            vars(estimator).pop(name, None)
        return estimator

    def _kernel(self, width: Any) -> Any:
        return self.model._make_kernel(self.data, gamma=width)
