"""The double ramp machine: classifier and rejection band learned together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, IntArray
from buttress.classifiers.approximation import ApproximationMixin
from buttress.classifiers.base import of_problems
from buttress.classifiers.costs import row_costs
from buttress.classifiers.parameters import check_number, check_option
from buttress.classifiers.probability import ProbabilityMixin
from buttress.classifiers.reject import BaseRejectClassifier
from buttress.classifiers.risk_control import RiskControlMixin
from buttress.classifiers.row_strategies import ScaledFit
from buttress.classifiers.scaled_models import fit_scaled_double_ramp
from buttress.classifiers.training import TrainingSet
from buttress.losses import Hinge
from buttress.solvers.hinge.kernel_rows import KernelMatrix
from buttress.solvers.hinge.reject import (
    DoubleRampSolution,
    DoubleRampTerms,
    solve_double_ramp,
    solve_stacked_hinge,
)


class DoubleRampClassifier(
    ProbabilityMixin, RiskControlMixin, ApproximationMixin, BaseRejectClassifier
):
    """Kernel machine that learns where to give no answer, by the double ramp loss.

    Parameters
    ----------
    d : float in (0, 0.5], default=0.2
        Cost of giving no answer, when a wrong one costs 1. At 0.5 every row is answered.
    mu : float in (0, 1], default=1.0
        Width of the ramps' slope. Smaller is nearer to the 0-d-1 loss, and slower.
    C : float > 0, default=1.0
        Weight of the losses against the norm.
    costs : array-like of shape (2, 3), optional
        Instead of `d`, for two classes: ``costs[j, k]`` is paid for answering ``classes_[k]`` on
        a row of ``classes_[j]``, and ``costs[j, 2]`` for not answering it. For more classes put
        `ChowRejector` around a classifier.
    init : {"zero", "svm", "best"}, default="zero"
        Where the search starts: at zero (the convex problem comes first), at the support
        vector machine with the same `C`, or both, keeping the lower objective.
    kernel, gamma, degree, coef0, kernel_params
        The kernel: a scikit-learn pairwise name, "precomputed" or a callable;
        ``exp(-gamma ||x - z||^2)`` by default, ``gamma`` "scale", "auto", "median" or a number.
    fit_intercept : bool, default=True
        Whether f has a constant term.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights per label.
    target_coverage : float in (0, 1], optional
        Set the band for this share of answers instead of for `d`: a quarter of the rows is
        kept out of training, and the band is set on them. A new row is then answered with
        probability at least `target_coverage` (and, without ties, at most one over their number
        more), whatever the distribution; given the held-out rows the coverage is Beta
        distributed. `d` still shapes the loss. With more than two classes the band is one for
        half the distance of the two largest scores. Weights do not enter the coverage.
    target_risk : float in (0, 1), optional
        Set the band so that at most this share of the answers is wrong, with probability
        `confidence` over the draw of the rows it is tested on, whatever the distribution: see
        `risk_certificate_`. Where that cannot be promised no row gets an answer, and a warning
        says how many more rows would be needed. With more than two classes the band is one for
        half the distance of the two largest scores. Weights do not enter.
    confidence : float in (0, 1), default=0.9
        Probability with which the promise of `target_risk` is kept.
    certify_on : {"held_out", "folds"}, default="held_out"
        "held_out" keeps a quarter of the rows out of training for the test of `target_risk`,
        which is exact. "folds" trains on all rows and tests on what models of five folds say of
        the others; the promise is then about those models, and approximate.
    noise_rates : "estimate", pair, LabelNoise or array-like of shape (n_classes, 2), optional
        Lower and upper limit of the share of wrong labels (in all, or among the rows that truly
        belong to each class): `target_risk` is then promised for the true labels. "estimate"
        takes the rates, with what the labels leave open about them, from `buttress.noise`; the
        promise then rests on that model too.
    tol : float, default=1e-10
        Bound on the violation of the optimality conditions on the scale of f (1e-4 at least
        for float32 data).
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
        For the rows kept out by `target_coverage` or `target_risk`, and for landmarks and random
        features.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    rho_ : float, or ndarray of shape (n_classes,)
        Half width of the learned band.
    thresholds_ : ndarray of shape (2,), or (n_classes, 2)
        The band used, on the scale of `decision_function`: ``(-rho_, rho_)``, or the one set
        for `target_coverage`.
    rejection_rate_ : float
        Share of the training rows (weighted) that are rejected; 1.0 when nothing is answered,
        which for small `d` or `C` can be the best there is.
    support_kind_ : ndarray of str of shape (n_samples,), or (n_samples, n_classes)
        Where every training row stands, by its margin ``t = y f(x)`` (Table 2 of the paper,
        corrected): see the Notes.
    risk_certificate_ : RiskCertificate
        With `target_risk`: ``n`` answered rows of the test, ``errors`` among them, the upper
        ``bound`` of the error, and more.
    dual_coef_, intercept_, support_, support_vectors_, n_support_, coef_
        The expansion ``f(x) = sum dual_coef_ k(support_vectors_, x) + intercept_``; `coef_` for
        the linear kernel only. Their first axis is the binary problem.
    gamma_ : float or None
        The kernel's width.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    objective_ : float, or ndarray of shape (n_classes,)
        ``1/2 ||f||^2 + C sum loss`` at the end.
    objective_path_ : ndarray, or list of ndarray
        The objective after every outer step; never increases.
    duality_gap_ : float
        Of the last convex step, the worst class; `duality_gaps_` has all. With an
        `approximation` the solver's estimate of it, half the squared Newton decrement.
    duality_gaps_ : ndarray of shape (n_problems,)
        Per class.
    kkt_residual_ : float
        Violation of the optimality conditions at the end, the worst class; `kkt_residuals_` has
        all. Exact fits only.
    kkt_residuals_ : ndarray of shape (n_problems,)
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
        Of an approximate fit: half width of the rounded corner of the hinges. The loss of a row
        is raised by at most ``smoothing_width_ / (4 mu)``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The problem, over a function g of the kernel's space, b and rho >= 0, with ``f = g + b``::

        min 1/2 ||g||^2 + C sum_i w_i ( d R(y_i f(x_i) - rho) + (1-d) R(y_i f(x_i) + rho) )
        R(t) = ([mu - t]_+ - [-mu^2 - t]_+) / mu

    The loss bounds the 0-d-1 loss from above, and is bounded: rows far on the wrong side do
    not move the boundary. The concave parts are replaced by tangents, the convex problem left
    is solved exactly by pair steps over two variables per row, and this is repeated until it
    is stationary (a local minimum in general). Time grows like that of a support vector
    machine, between n^2 and n^3; memory n^2 or `cache_size`.

    Kinds in `support_kind_`, with the dual variables they imply:

    ==============  =================================  ====================================
    kind            margin t                           pulls on
    ==============  =================================  ====================================
    "safe"          t > rho + mu                       nothing
    "outer_margin"  t = rho + mu                       the outer surface, partly
    "outer"         rho - mu² <= t < rho + mu          the outer surface, fully
    "inside"        -rho + mu < t < rho - mu²          nothing: rejected at a flat cost
    "inner_margin"  t = -rho + mu                      the inner surface, partly
    "inner"         -rho - mu² <= t < -rho + mu        the inner surface, fully
    "both"          in both ranges (2 rho < mu + mu²)  both surfaces
    "outlier"       t < -rho - mu²                     nothing: ignored
    "not_used"      weight zero, or held out           nothing
    ==============  =================================  ====================================

    With `costs` a row's two ramps weigh ``b`` and ``a - b`` in place of ``d`` and ``1 - d``, ``b``
    being the cost of refusing and ``a`` that of answering a row of its class wrongly, both beyond
    that of a right answer.

    More than two classes: one machine per class against the rest; a row is answered when
    exactly one class is accepted (its score lies above its band). At ``d = 0.5`` no row is
    rejected.

    References
    ----------
    N. Manwani, K. Desai, S. Sasidharan and R. Sundararajan, "Double ramp loss based reject
    option classifier", Pacific-Asia Conference on Knowledge Discovery and Data Mining, 2015.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = DoubleRampClassifier(d=0.1, C=10.0).fit(X, y)
    >>> model.predict_or_reject([[-1.0, 1.0], [0.5, 0.25]])
    masked_array(data=[0, --],
                 mask=[False,  True],
           fill_value=999999)
    """

    def __init__(
        self,
        d: float = 0.2,
        mu: float = 1.0,
        C: float = 1.0,
        *,
        costs: Any = None,
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
        probability: bool = False,
        random_state: Any = None,
    ) -> None:
        self.d = d
        self.mu = mu
        self.C = C
        self.costs = costs
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
        self.probability = probability
        self.random_state = random_state

    def _fit_exact(self, data: TrainingSet) -> None:
        data, solutions = self._solve_all(data)
        paths = [solution.objective_path for solution in solutions]
        self.rho_ = of_problems([float(solution.rho) for solution in solutions])
        self.objective_path_ = paths[0] if len(paths) == 1 else paths
        self.kkt_residuals_ = np.array([solution.violation for solution in solutions])
        self.kkt_residual_ = float(self.kkt_residuals_.max())
        kinds = [
            margin_kinds(y * (one.g + one.b), one.rho, self.mu, max(1e-6, 10.0 * one.violation))
            for one, y in zip(solutions, data.targets.T, strict=True)
        ]
        self._store_kinds(kinds, data.rows, data.n_rows)
        self.solver_ = "smo"

    def _fit_scaled(self, scaled: ScaledFit) -> None:
        """The approximate fit, with `rejection_rate_` and `support_kind_`."""
        if self.costs is not None:
            raise ValueError("costs need an exact fit: use approximation=None.")
        training = fit_scaled_double_ramp(self, scaled)
        binary = training.scores.shape[1] == 1
        rejected = self._rejected(training.scores[:, 0] if binary else training.scores)
        self.rejection_rate_ = float(np.average(rejected, weights=training.weight))
        kinds = [
            margin_kinds(training.targets(k) * training.scores[:, k], float(rho), self.mu)
            for k, rho in enumerate(np.atleast_1d(self.rho_))
        ]
        self._store_kinds(kinds, training.rows, training.n_rows)

    def _check_own(self) -> None:
        check_number("mu", self.mu, "(0, 1]")
        check_option("init", self.init, ["zero", "svm", "best"])

    def _solve(
        self, K: KernelMatrix, y: Array, weight: Array | None, tol: float, warm: Any = None
    ) -> DoubleRampSolution:
        solutions = []
        if self.init in ("zero", "best"):
            solutions.append(self._descend(K, y, weight, tol, None, warm))
        if self.init in ("svm", "best"):
            svm = solve_stacked_hinge(
                K,
                y,
                Hinge().terms,
                C=self.C,
                weight=weight,
                fit_intercept=self.fit_intercept,
                tol=tol,
            )
            solutions.append(self._descend(K, y, weight, tol, (svm.c, svm.b, 0.0)))
        best = min(solutions, key=lambda solution: solution.objective)
        return replace(best, n_iter=best.n_outer)

    def _descend(
        self,
        K: KernelMatrix,
        y: Array,
        weight: Array | None,
        tol: float,
        start: tuple[Array, float, float] | None,
        warm: DoubleRampSolution | None = None,
    ) -> DoubleRampSolution:
        terms = DoubleRampTerms(
            d=self.d,
            mu=self.mu,
            weight=weight,
            **self._row_costs(y),
            fit_intercept=self.fit_intercept,
        )
        return solve_double_ramp(
            K,
            y,
            terms,
            C=self.C,
            start=start,
            warm=warm,
            tol=tol,
            max_iter=int(self.max_iter),
        )

    def _row_costs(self, y: Array) -> dict[str, Array]:
        if self.costs is None:
            return {}
        error, refusal = row_costs(self.costs, y)
        return {"error_cost": error, "refusal_cost": refusal}

    def _band(self, solution: DoubleRampSolution) -> tuple[float, float]:
        return -solution.rho, solution.rho

    def _store_kinds(self, kinds: list[NDArray[Any]], rows: IntArray, n_rows: int) -> None:
        """`support_kind_` in the user's order, from the kinds of the rows that were used."""
        table = np.full((n_rows, len(kinds)), "not_used", dtype="<U12")
        table[rows] = np.column_stack(kinds)
        self.support_kind_ = table[:, 0] if len(kinds) == 1 else table


def margin_kinds(t: Array, rho: float, mu: float, near: float = 1e-6) -> NDArray[Any]:
    """The kinds of `DoubleRampClassifier.support_kind_` for margins `t`.

    Parameters
    ----------
    t : array
    rho, mu : float
    near : float
        How near ``rho + mu`` or ``-rho + mu`` a margin counts as equal, relative to
        ``1 + rho``.

    Examples
    --------
    >>> margin_kinds(np.array([-9.0, 0.0, 3.0]), rho=2.0, mu=1.0).tolist()
    ['outlier', 'inside', 'outer_margin']
    """
    near *= 1.0 + rho
    at_outer = np.abs(t - (rho + mu)) <= near
    at_inner = np.abs(t - (mu - rho)) <= near
    in_outer = (t >= rho - mu * mu) & (t < rho + mu)
    in_inner = ((t >= -rho - mu * mu) & (t < mu - rho)) | at_inner
    conditions = [at_outer, in_outer & in_inner, at_inner, in_outer, in_inner, t > rho + mu]
    kinds = ["outer_margin", "both", "inner_margin", "outer", "inner", "safe"]
    ignored = np.where(t < -rho - mu * mu, "outlier", "inside")
    return np.select(conditions, kinds, default=ignored)
