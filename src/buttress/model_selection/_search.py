"""One search for all kernel machines that tune themselves.

A search says which estimator it tunes (`_machine`), what to try (`_combinations`) and which of
equally good candidates it prefers (`_prefer`). Where scores come from is a strategy of
rows with one interface: `ExactSearch` slices one Gram matrix per kernel width into folds,
`MappedSearch` sends all candidates and folds through the same passes over blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from buttress._arrays import Array, BoolArray
from buttress._deadline import check_time
from buttress._progress import progress
from buttress.classifiers.callbacks import (
    CallbackSupportMixin,
    FitTasks,
    has_callbacks,
    watched,
)
from buttress.classifiers.row_strategies import ScaledFit, ScaledKernel
from buttress.classifiers.stopping import warn_of_fold_fits
from buttress.classifiers.training import TrainingSet
from buttress.model_selection._exact import ExactSearch
from buttress.model_selection._folds import Fold
from buttress.model_selection._mapped import MappedSearch
from buttress.model_selection._mapped_candidates import Candidates
from buttress.model_selection._results import (
    FoldScores,
    Metadata,
    Solved,
    cv_results,
    widths_to_try,
)


class SearchMixin(CallbackSupportMixin):
    """Choose a kernel machine's parameters by cross-validation and refit on all rows.

    Comes before `ApproximationMixin`, which finds the rows, in the list of bases.

    After `fit` the attributes of the refitted estimator are this object's own (``dual_coef_``,
    ``intercept_``, certificate and so on), beside ``best_params_``, ``best_score_``,
    ``best_index_``, ``best_estimator_`` and ``cv_results_`` (the keys of `GridSearchCV`).

    scikit-learn's callbacks are told of every kernel width and of the refit; one that asks for an
    end leaves the search with the widths tried so far.
    """

    cv: Any
    scoring: Any
    gammas: Any
    n_jobs: int | None
    verbose: int
    _check_parameters: Any
    _rows: Any
    # The estimator that is tuned; it has the parameters of the search that bear the same names.
    _machine: type[Any]
    _exact_search: type[ExactSearch] = ExactSearch
    _mapped_search: type[MappedSearch] = MappedSearch

    # -- what a search says ----------------------------------------------------------------

    # Parameters to try, without the kernel width.
    _combinations: Callable[[Any], list[dict[str, Any]]]
    # Models of all combinations without each fold, by passes over blocks.
    _mapped_candidates: Callable[[ScaledFit, ScaledKernel, list[dict[str, Any]]], Candidates]

    def _prefer(self, candidates: list[dict[str, Any]], table: Array, search: Any) -> int:
        """Index of the candidate to choose; the first of the best unless overridden."""
        return int(np.argmax(table.mean(axis=1)))

    def _fold_scores(
        self, search: ExactSearch, K: Array, fold: Fold, combinations: list[dict[str, Any]]
    ) -> FoldScores:
        """The score of every combination on one fold; overridden where paths are cheaper."""
        return search.fold_scores(K, fold, combinations)

    def _refit_data(self, search: ExactSearch, K: Array, values: dict[str, Any]) -> TrainingSet:
        """The rows of the refit, perhaps with other weights."""
        return search.data

    def _scorer(self) -> Any:
        """`scoring` as scikit-learn takes it."""
        return self.scoring

    def _describe(self, candidates: list[dict[str, Any]], table: Array) -> None:
        """Store what this machine tells of its search, after the refit."""

    # -- the search ------------------------------------------------------------------------

    def _make_estimator(self, **values: Any) -> Any:
        """The unfitted machine of one candidate: what it shares with the search, and `values`."""
        names = self._machine().get_params(deep=False)
        shared = {name: value for name, value in vars(self).items() if name in names}
        return self._machine(**(shared | values))

    @watched
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Search the grid, then refit on all rows with the best values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` their square Gram matrix. With an
            `approximation`, or a linear kernel, also a path or a Dask collection.
        y : array-like of shape (n_samples,)
            Labels, two or more kinds; the name of their column when `X` is a path.
        sample_weight : array-like of shape (n_samples,), optional
            Used in the fits and in the scores of the held-out rows.
        **params
            ``groups`` for the splitter; with scikit-learn's metadata routing, whatever the
            splitter and the scorer ask for.

        Returns
        -------
        self
        """
        return self._train(X, y, sample_weight, **params)

    def _train(self, X: Any, y: Any, sample_weight: Any, **params: Any) -> Any:
        self._check_parameters()
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise ValueError(
                f"scoring={self.scoring!r} is not accepted: expected the name of a scorer or a "
                "function."
            )
        metadata = self._metadata(sample_weight, params)
        rows = self._rows(X, y, sample_weight, cv=self.cv, split=metadata.split)
        rows.train(self, metadata)
        return self

    def _fit_exact(self, data: TrainingSet, metadata: Metadata) -> None:
        self._run(self._exact_search(self, data, metadata))

    def _fit_scaled(self, fit: ScaledFit, metadata: Metadata) -> None:
        self._run(self._mapped_search(self, fit, metadata))

    def _run(self, search: Any) -> None:
        """Score every combination at every width, choose, refit, and store everything."""
        combinations = self._combinations(search)
        widths = widths_to_try(self.gammas, search.estimator_width)
        candidates: list[dict[str, Any]] = []
        tables: list[Array] = []
        short: list[BoolArray] = []
        best: Solved | None = None
        total = len(widths) * search.n_steps(len(combinations))
        tasks = FitTasks(self, len(widths) + 1)
        # Callbacks are told of one width after the other.
        at_once = 1 if has_callbacks(self) else search.widths_at_once()
        with progress(type(self).__name__, total, self.verbose) as advance:
            for first in range(0, len(widths), at_once):
                check_time()
                with tasks.task("width"):
                    some = search.solve(widths[first : first + at_once], combinations, advance)
                # A Gram matrix is large: of all widths only the best so far is kept.
                while some:
                    solved: Solved = some.pop(0)
                    candidates += [{**values, "gamma": solved.gamma} for values in combinations]
                    tables.append(solved.table)
                    short.append(solved.short)
                    if best is None or _best(solved.table) > _best(best.table) + 1e-12:
                        best = solved
                    del solved
                if tasks.stopped:
                    break
        warn_of_fold_fits(self, np.vstack(short))
        table = np.vstack(tables)
        index = self._prefer(candidates, table, search)
        chosen = candidates[index]
        assert best is not None
        with tasks.task("refit"):
            estimator = search.refit(chosen, best if chosen["gamma"] == best.gamma else None)
        for name in ("n_features_in_", "feature_names_in_", "approximation_"):
            if hasattr(self, name):
                setattr(estimator, name, getattr(self, name))
        for name, value in vars(estimator).items():
            if name.endswith("_"):
                setattr(self, name, value)
        self.best_estimator_ = estimator
        self.best_index_ = index
        self.best_params_ = chosen
        self.best_score_ = float(table[index].mean())
        self.cv_results_ = cv_results(candidates, table)
        self._describe(candidates, table)
        tasks.end()

    # -- metadata --------------------------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata of `fit` are routed: to the fits, the splitter and the scorer.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        routes = {
            "split": {"splitter": check_cv(self.cv, classifier=True)},
            "score": {"scorer": check_scoring(self, scoring=self._scorer())},
        }
        for method, consumer in routes.items():
            mapping = MethodMapping().add(caller="fit", callee=method)
            router.add(method_mapping=mapping, **consumer)
        return router

    def _metadata(self, sample_weight: Any, params: dict[str, Any]) -> Metadata:
        given = {name: value for name, value in params.items() if value is not None}
        if not get_config()["enable_metadata_routing"]:
            unknown = sorted(given.keys() - {"groups"})
            if unknown:
                raise TypeError(
                    f"{type(self).__name__}.fit takes no {', '.join(unknown)}: it takes groups, "
                    "and more with scikit-learn's metadata routing."
                )
            return Metadata(split=given)
        routed = process_routing(self, "fit", sample_weight=sample_weight, **given)
        score = dict(routed.scorer.score)
        weighted = score.pop("sample_weight", None) is not None
        return Metadata(dict(routed.splitter.split), score, weighted or sample_weight is None)


def _best(table: Array) -> float:
    return float(table.mean(axis=1).max())
