"""The double ramp machine as the concave-convex loop takes it, and its solution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers.hinge._solution import HingeSolution
from buttress.solvers.hinge.certificate import Worth, certificate_of
from buttress.solvers.hinge.hinges import HingePoint, HingeProblem, HingeTerms
from buttress.solvers.hinge.kernel_rows import KernelMatrix, KernelSource, as_kernel_rows
from buttress.solvers.hinge.smo import BoxSolution, middle

# A margin within this of a kink, relative to one plus itself, is on it.
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Opening:
    """The first convex step of a loop: where other problems of the same rows begin.

    Attributes
    ----------
    shares : array of shape (2, n)
        Where the dual variables stand in their boxes, from 0 to 1.
    weight : array of shape (m,)
        Of the terms.
    point : HingePoint
    """

    shares: Array
    weight: Array
    point: HingePoint


@dataclass(frozen=True, eq=False)
class DoubleRampSolution(HingeSolution):
    """A stationary point of the double ramp machine (or the minimiser of one convex step).

    Attributes
    ----------
    rho : float
        Half width of the rejection band, ``rho >= 0``.
    interval_a, interval_b : arrays of shape (2,)
        Ends of the optimal ``b - rho`` and ``b + rho`` of the last convex step.
    gamma1, gamma2 : arrays of shape (n,)
        Its dual variables (the paper's gamma' and gamma'').
    beta1, beta2 : arrays of shape (n,)
        Tangents of the concave parts (beta' and beta'') of the last convex step.
    opening : Opening
        Its first convex step.
    step_objective : float
        Value of the last convex step, the tangents included.
    objective_path : array
        The objective after every outer step.
    n_outer : int
        Outer steps.
    """

    rho: float
    interval_a: Array
    interval_b: Array
    gamma1: Array
    gamma2: Array
    beta1: Array
    beta2: Array
    opening: Opening
    step_objective: float
    objective_path: Array
    n_outer: int

    def worth(self, g: Array, b: float, squared_norm: float) -> Worth:
        """Objective, gap and violation of a model with these row values, bias and norm."""
        judge = self.certificate
        if len(judge.c) > len(g):  # mirrored rows, one threshold -rho
            return judge.at(np.concatenate([g, -g]), np.array([-self.rho]), squared_norm)
        if len(judge.a) == len(g):  # no band
            return judge.at(g, np.array([b])[: judge.terms.n_groups], squared_norm)
        return judge.at(g, np.array([b - self.rho, b + self.rho]), squared_norm)


class DoubleRampMachine(HingeProblem):
    """The double ramp machine in the form the outer loop takes.

    Three layouts of terms: two groups in general; one group of n terms where the two ramps of
    every row weigh the same (``d = 0.5``), because both groups are then equal; and, without
    intercept, one threshold ``-rho`` that group B sees with the opposite sign, on rows mirrored
    at the origin.

    Parameters
    ----------
    K, y, C, mu, fit_intercept
        As in `buttress.solvers.hinge.reject.solve_double_ramp`.
    outer, inner : arrays of shape (n,)
        Weights of every row's ramps at ``rho`` (given up by a refusal) and at ``-rho`` (given
        up by a wrong answer only).
    warm : DoubleRampSolution or None
        Starts the first convex step.
    """

    def __init__(
        self,
        K: KernelSource,
        y: Array,
        C: float,
        mu: float,
        outer: Array,
        inner: Array,
        fit_intercept: bool,
        warm: DoubleRampSolution | None,
    ) -> None:
        y = np.asarray(y, dtype=np.float64)
        n = len(y)
        self.n, self.y, self.fit_intercept = n, y, fit_intercept
        self.no_band = bool((outer == inner).all())
        # Then a band of negative width may be turned over: the objective does not rise.
        self.swaps = bool((outer <= inner).all())
        copies = 1 if self.no_band else 2
        sign, row = np.tile(y, copies), np.tile(np.arange(n), copies)
        positive = y > 0
        rows: KernelMatrix = as_kernel_rows(K)
        if self.no_band:
            cost = C / mu * (outer + inner)
            group = np.full(n, 0 if fit_intercept else -1)
        else:
            # the first n terms are the paper's ', the last n its ''
            cost = C / mu * np.concatenate([outer, inner])
            in_a = np.concatenate([positive, ~positive])
            group = np.where(in_a, 0, 1)
            if not fit_intercept:
                rows = _MirroredRows(rows)
                sign, row = np.where(in_a, sign, -sign), np.where(in_a, row, row + n)
                group = np.zeros(2 * n, dtype=np.intp)
        m = len(cost)
        terms = HingeTerms(sign, np.full(m, mu), cost, np.full(m, -mu * mu), row, group)
        super().__init__(rows, terms)
        self.opening: Opening | None = None
        self.first = None if warm is None else self._warm(warm.opening)

    def point(self, c: Array, b: float, rho: float) -> HingePoint:  # type: ignore[override]
        """The point with these coefficients, intercept and band."""
        c = np.asarray(c, dtype=np.float64)
        if self.mirrored:
            c = np.concatenate([c, np.zeros(self.n)])
        return super().point(c, self._thresholds(b, rho))

    def step(self, pattern: BoolArray, warm: HingePoint | None, tol: float) -> HingePoint:
        """As in `HingeProblem`; the first step may start from another problem's solution."""
        point = super().step(pattern, self.first if warm is None else warm, tol)
        if self.opening is None:
            self.opening = self._opening(point, pattern)
        low, high = self._ends(point.threshold)
        return point if low <= high else self._without_band(pattern, point, tol)

    def _without_band(self, pattern: BoolArray, point: HingePoint, tol: float) -> HingePoint:
        """The convex step under ``rho >= 0`` where its own minimiser has a negative width.

        Where a common threshold is among the optimal ones nothing is lost; otherwise the bound
        is active, and the step is that of one threshold for both groups.
        """
        assert point.step is not None
        (low_a, high_a), (low_b, high_b) = point.step.interval[0], point.step.interval[-1]
        if self.fit_intercept and max(low_a, low_b) <= min(high_a, high_b):
            both = middle(max(low_a, low_b), min(high_a, high_b))
            return replace(point, threshold=np.array([both, both]))
        if not self.fit_intercept and low_a <= 0.0:
            return replace(point, threshold=np.zeros(1))
        single_group = np.full(len(self.terms.group), 0 if self.fit_intercept else -1)
        merged = HingeProblem(
            self.K, replace(self.terms, group=single_group), max_iter=self.max_iter
        )
        common = merged.step(pattern, point, tol)
        assert common.step is not None
        if not self.fit_intercept:
            step = replace(common.step, interval=np.zeros((1, 2)), threshold=np.zeros(1))
            return HingePoint(common.c, common.g, np.zeros(1), step)
        twice = np.repeat(common.threshold, 2)
        step = replace(common.step, interval=np.repeat(common.step.interval, 2, 0), threshold=twice)
        return HingePoint(common.c, common.g, twice, step)

    def pattern(self, point: HingePoint) -> BoolArray:
        """Which terms are clipped; margins on the kink up to the solver's accuracy are not.

        Rows often sit on the kink exactly, and rounding must not decide where the loop goes.
        """
        accuracy = _TIE if point.step is None else max(_TIE, 4.0 * point.step.violation)
        t = self.terms.margins(point.g, point.threshold)
        return np.asarray(t < self.terms.clip - accuracy * (1.0 + np.abs(t)))

    @property
    def mirrored(self) -> bool:
        return not self.fit_intercept and not self.no_band

    def _thresholds(self, b: float, rho: float) -> Array:
        if self.no_band:
            return np.array([b] if self.fit_intercept else [])
        return np.array([b - rho, b + rho] if self.fit_intercept else [-rho])

    def adjusted(self, threshold: Array) -> Array:
        """``rho = |rho|`` where the objective is not larger there."""
        if self.no_band or not self.swaps:
            return threshold
        return np.sort(threshold) if self.fit_intercept else -np.abs(threshold)

    def _opening(self, point: HingePoint, pattern: BoolArray) -> Opening:
        assert point.step is not None
        weight = self.terms.weight
        beta = np.where(pattern, weight, 0.0)
        shares = np.clip((point.step.a + beta) / np.where(weight > 0, weight, 1.0), 0.0, 1.0)
        shares = np.tile(shares, (2, 1)) if self.no_band else shares.reshape(2, self.n)
        return Opening(shares, weight, point)

    def _warm(self, opening: Opening) -> HingePoint:
        """The dual variables at these shares of their boxes when nothing is clipped."""
        weight, known = self.terms.weight, opening.point
        a = weight * (opening.shares.mean(axis=0) if self.no_band else opening.shares.ravel())
        c: Array = np.zeros(self.K.n)
        g = c
        # For another penalty the function is known as well, up to its scale.
        if len(weight) == len(opening.weight) and len(c) == len(known.c):
            scale = float(weight.sum() / opening.weight.sum())
            if np.allclose(weight, scale * opening.weight, rtol=1e-12, atol=0.0):
                c, g = scale * known.c, scale * known.g
        step = BoxSolution(
            a=a,
            c=c,
            g=g,
            threshold=np.empty(0),
            interval=np.empty((0, 2)),
            objective=np.nan,
            gap=np.inf,
            violation=np.inf,
            n_iter=0,
            converged=False,
        )
        return HingePoint(c, g, step.threshold, step)

    def solution(self, point: HingePoint, pattern: BoolArray, **outcome: Any) -> DoubleRampSolution:
        step = point.step
        assert step is not None
        assert self.opening is not None
        n = self.n
        weight = self.terms.weight
        beta = np.where(pattern, weight, 0.0)
        c, g = point.c, point.g
        if self.no_band:
            a1 = a2 = 0.5 * step.a
            beta1 = beta2 = 0.5 * beta
            interval_a = interval_b = step.interval[0] if self.fit_intercept else np.zeros(2)
        else:
            a1, a2, beta1, beta2 = step.a[:n], step.a[n:], beta[:n], beta[n:]
            interval_a, interval_b = step.interval[0], step.interval[-1]
            if self.mirrored:
                c, g = c[:n] - c[n:], g[:n]
                interval_b = -step.interval[0][::-1]
        low, high = self._ends(point.threshold)
        return DoubleRampSolution(
            c=c,
            g=g,
            b=0.5 * (low + high),
            rho=0.5 * (high - low),
            interval_a=interval_a,
            interval_b=interval_b,
            gamma1=a1,
            gamma2=a2,
            beta1=beta1,
            beta2=beta2,
            opening=self.opening,
            objective=self.objective(point),
            step_objective=self.step_value(pattern, point),
            violation=step.violation,
            w=step.w,
            certificate=certificate_of(self.terms, pattern, step),
            **outcome,
        )

    def _ends(self, threshold: Array) -> tuple[float, float]:
        if self.no_band:
            b = float(threshold[0]) if self.fit_intercept else 0.0
            return b, b
        return float(threshold[0]), float(threshold[1] if self.fit_intercept else -threshold[0])


