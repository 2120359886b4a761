"""Passive-aggressive learning with the ramp loss: a stream with wrong labels."""

from __future__ import annotations

from typing import Any

from buttress.classifiers.online.abstain import AbstainingMixin
from buttress.classifiers.online.base import BaseOnlineClassifier
from buttress.classifiers.parameters import check_flag, check_number
from buttress.solvers.stream.rules import PARampRule


class PARampClassifier(AbstainingMixin, BaseOnlineClassifier):
    """Online passive-aggressive kernel classifier that refuses suspected label errors.

    Parameters
    ----------
    s : float, default=-1.0
        Where the ramp begins to be flat, in [-inf, 0]: a row whose margin ``y f(x)`` is at
        most s is taken for mislabelled and skipped. ``-inf`` is plain passive-aggressive
        learning. At 0 no row can ever be accepted (the loss of the empty model is exactly
        the cap), so 0 is refused unless `warm_start_per_class`.
    warm_start_per_class : bool, default=False
        Accept the first row of each class whatever its loss.
    kernel : str or callable, default="rbf"
        "rbf" is ``exp(-gamma |x - z|²)``; also "linear", "poly", "sigmoid", "laplacian", any
        name of scikit-learn's pairwise kernels, a callable, or "precomputed" (`fit` only).
    gamma : {"scale", "auto", "median"} or float, default="scale"
        The kernel's width; a word is resolved from the rows of `fit`, or of the first call of
        `partial_fit` (give a number when that call is short).
    degree : float, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Constant of the "poly" and "sigmoid" kernels.
    kernel_params : dict, default=None
        Further arguments of the kernel function.
    budget : int, default=None
        The largest number of support vectors; None lets the model grow.
    budget_policy : {"merge", "project", "forget", "forget_oldest"}, default="merge"
        What happens to one vector too many: the lightest is merged with the partner that
        loses least (Gaussian kernel: a new point between the two, O(budget · n_features)), or
        the vector that loses least is projected onto the others (O(budget²) and a matrix of
        that size), or the one of smallest coefficients (the oldest among equals) or the
        oldest is dropped (O(budget)).
    block_size : int, default=64
        Rows taken at a time, and four times as many without a budget when a call brings them.
        It changes the speed, not the model.
    window : int, default=1000
        Labelled rows that `windowed_error_` looks back on.
    drift : {None, "page-hinkley"} or a drift detector of river, default=None
        Watch the mistakes with a Page-Hinkley test; on an alarm a new model starts beside
        the old one and takes over when it has made fewer mistakes on at least 200 rows.
    d : float in (0, 0.5], optional
        Cost of giving no answer, when a wrong one costs 1: rows are refused where the latest rows
        of that confidence were wrong more often. At most one of `d`, `target_coverage` and
        `target_risk` is given; with none of them nothing is refused.
    target_coverage : float in (0, 1), optional
        Share of the rows to answer in the long run, also when the stream drifts: after T rows it
        is off by ``102 / T`` at most.
    target_risk : float in (0, 1), optional
        Error among the answers in the long run, also when the stream drifts.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    support_ : ndarray of shape (n_support,)
        Stream positions of the support vectors, counted from 0 over all rows seen. A merged
        vector has the position of its heavier parent.
    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        The vectors; empty for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Their signed coefficients, one row per binary problem (one for two classes, else one
        per class against the rest, over one shared support set).
    n_support_ : ndarray of shape (n_classes,)
        Support vectors of each class.
    coef_ : ndarray of shape (n_problems, n_features)
        Weights; linear kernel only.
    intercept_ : ndarray of shape (n_problems,)
        Zero: the model has no bias.
    gamma_ : float or None
        The width used.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    n_seen_, n_labelled_ : int
        Rows seen, and those of them that had a label.
    n_updates_, n_skipped_, n_mistakes_ : int
        Rows that became support vectors, rows the ramp refused (``y f(x) <= s``), and rows
        whose label differed from the answer given before learning them.
    progressive_error_ : float
        ``n_mistakes_ / n_labelled_``, the prequential error.
    windowed_error_ : float
        The same over the last `window` labelled rows.
    history_ : dict of ndarray
        "n_seen", "labelled", "updates", "skipped", "mistakes" and "support_vectors" per
        `block_size` rows of the stream; beyond 4096 entries neighbours are added up.
    n_drifts_ : int
        Alarms of the drift test.
    thresholds_ : ndarray of shape (2,)
        The band of refusal as it stands, on the scale of `decision_function`.
    coverage_, answered_error_ : float
        Share of the rows so far that were answered, and of the answers that were wrong.
    solver_ : str
        "stream".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when they are strings.

    Notes
    -----
    With ``z = y f(x)`` for the model before the row, the loss is
    ``min(max(1 - z, 0), 1 - s)``. A row with ``s < z < 1`` is added with the coefficient
    ``y (1 - z) / k(x, x)``, after which ``y f(x) = 1``; every other row leaves the model as
    it is. Rows with ``z <= s`` are counted in `n_skipped_`. An s close to 0 with a wide kernel
    can lock one class out; a warning says so after 300 labelled rows. Early wrong labels can close
    a region in the same way, at any s, and then the right labels there are refused for ever; a
    warning says when more than a quarter of at least 1000 labelled rows were refused.

    One row costs n_support · n_features multiplications and n_support exponentials, done for
    a block at a time; the linear kernel without a budget costs 2 n_features. Memory is
    that of the support vectors. There are no sample weights.

    References
    ----------
    "Kernel Learning with Non-convex Ramp Loss" (the PA-RAMP algorithm).

    K. Crammer et al., "Online passive-aggressive algorithms", JMLR 7 (2006).

    Z. Wang, K. Crammer and S. Vucetic, "Breaking the curse of kernelization: budgeted
    stochastic gradient descent for large-scale SVM training", JMLR 13 (2012): merging.

    F. Orabona, J. Keshet and B. Caputo, "Bounded kernel-based online learning", JMLR 10
    (2009): projecting.

    Examples
    --------
    >>> import numpy as np
    >>> from buttress import PARampClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> model = PARampClassifier(gamma=2.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model = PARampClassifier(gamma=2.0)
    >>> model = model.partial_fit(X[:100], y[:100], classes=["different", "same"])
    >>> model.partial_fit(X[100:], y[100:]).n_seen_
    500
    """

    def __init__(
        self,
        s: float = -1.0,
        *,
        warm_start_per_class: bool = False,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        kernel_params: Any = None,
        budget: int | None = None,
        budget_policy: str = "merge",
        block_size: int = 64,
        window: int = 1000,
        drift: Any = None,
        d: float | None = None,
        target_coverage: float | None = None,
        target_risk: float | None = None,
    ) -> None:
        self.s = s
        self.warm_start_per_class = warm_start_per_class
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.budget = budget
        self.budget_policy = budget_policy
        self.block_size = block_size
        self.window = window
        self.drift = drift
        self.d = d
        self.target_coverage = target_coverage
        self.target_risk = target_risk

    def _rule(self) -> PARampRule:
        s = check_number("s", self.s, "[-inf, 0]")
        check_flag("warm_start_per_class", self.warm_start_per_class)
        if s == 0 and not self.warm_start_per_class:
            raise ValueError(
                "s=0 is refused: the model starts at f = 0, where the loss of every row equals "
                "the cap 1 - s = 1, so no row would ever be accepted. Use s < 0 (say -1 or "
                "-0.75), or warm_start_per_class=True."
            )
        return PARampRule(s, bool(self.warm_start_per_class))
