"""The uncertainty-set classifier with its radius and kernel width chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.blocks.base import take_rows
from buttress.classifiers.approximation import ApproximationMixin
from buttress.classifiers.base import BaseKernelClassifier
from buttress.classifiers.parameters import (
    check_number,
    check_option,
    check_values,
)
from buttress.classifiers.row_strategies import ScaledFit
from buttress.classifiers.set_machines import (
    BIASES,
    choose_bias,
    gram_geometry,
    make_set_loss,
    warn_few_distinct_rows,
)
from buttress.classifiers.stopping import ended_by_limit
from buttress.classifiers.training import TrainingSet
from buttress.classifiers.uncertainty_set import UncertaintySetClassifier
from buttress.model_selection._exact import ExactSearch
from buttress.model_selection._folds import Fold, fold_kernels
from buttress.model_selection._mapped_candidates import Candidates, set_candidates
from buttress.model_selection._results import FoldScores, Metadata, standard_error
from buttress.model_selection._search import SearchMixin
from buttress.solvers.sets.distance import distance_path

# The scores, not the solutions, are compared: a held-out sign needs no more digits. On 300 rows of
# eleven IDA sets none of 1100 fold scores differs from those of 1e-8, in 0.55 of the time; with
# 1e-3 six do.
_SCORE_PRECISION = 1e-4
# The grid of an integer `radii`: scores of this size at its ends.
_SMALLEST_SCORE, _LARGEST_SCORE = 0.3, 300.0
# Rows that the spread is taken from: within 1 % of 5000 on banana, image and covtype_sample.
_SPREAD_ROWS = 1000


class UncertaintySetClassifierCV(SearchMixin, ApproximationMixin, BaseKernelClassifier):
    """`UncertaintySetClassifier` with `radius` and kernel width chosen by cross-validation.

    Parameters
    ----------
    radii : int or array-like, default=20
        The radii to try, or their number: a logarithmic grid that begins where the scores are
        small compared with one and ends where they are large.
    gammas : "auto", sequence or None, default=None
        Kernel widths to try: numbers or names as for `gamma`; "auto" is 1/4, 1 and 4 times
        `gamma`; None is `gamma` alone. Kernels without a width ignore it.
    cv : int, splitter or iterable, default=5
        Folds as in scikit-learn; an integer means stratified folds.
    scoring : str or callable, default="accuracy"
        A scikit-learn scorer.
    loss, h, omega, nu, bias, kernel, gamma, degree, coef0, kernel_params, class_weight, tol, \
max_iter
        As in `UncertaintySetClassifier`.
    approximation, n_components, landmarks, memory_limit, random_state
        As in `UncertaintySetClassifier`. An integer `cv` then means folds drawn by row number and
        `random_state`, and all folds and radii ride in the same passes over the rows.
    n_jobs : int, default=None
        Threads for widths, or for the folds of one width.
    verbose : int, default=0
        Positive: a progress bar on a terminal.

    Attributes
    ----------
    radii_ : ndarray of shape (n_radii,)
        The radii tried.
    radius_ : float
        The one chosen.
    gammas_ : ndarray of shape (n_gammas,)
        The widths tried; NaN for a kernel without one.
    gamma_ : float or None
        The width chosen; the widest kernel and then the smallest radius among equals.
    cv_mean_, cv_std_ : ndarray of shape (n_gammas, n_radii)
        Mean score over the folds, and its standard error.
    best_params_, best_score_, best_index_, best_estimator_
        As in `GridSearchCV`.
    cv_results_ : dict
        As `GridSearchCV` has it: ``params``, ``param_...``, ``split0_test_score`` and so on,
        ``mean_test_score``, ``std_test_score`` and ``rank_test_score``.
    classes_, dual_coef_, intercept_, coef_, support_, support_vectors_, n_support_, kernel_, \
