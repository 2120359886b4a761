"""The leaky hockey stick classifier with its whole path and cross-validation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring

from buttress._arrays import Array
from buttress._progress import progress
from buttress._threads import blas_threads_for
from buttress.classifiers.base import all_or_nothing
from buttress.classifiers.leaky_hockey_stick import BaseLeakyClassifier
from buttress.classifiers.leaky_path import (
    LeakyProblem,
    make_loss,
    make_problem,
)
from buttress.classifiers.parameters import (
    check_number,
    check_option,
    check_values,
    check_widths,
)
from buttress.classifiers.training import TrainingSet
from buttress.model_selection._folds import Fold, classification_folds
from buttress.model_selection._scaled_leaky import fit_scaled_leaky_cv
from buttress.solvers.smooth.spectral import Paths

_DEFAULT_DECADES = (0.0, -7.0)
# Of the slopes along the path: scores of held-out rows no longer change (benchmarks/path_cv.py).
_PATH_TOL = 1e-6
# And where folds need no more than signs, along the refit's path alone.
_KEPT_TOL = 1e-5


class LeakyHockeyStickClassifierCV(BaseLeakyClassifier):
    """Leaky hockey stick classifier that chooses its penalty by cross-validation.

    All penalties, all folds and the refit are solved together; see
    `LeakyHockeyStickClassifier` for the problem and the parameters not described here.

    Parameters
    ----------
    alphas : int or array-like, default=100
        Penalties, or how many of them to space evenly in log scale from 1 to 1e-7.
    gammas : array-like, default=None
        Kernel widths to try ("scale" and the like or numbers); None means `gamma` only.
    r : float or array-like, default=inf
        Exponent of the loss, or several to try, in (1, inf].
    cv : int, splitter or iterable, default=5
        Folds; an integer means stratified folds in the order of the rows.
    selection : {"min", "1se"}, default="min"
        The best mean score (largest penalty among ties), or the largest penalty within one
        standard error of it.
    scoring : str or callable, default="accuracy"
        Any scikit-learn scorer that reads labels or decision values.
    kernel, gamma, degree, coef0, kernel_params, loss, fit_intercept, class_weight, solver
        As in `LeakyHockeyStickClassifier`. ``solver="mm"`` runs the paper's algorithm on every
        fold.
    tol : float, default=1e-9
        For the refit; the path itself is solved to the accuracy at which the scores no longer
        change.
    max_iter : int, default=1000
        As in `LeakyHockeyStickClassifier`.
    approximation, n_components, landmarks, memory_limit
        As in `LeakyHockeyStickClassifier`. An integer `cv` then means folds drawn by row number
        and `random_state`, and all folds and penalties ride in the same passes over the rows.
    n_jobs : int, default=None
        Threads; None means one.
    verbose : int, default=0
        Positive: a progress bar on a terminal.
    random_state : int, RandomState or None, default=None
        Draws landmarks or random features with `approximation`; exact fits are deterministic.

    Attributes
    ----------
    alphas_ : ndarray of shape (n_alphas,)
        The penalties, decreasing.
    alpha_ : float
        The chosen penalty.
    gamma_ : float or None
        The chosen width.
    r_ : float
        The chosen exponent.
    cv_mean_, cv_std_ : ndarrays of shape (n_alphas,)
        Mean score over the folds at the chosen width and exponent, and its standard error.
    cv_results_ : dict
        ``"r"``, ``"gamma"``, and ``"scores"`` of shape (n_r, n_gammas, n_alphas, n_folds).
    alpha_min_, alpha_1se_ : float
        What the two selection rules choose.
    path_ : RegularizationPath or list of them
        Intercepts, dual coefficients, objective and duality gap of the refit at every penalty
        (one path per class when there are more than two).
    classes_, dual_coef_, intercept_, intercept_interval_, coef_, support_, support_vectors_, \
