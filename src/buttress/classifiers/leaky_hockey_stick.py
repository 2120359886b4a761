"""The leaky hockey stick classifier at one penalty."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import Array
from buttress._threads import blas_threads_for
from buttress.classifiers.approximation import ApproximationMixin
from buttress.classifiers.base import BaseKernelClassifier
from buttress.classifiers.leaky_path import (
    SOLVERS,
    RegularizationPath,
    make_loss,
    make_problem,
)
from buttress.classifiers.parameters import check_number, check_option
from buttress.classifiers.probability import ProbabilityMixin
from buttress.classifiers.row_strategies import ScaledFit
from buttress.classifiers.scaled_models import fit_scaled_leaky
from buttress.classifiers.training import TrainingSet
from buttress.kernels import Kernel
from buttress.losses import require_falling
from buttress.solvers.smooth.duality import has_dual
from buttress.solvers.smooth.margins import loss_scalars


def _has_implied_probabilities(estimator: Any) -> bool:
    # The relation of score and probability is known for the leaky hockey stick family only.
    return getattr(estimator, "loss", None) is None


class BaseLeakyClassifier(ApproximationMixin, BaseKernelClassifier):
    """Storing and reading of leaky hockey stick models."""

    loss: Any
    fit_intercept: bool
    tol: float
    max_iter: int
    solver: str

    def _check_shared_parameters(self) -> None:
        check_option("solver", self.solver, SOLVERS)
        check_number("tol", self.tol, "(0, inf)")
        check_number("max_iter", self.max_iter, "[1, inf)", integer=True)
        if self.loss is None:
            return
        if hasattr(self.loss, "derivative"):  # without it solvers say all that is missing
            require_falling(self.loss)
        if self.solver == "mm":
            raise ValueError(
                "solver='mm' serves the leaky hockey stick family only: with a loss of your own "
                "use 'auto', 'newton' or 'batched'."
            )
        if self.solver == "batched" and loss_scalars(self.loss) is None:
            raise ValueError(
                "solver='batched' needs a compiled loss: make it with buttress.losses.ScalarLoss, "
                "or use 'auto' or 'newton'."
            )

    def _dense_order(self, data: TrainingSet) -> int:
        """The order of a square matrix of as many numbers as the problem has."""
        n_rows, n_columns = data.X.shape
        return math.isqrt(n_rows * n_columns) if self.kernel == "linear" else n_rows

    def _store_paths(
        self, data: TrainingSet, kernel: Kernel, models: list[RegularizationPath], method: str
    ) -> None:
        """Keep the models of all binary problems at one penalty."""
        coefs = [model.coefs for model in models if model.coefs is not None]
        self._store_expansion(
            data,
            kernel,
            np.concatenate([model.dual_coefs for model in models]),
            np.concatenate([model.intercepts for model in models]),
            np.concatenate(coefs) if coefs else None,
        )
        intervals = np.concatenate([model.intervals for model in models])
        self.intercept_interval_ = intervals[0] if len(models) == 1 else intervals
        self.solver_ = method
        self._store_certificates(
            [_Summary(model) for model in models],
            kind="duality_gap" if has_dual(make_loss(self.loss, 2.0)) else "kkt_residual",
        )

    @available_if(_has_implied_probabilities)
    def implied_proba(self, X: Any) -> Array:
        """Class probabilities that the population minimiser of the loss would imply.

        For a score f beyond ±1 the odds are ``|f|^((r-1)/r)``; every score between -1 and 1
        stands for one half.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            With more than two classes the one-vs-rest values, normalised to sum to one.

        Notes
        -----
        The relation holds without regularisation and with infinite data. A large `alpha`
        shrinks scores into [-1, 1], hence to one half; on separable data a small one drives
        them to 0 and 1. Rank rows by `decision_function`, which has no ties, and for
        probabilities to be relied on wrap the classifier in
        ``sklearn.calibration.CalibratedClassifierCV``.
        """
        check_is_fitted(self)
        scores = np.asarray(self.decision_function(X), dtype=np.float64)
        r = float(vars(self).get("r_", vars(self)["r"]))
        power = 1.0 if math.isinf(r) else (r - 1.0) / r
        odds = np.maximum(np.abs(scores), 1.0) ** power
        likely = odds / (1.0 + odds)
        positive = np.where(scores > 0, likely, 1.0 - likely)
        if positive.ndim == 1:
            return np.column_stack([1.0 - positive, positive])
        return np.asarray(positive / positive.sum(axis=1, keepdims=True))


class _Summary:
    """One model's certificate in the form that the estimator base reads."""

    def __init__(self, model: RegularizationPath) -> None:
        self.objective = model.objective
        self.gap = model.gap
        self.n_iter = int(model.n_iter.sum())
        self.converged = bool(model.converged.all())