loss_, rho_, set_weights_, set_levels_, uncertainty_sets_, objective_, duality_gap_, \
duality_gaps_, n_iter_, solver_, approximation_, n_features_in_, feature_names_in_
        Of the model refitted on all rows; see `UncertaintySetClassifier`. With
        ``approximation="fourier"`` also ``random_weights_``, ``random_phase_`` and
        ``feature_coef_``.

    Notes
    -----
    One Gram matrix per width; a fold is a pair of index sets into it. In a fold the radii are
    solved from small to large, each started from the one before: one to three Newton steps per
    radius, of which most refine an older factorisation (n^2 operations) instead of making one
    (n^3/3).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from buttress import UncertaintySetClassifierCV
    >>> X, y = make_moons(120, noise=0.2, random_state=0)
    >>> model = UncertaintySetClassifierCV(radii=[1.0, 10.0, 100.0], gammas=[0.5, 5.0]).fit(X, y)
    >>> model.cv_mean_.shape, bool(model.score(X, y) > 0.9)
    ((2, 3), True)
    """

    _machine = UncertaintySetClassifier
    _centres_rows = True

    def __init__(
        self,
        radii: Any = 20,
        *,
        gammas: Any = None,
        cv: Any = 5,
        scoring: Any = "accuracy",
        loss: Any = "ellipsoid",
        h: float = 0.0,
        omega: float = 1.0,
        nu: float = 0.5,
        bias: str = "error_rate",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        kernel_params: Any = None,
        class_weight: Any = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
        approximation: str | None = None,
        n_components: int = 1000,
        landmarks: str = "uniform",
        memory_limit: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.radii = radii
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.h = h
        self.omega = omega
        self.nu = nu
        self.bias = bias
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.approximation = approximation
        self.n_components = n_components
        self.landmarks = landmarks
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        make_set_loss(self.loss, self.h, self.omega, self.nu)
        check_option("bias", self.bias, BIASES)

    def _combinations(self, search: Any) -> list[dict[str, Any]]:
        if isinstance(search, ExactSearch):
            if self.kernel != "precomputed":
                warn_few_distinct_rows(type(self).__name__, search.data.X)
            radii = self._radii(lambda: self._spread(search.data))
        else:
            radii = self._radii(lambda: self._scaled_spread(search.fit))
        return [{"radius": float(radius)} for radius in radii]

    def _mapped_candidates(self, *given: Any) -> Candidates:
        return set_candidates(self, *given)

    def _radii(self, spread: Callable[[], float]) -> Array:
        if isinstance(self.radii, Integral) and not isinstance(self.radii, bool):
            count = int(check_number("radii", self.radii, "[1, 1000000]", integer=True))
            grid = np.geomspace(_SMALLEST_SCORE, _LARGEST_SCORE, count) / spread()
            return np.asarray(grid)
        try:
            return np.unique(check_values("radii", self.radii, "(0, inf)"))
        except ValueError:
            raise ValueError(
                f"radii={self.radii!r} is not accepted: expected a number of radii or positive "
                "numbers."
            ) from None

    def _spread(self, data: TrainingSet) -> float:
        """Root mean squared distance of the rows from their mean in feature space."""
        kernel = self._make_kernel(data)
        weight = data.weights / data.weights.sum()
        take = np.linspace(0, len(weight) - 1, min(len(weight), _SPREAD_ROWS)).astype(int)
        weight = weight[take] / weight[take].sum()
        X = data.X[np.ix_(take, take)] if self.kernel == "precomputed" else data.X[take]
        return _root_variance(kernel(X).astype(np.float64), weight)

    def _scaled_spread(self, scaled: ScaledFit) -> float:
        """The same from rows in blocks."""
        n = scaled.source.n_rows
        taken = take_rows(scaled.source, np.linspace(0, n - 1, min(n, _SPREAD_ROWS)).astype(int))
        weight = np.ones(len(taken)) if taken.weight is None else taken.weight
        K = self._scaled_similarity(scaled)(taken.X).astype(np.float64)
        return _root_variance(K, weight / weight.sum())

    def _prefer(self, candidates: list[dict[str, Any]], table: Array, search: Any) -> int:
        """Among equals the widest kernel, then the smallest radius."""
        means = table.mean(axis=1)
        best = np.flatnonzero(means >= means.max() - 1e-12)
        return int(
            min(best, key=lambda k: (candidates[k]["gamma"] or 0.0, candidates[k]["radius"]))
        )

    def _fold_scores(
        self, search: ExactSearch, K: Array, fold: Fold, combinations: list[dict[str, Any]]
    ) -> FoldScores:
        """The score of every radius on one fold, by one path per binary problem."""
        data = search.data
        train = fold[0]
        inner, outer = fold_kernels(K, fold)
        loss = make_set_loss(self.loss, self.h, self.omega, self.nu)
        geometry = gram_geometry(inner)
        radii = [values["radius"] for values in combinations]
        weight = data.weights[train]
        coefs, biases = [], []
        short = np.zeros(len(radii), dtype=bool)
        for target in data.targets[train].T:
            path = distance_path(
                geometry,
                target,
                loss,
                radii,
                sample_weight=weight,
                max_iter=int(self.max_iter),
                precision=_SCORE_PRECISION,
            )
            coefs.append([result.coef for result in path])
            biases.append([choose_bias(result, target, weight, self.bias) for result in path])
            # a gap that is as small as the scores ask for counts as closed
            closed = [each.gap <= _SCORE_PRECISION * max(1.0, abs(each.objective)) for each in path]
            short |= ended_by_limit(closed, [each.n_iter for each in path], self.max_iter)
        scores = search.expansion_scores(
            outer, fold, combinations, np.array(coefs), np.array(biases)
        )
        return FoldScores(scores, short)

    def _fit_exact(self, data: TrainingSet, metadata: Metadata) -> None:
        super()._fit_exact(data, metadata)
        best = self.best_estimator_
        # the refit saw the Gram matrix of the rows with weight; the user's rows are asked for
        weights = np.zeros((*best.set_weights_.shape[:-1], data.n_rows))
        weights[..., data.rows] = best.set_weights_
        self.set_weights_ = best.set_weights_ = weights
        if self.kernel != "precomputed":
            best._set_rows = (data.X, data.targets.T, data.weight)

    @property
    def uncertainty_sets_(self) -> Any:
        """The sets of the refitted model; see `UncertaintySetClassifier`."""
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("uncertainty_sets_ needs a fitted model.")
        return self.best_estimator_.uncertainty_sets_

    def _describe(self, candidates: list[dict[str, Any]], table: Array) -> None:
        self.radius_ = float(self.best_params_["radius"])
        self.radii_ = np.unique([c["radius"] for c in candidates])
        shape = (-1, len(self.radii_))
        widths = [np.nan if c["gamma"] is None else c["gamma"] for c in candidates]
        self.gammas_ = np.array(widths, dtype=np.float64).reshape(shape)[:, 0]
        self.cv_mean_ = table.mean(axis=1).reshape(shape)
        self.cv_std_ = standard_error(table).reshape(shape)


def _root_variance(K: Array, weight: Array) -> float:
    variance = float(weight @ np.diagonal(K) - weight @ K @ weight)
    return float(np.sqrt(variance)) if variance > 0 else 1.0
