"""Kernel Pegasos: stochastic subgradient steps on the SVM problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from buttress._arrays import IntArray
from buttress.classifiers.online.abstain import AbstainingMixin
from buttress.classifiers.online.base import BaseOnlineClassifier
from buttress.classifiers.parameters import check_number, check_option
from buttress.solvers.stream.rules import PegasosRule


class KernelPegasos(AbstainingMixin, BaseOnlineClassifier):
    """Kernel Pegasos, in stream order or with sampled rows.

    Parameters
    ----------
    alpha : float, default=1e-2
        The paper's lambda in ``lambda/2 |f|² + mean hinge loss``; positive.
    sampling : {"in_order", "with_replacement"}, default="in_order"
        "with_replacement" (`fit` only) takes n rows drawn at random in place of the n rows
        in order; a row drawn several times is one support vector.
    random_state : int, RandomState instance or None, default=None
        Of the draws.
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
    At the t-th labelled row, with ``f_1 = 0`` and no projection,
    ``f_{t+1} = (1 - 1/t) f_t + [y f_t(x) < 1] y k(x, .) / (alpha t)``; the model keeps counters
    and scales once, so that no rounding builds up.

    One row costs n_support · n_features multiplications and n_support exponentials, done for
    a block at a time; the linear kernel without a budget costs 2 n_features. Memory is
    that of the support vectors. There are no sample weights.

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, "Pegasos: primal estimated
    sub-gradient solver for SVM", Mathematical Programming 127 (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from buttress import KernelPegasos
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> model = KernelPegasos(gamma=2.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model = KernelPegasos(gamma=2.0)
    >>> model = model.partial_fit(X[:100], y[:100], classes=["different", "same"])
    >>> model.partial_fit(X[100:], y[100:]).n_seen_
    500
    """

    def __init__(
        self,
        alpha: float = 1e-2,
        *,
        sampling: str = "in_order",
        random_state: Any = None,
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
        self.alpha = alpha
        self.sampling = sampling
        self.random_state = random_state
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

    def _rule(self) -> PegasosRule:
        check_option("sampling", self.sampling, ("in_order", "with_replacement"))
        return PegasosRule(check_number("alpha", self.alpha, "(0, inf)"))

    def _order(self, n_rows: int) -> IntArray | None:
        if self.sampling == "in_order":
            return None
        draws = check_random_state(self.random_state).randint(n_rows, size=n_rows)
        return np.asarray(draws, dtype=np.int64)

    def _check_parameters(self, *, continuing: bool = False) -> None:
        super()._check_parameters(continuing=continuing)
        if continuing and self.sampling != "in_order":
            raise ValueError(
                f"sampling={self.sampling!r} is not accepted by partial_fit: a stream cannot be "
                "drawn from. Use 'in_order', or fit."
            )
