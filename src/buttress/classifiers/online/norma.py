"""NORMA: stochastic gradient steps of constant length that forget."""

from __future__ import annotations

from typing import Any

from buttress.classifiers.online.abstain import AbstainingMixin
from buttress.classifiers.online.base import BaseOnlineClassifier
from buttress.classifiers.parameters import check_number
from buttress.solvers.stream.rules import NormaRule


class Norma(AbstainingMixin, BaseOnlineClassifier):
    """NORMA: kernel learning with exponential forgetting.

    Parameters
    ----------
    eta : float, default=0.1
        Length of a step; positive.
    alpha : float, default=1e-2
        The paper's lambda in ``lambda/2 |f|² + hinge loss``; non-negative, with
        ``eta alpha < 1``.
    tau : float, default=1e-4
        Coefficients smaller than this are dropped; 0 keeps all.
    kernel, gamma, degree, coef0, kernel_params
        The kernel, as in `PARampClassifier`.
    budget, budget_policy, block_size
        The largest number of support vectors, what happens to one too many, and the rows taken at
        a time, as in `PARampClassifier`.
    window, drift
        Labelled rows that `windowed_error_` looks back on, and the watch for a change of the
        stream, as in `PARampClassifier`.
    d, target_coverage, target_risk
        Give no answer at this cost, for this share of answers, or for this error among them, as
        in `PARampClassifier`.

    Attributes
    ----------
    classes_, support_, support_vectors_, dual_coef_, n_support_, coef_, intercept_, gamma_, \
kernel_, n_seen_, n_labelled_, n_updates_, n_mistakes_, progressive_error_, windowed_error_, \
history_, n_drifts_, thresholds_, coverage_, answered_error_, solver_, n_features_in_, \
feature_names_in_
        As in `PARampClassifier`.
    n_skipped_ : int
        Zero: no row is refused to be learned.

    Notes
    -----
    For a labelled row, with z the margin under the old model: all coefficients are multiplied
    by ``1 - eta alpha``, those below `tau` in size are dropped, and if ``z < 1`` the row is
    added with the coefficient ``eta y``. A support vector thus lives for about
    ``log(tau / eta) / log(1 - eta alpha)`` labelled rows, which bounds their number.

    One row costs n_support · n_features multiplications and n_support exponentials, done for
    a block at a time. Memory is that of the support vectors. There are no sample weights.

    References
    ----------
    J. Kivinen, A. J. Smola and R. C. Williamson, "Online learning with kernels", IEEE
    Transactions on Signal Processing 52 (2004).

    Examples
    --------
    >>> import numpy as np
    >>> from buttress import Norma
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> model = Norma(gamma=2.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model = Norma(gamma=2.0)
    >>> model = model.partial_fit(X[:100], y[:100], classes=["different", "same"])
    >>> model.partial_fit(X[100:], y[100:]).n_seen_
    500
    """

    def __init__(
        self,
        eta: float = 0.1,
        alpha: float = 1e-2,
        tau: float = 1e-4,
        *,
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
        self.eta = eta
        self.alpha = alpha
        self.tau = tau
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

    def _rule(self) -> NormaRule:
        eta = check_number("eta", self.eta, "(0, inf)")
        alpha = check_number("alpha", self.alpha, "[0, inf)")
        tau = check_number("tau", self.tau, "[0, inf)")
        if eta * alpha >= 1:
            raise ValueError(
                f"eta={self.eta!r} and alpha={self.alpha!r}: eta * alpha must be below 1, the "
                "share of the model that every step removes."
            )
        return NormaRule(eta, alpha, tau)
