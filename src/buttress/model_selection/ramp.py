"""The ramp machine that chooses its penalty, its clipping margin and its kernel width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import Array
from buttress.classifiers.approximation import ApproximationMixin
from buttress.classifiers.base import BaseKernelClassifier
from buttress.classifiers.parameters import check_option, check_values
from buttress.classifiers.ramp import RampClassifier
from buttress.classifiers.row_strategies import ScaledFit
from buttress.classifiers.stopping import ended_by_limit, noted_not_warned
from buttress.classifiers.training import TrainingSet
from buttress.model_selection._exact import FOLD_TOLERANCE, ExactSearch
from buttress.model_selection._folds import Fold, fold_kernels
from buttress.model_selection._mapped_candidates import Candidates, ramp_candidates
from buttress.model_selection._results import FoldScores, Metadata
from buttress.model_selection._search import SearchMixin
from buttress.noise.core.class_noise import class_noise
from buttress.noise.core.suspects import LabelSuspects
from buttress.solvers.hinge.kernel_rows import KernelMatrix

# Candidates within this many standard errors of the best accuracy count as equally good. It buys
# smoothness, not accuracy: on 300 rows of eleven IDA sets, five splits, the error is 0.2 +- 0.1
# points higher than with the best accuracy alone on clean labels, and the same (0.0 +- 0.1) with a
# fifth of the labels flipped (0.5 +- 0.4 higher with a third).
_AS_GOOD = 0.25


class RampClassifierCV(SearchMixin, ApproximationMixin, BaseKernelClassifier):
    """Ramp machine with penalty, clipping margin and kernel width chosen by cross-validation.

    Parameters
    ----------
    Cs : sequence of floats, default=(0.1, 1.0, 10.0, 100.0)
        Penalties to try.
    ss : sequence of floats in [-inf, 0], default=(-inf, -1.0)
        Clipping margins to try; -inf is the support vector machine.
    gammas : "auto", sequence or None, default=None
        Kernel widths to try: numbers or names as for `gamma`; "auto" is 1/4, 1 and 4 times
        `gamma`; None is `gamma` alone. Kernels without a width ignore it.
    cv : int, splitter or iterable, default=5
        Folds; an integer means stratified ones.
    scoring : str or callable, default="accuracy"
        Any scikit-learn scorer.
    class_noise : {"auto", None}, default="auto"
        "auto": when the held-out scores of the best candidate show that the labels of one class
        are wrong clearly more often than those of the other, the final fit weights the given
        labels so that the boundary is the one of clean labels (see the Notes). Two classes, and
        no `class_weight`, only. None: never.
    kernel, gamma, degree, coef0, kernel_params, fit_intercept, class_weight
        As in `RampClassifier`.
    tol, max_iter, cache_size, random_state
        As in `RampClassifier`.
    approximation, n_components, landmarks, memory_limit
        As in `RampClassifier`. An integer `cv` then means folds drawn by row number and
        `random_state`, and `class_noise` is not used.
    n_jobs : int, optional
        Widths, or folds of one width, worked on at the same time, in threads.
    verbose : int, default=0
        A progress bar on a terminal when positive.

    Attributes
    ----------
    C_, s_ : float
        The chosen penalty and clipping margin.
    gamma_ : float or None
        The chosen width.
    noise_rates_ : dict
        Estimated share of wrong labels among the rows that truly belong to each class, from the
        held-out scores of the chosen candidate (empty with an approximation).
    noise_weights_ : dict
        Factor of the weights of each given label in the final fit; all 1 unless the rates
        differ clearly.
    best_params_ : dict
        C, s and gamma.
    best_score_ : float
        Mean score of the choice over the folds.
    cv_results_ : dict
        As `GridSearchCV` has it: ``params``, ``param_...``, ``split0_test_score`` and so on,
        ``mean_test_score``, ``std_test_score`` and ``rank_test_score``.
    best_index_ : int
        Of the choice in ``cv_results_``.
    best_estimator_ : RampClassifier
        Refitted on all rows. Its fitted attributes (``ignored_``, ``suspect_scores_``,
        ``dual_coef_``, ``intercept_``, ``support_``, ``support_vectors_``, ``n_support_``,
        ``coef_``, ``kernel_``, ``objective_``, ``objective_path_``, ``kkt_residual_``,
        ``kkt_residuals_``, ``duality_gap_``, ``duality_gaps_``, ``n_iter_``, ``solver_``,
        ``ball_active_``, ``classes_``, ``approximation_``; with an approximation
        ``smoothing_width_`` and no residuals, and ``random_weights_``, ``random_phase_`` and
        ``feature_coef_`` with "fourier") are this object's too.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    One Gram matrix per width serves all folds, penalties and margins. In a fold every penalty
    starts from the variables of the one before it and every margin from its penalty's support
    vector machine, so that a candidate costs a fraction of a fit; then one fit of all rows, and
    one of every fold to see the noise of the labels.

    Under label noise the accuracies of candidates differ less and scatter more. With
    ``scoring="accuracy"`` all candidates within a quarter of a binomial standard error of the
    best count as equally good, and among them the smoothest is taken: the smallest width, then
    the smallest penalty, then the better score. Any other scorer: the best score.

    Uniform noise leaves the best boundary where it is. When the label of class 1 is wrong with
    probability r_1 and that of class 0 with r_0, the share of given labels 1 on the clean
    boundary is ``(1 - r_1 + r_0) / 2``, not one half, and training on the labels as given moves
    the boundary towards the noisier class. The rates are estimated from the held-out scores by
    `buttress.noise.fit_label_noise`. If the labels show that they differ, labels 1 are weighted by
    ``1 + r_1 - r_0`` and labels 0 by ``1 - r_1 + r_0`` in the final fit, unless that raises the
    weighted error of the held-out rows.

    References
    ----------
    R. Collobert, F. Sinz, J. Weston and L. Bottou, "Trading convexity for scalability",
    International Conference on Machine Learning, 2006.

    N. Natarajan, I. S. Dhillon, P. Ravikumar and A. Tewari, "Learning with noisy labels",
    Advances in Neural Information Processing Systems 26, 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(120, noise=0.2, random_state=0)
    >>> model = RampClassifierCV(Cs=[1.0, 10.0], cv=3).fit(X, y)
    >>> model.best_score_ > 0.9
    True
    """

    _machine = RampClassifier
    _centres_rows = True

    def __init__(
        self,
        Cs: Sequence[float] = (0.1, 1.0, 10.0, 100.0),
        *,
        ss: Sequence[float] = (-np.inf, -1.0),
        gammas: Any = None,
        cv: Any = 5,
        scoring: Any = "accuracy",
        class_noise: str | None = "auto",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        kernel_params: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-8,
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
        self.Cs = Cs
        self.ss = ss
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.class_noise = class_noise
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
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

    def suspects(self, X: Any, y: Any, cv: Any = 5, fdr: float = 0.1) -> LabelSuspects:
        """Rows whose label is probably wrong, by models that have not seen them.

        The chosen parameters are used; see `RampClassifier.suspects`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        cv : int, splitter or iterable of index pairs, default=5
        fdr : float in (0, 1), default=0.1

        Returns
        -------
        LabelSuspects
        """
        check_is_fitted(self)
        best: RampClassifier = self.best_estimator_
        return best.suspects(X, y, cv=cv, fdr=fdr)

    # -- the search ------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_option("class_noise", self.class_noise, ["auto", None])
        check_values("Cs", self.Cs, "(0, inf)")
        check_values("ss", self.ss, "[-inf, 0]")

    def _combinations(self, search: Any) -> list[dict[str, Any]]:
        penalties = check_values("Cs", self.Cs, "(0, inf)")
        margins = check_values("ss", self.ss, "[-inf, 0]")
        return [{"C": C, "s": s} for C in penalties for s in margins]

    def _fold_scores(
        self, search: ExactSearch, K: Array, fold: Fold, combinations: list[dict[str, Any]]
    ) -> FoldScores:
        """Every penalty starts from the one before it, every margin from its penalty's SVM."""
        train = fold[0]
        gram, outer = fold_kernels(K, fold)
        inner = KernelMatrix(gram)
        weight = search.weight(train)
        coefs = np.empty((search.data.n_problems, len(combinations), len(train)))
        biases = np.empty(coefs.shape[:2])
        short = np.zeros(len(combinations), dtype=bool)
        penalties = sorted({values["C"] for values in combinations})
        for p, y in enumerate(search.data.targets[train].T):
            svm: Any = None
            for C in penalties:
                machine = self._make_estimator(C=C, s=-np.inf)
                machine._check_parameters()
                tol = max(machine._tolerance(search.data), FOLD_TOLERANCE)
                svm = machine._solve(inner, y, weight, tol, svm)
                for k, values in enumerate(combinations):
                    if values["C"] != C:
                        continue
                    solution = svm
                    if values["s"] != -np.inf:
                        solution = self._make_estimator(**values)._solve(inner, y, weight, tol, svm)
                    coefs[p, k], biases[p, k] = solution.c, solution.b
                    short[k] |= ended_by_limit(solution.converged, solution.n_outer, self.max_iter)
        scores = search.expansion_scores(outer, fold, combinations, coefs, biases)
        return FoldScores(scores, short)

    def _mapped_candidates(self, *given: Any) -> Candidates:
        return ramp_candidates(self, *given)

    def _prefer(self, candidates: list[dict[str, Any]], table: Array, search: Any) -> int:
        """The smoothest of the candidates that are as good as the best."""
        means = table.mean(axis=1)
        if self.scoring != "accuracy" or not isinstance(search, ExactSearch):
            return int(np.argmax(means))
        best = float(means.max())
        margin = _AS_GOOD * np.sqrt(max(best * (1.0 - best), 0.0) / len(search.labels))
        good = np.flatnonzero(means >= best - margin - 1e-12)
        return int(
            min(
                good.tolist(),
                key=lambda i: (candidates[i]["gamma"] or 0.0, candidates[i]["C"], -means[i], i),
            )
        )

    def _describe(self, candidates: list[dict[str, Any]], table: Array) -> None:
        self.C_ = float(self.best_params_["C"])
        self.s_ = float(self.best_params_["s"])

    def _fit_scaled(self, fit: ScaledFit, metadata: Metadata) -> None:
        super()._fit_scaled(fit, metadata)
        self.noise_rates_: dict[Any, float] = {}
        self.noise_weights_: dict[Any, float] = {}

    def _refit_data(self, search: ExactSearch, K: Array, values: dict[str, Any]) -> TrainingSet:
        data = search.data
        scores = self._held_out(search, data, K, values)
        noise = class_noise(scores, data.codes, data.weight)
        names = data.classes.tolist()
        use = self.class_noise == "auto" and self.class_weight is None
        factors = noise.factors if use else np.ones(len(names))
        if not (factors == 1.0).all():
            weighted = replace(data, weight=data.weights * factors[data.codes])
            again = self._held_out(search, weighted, K, values)
            if self._as_good(again, scores, weighted):
                data = weighted
            else:
                factors = np.ones(len(names))
        self.noise_rates_ = dict(zip(names, noise.rates.tolist(), strict=True))
        self.noise_weights_ = dict(zip(names, factors.tolist(), strict=True))
        return data

    def _as_good(self, new: Array, old: Array, data: TrainingSet) -> bool:
        """Whether `new` scores are as good as `old` ones, by the weighted given labels.

        The weights exist to lower this error; where they do not, the rates were wrong.
        """
        weights = data.weights / data.weights.sum()
        new_error, old_error = (
            float(weights @ ((scores[:, 0] > 0) != data.codes)) for scores in (new, old)
        )
        deviation = np.sqrt(old_error * (1.0 - old_error) / len(new))
        return bool(new_error <= old_error + _AS_GOOD * deviation)

    def _held_out(
        self, search: ExactSearch, data: TrainingSet, K: Array, values: dict[str, Any]
    ) -> Array:
        """Scores that the chosen candidate gives to rows it was not trained on."""
        scores = np.zeros((len(search.labels), data.n_problems))
        for train, test in search.folds:
            inner, outer = fold_kernels(K, (train, test))
            weight = None if data.weight is None else data.weight[train]
            model = search.on_gram(values)
            # the search has counted the fits that end early, this candidate's too
            with noted_not_warned():
                model.fit(inner, search.labels[train], sample_weight=weight)
            fold_scores = model.decision_function(outer)
            scores[test] = fold_scores.reshape(len(fold_scores), -1)
        return scores
