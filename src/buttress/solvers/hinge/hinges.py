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

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers.hinge.kernel_rows import KernelMatrix, KernelSource, as_kernel_rows
from buttress.solvers.hinge.smo import BoxSolution, BoxTerms, solve_box_qp


def _not_given() -> Any:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class HingeTerms:
    """The terms of a sum of (clipped) hinges; arrays of one entry per term.

    Attributes
    ----------
    sign : array of ±1
        ``s_j``, the row's label.
    margin, weight : arrays
        ``m_j`` and ``w_j`` (the penalty C and the row's weight included).
    clip : array, optional
        ``k_j <= m_j``; -inf for a convex term. Default: all convex.
    row : integer array, optional
        ``i(j)``; default: one term per row, in order.
    group : integer array, optional
        Which threshold the term sees: 0, 1, ..., or -1 for none. Default: all 0.
    """

    sign: Array
    margin: Array
    weight: Array
    clip: Array = field(default_factory=_not_given)
    row: IntArray = field(default_factory=_not_given)
    group: IntArray = field(default_factory=_not_given)

    def __post_init__(self) -> None:
        m = len(self.sign)
        defaults = {
            "clip": np.full(m, -np.inf),
            "row": np.arange(m),
            "group": np.zeros(m, dtype=np.intp),
        }
        for name, default in defaults.items():
            if len(getattr(self, name)) == 0:
                object.__setattr__(self, name, default)

    @property
    def n_groups(self) -> int:
        """Number of thresholds."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def convex(self) -> bool:
        """Whether no term is clipped."""
        return bool(np.isneginf(self.clip).all())

    def margins(self, g: Array, threshold: Array) -> Array:
        """``t_j`` at the row values `g` and the thresholds."""
        return np.asarray(self.sign * (g[self.row] + np.append(threshold, 0.0)[self.group]))

    def loss(self, g: Array, threshold: Array) -> float:
        """The sum of the terms."""
        t = self.margins(g, threshold)
        return float(self.weight @ np.clip(self.margin - t, 0.0, self.margin - self.clip))

    def clipped(self, g: Array, threshold: Array) -> BoolArray:
        """Which terms lie on their flat part, ``t_j < k_j``."""
        return np.asarray(self.margins(g, threshold) < self.clip)


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
        """`step` with all weights times `factor`, when those of `warm` were times `was`."""
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
        threshold = self.adjusted(solution.threshold)
        return HingePoint(solution.c, solution.g, threshold, solution)

    def adjusted(self, threshold: Array) -> Array:
        """Thresholds to use instead of those of a step, where the objective is not larger."""
        return threshold

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
