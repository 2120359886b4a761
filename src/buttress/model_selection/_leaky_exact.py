"""The search of the leaky hockey stick: all penalties and folds solved together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from buttress._arrays import Array, BoolArray
from buttress._threads import blas_threads_for
from buttress.classifiers.leaky_path import (
    LeakyProblem,
    RegularizationPath,
    make_geometry,
    make_loss,
    make_problem,
)
from buttress.classifiers.stopping import ended_by_limit
from buttress.classifiers.training import TrainingSet
from buttress.kernels import Kernel
from buttress.model_selection._exact import Advance, ExactSearch
from buttress.model_selection._results import Metadata, Solved
from buttress.solvers.smooth.spectral import NEWTON_FEATURES, Paths

# Of the slopes along the path: scores of held-out rows no longer change (benchmarks/path_cv.py).
_PATH_TOL = 1e-6
# And along the path on all rows, where folds need no more than signs.
_KEPT_TOL = 1e-5


@dataclass(frozen=True, eq=False)
class _Folds:
    """The paths of all folds at one width and exponent, for a refit to begin with."""

    r: float
    problem: LeakyProblem
    paths: Paths


class ExactLeakySearch(ExactSearch):
    """All penalties and folds of a width and an exponent are one call of the solver."""

    def __init__(self, model: Any, data: TrainingSet, metadata: Metadata) -> None:
        super().__init__(model, data, metadata)
        omegas = np.zeros((self.n_folds, len(data.codes)))
        for omega, (train, _) in zip(omegas, self.folds, strict=True):
            np.add.at(omega, train, data.weights[train])
        omegas /= omegas.sum(axis=1, keepdims=True)
        # problems: for every fold all classes
        self.omegas = np.repeat(omegas, data.n_problems, axis=0)
        self.targets = np.tile(data.targets.T, (self.n_folds, 1))

    @property
    def signs_suffice(self) -> bool:
        """The accuracy of two classes on the folds asks for no more than signs."""
        return self.data.n_problems == 1 and self._by_accuracy

    @property
    def _by_accuracy(self) -> bool:
        return isinstance(self.model.scoring, str) and self.model.scoring == "accuracy"

    def n_steps(self, n_combinations: int) -> int:
        return n_combinations // len(self.model._alphas()) * len(self.targets)

    def _bytes_of_a_width(self) -> int:
        n, columns = len(self.data.codes), len(self.targets) * len(self.model._alphas())
        # the Gram matrix twice, models of columns (see `KernelColumns`), and the columns
        return 8 * n * (4 * n + 2 * columns)

    def _solve_width(
        self,
        width: Any,
        combinations: list[dict[str, Any]],
        advance: Advance,
        n_jobs: int | None,
    ) -> Solved:
        alphas = self.model._alphas()
        tables, short = [], []
        best: Any = None
        with blas_threads_for(self.model._dense_order(self.data)):
            problem = self._problem(width)
            for first in combinations[:: len(alphas)]:
                table, ended, folds = self._path(problem, first["r"], advance, n_jobs)
                tables.append(table)
                short.append(ended)
                mean = float(table.mean(axis=1).max())
                if best is None or mean > best[0] + 1e-12:
                    best = (mean, folds)
        width_used = problem.kernel.params.get("gamma")
        return Solved(width_used, np.concatenate(tables), np.concatenate(short), best[1])

    def _problem(self, width: Any) -> LeakyProblem:
        """The rows of one width, without a loss."""
        kernel = self._kernel(width)
        path_tol = _KEPT_TOL if self.signs_suffice else _PATH_TOL
        return make_problem(self.model, self.data, kernel, None, path_tol, self._most)

    @property
    def _most(self) -> int | None:
        """The largest rank at which the Gram matrix becomes features; None for the usual one.

        Columns take fewer iterations with the Gram matrix than with features (five widths of 915
        rows: .8 of the time), but for one that is truly singular at tiny penalties: a Gaussian
        one is of low rank by rounding alone.
        """
        columns = self.model.kernel == "rbf" and self.model.solver in ("auto", "batched")
        return NEWTON_FEATURES if columns else None

    def refit(self, params: dict[str, Any], solved: Solved | None) -> Any:
        model, alpha, r = self.model, params["alpha"], params["r"]
        if solved is None or solved.kept.r != r:
            again = [{"alpha": each, "r": r} for each in model._alphas()]
            solved = self._solve_width(params["gamma"], again, lambda steps: None, model.n_jobs)
        problem, paths = solved.kept.problem, solved.kept.paths
        estimator = model._make_estimator(alpha=alpha, r=r)
        if params["gamma"] is not None:
            estimator.gamma = params["gamma"]
        data, alphas = self.data, model._alphas()
        targets, index = data.targets.T, int(np.flatnonzero(alphas == alpha)[0])
        with blas_threads_for(model._dense_order(data)):
            if paths.method == "mm":
                model.path_ = solve_whole(problem, alphas)
                path = model.path_ if len(targets) > 1 else [model.path_]
                models = [each.at(index) for each in path]
            else:
                solutions = problem.refit(targets, alphas, paths, index)
                models = [
                    problem.finished(y, alpha, each)
                    for y, each in zip(targets, solutions, strict=True)
                ]
            estimator._store_paths(data, problem.kernel, models, paths.method)
        if paths.method != "mm":
            if problem.kernel.name != "precomputed":
                # Support vectors are a copy already, of all rows unless some slopes vanish.
                everything = len(estimator.support_) == len(data.rows)
                data = replace(data, X=estimator.support_vectors_ if everything else data.X.copy())
            model._whole_path_ = WholePath.of(problem, data, alphas, self._most)
        return estimator

    def _path(
        self, problem: LeakyProblem, r: float, advance: Advance, n_jobs: int | None
    ) -> tuple[Array, BoolArray, _Folds]:
        """Solve everything for one width and exponent, and score the held-out rows.

        Also whether `max_iter` ended each fit.
        """
        problem = replace(problem, loss=make_loss(self.model.loss, r))
        n_problems, alphas = self.data.n_problems, self.model._alphas()
        # classes of one fold answer together
        answers = np.arange(len(self.targets)) // n_problems if self._by_accuracy else None
        sharing = replace(problem, n_jobs=n_jobs)
        paths = sharing.solve(self.targets, self.omegas, alphas, advance, answers)
        table = np.empty((len(alphas), self.n_folds))
        for number, (_, test) in enumerate(self.folds):
            decision = [
                paths.scores_at(one, test) + paths.intercept[one][:, None]
                for one in range(number * n_problems, (number + 1) * n_problems)
            ]
            table[:, number] = self._scores(np.stack(decision, axis=2), test)
        return table, self._ended(paths), _Folds(r, problem, paths.without_scores())

    def _ended(self, paths: Paths) -> BoolArray:
        """Whether `max_iter` ended the fits, shape (L, folds)."""
        steps = paths.iterations
        if paths.method == "mm":  # whose limit is on all steps of a path
            steps = steps.sum(axis=1, keepdims=True)
        ended = ended_by_limit(paths.converged, steps, self.model.max_iter)
        by_fold = ended.reshape(self.n_folds, -1, ended.shape[1])
        return np.asarray(by_fold.any(axis=1)).T

    def _scores(self, decision: Array, test: NDArray[Any]) -> Any:
        """Scores of the L models with decision values of shape (L, rows, problems)."""
        if not self._by_accuracy:
            rows = self.data.X[test]
            models = (KnownScores(self.data.classes, values) for values in decision)
            return [self.score(model, rows, test) for model in models]
        two = decision.shape[2] == 1
        codes = (decision[:, :, 0] > 0).astype(int) if two else decision.argmax(axis=2)
        right = codes == self.data.codes[test]
        weight = self.weight(test) if self.metadata.weighted else None
        return np.average(right, axis=1, weights=weight)


def solve_whole(problem: LeakyProblem, alphas: Array) -> Any:
    """The path on all rows with its certificates; a list of one for every class beyond two."""
    targets = problem.data.targets.T
    omegas = np.tile(problem.omega, (len(targets), 1))
    paths = problem.solve(targets, omegas, alphas)
    path = [problem.certified(y, alphas, paths, k) for k, y in enumerate(targets)]
    return path[0] if len(path) == 1 else path


@dataclass(frozen=True, eq=False)
class WholePath:
    """What the path of the chosen width and exponent is solved from.

    A search needs the solution at one penalty. The others take as long as a fold or two (a third
    of the time of 26 classes), and are seldom looked at. The Gram matrix is made again.

    Attributes
    ----------
    settings : dict
        Attributes of a `LeakyProblem`, but for its rows.
    data : TrainingSet
    alphas : array of shape (L,)
    most_features : int or None
        As in `make_geometry`.
    fingerprint : float
        Of the rows: a Gram matrix is the user's own, who may have changed it.
    """

    settings: dict[str, Any]
    data: TrainingSet
    alphas: Array
    most_features: int | None
    fingerprint: float

    @classmethod
    def of(
        cls, problem: LeakyProblem, data: TrainingSet, alphas: Array, most_features: int | None
    ) -> WholePath:
        """The path of a problem, from `data` that has its rows."""
        settings = dict(vars(problem))
        del settings["geometry"], settings["data"]
        return cls(settings, data, alphas, most_features, float(data.X.sum()))

    def solve(self) -> RegularizationPath | list[RegularizationPath]:
        """The path with its certificates; one for every class when there are more than two.

        Raises
        ------
        ValueError
            When the rows have changed since the search.
        """
        if float(self.data.X.sum()) != self.fingerprint:
            raise ValueError(
                "The Gram matrix that fit was given has changed since, and path_ is solved when "
                "it is first asked for: ask before changing it, or fit again."
            )
        kernel: Kernel = self.settings["kernel"]
        fit_intercept: bool = self.settings["fit_intercept"]
        geometry = make_geometry(kernel, self.data, fit_intercept, self.most_features)
        problem = LeakyProblem(data=self.data, geometry=geometry, **self.settings)
        return solve_whole(problem, self.alphas)  # type: ignore[no-any-return]


class KnownScores(ClassifierMixin, BaseEstimator):
    """Decision values of held-out rows in the form that scikit-learn's scorers read."""

    def __init__(self, classes: NDArray[Any], values: Array) -> None:
        self.classes = classes
        self.values = values
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> KnownScores:
        return self

    def decision_function(self, X: Any) -> Array:
        return self.values[:, 0] if self.values.shape[1] == 1 else self.values

    def predict(self, X: Any) -> NDArray[Any]:
        values = self.decision_function(X)
        index = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[index])
