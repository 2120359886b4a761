"""The double ramp machine that chooses its penalty and its kernel width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.classifiers.approximation import ApproximationMixin
from buttress.classifiers.base import BaseKernelClassifier
from buttress.classifiers.double_ramp import DoubleRampClassifier
from buttress.classifiers.parameters import check_values
from buttress.classifiers.reject import RejectMixin
from buttress.classifiers.risk_control import RiskControlMixin
from buttress.classifiers.scaled_models import DOUBLE_RAMP_PLAIN, refuse_beside
from buttress.classifiers.stopping import ended_by_limit
from buttress.metrics import (
    CostScorer,
    RejectScorer,
    cost_risk,
    cost_scorer,
    reject_risk,
    reject_scorer,
)
from buttress.model_selection._exact import FOLD_TOLERANCE, ExactSearch
from buttress.model_selection._folds import Fold, fold_kernels
from buttress.model_selection._mapped_candidates import Candidates, double_ramp_candidates
from buttress.model_selection._results import FoldScores
from buttress.model_selection._search import SearchMixin
from buttress.solvers.hinge.kernel_rows import KernelMatrix


class DoubleRampClassifierCV(
    RiskControlMixin, SearchMixin, ApproximationMixin, RejectMixin, BaseKernelClassifier
):
    """Double ramp machine with penalty and kernel width chosen by the 0-d-1 risk.

    Parameters
    ----------
    d : float in (0, 0.5], default=0.2
        Cost of giving no answer, when a wrong one costs 1.
    mu : float in (0, 1], default=1.0
        Width of the ramps' slope.
    Cs : sequence of floats, default=(0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
        Penalties to try.
    costs : array-like of shape (2, 3), optional
        Instead of `d`, for two classes, as in `DoubleRampClassifier`; the search then minimises
        the mean cost.
    gammas : "auto", sequence or None, default=None
        Kernel widths to try: numbers or names as for `gamma`; "auto" is 1/4, 1 and 4 times
        `gamma`; None is `gamma` alone. Kernels without a width ignore it.
    cv : int, splitter or iterable, default=5
        Folds; an integer means stratified ones.
    scoring : str or callable, default="reject_risk"
        "reject_risk" is minus the 0-d-1 risk (with `costs`, the mean cost) on the held-out rows;
        or any scikit-learn scorer.
    init, kernel, gamma, degree, coef0, kernel_params, fit_intercept, class_weight
        As in `DoubleRampClassifier`.
    target_coverage, tol, max_iter, cache_size, random_state
        As in `DoubleRampClassifier`.
    target_risk, confidence, certify_on, noise_rates
        As in `DoubleRampClassifier`; with "held_out" the search does not see those rows either.
    approximation, n_components, landmarks, memory_limit
        As in `DoubleRampClassifier`. An integer `cv` then means folds drawn by row number and
        `random_state`, and all folds and penalties ride in the same passes over the rows.
    n_jobs : int, optional
        Widths, or folds of one width, worked on at the same time, in threads.
    verbose : int, default=0
        A progress bar on a terminal when positive.

    Attributes
    ----------
    C_ : float
        The chosen penalty.
    gamma_ : float or None
        The chosen width.
    best_params_ : dict
        Both.
    best_score_ : float
        Mean score of the choice over the folds.
    cv_results_ : dict
        As `GridSearchCV` has it: ``params``, ``param_...``, ``split0_test_score`` and so on,
        ``mean_test_score``, ``std_test_score`` and ``rank_test_score``.
    best_index_ : int
        Of the choice in ``cv_results_``.
    best_estimator_ : DoubleRampClassifier
        Refitted on all rows. Its fitted attributes (``rho_``, ``thresholds_``,
        ``support_kind_``, ``rejection_rate_``, ``dual_coef_``, ``intercept_``, ``support_``,
        ``support_vectors_``, ``n_support_``, ``coef_``, ``kernel_``, ``objective_``,
        ``objective_path_``, ``duality_gap_``, ``duality_gaps_``, ``kkt_residual_``,
        ``kkt_residuals_``, ``n_iter_``, ``solver_``, ``classes_``, ``approximation_``; with an
        approximation ``smoothing_width_`` and no residuals, and ``random_weights_``,
        ``random_phase_`` and ``feature_coef_`` with "fourier") are this object's too.
    risk_certificate_ : RiskCertificate
        With `target_risk`: ``n`` answered rows of the test, ``errors`` among them, the upper
        ``bound`` of the error, and more.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    One Gram matrix per width serves all folds and penalties. Costs one fit of a fold for every
    fold, width and penalty, and one fit of all rows. Of equal candidates the first is chosen:
    the smallest width, then the smallest penalty, with the default grid.

    References
    ----------
    N. Manwani, K. Desai, S. Sasidharan and R. Sundararajan, "Double ramp loss based reject
    option classifier", Pacific-Asia Conference on Knowledge Discovery and Data Mining, 2015.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(120, noise=0.25, random_state=0)
    >>> model = DoubleRampClassifierCV(d=0.2, Cs=[1.0, 10.0], cv=3).fit(X, y)
    >>> model.best_score_ > -0.15
    True
    """

    _machine = DoubleRampClassifier
    _centres_rows = True

    def __init__(
        self,
        d: float = 0.2,
        mu: float = 1.0,
        Cs: Sequence[float] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
        *,
        costs: Any = None,
        gammas: Any = None,
        cv: Any = 5,
        scoring: Any = "reject_risk",
        init: str = "zero",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        kernel_params: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        target_coverage: float | None = None,
        target_risk: float | None = None,
        confidence: float = 0.9,
        certify_on: str = "held_out",
        noise_rates: Any = None,
        tol: float = 1e-10,
        max_iter: int = 1000,
        cache_size: float = 1000.0,
        approximation: str | None = None,
        n_components: int = 1000,
        landmarks: str = "uniform",
        memory_limit: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.d = d
        self.mu = mu
        self.Cs = Cs
        self.costs = costs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.init = init
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.target_coverage = target_coverage
        self.target_risk = target_risk
        self.confidence = confidence
        self.certify_on = certify_on
        self.noise_rates = noise_rates
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.approximation = approximation
        self.n_components = n_components
        self.landmarks = landmarks
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_values("Cs", self.Cs, "(0, inf)")
        self._make_estimator()._check_parameters()

    def _scorer(self) -> Any:
        by_risk = isinstance(self.scoring, str) and self.scoring == "reject_risk"
        if not by_risk:
            return self.scoring
        return reject_scorer(self.d) if self.costs is None else cost_scorer(self.costs)

    def _combinations(self, search: Any) -> list[dict[str, Any]]:
        return [{"C": C} for C in check_values("Cs", self.Cs, "(0, inf)")]

    def _mapped_candidates(self, *given: Any) -> Candidates:
        refuse_beside(self, DOUBLE_RAMP_PLAIN)
        return double_ramp_candidates(self, *given)

    def _fold_scores(
        self, search: ExactSearch, K: Array, fold: Fold, combinations: list[dict[str, Any]]
    ) -> FoldScores:
        """By the risk, every penalty starts from the solution for the one before it."""
        scorer = self._scorer()
        by_cost = isinstance(scorer, (RejectScorer, CostScorer))
        if not by_cost or self.target_coverage is not None:
            return super()._fold_scores(search, K, fold, combinations)
        data, (train, test) = search.data, fold
        gram, outer = fold_kernels(K, fold)
        inner = KernelMatrix(gram)
        weight = search.weight(train)
        scored = search.metadata.for_scorer(data.rows[test], search.weight(test))
        warm: list[Any] = [None] * data.n_problems
        scores, short = [], []
        for values in combinations:
            model = self._make_estimator(**values)
            model._check_parameters()
            tol = max(model._tolerance(data), FOLD_TOLERANCE)
            warm = [
                model._solve(inner, y, weight, tol, w)
                for y, w in zip(data.targets[train].T, warm, strict=True)
            ]
            ended = [ended_by_limit(w.converged, w.n_iter, self.max_iter) for w in warm]
            short.append(any(ended))
            pred, rejected = model._answers(warm, data.classes, outer)
            given = (search.labels[test], pred, rejected)
            if isinstance(scorer, CostScorer):
                risk = cost_risk(*given, scorer.costs, labels=data.classes, **scored)
            else:
                risk = reject_risk(*given, scorer.d, **scored)
            scores.append(-float(np.asarray(risk)))
        return FoldScores(scores, short)

    def _prefer(self, candidates: list[dict[str, Any]], table: Array, search: Any) -> int:
        # risks are ratios of counts: what differs by rounding only is equal
        return int(np.argmax(np.round(table.mean(axis=1), 10)))

    def _describe(self, candidates: list[dict[str, Any]], table: Array) -> None:
        self.C_ = float(self.best_params_["C"])
