"""The leaky hockey stick classifier with its whole path and cross-validation."""

from __future__ import annotations

import math
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress._threads import blas_threads_for
from buttress.classifiers.leaky_hockey_stick import BaseLeakyClassifier, LeakyHockeyStickClassifier
from buttress.classifiers.parameters import (
    check_number,
    check_option,
    check_values,
)
from buttress.model_selection._leaky_exact import ExactLeakySearch, WholePath
from buttress.model_selection._leaky_mapped import MappedLeakySearch
from buttress.model_selection._results import standard_error
from buttress.model_selection._search import SearchMixin

# Of a mean over folds.
_ROUNDING = 1e-12
_DEFAULT_DECADES = (0.0, -7.0)


class LeakyHockeyStickClassifierCV(SearchMixin, BaseLeakyClassifier):
    """Leaky hockey stick classifier that chooses its penalty by cross-validation.

    All penalties and all folds are solved together; see `LeakyHockeyStickClassifier` for the
    problem and the parameters not described here.

    Parameters
    ----------
    alphas : int or array-like, default=100
        Penalties, or how many of them to space evenly in log scale from 1 to 1e-7.
    gammas : "auto", sequence or None, default=None
        Kernel widths to try: numbers or names as for `gamma`; "auto" is 1/4, 1 and 4 times
        `gamma`; None is `gamma` alone. Kernels without a width ignore it.
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
        As in `LeakyHockeyStickClassifier`. With an `approximation`, on the passes over the rows in
        every stage of the path: some penalties at a time, several stages each.
    approximation, n_components, landmarks, memory_limit
        As in `LeakyHockeyStickClassifier`. An integer `cv` then means folds drawn by row number
        and `random_state`, and all folds and penalties ride in the same passes over the rows.
    n_jobs : int, default=None
        Threads; None means one. Several widths are tried side by side, one a thread, as far as
        there is memory for their Gram matrices.
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
    best_params_, best_score_, best_index_, best_estimator_
        As in `GridSearchCV`; the parameters are alpha, r and gamma.
    cv_results_ : dict
        As `GridSearchCV` has it: ``params``, ``param_...``, ``split0_test_score`` and so on,
        ``mean_test_score``, ``std_test_score`` and ``rank_test_score``. The penalties of one
        width and exponent stand together, the largest first.
    alpha_min_, alpha_1se_ : float
        What the two selection rules choose.
    path_ : RegularizationPath or list of them
        Intercepts, dual coefficients, objective and duality gap of the refit at every penalty
        (one path per class when there are more than two). Solved when it is first asked for, or
        when the model is stored: a search itself needs one penalty.
    classes_, dual_coef_, intercept_, intercept_interval_, coef_, support_, support_vectors_, \
n_support_, kernel_, objective_, duality_gap_, duality_gaps_, kkt_residual_, kkt_residuals_, \
n_iter_, solver_, approximation_, n_features_in_, feature_names_in_
        Of the refit at `alpha_`; see `LeakyHockeyStickClassifier`. With
        ``approximation="fourier"`` also ``random_weights_``, ``random_phase_`` and
        ``feature_coef_``.

    See Also
    --------
    buttress.inspection.PathDisplay : The cross-validation curve with both choices.

    Notes
    -----
    One Gram matrix serves all penalties and folds. For up to about 260 rows Newton's method runs
    down the path of every fold; above that all folds and penalties are columns of matrix
    products, at a little more than 2 n² operations for each of some five iterations a column.
    Folds scored by accuracy stop once their answers at held-out rows are certain: the signs of the
    scores, or with several classes which is the largest.
    Memory: the Gram matrix in double and single precision and n numbers per column, for every width
    that is tried at the same time.

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

    _machine = LeakyHockeyStickClassifier
    _exact_search = ExactLeakySearch
    _mapped_search = MappedLeakySearch

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

    @cached_property
    def path_(self) -> Any:
        """The path on all rows at the chosen width and exponent: see Attributes."""
        whole: WholePath | None = vars(self).get("_whole_path_")
        if whole is None:
            raise AttributeError(f"This {type(self).__name__} is not fitted yet: it has no path_.")
        with blas_threads_for(self._dense_order(whole.data)):
            path = whole.solve()
        del self._whole_path_
        return path

    def __getstate__(self) -> dict[str, Any]:
        # The path is stored, not the rows that it is solved from.
        if "_whole_path_" in vars(self):
            _ = self.path_
        state: dict[str, Any] = super().__getstate__()
        return state

    def _check_parameters(self) -> None:
        self._alphas()
        check_values("r", self.r, "(1, inf]")
        check_option("selection", self.selection, ("min", "1se"))
        self._check_shared_parameters()

    def _alphas(self) -> Array:
        return _penalties(self.alphas)

    def _combinations(self, search: Any) -> list[dict[str, Any]]:
        exponents = check_values("r", self.r, "(1, inf]")
        return [{"alpha": float(a), "r": r} for r in exponents for a in self._alphas()]

    def _prefer(self, candidates: list[dict[str, Any]], table: Array, search: Any) -> int:
        """The largest penalty of the best, or within one standard error of it."""
        least, simple = _choices(table, len(self._alphas()))
        return least if self.selection == "min" else simple

    def _describe(self, candidates: list[dict[str, Any]], table: Array) -> None:
        self.alphas_ = self._alphas()
        least, simple = _choices(table, len(self.alphas_))
        self.alpha_min_, self.alpha_1se_ = (candidates[i]["alpha"] for i in (least, simple))
        self.alpha_, self.r_ = self.best_params_["alpha"], self.best_params_["r"]
        curve = slice(least - least % len(self.alphas_), None)
        tried = table[curve][: len(self.alphas_)]
        self.cv_mean_, self.cv_std_ = tried.mean(axis=1), standard_error(tried)


def _choices(table: Array, n_alphas: int) -> tuple[int, int]:
    """Index of the best candidate, and of the largest penalty within a standard error of it.

    Of equal means (up to rounding) the first counts: the largest penalty of a path. A mean that is
    one standard error away (up to rounding, too) is within it.
    """
    means = table.mean(axis=1)
    best = int(np.argmax(means >= means.max() - _ROUNDING))
    first = best - best % n_alphas
    curve = slice(first, first + n_alphas)
    threshold = means[best] - standard_error(table[best : best + 1])[0]
    return best, first + int(np.argmax(means[curve] >= threshold - _ROUNDING))


def _penalties(alphas: Any) -> Array:
    """The penalties, decreasing."""
    if isinstance(alphas, Real) and not isinstance(alphas, bool):
        count = int(check_number("alphas", alphas, "[1, 1000000]", integer=True))
        return np.asarray(10.0 ** np.linspace(*_DEFAULT_DECADES, count))
    try:
        values = check_values("alphas", alphas, "(0, inf)")
    except ValueError:
        raise ValueError(
            f"alphas={alphas!r} is out of range: expected a number of penalties, or positive "
            "finite numbers."
        ) from None
    return np.ascontiguousarray(np.unique(values)[::-1])
