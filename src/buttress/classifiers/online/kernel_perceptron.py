"""The kernel Perceptron."""

from __future__ import annotations

from typing import Any

from buttress.classifiers.online.abstain import AbstainingMixin
from buttress.classifiers.online.base import BaseOnlineClassifier
from buttress.solvers.stream.rules import PerceptronRule


class KernelPerceptron(AbstainingMixin, BaseOnlineClassifier):
    """Kernel Perceptron: every mistake becomes a support vector.

    Parameters
    ----------
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
    A row with ``y f(x) <= 0`` is added with the coefficient y. There is no bias, so a learning
    rate would only scale f.

    One row costs n_support · n_features multiplications and n_support exponentials, done for
    a block at a time; the linear kernel without a budget costs 2 n_features. Memory is
    that of the support vectors. There are no sample weights.

    References
    ----------
    Y. Freund and R. E. Schapire, "Large margin classification using the Perceptron
    algorithm", Machine Learning 37 (1999).

    Examples
    --------
    >>> import numpy as np
    >>> from buttress import KernelPerceptron
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> model = KernelPerceptron(gamma=2.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model = KernelPerceptron(gamma=2.0)
    >>> model = model.partial_fit(X[:100], y[:100], classes=["different", "same"])
    >>> model.partial_fit(X[100:], y[100:]).n_seen_
    500
    """

    def __init__(
        self,
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

    def _rule(self) -> PerceptronRule:
        return PerceptronRule()
