"""The classifier between two uncertainty sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from buttress._arrays import IntArray
from buttress.classifiers.approximation import ApproximationMixin
from buttress.classifiers.base import BaseKernelClassifier, of_problems
from buttress.classifiers.parameters import check_number, check_option
from buttress.classifiers.row_strategies import ScaledFit
from buttress.classifiers.scaled_models import fit_scaled_sets
from buttress.classifiers.set_machines import (
    BIASES,
    choose_bias,
    make_geometry,
    make_set_loss,
    warn_few_distinct_rows,
    warn_touching,
)
from buttress.classifiers.training import TrainingSet
from buttress.kernels import Kernel
from buttress.losses import HardMargin, NuHinge
from buttress.solvers.sets.bias import error_rate_bias
from buttress.solvers.sets.distance import DistanceResult, solve_distance
from buttress.theory.uncertainty_sets import UncertaintySet

_OWN_SOLVER = {False: "newton", True: "interior_point"}


class UncertaintySetClassifier(ApproximationMixin, BaseKernelClassifier):
    """Classifier between the nearest points of two uncertainty sets, one per class.

    Each class is described by a set of plausible means: weighted means of its rows with
    weights not too far from uniform. The loss says how far; the decision is the hyperplane
    between the two sets, and its bias is fitted in a second step.

    Parameters
    ----------
    loss : str or object, default="ellipsoid"
        The shape of the sets: "ellipsoid" (an ellipsoid whose centre is known up to an error,
        `h` and `omega`), "reduced_hull" (nu-SVM, `nu`), "hull" (hard-margin SVM),
        "truncated_quadratic", "exponential", "logistic" (with slope ``2 / nu``), or a set loss
        of ``z = rho - y f(x)`` with value, derivative, curvature and conjugate.
    h : float, default=0.0
        Relative estimation error of the ellipsoid's centre, non-negative.
    omega : float, default=1.0
        Scale of the ellipsoid loss, positive.
    nu : float, default=0.5
        For "reduced_hull" and "logistic": at most ``2 min(m_+, m_-) / m``.
    radius : float, default=1.0
        The bound on ``||f||``, positive.
    bias : {"error_rate", "bisect", "primal"}, default="error_rate"
        The bias of least training error (nearest to the primal one among equals), the
        midpoint between the nearest points, or the primal solution's.
    holdout : float, default=0.0
        Part of the rows kept for the bias alone, in [0, 1): the two-sample algorithm for which
        consistency is proved. Zero uses all rows for both steps, as the paper's experiments do.
    kernel : str or callable, default="rbf"
        As in scikit-learn, or "precomputed".
    gamma : {"scale", "auto", "median"} or float, default="scale"
        Width of the kernel; RBF is ``exp(-gamma ||x - z||^2)``.
    degree : float, default=3
        Of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Further arguments of the kernel function.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    solver : {"auto", "newton", "conic"}, default="auto"
        "newton" is the library's own solver ("auto" is the same); "conic" is Clarabel (extra
        ``conic``), several times slower.
    tol : float, default=1e-8
        Bound on the duality gap relative to ``1 + |objective|``; a larger one is reported where
        rounding does not explain it (1e-7 for float64 and 1e-4 for float32 rows).
    max_iter : int, default=1000
        Limit on the solver's outer steps, Newton or interior-point ones, per binary problem. With
        an `approximation` there are no more than 60, searches for a penalty, whatever it is.
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
    random_state : int, RandomState or None, default=None
        Draws the rows held out, landmarks and random features.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Coefficients of the expansion of f, one row per binary problem.
    intercept_ : ndarray of shape (n_problems,)
        The bias chosen by `bias`.
    rho_ : float or ndarray of shape (n_classes,)
        The primal ``rho``.
    set_weights_ : ndarray of shape (n_samples,) or (n_classes, n_samples)
        The nearest points as weights on the training rows: those of either class sum to one.
    set_levels_ : ndarray of shape (2,) or (n_classes, 2)
        The levels ``c`` of the positive and the negative set on which the points lie.
    coef_ : ndarray of shape (n_problems, n_features)
        Weights of the features (linear kernel only).
    support_, support_vectors_, n_support_ : ndarrays
        Indices of the rows with non-zero weight, the rows, and their number per class.
    gamma_ : float or None
        The width used.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    loss_ : object
        The set loss used.
    objective_ : float or ndarray of shape (n_classes,)
        The primal value P.
    duality_gap_ : float
        ``P + D`` of the worst binary problem, recomputed in float64 (all in
        ``duality_gaps_``); with an `approximation` a bound on the distance from the minimum.
    n_iter_ : int
        Steps of the solver, the largest over the binary problems; with an `approximation` passes
        over the rows.
    solver_ : str
        "newton", "interior_point" (hinge-shaped losses) or "conic"; with an `approximation` (or
        rows in blocks) "reduction" and, in brackets and joined by "+", its methods: "fixed",
        "sample", "single", "newton" and "lbfgs".
    uncertainty_sets_ : tuple of two UncertaintySet, or a list of such tuples
        The positive and the negative set at the levels of the solution, in the space of the
        rows. For a linear kernel these are the sets whose distance was minimised; for others
        they carry the same weights to the input space.
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
    UncertaintySetClassifierCV : Chooses `radius` and the kernel width.
    MinimaxProbabilityMachine : Ellipsoids of mean and covariance instead of weighted rows.

    Notes
    -----
    With weights ``w`` of sum M the problem is::

        min -2 rho + (1/M) sum_i w_i l(rho - y_i (f(x_i) + b))   s.t. ||f|| <= radius

    and its dual the distance of two sets [1]_. A fit takes 4 to 10 Newton steps and n^2
    memory; a step costs at most one Cholesky factorisation (n^3/3 operations; n r^2 when the rows
    have rank r in feature space). Where the two sets meet, f is not zero: the norm constraint is
    then inactive, and f solves the primal problem without it.

    References
    ----------
    .. [1] T. Kanamori, A. Takeda, T. Suzuki, "Conjugate relation between loss functions and
       uncertainty sets in classification problems", JMLR 14, 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from buttress import UncertaintySetClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = UncertaintySetClassifier(h=1.0, radius=100.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), bool(model.duality_gap_ < 1e-9)
    (True, True)
    """

    def __init__(
        self,
        loss: Any = "ellipsoid",
        *,
        h: float = 0.0,
        omega: float = 1.0,
        nu: float = 0.5,
        radius: float = 1.0,
        bias: str = "error_rate",
        holdout: float = 0.0,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        kernel_params: Any = None,
        class_weight: Any = None,
        solver: str = "auto",
        approximation: str | None = None,
        n_components: int = 1000,
        landmarks: str = "uniform",
        memory_limit: Any = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.h = h
        self.omega = omega
        self.nu = nu
        self.radius = radius
        self.bias = bias
        self.holdout = holdout
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.class_weight = class_weight
        self.solver = solver
        self.approximation = approximation
        self.n_components = n_components
        self.landmarks = landmarks
        self.memory_limit = memory_limit
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    # the rows behind `uncertainty_sets_`: points (or None), targets, weights (or None)
    _set_rows: Any

    def _check_parameters(self) -> None:
        check_number("radius", self.radius, "(0, inf)")
        make_set_loss(self.loss, self.h, self.omega, self.nu)
        check_option("bias", self.bias, BIASES)
        check_option("solver", self.solver, ("auto", "newton", "conic"))
        check_number("holdout", self.holdout, "[0, 1)")

    def _fit_exact(self, data: TrainingSet) -> None:
        loss = make_set_loss(self.loss, self.h, self.omega, self.nu)
        if self.kernel != "precomputed":
            warn_few_distinct_rows(type(self).__name__, data.X)
        kernel = self._make_kernel(data)
        first, second = self._split(data)
        precomputed = self.kernel == "precomputed"
        work = data if second is None else data.subset(first, precomputed=precomputed)
        geometry = make_geometry(kernel, work)
        results = [
            solve_distance(
                geometry,
                target,
                loss,
                float(self.radius),
                sample_weight=work.weights,
                tol=self._tolerance(data),
                max_iter=int(self.max_iter),
                method="conic" if self.solver == "conic" else "newton",
                storage=data.X.dtype,
            )
            for target in work.targets.T
        ]
        if second is None or self.bias != "error_rate":
            biases = [
                choose_bias(result, target, work.weights, self.bias)
                for target, result in zip(work.targets.T, results, strict=True)
            ]
        else:
            biases = self._held_out_biases(data, kernel, results, first, second)
        self._store_solution(data, kernel, loss, results, biases, first)

    def _fit_scaled(self, scaled: ScaledFit) -> None:
        fit_scaled_sets(self, scaled, make_set_loss(self.loss, self.h, self.omega, self.nu))

    def _split(self, data: TrainingSet) -> tuple[IntArray, IntArray | None]:
        """The rows for f and those for the bias (None: the same)."""
        everything = np.arange(len(data.codes))
        if self.holdout == 0.0:
            return everything, None
        random = check_random_state(self.random_state)
        try:
            first, second = train_test_split(
                everything, test_size=self.holdout, stratify=data.codes, random_state=random
            )
        except ValueError as error:
            raise ValueError(
                f"holdout={self.holdout!r} leaves a class without rows: {error}"
            ) from None
        return np.sort(first), np.sort(second)

    def _held_out_biases(
        self,
        data: TrainingSet,
        kernel: Kernel,
        results: list[DistanceResult],
        first: IntArray,
        second: IntArray,
    ) -> list[float]:
        """Step 2 on rows that step 1 has not seen."""
        if self.kernel == "precomputed":
            K = data.X[np.ix_(second, first)]
        else:
            K = kernel(data.X[second], data.X[first])
        return [
            error_rate_bias(
                K @ result.coef, target[second], data.weights[second], reference=result.intercept
            ).bias
            for target, result in zip(data.targets.T, results, strict=True)
        ]

    def _store_solution(
        self,
        data: TrainingSet,
        kernel: Kernel,
        loss: Any,
        results: list[DistanceResult],
        biases: list[float],
        first: IntArray,
    ) -> None:
        dual = np.zeros((len(results), len(data.codes)))
        dual[:, first] = [result.coef for result in results]
        coef = [result.weight_vector for result in results if result.weight_vector is not None]
        self._store_expansion(
            data, kernel, dual, np.array(biases), np.array(coef) if coef else None
        )
        self._store_certificates(results, kind="duality_gap", outer_steps=False)
        weights = np.zeros((len(results), data.n_rows))
        weights[:, data.rows[first]] = [result.alpha for result in results]
        self.loss_ = loss
        self.rho_ = of_problems([float(result.rho) for result in results])
        self.set_weights_ = of_problems(weights)
        self.set_levels_ = of_problems(np.array([result.levels for result in results]))
        hinge = isinstance(loss, (NuHinge, HardMargin))
        self.solver_ = "conic" if self.solver == "conic" else _OWN_SOLVER[hinge]
        if hinge and any(result.norm == 0.0 for result in results):
            warn_touching(type(self).__name__)
        self._set_rows = (
            None if self.kernel == "precomputed" else data.X[first],
            data.targets.T[:, first],
            None if data.weight is None else data.weight[first],
        )

    @property
    def uncertainty_sets_(self) -> Any:
        """The sets at the levels of the solution: (positive, negative), per binary problem."""
        if not hasattr(self, "_set_rows") or self._set_rows[0] is None:
            raise AttributeError(
                "uncertainty_sets_ needs a fitted model with rows of its own: there is none "
                "before fit, and with kernel='precomputed'."
            )
        X, targets, weight = self._set_rows
        X = X.toarray() if sparse.issparse(X) else X
        pairs = []
        for target, levels in zip(targets, np.atleast_2d(self.set_levels_), strict=True):
            pair = []
            for sign, level in zip((1.0, -1.0), levels, strict=True):
                rows = target == sign
                w = np.ones(len(target)) if weight is None else weight
                pair.append(
                    UncertaintySet(
                        X[rows],
                        self.loss_,
                        float(level),
                        n_samples=float(w.sum()),
                        sample_weight=None if weight is None else weight[rows],
                    )
                )
            pairs.append(tuple(pair))
        return pairs[0] if len(pairs) == 1 else pairs