n_support_, kernel_, objective_, duality_gap_, duality_gaps_, kkt_residual_, kkt_residuals_, \
n_iter_, solver_, approximation_, n_features_in_, feature_names_in_
        Of the refit at `alpha_`; see `LeakyHockeyStickClassifier`.

    See Also
    --------
    buttress.inspection.PathDisplay : The cross-validation curve with both choices.

    Notes
    -----
    One Gram matrix serves all penalties and folds. For up to about 260 rows Newton's method runs
    down the path of every fold; above that all folds and penalties are columns of matrix
    products, at a little more than 2 n² operations for each of some five iterations a column.
    Folds scored by accuracy stop once the signs of their held-out scores are certain.
    Memory: the Gram matrix in double and single precision and n numbers per column.

    References
    ----------
    .. [1] O. Kwon and H. Zou, "Leaky hockey stick loss: the first negatively divergent
       margin-based loss function for classification", JMLR 24, 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from buttress import LeakyHockeyStickClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LeakyHockeyStickClassifierCV(alphas=20).fit(X, y)
    >>> bool(model.cv_mean_.max() > 0.95)
    True
    """

    def __init__(
        self,
        alphas: Any = 100,
        *,
        gammas: Any = None,
        r: Any = math.inf,
        cv: Any = 5,
        selection: str = "min",
        scoring: Any = "accuracy",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        kernel_params: Any = None,
        loss: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        approximation: str | None = None,
        n_components: int = 1000,
        landmarks: str = "uniform",
        memory_limit: Any = None,
        tol: float = 1e-9,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.alphas = alphas
        self.gammas = gammas
        self.r = r
        self.cv = cv
        self.selection = selection
        self.scoring = scoring
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.approximation = approximation
        self.n_components = n_components
        self.landmarks = landmarks
        self.memory_limit = memory_limit
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LeakyHockeyStickClassifierCV:
        """Solve the path on all folds, choose, and keep the model on all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` their square Gram matrix.
        y : array-like of shape (n_samples,)
            Labels, two or more kinds.
        sample_weight : array-like of shape (n_samples,), optional
            Used in the fits and in the scores of held-out rows.

        Returns
        -------
        self
        """
        alphas = _penalties(self.alphas)
        exponents = check_values("r", self.r, "(1, inf]")
        check_option("selection", self.selection, ("min", "1se"))
        self._check_shared_parameters()
        scaled = self._scaled_fit(X, y, sample_weight, cv=self.cv)
        if scaled is not None:
            labels = scaled.labels
            fit_scaled_leaky_cv(
                self,
                scaled,
                alphas,
                exponents,
                _Candidate,
                lambda values, fold, index: _KnownScores(labels, values),
            )
            return self
        data = self._training_set(X, y, sample_weight)
        folds = classification_folds(self.cv, data.X, data.classes[data.codes], rows=data.rows)
        widths = check_widths(self.gammas) or [None]

        search = _Search(self, data, folds, alphas)
        table = np.empty((len(exponents), len(widths), len(alphas), len(folds)))
        best: _Candidate | None = None
        total = len(exponents) * len(widths) * (len(folds) + 1) * data.n_problems
        threads = blas_threads_for(self._dense_order(data))
        with threads, progress(type(self).__name__, total, self.verbose) as advance:
            for j, width in enumerate(widths):
                kernel = self._make_kernel(data, gamma=width)
                problem = make_problem(self, data, kernel, None, path_tol=search.path_tol)
                for i, r in enumerate(exponents):
                    found = search.run(problem, make_loss(self.loss, r), r, advance)
                    table[i, j] = found.scores
                    if best is None or found.beats(best):
                        best = found
        assert best is not None
        self._choose(alphas, best)
        self.cv_results_ = {
            "r": np.array(exponents),
            "gamma": np.array(widths, dtype=object),
            "scores": table,
        }
        with blas_threads_for(self._dense_order(data)):
            self._keep_refit(data, best, alphas)
        return self

    def _choose(self, alphas: Array, best: _Candidate) -> None:
        self.alphas_ = alphas
        self.cv_mean_, self.cv_std_ = best.mean, best.standard_error
        self.alpha_min_ = float(alphas[best.index])
        threshold = best.mean[best.index] - best.standard_error[best.index]
        self.alpha_1se_ = float(alphas[np.argmax(best.mean >= threshold)])
        self.alpha_ = self.alpha_min_ if self.selection == "min" else self.alpha_1se_
        self.r_ = best.r

    def _keep_refit(self, data: TrainingSet, best: _Candidate, alphas: Array) -> None:
        problem, paths = best.problem, best.refit
        targets = data.targets.T
        index = int(np.flatnonzero(alphas == self.alpha_)[0])
        path = [problem.certified(y, alphas, paths, q) for q, y in enumerate(targets)]
        self.path_ = path[0] if len(path) == 1 else path
        if paths.method == "mm":
            models = [one.at(index) for one in path]
        else:
            models = [
                problem.finished(y, self.alpha_, problem.refined(y, self.alpha_, paths, q, index))
                for q, y in enumerate(targets)
            ]
        self._store_paths(data, problem.kernel, models, paths.method)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """One width and exponent: scores of every penalty and fold, and the refit's path."""

    problem: LeakyProblem
    r: float
    scores: Array
    refit: Paths

    @property
    def mean(self) -> Array:
        return np.asarray(self.scores.mean(axis=1))

    @property
    def standard_error(self) -> Array:
        n_folds = self.scores.shape[1]
        if n_folds == 1:
            return np.zeros(len(self.scores))
        return np.asarray(self.scores.std(axis=1, ddof=1) / np.sqrt(n_folds))

    @property
    def index(self) -> int:
        """The best penalty; the largest among ties (up to rounding of the mean)."""
        mean = self.mean
        return int(np.argmax(mean >= mean.max() - 1e-12))

    def beats(self, other: _Candidate) -> bool:
        return bool(self.mean.max() > other.mean.max() + 1e-12)


class _Search:
    """The folds of one fit, scored for any width and exponent."""

    def __init__(self, estimator: Any, data: TrainingSet, folds: list[Fold], alphas: Array) -> None:
        self.estimator = estimator
        self.data = data
        self.folds = folds
        self.alphas = alphas
        self.labels = data.classes[data.codes]
        n = len(data.codes)
        omegas = np.zeros((len(folds) + 1, n))
        for omega, (train, _) in zip(omegas, folds, strict=False):
            np.add.at(omega, train, data.weights[train])
        omegas[-1] = data.weights
        omegas /= omegas.sum(axis=1, keepdims=True)
        # problems: for every fold (the refit last) all classes
        self.omegas = np.repeat(omegas, data.n_problems, axis=0)
        self.targets = np.tile(data.targets.T, (len(folds) + 1, 1))

    @property
    def signs_suffice(self) -> bool:
        """The accuracy of two classes on the folds asks for no more than signs."""
        return bool(self.data.n_problems == 1 and self.estimator.scoring == "accuracy")

    @property
    def path_tol(self) -> float:
        return _KEPT_TOL if self.signs_suffice else _PATH_TOL

    def run(self, problem: LeakyProblem, loss: Any, r: float, advance: Any) -> _Candidate:
        """Solve everything for one width and exponent, and score the held-out rows."""
        problem = LeakyProblem(**{**vars(problem), "loss": loss})
        q = self.data.n_problems
        signs_only = np.arange(len(self.targets)) < len(self.folds) * q
        signs_only &= self.signs_suffice
        paths = problem.solve(self.targets, self.omegas, self.alphas, advance, signs_only)
        scores = np.empty((len(self.alphas), len(self.folds)))
        for number, (_, test) in enumerate(self.folds):
            decision = [
                paths.scores_at(one, test) + paths.intercept[one][:, None]
                for one in range(number * q, (number + 1) * q)
            ]
            scores[:, number] = self._fold_scores(np.stack(decision, axis=2), test)
        return _Candidate(problem, r, scores, paths.last(len(self.folds) * q))

    def _fold_scores(self, decision: Array, test: NDArray[Any]) -> Array:
        """Scores of the L models with decision values of shape (L, rows, problems)."""
        weight = None if self.data.weight is None else self.data.weight[test]
        if self.estimator.scoring == "accuracy":
            codes = (
                (decision[:, :, 0] > 0).astype(int)
                if decision.shape[2] == 1
                else decision.argmax(axis=2)
            )
            right = codes == self.data.codes[test]
            return np.asarray(np.average(right, axis=1, weights=weight))
        found = np.empty(len(decision))
        rows, labels = self.data.X[test], self.labels[test]
        options = {} if weight is None else {"sample_weight": weight}
        for index, values in enumerate(decision):
            model = _KnownScores(self.data.classes, values)
            scorer = check_scoring(model, scoring=self.estimator.scoring)
            found[index] = scorer(model, rows, labels, **options)
        return found


class _KnownScores(ClassifierMixin, BaseEstimator):
    """Decision values of held-out rows in the form that scikit-learn's scorers read."""

    def __init__(self, classes: NDArray[Any], values: Array) -> None:
        self.classes = classes
        self.values = values
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> _KnownScores:
        return self

    def decision_function(self, X: Any) -> Array:
        return self.values[:, 0] if self.values.shape[1] == 1 else self.values

    def predict(self, X: Any) -> NDArray[Any]:
        values = self.decision_function(X)
        index = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[index])


def _penalties(alphas: Any) -> Array:
    """The penalties, decreasing."""
    if isinstance(alphas, Real) and not isinstance(alphas, bool):
        count = int(check_number("alphas", alphas, "[1, inf)", integer=True))
        return np.asarray(10.0 ** np.linspace(*_DEFAULT_DECADES, count))
    try:
        values = check_values("alphas", alphas, "(0, inf)")
    except ValueError:
        raise ValueError(
            f"alphas={alphas!r} is out of range: expected a number of penalties, or positive "
            "finite numbers."
        ) from None
    return np.ascontiguousarray(np.unique(values)[::-1])
