"""A search on rows in memory: one Gram matrix per kernel width, folds are index sets into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn import config_context, get_config
from sklearn.metrics import check_scoring

from buttress._arrays import Array
from buttress._deadline import check_time
from buttress._memory import free_memory
from buttress._threads import in_threads, one_blas_thread
from buttress.classifiers.kernel_source import centred_gram_matrix
from buttress.classifiers.stopping import noted_not_warned
from buttress.classifiers.training import TrainingSet
from buttress.kernels import CHECKED_GRAM, make_kernel
from buttress.model_selection._folds import Fold, classification_folds, fold_kernels
from buttress.model_selection._results import FoldScores, Metadata, Solved

# Folds of hinge-shaped machines are asked for answers on held-out rows, not for digits: scores
# to this accuracy settle all of them but those of rows that lie as near to a threshold. With
# 1600 rows it saves a third of the time against 1e-10.
FOLD_TOLERANCE = 1e-5

# Share of the free memory that widths tried at the same time may take.
_MEMORY_SHARE = 0.25

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
        by_name = {name: np.asarray(values)[data.rows] for name, values in metadata.split.items()}
        self.folds = classification_folds(
            model.cv, data.X, self.labels, split_rows=by_name, rows=data.rows
        )
        self.n_folds = len(self.folds)

    def estimator_width(self) -> float | None:
        """The width of `gamma` as a number."""
        width: float | None = self._kernel(None).params.get("gamma")
        return width

    def n_steps(self, n_combinations: int) -> int:
        """Steps of progress for one width."""
        return self.n_folds * n_combinations

    def widths_at_once(self) -> int:
        """How many widths to try at a time: one a thread, as far as there is memory for them.

        Threads that have a width each do not wait for each other, as those do that share one.
        """
        free = free_memory()
        threads: int = effective_n_jobs(self.model.n_jobs)
        if free is None:
            return threads
        return int(np.clip(_MEMORY_SHARE * free // self._bytes_of_a_width(), 1, threads))

    def _bytes_of_a_width(self) -> int:
        """Memory that the candidates of one width take: the Gram matrix and its parts."""
        return 4 * 8 * len(self.data.codes) ** 2

    def solve(
        self, widths: list[Any], combinations: list[dict[str, Any]], advance: Advance
    ) -> list[Solved]:
        """Score all combinations at some kernel widths, which share the threads."""
        if len(widths) == 1:
            return [self._solve_width(widths[0], combinations, advance, self.model.n_jobs)]
        each = max(1, effective_n_jobs(self.model.n_jobs) // len(widths))
        # scikit-learn's settings hold for a thread, and scorers read them
        settings = get_config()

        def solve_width(width: Any) -> Solved:
            check_time()
            with config_context(**settings):
                return self._solve_width(width, combinations, advance, each)

        with one_blas_thread():
            return in_threads(solve_width, widths, len(widths))

    def _solve_width(
        self,
        width: Any,
        combinations: list[dict[str, Any]],
        advance: Advance,
        n_jobs: int | None,
    ) -> Solved:
        kernel = self._kernel(width)
        K = centred_gram_matrix(kernel, self.data.X)
        with one_blas_thread():
            folds: list[FoldScores] = Parallel(n_jobs=n_jobs, prefer="threads")(
                delayed(self.model._fold_scores)(self, K, fold, combinations) for fold in self.folds
            )
        advance(self.n_steps(len(combinations)))
        table = np.array([fold.scores for fold in folds]).T
        short = np.array([fold.short for fold in folds], dtype=bool).T
        return Solved(kernel.params.get("gamma"), table, short, (kernel, K))

    def on_gram(self, values: dict[str, Any]) -> Any:
        """The machine of one combination for parts of the Gram matrix.

        The weights of the rows hold those of the classes.
        """
        ready = {**CHECKED_GRAM, "class_weight": None, "approximation": None}
        return self.model._make_estimator(**values).set_params(**ready)

    def weight(self, rows: Any) -> Array | None:
        """Weights of some rows; None when all are one."""
        return None if self.data.weight is None else self.data.weight[rows]

    def score(self, estimator: Any, X: Any, test: Any) -> float:
        """The score of a fitted estimator on held-out rows."""
        scorer = check_scoring(estimator, scoring=self.model._scorer())
        options = self.metadata.for_scorer(self.data.rows[test], self.weight(test))
        return float(scorer(estimator, X, self.labels[test], **options))

    def fold_scores(self, K: Array, fold: Fold, combinations: list[dict[str, Any]]) -> FoldScores:
        """The score of every combination on one fold, each fitted by itself."""
        train, test = fold
        inner, outer = fold_kernels(K, fold)
        scores, short = [], []
        for values in combinations:
            check_time()
            estimator = self.on_gram(values)
            with noted_not_warned() as by_limit:
                estimator.fit(inner, self.labels[train], sample_weight=self.weight(train))
            scores.append(self.score(estimator, outer, test))
            short.append(any(by_limit))
        return FoldScores(scores, short)

    def expansion_scores(
        self, K: Array, fold: Fold, combinations: list[dict[str, Any]], coefs: Array, biases: Array
    ) -> list[float]:
        """The score of every combination on one fold, from solutions that are known.

        Parameters
        ----------
        K : array of shape (held-out rows, training rows)
        fold : pair of index arrays
        combinations : list of dict
        coefs : array of shape (problems, combinations, training rows)
            Signed coefficients.
        biases : array of shape (problems, combinations)
        """
        data, (train, test) = self.data, fold
        if isinstance(self.model.scoring, str) and self.model.scoring == "accuracy":
            values = np.matmul(K.astype(np.float64), coefs.transpose(0, 2, 1)) + biases[:, None]
            codes = (values[0] > 0).astype(int) if len(values) == 1 else values.argmax(axis=0)
            weight = self.weight(test) if self.metadata.weighted else None
            right = codes == data.codes[test][:, None]
            return [float(share) for share in np.average(right, axis=0, weights=weight)]
        everything, kernel = np.arange(len(train)), make_kernel("precomputed")
        inside = replace(data, X=K, codes=data.codes[train], weight=None, rows=everything)
        scores = []
        for k, values in enumerate(combinations):
            estimator = self.on_gram(values)
            estimator._store_expansion(inside, kernel, coefs[:, k], biases[:, k])
            estimator.n_features_in_ = len(train)
            scores.append(self.score(estimator, K, test))
        return scores

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
        estimator = self.on_gram(values).fit(K, self.labels, sample_weight=data.weight)
        dual = np.zeros((estimator.dual_coef_.shape[0], len(data.codes)), dtype=np.float64)
        dual[:, estimator.support_] = estimator.dual_coef_
        # Outside, the best estimator is one that takes rows, as if fitted on them.
        width = {} if params["gamma"] is None else {"gamma": params["gamma"]}
        outside = self.model._make_estimator(**values, **width)
        estimator.set_params(**outside.get_params(deep=False))
        estimator._store_expansion(data, kernel, dual, estimator.intercept_)
        for name in _INPUT:
            vars(estimator).pop(name, None)
        return estimator

    def _kernel(self, width: Any) -> Any:
        return self.model._make_kernel(self.data, gamma=width)