class _MirroredRows(KernelMatrix):
    """The kernel of n rows and of the same rows mirrored at the origin: ``[[K, -K], [-K, K]]``."""

    def __init__(self, rows: KernelMatrix) -> None:
        self.rows = rows
        features = rows.features
        self.features = None if features is None else np.vstack([features, -features])

    @property
    def n(self) -> int:
        """Twice the number of rows."""
        return 2 * self.rows.n

    @property
    def most_rows(self) -> int:
        """How many rows can be asked for at once."""
        return self.rows.most_rows

    @property
    def diagonal(self) -> Array:
        """``k(x_i, x_i)``, twice."""
        return np.tile(self.rows.diagonal, 2)

    @property
    def whole(self) -> Array | None:
        """None: the four quarters are not formed."""
        return None

    @property
    def factorable(self) -> bool:
        """Whether there are `points`."""
        return self.rows.factorable

    def known_rank(self, accuracy: float = 0.0) -> int | None:
        """That of the rows: mirror images add no dimension."""
        return self.rows.known_rank(accuracy)

    def rank(self, accuracy: float = 0.0) -> int:
        """That of the rows."""
        return self.rows.rank(accuracy)

    def points(self, accuracy: float = 0.0) -> Array | None:
        """Points of the rows and their mirror images."""
        points = self.rows.points(accuracy)
        return None if points is None else np.vstack([points, -points])

    def part(self, rows: IntArray, columns: IntArray) -> Array:
        """The kernel of `rows` with `columns`."""
        n = self.rows.n
        below, where = np.unique(rows % n, return_inverse=True)
        values = self.rows.part(below, columns % n)[where]
        return np.asarray(values * np.outer(self._side(rows), self._side(columns)))

    @property
    def has_rough_sums(self) -> bool:
        """Whether `add` can be had in less time with fewer digits."""
        return self.rows.has_rough_sums

    def add(self, rows: IntArray, steps: Array, g: Array, rough: bool = False) -> None:
        """``g += K[:, rows] @ steps``, in place."""
        n = self.rows.n
        change = np.zeros(n)
        self.rows.add(rows % n, steps * self._side(rows), change, rough)
        g[:n] += change
        g[n:] -= change

    def _side(self, rows: IntArray) -> Array:
        return np.where(rows < self.rows.n, 1.0, -1.0)
