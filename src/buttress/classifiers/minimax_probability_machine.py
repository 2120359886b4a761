"""The minimax probability machine, plain, unbiased, robust and with maximum margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from buttress._arrays import Array
from buttress._threads import blas_threads_for
from buttress._user_warnings import warn_user
from buttress.classifiers.base import BaseKernelClassifier, of_problems
from buttress.classifiers.parameters import check_flag, check_number, check_option
from buttress.classifiers.set_machines import make_geometry
from buttress.classifiers.training import TrainingSet
from buttress.solvers.sets.bias import error_rate_bias
from buttress.solvers.sets.geometry import CentredGeometry
from buttress.solvers.sets.minimax import (
    MinimaxFunction,
    MinimaxResult,
    Moments,
    class_moments,
    minimax_path,
    solve_maximum_margin,
    solve_minimax,
)

# Part of the largest score that rounding may move: beyond it signs of unclear rows change. With the
# default ridge a Gaussian kernel on 60 rows is off by 2e-3, a cubic one by 0.7.
_LOST_DIGITS = 1e-2


@dataclass(frozen=True, eq=False)
class _Machine:
    """One binary problem, solved: its expansion on the rows and its certificate."""

    coef: Array
    weight_vector: Array | None
    intercept: float
    kappa: float
    worst_case: float
    objective: float
    gap: float
    n_iter: int
    converged: bool


class MinimaxProbabilityMachine(BaseKernelClassifier):
    """The hyperplane with the best guarantee when only means and covariances are known.

    Parameters
    ----------
    bias : {"minimax", "error_rate"}, default="minimax"
        "minimax" gives both classes the same guarantee, whatever their sizes, and is biased by
        design when one class is rarer; "error_rate" refits the bias to the least training error
        (the unbiased machine).
    margin : bool, default=False
        Whether to maximise the margin between two ellipsoids of `kappa` deviations instead.
    kappa : float, default=None
        Size of these ellipsoids, non-negative and below the guarantee of the plain machine; None
        takes half of that. Used with ``margin=True`` only.
    mean_error : float, default=0.0
        How far, in deviations, the true means may lie from the estimated ones; non-negative. It
        lowers the guarantee, and enlarges the ellipsoids of the maximum-margin machine.
    covariance_ridge : float, default=1e-6
        Added to all variances (in feature space), non-negative. A kernel machine needs it:
        without, the covariances are singular.
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
    tol : float, default=1e-8
        Bound on the gap relative to ``max(1, objective)``.
    max_iter : int, default=1000
        Limit on the solver's outer steps, Newton's, per binary problem; the closed form has none.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    worst_case_accuracy_ : float or ndarray of shape (n_classes,)
        The least accuracy over all distributions with these means (up to `mean_error`) and
        covariances, for the class that has less: ``k^2 / (1 + k^2)`` with ``k`` the deviations
        between its mean and the hyperplane.
    kappa_ : float or ndarray of shape (n_classes,)
        Deviations between the means and the minimax hyperplane; with ``margin=True`` the size
        of the ellipsoids used.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Coefficients of the expansion of f, one row per binary problem.
    intercept_ : ndarray of shape (n_problems,)
        The bias.
    coef_ : ndarray of shape (n_problems, n_features)
        Weights of the features (linear kernel only), scaled so that the class means differ by
        one (plain) or have margins of one (maximum margin).
    support_, support_vectors_, n_support_ : ndarrays
        Indices of the rows with non-zero coefficients (all), the rows, their number per class.
    gamma_ : float or None
        The width used.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    objective_ : float or ndarray of shape (n_classes,)
        ``s_p + s_n = 1 / kappa_``, or ``||w||^2 / 2`` for maximum margin.
    duality_gap_ : float
        Upper bound on the error of `objective_`, the worst binary problem (all in
        ``duality_gaps_``).
    n_iter_ : int
        One for the closed form; Newton steps for a kernel or the maximum margin.
    solver_ : str
        "root" (kernels), "diagonalisation" (linear kernel, or no ridge) or "newton" (maximum
        margin).
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Their names, when `X` had names.

    Notes
    -----
    The plain machine solves ``min sqrt(w'S_p w) + sqrt(w'S_n w)`` subject to
    ``w.(m_p - m_n) = 1`` [1]_. For p features and a linear kernel it is found by simultaneous
    diagonalisation, about 10 p^3 operations; for n rows and another kernel by Newton steps for
    one scalar, three to six Cholesky factorisations (n^3/3 operations each). An error of the
    means of `mean_error` deviations leaves the hyperplane and lowers the guarantee [1]_. The
    maximum-margin machine is the distance of two ellipsoids [2]_.

    `fit` raises a ValueError where the means of the classes coincide, and where `kappa` is too
    large; the message then names the largest feasible one.

    Class weights have no place here: only the moments within the classes count. Sample weights
    do, an integer weight being that many copies.

    References
    ----------
    .. [1] G. R. G. Lanckriet, L. El Ghaoui, C. Bhattacharyya, M. I. Jordan, "A robust minimax
       approach to classification", JMLR 3, 2002.
    .. [2] J. S. Nath, C. Bhattacharyya, "Maximum margin classifiers with specified false
       positive and false negative error rates", SIAM International Conference on Data Mining,
       2007.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from buttress import MinimaxProbabilityMachine
    >>> X, y = make_blobs(200, centers=[[0, 0], [4, 4]], random_state=0)
    >>> model = MinimaxProbabilityMachine(kernel="linear").fit(X, y)
    >>> bool(0.8 < model.worst_case_accuracy_ < model.score(X, y))
    True
    """

    class_weight: Any = None

    def __init__(
        self,
        *,
        bias: str = "minimax",
        margin: bool = False,
        kappa: float | None = None,
        mean_error: float = 0.0,
        covariance_ridge: float = 1e-6,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        kernel_params: Any = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.bias = bias
        self.margin = margin
        self.kappa = kappa
        self.mean_error = mean_error
        self.covariance_ridge = covariance_ridge
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.tol = tol
        self.max_iter = max_iter

    def _check_parameters(self) -> None:
        check_option("bias", self.bias, ("minimax", "error_rate"))
        check_flag("margin", self.margin)
        if self.kappa is not None:
            check_number("kappa", self.kappa, "[0, inf)")
        check_number("mean_error", self.mean_error, "[0, inf)")
        check_number("covariance_ridge", self.covariance_ridge, "[0, inf)")

    def _fit_exact(self, data: TrainingSet) -> None:
        kernel = self._make_kernel(data)
        geometry = make_geometry(kernel, data)
        machines = [self._solve(geometry, target, data) for target in data.targets.T]
        coef = [m.weight_vector for m in machines if m.weight_vector is not None]
        dual = np.array([m.coef for m in machines])
        intercept = np.array([m.intercept for m in machines])
        self._store_expansion(data, kernel, dual, intercept, np.array(coef) if coef else None)
        self._store_certificates(machines, kind="duality_gap")
        self.worst_case_accuracy_ = of_problems([m.worst_case for m in machines])
        self.kappa_ = of_problems([m.kappa for m in machines])
        self.solver_ = self._method(geometry)
        if data.X.dtype == np.float32 and not self._precomputed and not coef:
            self._check_rounding(data.X, dual, intercept)

    def _check_rounding(self, X: Any, dual: Array, intercept: Array) -> None:
        """Warn where coefficients so large cancel each other that single precision loses f."""
        wide = X.astype(np.float64)
        scores = self.kernel_.sums(wide, wide, dual) + intercept
        error = float(np.abs(self._scores(X) - scores).max())
        if error > _LOST_DIGITS * float(np.abs(scores).max()):
            warn_user(
                f"{type(self).__name__}: rows in single precision cannot hold this model, scores "
                f"are off by up to {error:.3g}. Fit float64 rows, or raise covariance_ridge.",
                ConvergenceWarning,
            )

    def _method(self, geometry: CentredGeometry) -> str:
        if self.margin:
            return "newton"
        by_moments = self.covariance_ridge == 0.0 or geometry.explicit
        return "diagonalisation" if by_moments else "root"

    def _solve(self, geometry: CentredGeometry, y: Array, data: TrainingSet) -> _Machine:
        ridge = float(self.covariance_ridge)
        if self._method(geometry) != "root":
            return self._by_moments(geometry, y, data)
        with blas_threads_for(geometry.n):
            (result,) = minimax_path(
                geometry, y, data.weights, [ridge], max_iter=int(self.max_iter)
            )
        intercept = self._bias(result.values, y, data.weights, result.intercept)
        return self._machine(
            result, result.coef, None, intercept, result.means, result.deviations, geometry
        )

    def _by_moments(self, geometry: CentredGeometry, y: Array, data: TrainingSet) -> _Machine:
        """Mean and covariance in coordinates: few features, no ridge, or a margin."""
        features, weight = geometry.features, data.weights
        positive, negative = (
            class_moments(features[rows], weight[rows], float(self.covariance_ridge))
            for rows in (y > 0, y < 0)
        )
        result = solve_minimax(positive, negative, tol=self.tol)
        if self.margin:
            result = self._with_margin(positive, negative, result)
        w = result.weight_vector
        c = self._expansion(geometry, result, positive, negative, y, weight)
        intercept = self._bias(features @ w, y, weight, result.intercept)
        means = float(w @ positive.mean), float(w @ negative.mean)
        deviations = positive.deviation(w), negative.deviation(w)
        explicit = w if geometry.explicit else None
        return self._machine(result, c, explicit, intercept, means, deviations, geometry)

    def _bias(self, values: Array, y: Array, weight: Array, minimax: float) -> float:
        if self.bias == "minimax":
            return minimax
        return error_rate_bias(values, y, weight, reference=minimax).bias

    def _machine(
        self,
        result: MinimaxResult | MinimaxFunction,
        coef: Array,
        weight_vector: Array | None,
        intercept: float,
        means: tuple[float, float],
        deviations: tuple[float, float],
        geometry: CentredGeometry,
    ) -> _Machine:
        least = min(
            (means[0] + intercept) / deviations[0],
            -(means[1] + intercept) / deviations[1],
        )
        robust = max(least - float(self.mean_error), 0.0)
        return _Machine(
            coef=coef,
            weight_vector=weight_vector,
            intercept=intercept - geometry.offset(coef, weight_vector),
            kappa=result.kappa - float(self.mean_error) if self.margin else result.kappa,
            worst_case=robust**2 / (1.0 + robust**2),
            objective=result.objective,
            gap=result.gap,
            n_iter=result.n_iter,
            converged=result.gap <= self.tol * max(1.0, result.objective),
        )

    def _with_margin(
        self, positive: Moments, negative: Moments, plain: MinimaxResult
    ) -> MinimaxResult:
        largest = plain.kappa - float(self.mean_error)
        kappa = 0.5 * largest if self.kappa is None else float(self.kappa)
        if not 0.0 <= kappa < largest:
            raise ValueError(
                f"kappa={self.kappa!r} is infeasible: the ellipsoids of the classes meet. With "
                f"mean_error={self.mean_error!r} it must be below {largest:.6g}."
            )
        return solve_maximum_margin(
            positive,
            negative,
            kappa + float(self.mean_error),
            tol=self.tol,
            max_iter=int(self.max_iter),
        )

    def _expansion(
        self,
        geometry: CentredGeometry,
        result: MinimaxResult,
        positive: Moments,
        negative: Moments,
        y: Array,
        weight: Array,
    ) -> Array:
        """Coefficients on the rows from the stationarity of ``w``, which divides by no small
        eigenvalue of the Gram matrix."""
        w, ridge = result.weight_vector, float(self.covariance_ridge)
        if not self.margin and ridge == 0.0:
            return geometry.coefficients(w)
        values = geometry.features @ w
        s = positive.deviation(w), negative.deviation(w)
        if self.margin:
            # w (1 + scale kappa ridge (1/s_p + 1/s_n)) = scale (difference - kappa C w / s)
            scale, pull = result.objective, (result.kappa / s[0], result.kappa / s[1])
            shrink = 1.0 + scale * ridge * (pull[0] + pull[1])
        else:
            # ridge w = difference t s_p / kappa - (t C_p + (1-t) C_n) w
            t = result.mixture
            scale, pull = 1.0, (t, 1.0 - t)
            shrink = ridge
        lead = scale if self.margin else result.mixture * s[0] / result.kappa
        c = np.empty(len(y))
        for rows, sign, factor in ((y > 0, 1.0, pull[0]), (y < 0, -1.0, pull[1])):
            share = weight[rows] / weight[rows].sum()
            centred = values[rows] - share @ values[rows]
            c[rows] = share * (sign * lead - scale * factor * centred) / shrink
        return c