class LeakyHockeyStickClassifier(ProbabilityMixin, BaseLeakyClassifier):
    """Classifier with the leaky hockey stick loss, linear or with a kernel.

    It minimises::

        mean_i L_r(y_i (f(x_i) + b)) + alpha ||f||^2

    where ``L_r(u)`` is ``1 - u`` up to ``u = 1`` and goes on falling beyond:
    ``-log u`` (r = inf) or ``r (1 - u^(1/r))``.

    Parameters
    ----------
    alpha : float, default=1e-2
        Penalty on the squared norm; positive.
    r : float, default=inf
        Exponent of the loss family, in (1, inf].
    kernel : str or callable, default="rbf"
        "linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed", any name of
        ``sklearn.metrics.pairwise``, or a function.
    gamma : {"scale", "auto", "median"} or float, default="scale"
        Width of the kernel; RBF is ``exp(-gamma ||x - z||^2)``.
    degree : float, default=3
        Of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Further arguments of the kernel function.
    loss : object, default=None
        A smooth convex margin loss of your own, falling with the margin, in place of L_r:
        ``buttress.losses.ScalarLoss``, which is compiled, or any object with ``value``,
        ``derivative``, ``curvature`` (of arrays) and ``curvature_bound``, which is called from
        Python; with ``conjugate`` the certificate is a duality gap, without it a KKT residual.
    fit_intercept : bool, default=True
        Whether there is an (unpenalised) intercept b.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    solver : {"auto", "newton", "batched", "mm"}, default="auto"
        "newton" and "batched" are exact; "mm" is the majorise-minimise algorithm of the paper
        with its stopping rule (squared step below `tol`), slow and inexact at small `alpha`.
    tol : float, default=1e-9
        Newton stops when every row's coefficient agrees with the slope of its loss to this.
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
    max_iter : int, default=1000
        Limit on the solver's outer steps, Newton's, per penalty ("mm": on its steps in all). With
        an `approximation`, on the passes over the rows in each of at most five stages.
    n_jobs : int, default=None
        Threads for the binary problems of several classes.
    verbose : int, default=0
        Positive: a progress bar on a terminal.
    random_state : int, RandomState or None, default=None
        Draws landmarks or random features with `approximation`; exact fits are deterministic.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Coefficients of the expansion of f, one row per binary problem.
    intercept_ : ndarray of shape (n_problems,)
        The midpoint of `intercept_interval_`.
    intercept_interval_ : ndarray of shape (2,) or (n_problems, 2)
        All optimal intercepts: one point, except for classes of equal weight at large `alpha`.
    coef_ : ndarray of shape (n_problems, n_features)
        Weights of the features (linear kernel only).
    support_, support_vectors_, n_support_ : ndarrays
        Indices of the rows with non-zero coefficients (all rows, with this loss), the rows
        themselves, and their number per class.
    gamma_ : float or None
        The width used.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    objective_ : float or ndarray of shape (n_problems,)
        Value of the objective.
    duality_gap_ : float
        Upper bound on the distance of `objective_` from the optimum, recomputed in float64
        (the worst binary problem; all of them in `duality_gaps_`).
    kkt_residual_ : float
        In place of `duality_gap_` when a loss of your own has no conjugate (`kkt_residuals_`);
        with an `approximation` the largest entry of the gradient.
    n_iter_ : int
        Newton steps in all, those at larger internal penalties not counted; with an
        `approximation` passes over the rows.
    solver_ : str
        The method used, of those that `solver` names; with an `approximation` (or rows in
        blocks) "reduction" and, in brackets and joined by "+", its methods: "fixed", "sample",
        "single", "newton" and "lbfgs".
    approximation_ : str or None
        What stood in for the kernel; None for an exact fit. With "nystroem" `support_vectors_`
        are the landmarks; with "fourier" the model is in ``random_weights_``, ``random_phase_``
        and ``feature_coef_``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Their names, when `X` had names.

    See Also
    --------
    LeakyHockeyStickClassifierCV : The whole path of penalties, with cross-validation.

    Notes
    -----
    A fit costs a few Cholesky factorisations of order n (n³/3 operations each) for every
    power of ten between `alpha` and the scale of the kernel, and n² memory; with few features
    and a linear kernel, n p² operations instead. Every training row takes part in the solution.

    References
    ----------
    .. [1] O. Kwon and H. Zou, "Leaky hockey stick loss: the first negatively divergent
       margin-based loss function for classification", JMLR 24, 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from buttress import LeakyHockeyStickClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LeakyHockeyStickClassifier(alpha=1e-3))
    >>> bool(model.fit(X, y).score(X, y) > 0.97)
    True
    """

    def __init__(
        self,
        alpha: float = 1e-2,
        *,
        r: float = math.inf,
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
        probability: bool = False,
        tol: float = 1e-9,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.r = r
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
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_number("alpha", self.alpha, "(0, inf)")
        check_number("r", self.r, "(1, inf]")
        self._check_shared_parameters()

    def _fit_scaled(self, scaled: ScaledFit) -> None:
        fit_scaled_leaky(self, scaled, make_loss(self.loss, self.r))

    def _fit_exact(self, data: TrainingSet) -> None:
        with blas_threads_for(self._dense_order(data)):
            self._solve_exactly(data, float(self.alpha))

    def _solve_exactly(self, data: TrainingSet, alpha: float) -> None:
        kernel = self._make_kernel(data)
        problem = make_problem(self, data, kernel, make_loss(self.loss, self.r))
        targets = data.targets.T
        omegas = np.tile(problem.omega, (len(targets), 1))
        alphas = np.array([alpha])
        paths = problem.solve(targets, omegas, alphas)
        if paths.method == "mm":
            models = [problem.certified(y, alphas, paths, q) for q, y in enumerate(targets)]
        elif paths.method == "batched":
            refined = problem.refined(targets, alpha, paths, 0)
            pairs = zip(targets, refined, strict=True)
            models = [problem.finished(y, alpha, one) for y, one in pairs]
        else:
            models = [problem.finished(y, alpha, paths, q) for q, y in enumerate(targets)]
        self._store_paths(data, kernel, models, paths.method)
