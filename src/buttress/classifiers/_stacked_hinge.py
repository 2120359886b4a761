"""What the double hinge and the generalised hinge machines share: all but loss and threshold."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.classifiers._cost_hinges import CostHinges
from buttress.classifiers.parameters import check_number
from buttress.classifiers.probability import ProbabilityMixin
from buttress.classifiers.reject import BaseRejectClassifier
from buttress.classifiers.risk_control import RiskControlMixin
from buttress.classifiers.training import TrainingSet
from buttress.solvers.hinge.kernel_rows import KernelMatrix
from buttress.solvers.hinge.reject import StackedHingeSolution, solve_stacked_hinge


class BaseStackedHingeClassifier(ProbabilityMixin, RiskControlMixin, BaseRejectClassifier):
    """A convex machine with two stacked hinges and a fixed rejection threshold.

    A subclass gives the hinges (`_terms`) and the threshold that "auto" stands for, and both for
    costs by class (`_cost_hinges`).
    """

    # pair steps; the default of `max_iter` then suits every estimator
    _steps_each = 10_000
    costs: Any
    threshold: Any
    _terms: Callable[[], tuple[tuple[float, float], ...]]
    _auto_threshold: Callable[[], float]
    _cost_hinges: Callable[[], CostHinges]

    def __init__(
        self,
        d: float = 0.2,
        C: float = 1.0,
        *,
        costs: Any = None,
        threshold: Any = "auto",
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
        probability: bool = False,
        random_state: Any = None,
    ) -> None:
        self.d = d
        self.C = C
        self.costs = costs
        self.threshold = threshold
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
        self.probability = probability
        self.random_state = random_state

    def _fit_exact(self, data: TrainingSet) -> None:
        _, solutions = self._solve_all(data)
        self.solver_ = "smo"
        largest = max(float(np.abs(solution.g + solution.b).max()) for solution in solutions)
        # 256 rounding errors of the largest score
        self._rounding = 256.0 * float(np.finfo(self.dual_coef_.dtype).eps) * max(1.0, largest)

    def _scores(self, X: Any) -> Array:
        # Rows sit on the kink f = 0 exactly; rounding must not choose their class.
        scores = super()._scores(X)
        rounding = getattr(self, "_rounding", 0.0)
        scores[np.abs(scores) <= rounding] = 0.0
        return scores

    def _check_own(self) -> None:
        if isinstance(self.threshold, Real):
            check_number("threshold", self.threshold, "[0, inf)")
        elif not isinstance(self.threshold, str) or self.threshold != "auto":
            raise ValueError(
                f"threshold={self.threshold!r} is not accepted: expected 'auto' or a number in "
                "[0, inf)."
            )

    def _band(self, solution: StackedHingeSolution) -> tuple[float, float]:
        if self.threshold != "auto":
            return -float(self.threshold), float(self.threshold)
        if self.costs is not None:
            return self._cost_hinges().band
        # at d = 1/2 a guess is no worse than a rejection
        width = self._auto_threshold() if self.d < 0.5 else 0.0
        return -width, width

    def _solve(
        self, K: KernelMatrix, y: Array, weight: Array | None, tol: float, warm: Any = None
    ) -> StackedHingeSolution:
        return solve_stacked_hinge(
            K,
            y,
            self._terms() if self.costs is None else self._cost_hinges().terms(y),
            C=self.C,
            weight=weight,
            fit_intercept=self.fit_intercept,
            tol=tol,
            max_iter=int(self.max_iter) * self._steps_each,
        )
