"""The ramp machine: a support vector machine that stops listening to rows it cannot fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from buttress._arrays import Array, BoolArray
from buttress.classifiers.approximation import ApproximationMixin
from buttress.classifiers.base import BaseKernelClassifier, of_problems
from buttress.classifiers.kernel_source import kernel_source
from buttress.classifiers.parameters import check_number
from buttress.classifiers.probability import ProbabilityMixin
from buttress.classifiers.row_strategies import ScaledFit, TrainingScores
from buttress.classifiers.scaled_models import fit_scaled_ramp
from buttress.classifiers.stored_hinge import store_hinge_models
from buttress.classifiers.training import TrainingSet
from buttress.noise.core.crossfit import held_out_scores, make_folds
from buttress.noise.core.fitting import estimate_label_noise
from buttress.noise.core.suspects import LabelSuspects, disagreement, judge_labels
from buttress.solvers.hinge.kernel_rows import KernelMatrix
from buttress.solvers.hinge.ramp import RampSolution, RampTerms, solve_ramp, solve_ramp_in_ball


class RampClassifier(ProbabilityMixin, ApproximationMixin, BaseKernelClassifier):
    """Kernel machine with the ramp loss, for training labels that are partly wrong.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the losses against the norm.
    s : float in [-inf, 0], default=-1.0
        The margin at which the loss stops rising: a row with ``y f(x) < s`` has no influence.
        Nearer to 0 ignores more rows; -inf is the support vector machine.
    radius : float > 0, optional
        Minimise the mean loss over ``||f|| <= radius`` instead of the penalised sum; `C` is
        then found by a search and stored in ``C_``.
    kernel, gamma, degree, coef0, kernel_params
        The kernel: a scikit-learn pairwise name, "precomputed" or a callable;
        ``exp(-gamma ||x - z||^2)`` by default, ``gamma`` "scale", "auto", "median" or a number.
    fit_intercept : bool, default=True
        Whether f has a constant term (without a penalty).
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights per label.
    tol : float, default=1e-8
        Bound on the violation of the optimality conditions of every convex step, on the scale
        of f (1e-4 at least for float32 data).
    max_iter : int, default=1000
        Limit on the solver's outer steps, concave-convex ones, per binary problem.
    cache_size : float, default=1000
        Megabytes for the kernel: the whole matrix when it fits; else its latest rows, or none
        where computing them again is cheaper (a Gaussian kernel of up to 64 features).
    approximation : {None, "nystroem", "fourier", "auto"}, default=None
        Stand-in for the kernel beyond some 20 000 rows: landmarks, or random Fourier features
        (RBF and Laplacian kernels). "auto" takes "nystroem" when the exact kernel matrix does
        not fit in `memory_limit`. With one, `X` may also be a path to Parquet or Arrow files or
        a Dask collection, `y` then being the name of the column of labels (or a Dask array).
    n_components : int, default=1000
        Landmarks or random features.
    landmarks : {"uniform", "kmeans++", "leverage"}, default="uniform"
        How landmarks are chosen.
    memory_limit : float or str, default=None
        Megabytes (or text such as "2 GB") for the kernel matrix and for mapped rows; None is
        half of the free memory.
    probability : bool, default=False
        Whether `predict_proba` is wanted. Costs five more fits, of four fifths of the rows each;
        `noise_` then holds the noise model behind it.
    random_state : int, RandomState or None, default=None
        For the shuffled folds of `suspects`, and for landmarks and random features.
    n_jobs : int or None, default=None
        Threads for the fits of `suspects`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    ignored_ : ndarray of bool of shape (n_samples,)
        Training rows clipped by the ramp (with more than two classes, by that of their own
        class's problem). With ``s = -inf`` no row is.
    suspect_scores_ : ndarray of shape (n_samples,)
        In-sample evidence against every row's label, ``-y f(x)`` (for more than two classes the
        best other score minus the own, halved); 0 for rows of weight zero. See `suspects` for
        scores by models that have not seen the row.
    C_ : float, or ndarray of shape (n_classes,)
        The penalty used: `C`, or the one found for `radius`.
    ball_active_ : bool, or ndarray of shape (n_classes,)
        Whether ``||f||`` reached `radius`; False without one.
    dual_coef_, intercept_, support_, support_vectors_, n_support_, coef_
        The expansion ``f(x) = sum dual_coef_ k(support_vectors_, x) + intercept_``; `coef_` for
        the linear kernel only. Their first axis is the binary problem.
    gamma_ : float or None
        The kernel's width.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    objective_ : float, or ndarray of shape (n_classes,)
        The value of the problem in the Notes at the end.
    objective_path_ : ndarray, or list of ndarray
        The objective after every outer step; never increases.
    kkt_residual_ : float
        Violation of the optimality conditions at the end, the worst class. Exact fits only, as
        is `kkt_residuals_`.
    kkt_residuals_ : ndarray of shape (n_problems,)
        Per class.
    duality_gap_ : float
        Of the last convex step, the worst class; with an `approximation` the solver's estimate
        of it, half the squared Newton decrement, which then is the certificate.
    duality_gaps_ : ndarray of shape (n_problems,)
        Per class.
    n_iter_ : int
        Outer steps, the largest over the classes.
    solver_ : str
        "smo"; with an `approximation` (or rows in blocks) "reduction" and, in brackets and
        joined by "+", its methods: "fixed", "sample", "single", "newton" and "lbfgs".
    approximation_ : str or None
        What stood in for the kernel; None for an exact fit. With "nystroem" `support_vectors_`
        are the landmarks; with "fourier" the model is in ``random_weights_``, ``random_phase_``
        and ``feature_coef_``.
    smoothing_width_ : float
        Of an approximate fit: half width of the rounded corner of the hinge. The loss of a row
        is raised by a quarter of it at most.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The problem, over ``f = g + b`` with g in the kernel's space::

        min 1/2 ||g||^2 + C sum_i w_i min([1 - y_i f(x_i)]_+, 1 - s)

    or, with `radius`, ``min sum_i w_i ramp_i / sum_i w_i`` subject to ``||g|| <= radius``. It is
    not convex. The concave-convex procedure starts at the support vector machine with the same
    C, then repeats convex steps in which the rows beyond the ramp are left out, until the set of
    these rows repeats: a local minimum. Two to ten steps are typical; every one after the first
    is warm-started, so a fit costs little more than one support vector machine: between n^2 and
    n^3 operations, memory n^2 numbers or `cache_size`.

    More than two classes: one machine per class against the rest, with one kernel matrix.

    References
    ----------
    R. Collobert, F. Sinz, J. Weston and L. Bottou, "Trading convexity for scalability",
    International Conference on Machine Learning, 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> y[:10] = 1 - y[:10]
    >>> model = RampClassifier(C=10.0).fit(X, y)
    >>> int(model.ignored_[:10].sum()), int(model.ignored_[10:].sum())
    (9, 0)
    """

    _centres_rows = True

    def __init__(
        self,
        C: float = 1.0,
        s: float = -1.0,
        radius: float | None = None,
        *,
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
        probability: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.s = s
        self.radius = radius
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
        self.probability = probability
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit_exact(self, data: TrainingSet) -> None:
        kernel = self._make_kernel(data)
        K = kernel_source(kernel, data, self.cache_size)
        tol = self._tolerance(data)
        solutions = [self._solve(K, target, data.weight, tol) for target in data.targets.T]
        solutions = store_hinge_models(self, data, kernel, solutions, tol)
        problem_of_row = data.codes if len(solutions) > 1 else np.zeros(len(data.codes), dtype=int)
        clipped = np.column_stack([solution.clipped for solution in solutions])
        scores = np.column_stack([solution.g + solution.b for solution in solutions])
        self._store_rows(clipped[np.arange(len(data.codes)), problem_of_row], scores, data)
        paths = [solution.objective_path for solution in solutions]
        self.C_ = of_problems([float(solution.C) for solution in solutions])
        self.ball_active_ = of_problems([bool(solution.ball_active) for solution in solutions])
        self.objective_path_ = paths[0] if len(paths) == 1 else paths
        self.duality_gaps_ = np.array([solution.gap for solution in solutions])
        self.duality_gap_ = float(self.duality_gaps_.max())
        self.solver_ = "smo"
        # the residual of the outer problem certifies, not the gap of its last convex step
        outer = [replace(each, gap=each.violation, n_iter=each.n_outer) for each in solutions]
        self._store_certificates(outer, kind="kkt_residual")

    def suspects(self, X: Any, y: Any, cv: Any = 5, fdr: float = 0.1) -> LabelSuspects:
        """Rows whose label is probably wrong, by models that have not seen them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows to look at; usually those of `fit`. With ``kernel="precomputed"``, their
            Gram matrix.
        y : array-like of shape (n_samples,)
            Their labels as given.
        cv : int, splitter or iterable of index pairs, default=5
            Folds for the cross-fit.
        fdr : float in (0, 1), default=0.1
            Wanted share of correct labels among the rows named.

        Returns
        -------
        LabelSuspects
            Probabilities, suggested labels, noise rates with intervals, and the rows named.

        See Also
        --------
        buttress.LabelAudit : The same with any classifiers, several at once, and groups.

        Notes
        -----
        One Gram matrix, its width fixed from all rows, serves all folds and repeats (an
        approximate machine is fitted to the rows of every fold).
        """
        check_number("fdr", fdr, "(0, 1)")
        data = clone(self)._training_set(X, y)
        labels = data.classes[data.codes]
        folds = make_folds(cv, "auto", data.X, labels, None, self.random_state)
        scores = held_out_scores(*self._ready_for_folds(data), labels, folds, n_jobs=self.n_jobs)
        noise = estimate_label_noise(scores[:, None], labels, held_out=True)
        return judge_labels(scores[:, None], labels, noise, fdr=fdr, rows=X)

    def _check_parameters(self) -> None:
        check_number("C", self.C, "(0, inf)")
        check_number("s", self.s, "[-inf, 0]")
        if self.radius is not None:
            check_number("radius", self.radius, "(0, inf)")

    def _solve(
        self, K: KernelMatrix, y: Array, weight: Array | None, tol: float, warm: Any = None
    ) -> RampSolution:
        """One binary problem; `warm` is a solution of the same rows for another C or s."""
        terms = RampTerms(float(self.s), weight, self.fit_intercept)
        until: dict[str, Any] = {"tol": tol, "max_iter": int(self.max_iter)}
        if self.radius is None:
            return solve_ramp(K, y, terms, C=float(self.C), warm=warm, **until)
        return solve_ramp_in_ball(K, y, terms, radius=float(self.radius), **until)

    def _store_rows(
        self, clipped: BoolArray, scores: Array, of_rows: TrainingSet | TrainingScores
    ) -> None:
        """`ignored_` and `suspect_scores_` in the user's order of rows."""
        self.ignored_: BoolArray = np.zeros(of_rows.n_rows, dtype=bool)
        self.ignored_[of_rows.rows] = clipped
        self.suspect_scores_: Array = np.zeros(of_rows.n_rows)
        self.suspect_scores_[of_rows.rows] = disagreement(scores, of_rows.codes)

    def _fit_scaled(self, scaled: ScaledFit) -> None:
        """The approximate fit, with `ignored_` and `suspect_scores_`."""
        training = fit_scaled_ramp(self, scaled)
        margins: Array = training.scores[:, 0] * training.targets(0)
        if training.scores.shape[1] > 1:
            margins = training.scores[np.arange(len(training.codes)), training.codes]
        self._store_rows(margins < self.s, training.scores, training)
