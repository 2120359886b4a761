"""Sums of hinges, clipped or not, with one threshold per group: the family SMO serves.

The problem, over a function g of the kernel's space and one threshold r_k per group::

    min 1/2 ||g||^2 + sum_j w_j ( [m_j - t_j]_+ - [k_j - t_j]_+ ),
    t_j = s_j (g(x_{i(j)}) + r_{group(j)})

A term without clip (``k_j = -inf``) is convex. Every row may carry several terms:

===================  =====================================================================
machine              terms per row
===================  =====================================================================
hinge                m = 1, w = C
ramp                 m = 1, k = s, w = C
generalised hinge    (m = 1, w = C) and (m = 0, w = C (1-2d)/d), one group
double ramp          m = mu, k = -mu^2, w = C d/mu and C (1-d)/mu, in two groups
===================  =====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from buttress._arrays import Array, BoolArray
from buttress.solvers.hinge._terms import HingeTerms
from buttress.solvers.hinge.certificate import certificate_of
from buttress.solvers.hinge.kernel_rows import KernelMatrix, KernelSource, as_kernel_rows
from buttress.solvers.hinge.smo import BoxSolution, BoxTerms, middle, solve_box_qp

# Smaller gaps, relative to the objective, are no reason to go on: rounding may leave them.
_ROUNDING = 1e-7

__all__ = ["HingePoint", "HingeProblem", "HingeTerms", "solve_hinges"]


@dataclass(frozen=True, eq=False)
class HingePoint:
    """A function and its thresholds.

    Attributes
    ----------
    c, g : arrays of shape (n,)
        Signed coefficients of the rows and ``K c``.
    threshold : array of shape (n_groups,)
    step : BoxSolution or None
        The convex problem this point solves, with its certificate.
    """

    c: Array
    g: Array
    threshold: Array
    step: BoxSolution | None = None

    @property
    def squared_norm(self) -> float:
        """``||g||^2``."""
        w = None if self.step is None else self.step.w
        return float(self.c @ self.g) if w is None else float(w @ w)


class HingeProblem:
    """What the outer loop (`buttress.solvers.hinge.dc.minimize_dc`) needs of a sum of hinges.

    Parameters
    ----------
    K : array, `KernelMatrix` or `KernelRowCache`
    terms : HingeTerms
    max_iter : int
        Cap on the pair steps of one convex problem.
    """

    def __init__(
        self,
        K: KernelSource,
        terms: HingeTerms,
        max_iter: int = 10_000_000,
    ) -> None:
        self.K: KernelMatrix = as_kernel_rows(K)
        self.terms = terms
        self.max_iter = max_iter

    @cached_property
    def _box_terms(self) -> BoxTerms:
        terms = self.terms
        return BoxTerms(self.K, terms.sign, -terms.margin, terms.row, terms.group)

    def point(self, c: Array, threshold: Array) -> HingePoint:
        """A point made from coefficients and thresholds, for ``start=``."""
        c = np.asarray(c, dtype=np.float64)
        return HingePoint(c, self.K.times(c), np.atleast_1d(np.asarray(threshold, np.float64)))

    def initial_pattern(self) -> BoolArray:
        """Nothing clipped."""
        return np.zeros(len(self.terms.sign), dtype=bool)

    def objective(self, point: HingePoint) -> float:
        """The true (non-convex) objective."""
        return 0.5 * point.squared_norm + self.terms.loss(point.g, point.threshold)

    def pattern(self, point: HingePoint) -> BoolArray:
        """Which terms are clipped: this decides the next convex problem."""
        return self.terms.clipped(point.g, point.threshold)

    def step(self, pattern: BoolArray, warm: HingePoint | None, tol: float) -> HingePoint:
        """The minimiser of the problem with the concave parts linearised at `pattern`.

        Its dual has the box ``[-beta_j, w_j - beta_j]``, ``beta_j = w_j`` where clipped.
        """
        return self.scaled_step(pattern, warm, 1.0, 1.0, tol)

    def scaled_step(
        self, pattern: BoolArray, warm: HingePoint | None, was: float, factor: float, tol: float
    ) -> HingePoint:
        """`step` with all weights times `factor`, when those of `warm` were times `was`.

        Its thresholds do not hang on variables a hair away from a bound.
        """
        terms = self.terms
        beta = np.where(pattern, factor * terms.weight, 0.0)
        previous = None if warm is None else warm.step
        scale = factor / was
        solution = solve_box_qp(
            self._box_terms,
            -beta,
            factor * terms.weight - beta,
            start=None if previous is None else scale * previous.a,
            start_g=None
            if previous is None or previous.w is not None
            else (scale * previous.c, scale * previous.g),
            tol=tol,
            max_iter=self.max_iter,
        )
        interval = terms.threshold_intervals(solution.g, pattern)
        threshold = np.array([middle(low, high) for low, high in interval.tolist()])
        solution = replace(solution, interval=interval, threshold=threshold)
        return HingePoint(solution.c, solution.g, self.adjusted(threshold), solution)

    def adjusted(self, threshold: Array) -> Array:
        """Thresholds to use instead of those of a step, where the objective is not larger."""
        return threshold

    def gap(self, pattern: BoolArray, point: HingePoint) -> float:
        """The duality gap of the convex problem that `point` solves, at its thresholds."""
        assert point.step is not None
        judge = certificate_of(self.terms, pattern, point.step)
        return judge.gap(point.g, point.threshold, point.squared_norm)

    def accepted_gap(self, objective: float, tol: float) -> float:
        """The gap up to which a solution to the tolerance `tol` keeps its promise."""
        return max(tol, _ROUNDING) * (1.0 + abs(objective))

    def step_value(self, pattern: BoolArray, point: HingePoint) -> float:
        """The convex problem's objective ``1/2 ||g||^2 + sum w [m - t]_+ + sum beta t``."""
        terms = self.terms
        t = terms.margins(point.g, point.threshold)
        hinges = terms.weight @ np.maximum(terms.margin - t, 0.0)
        return float(0.5 * point.squared_norm + hinges + (terms.weight * pattern) @ t)


def solve_hinges(
    K: KernelSource, terms: HingeTerms, *, tol: float = 1e-8, max_iter: int = 10_000_000
) -> HingePoint:
    """Minimise a convex sum of hinges (no clipped term); the certificate is in ``.step``.

    Examples
    --------
    >>> y = np.array([1.0, -1.0])
    >>> terms = HingeTerms(sign=y, margin=np.ones(2), weight=np.ones(2))
    >>> solve_hinges(np.eye(2), terms).g
    array([ 1., -1.])
    """
    if not terms.convex:
        raise ValueError("solve_hinges needs convex terms; use minimize_dc for clipped ones.")
    problem = HingeProblem(K, terms, max_iter=max_iter)
    return problem.step(problem.initial_pattern(), None, tol)
