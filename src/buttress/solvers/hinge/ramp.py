"""The ramp machine: penalised, and confined to a ball."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq

from buttress._arrays import Array, BoolArray
from buttress.solvers.hinge._solution import HingeSolution
from buttress.solvers.hinge.certificate import Worth, certificate_of
from buttress.solvers.hinge.dc import DCSolution, minimize_dc
from buttress.solvers.hinge.hinges import HingePoint, HingeProblem, HingeTerms
from buttress.solvers.hinge.kernel_rows import KernelMatrix, KernelSource, as_kernel_rows

# Whoever asks for no more than this is promised residuals of that size, and the gap they leave.
_LOOSE = 1e-6
# The norm grows with C up to that of the least loss possible; the ball is out of reach where the
# mean loss cannot fall by more than this, relative to one and itself, or beyond this growth of C.
_AS_GOOD = 5e-8
_LARGEST_GROWTH = 1e10
# Growth of the norm, and fall of the loss, that are none.
_SATURATED = 1e-9


@dataclass(frozen=True, eq=False)
class RampSolution(HingeSolution):
    """A stationary point of the ramp machine.

    Its `objective` is ``1/2 ||g||^2 + C sum w ramp``, or the weighted mean of the ramp in the
    ball's form.

    Attributes
    ----------
    b_interval : array of shape (2,)
        Ends of the optimal intercepts of the last convex step.
    a : array of shape (n,)
        Its dual variables, in ``[-beta, C w - beta]``.
    clipped : array of bool of shape (n,)
        Rows with ``y f < s`` at the solution: the loss ignores them.
    C : float
        The penalty; in the ball's form the one that gives the same function.
    ball_active : bool
        Whether ``||f||`` has reached the radius (False without a ball).
    objective_path : array
        The objective after every outer step; never increases.
    n_outer : int
        Outer steps.
    ball_gap : float or None
        In the ball's form: how far the mean loss may fall within the ball when ``f_C`` is exact.
    """

    b_interval: Array
    a: Array
    clipped: BoolArray
    C: float
    ball_active: bool
    objective_path: Array
    n_outer: int
    ball_gap: float | None

    def worth(self, g: Array, b: float, squared_norm: float) -> Worth:
        """Objective, gap and violation of a model with these row values, bias and norm."""
        worth = super().worth(g, b, squared_norm)
        if self.ball_gap is None:
            return worth
        terms = self.certificate.terms
        total = float(terms.weight.sum())
        loss = terms.loss(g, np.array([b])[: terms.n_groups])
        return worth._replace(objective=loss / total, gap=worth.gap / total + self.ball_gap)


@dataclass(frozen=True, eq=False)
class RampTerms:
    """The loss and whose it is.

    Attributes
    ----------
    s : float <= 0
        Where the ramp ends; -inf is the support vector machine.
    weight : array of shape (n,), optional
        Of the rows.
    fit_intercept : bool
        Whether b is free or zero.
    """

    s: float = -1.0
    weight: Array | None = None
    fit_intercept: bool = True

    def hinges(self, y: Array, C: float) -> HingeTerms:
        """One clipped hinge for every row."""
        n = len(y)
        weight = np.ones(n) if self.weight is None else np.asarray(self.weight, dtype=np.float64)
        return HingeTerms(
            sign=np.asarray(y, dtype=np.float64),
            margin=np.ones(n),
            weight=C * weight,
            clip=np.full(n, self.s),
            group=np.full(n, 0 if self.fit_intercept else -1),
        )


def solve_ramp(
    K: KernelSource,
    y: Array,
    terms: RampTerms = RampTerms(),
    *,
    C: float = 1.0,
    start: BoolArray | tuple[Array, float] | None = None,
    warm: RampSolution | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> RampSolution:
    """Minimise ``1/2 ||g||^2 + C sum_i w_i min([1 - y_i f(x_i)]_+, 1 - s)``, ``f = g + b``.

    Parameters
    ----------
    K : array of shape (n, n), `KernelMatrix` or `KernelRowCache`
    y : array of ±1 of shape (n,)
    terms : RampTerms
    C : float > 0
    start : array of bool, pair ``(c, b)`` or None
        Where the first tangent is taken: the rows that are clipped, or a function. By default
        no row is clipped, so that the first step is the support vector machine.
    warm : RampSolution, optional
        A solution of the same rows for another C or s: its variables begin the first convex
        step, which ends where it would without them.
    tol : float
        Tolerance of every convex step, in units of f.
    max_iter : int
        Cap on the outer steps.

    Returns
    -------
    RampSolution

    References
    ----------
    R. Collobert, F. Sinz, J. Weston and L. Bottou, "Trading convexity for scalability",
    International Conference on Machine Learning, 2006.

    Examples
    --------
    >>> x = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 2.5])
    >>> y = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0, -1.0])
    >>> solve_ramp(np.outer(x, x), y).clipped
    array([False, False, False, False, False, False,  True])
    """
    rows = as_kernel_rows(K)
    problem = _RampProblem(rows, terms.hinges(y, C))
    if warm is not None:
        problem.first = (warm, warm.C / C)
    if isinstance(start, tuple):
        point = problem.point(start[0], _thresholds(start[1], terms.fit_intercept))
        stationary = minimize_dc(problem, start=point, tol=tol, max_iter=max_iter)
    else:
        stationary = minimize_dc(problem, start=start, tol=tol, max_iter=max_iter)
    return _solution(problem, stationary, C)


def solve_ramp_in_ball(
    K: KernelSource,
    y: Array,
    terms: RampTerms = RampTerms(),
    *,
    radius: float,
    start: BoolArray | tuple[Array, float] | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> RampSolution:
    """Minimise the weighted mean of the ramp over ``||g|| <= radius``.

    The outer loop is the one of `solve_ramp`. Each of its convex steps is solved through the
    penalised form, by a search for the C whose function has norm `radius`; along the loop C
    changes, and the last one, under which the penalised problem has the same stationary point,
    is returned. When no C reaches the radius the ball does not matter (``ball_active`` False).

    Parameters
    ----------
    radius : float > 0
    K, y, terms, start, tol, max_iter
        As in `solve_ramp`.
    """
    rows = as_kernel_rows(K)
    problem = _BallProblem(rows, terms.hinges(y, 1.0), radius)
    if isinstance(start, tuple):
        point = problem.point(start[0], _thresholds(start[1], terms.fit_intercept))
        stationary = minimize_dc(
            problem,
            start=_BallPoint(point.c, point.g, point.threshold),
            tol=tol,
            max_iter=max_iter,
        )
    else:
        stationary = minimize_dc(problem, start=start, tol=tol, max_iter=max_iter)
    return _solution(problem, stationary, stationary.point.C, stationary.point.ball_gap)


def _thresholds(b: float, fit_intercept: bool) -> Array:
    return np.array([b] if fit_intercept else [], dtype=np.float64)


def _solution(
    problem: HingeProblem, stationary: DCSolution[Any], C: float, ball_gap: float | None = None
) -> RampSolution:
    point: HingePoint = stationary.point
    step = point.step
    assert step is not None
    terms = problem.terms
    if ball_gap is not None:
        terms = replace(terms, weight=C * terms.weight)
    has_intercept = len(point.threshold) > 0
    return RampSolution(
        c=point.c,
        g=point.g,
        b=float(point.threshold[0]) if has_intercept else 0.0,
        b_interval=step.interval[0] if has_intercept else np.zeros(2),
        a=step.a,
        clipped=problem.pattern(point),
        C=C,
        ball_active=ball_gap is not None and stationary.point.ball_active,
        objective=stationary.objective,
        objective_path=stationary.objective_path,
        gap=stationary.gap,
        violation=stationary.violation,
        n_outer=stationary.n_outer,
        n_iter=stationary.n_iter,
        converged=stationary.converged,
        w=step.w,
        certificate=certificate_of(terms, stationary.pattern, step),
        ball_gap=ball_gap,
    )


class _RampProblem(HingeProblem):
    """Convex steps of which the first may begin at a solution for another penalty."""

    # A solution of the same rows, and how much larger its penalty is.
    first: tuple[RampSolution, float] | None = None

    def step(self, pattern: BoolArray, warm: HingePoint | None, tol: float) -> HingePoint:
        if warm is not None or self.first is None:
            return super().step(pattern, warm, tol)
        known, was = self.first
        begin: Any = HingePoint(known.c, known.g, _thresholds(known.b, True), known)  # type: ignore[arg-type]
        return self.scaled_step(pattern, begin, was, 1.0, tol)

    def accepted_gap(self, objective: float, tol: float) -> float:
        return np.inf if tol >= _LOOSE else super().accepted_gap(objective, tol)


@dataclass(frozen=True, eq=False)
class _BallPoint(HingePoint):
    C: float = 1.0
    ball_active: bool = False
    # How far the mean loss of the convex step may fall within the ball when f_C is exact.
    ball_gap: float = 0.0


class _BallProblem(_RampProblem):
    """The convex steps of the ball's form, each by a search over the penalty."""

    def __init__(self, K: KernelMatrix, terms: HingeTerms, radius: float) -> None:
        super().__init__(K, terms)
        self.radius = radius

    def objective(self, point: HingePoint) -> float:
        return self.terms.loss(point.g, point.threshold) / float(self.terms.weight.sum())

    def gap(self, pattern: BoolArray, point: HingePoint) -> float:
        """How far the mean loss may be above the least in the ball."""
        assert isinstance(point, _BallPoint)
        penalised = HingeProblem(self.K, replace(self.terms, weight=point.C * self.terms.weight))
        return penalised.gap(pattern, point) / float(penalised.terms.weight.sum()) + point.ball_gap

    def step(self, pattern: BoolArray, warm: HingePoint | None, tol: float) -> _BallPoint:
        penalty = warm.C if isinstance(warm, _BallPoint) and warm.step is not None else None
        search = _RadiusSearch(self, pattern, warm if penalty is not None else None, tol)
        return search.run(self._first_penalty() if penalty is None else penalty)

    def _first_penalty(self) -> float:
        """A C for which the norm has about the size of the radius, if all rows are at bound."""
        t = self.terms
        c = t.weight * t.sign
        norm = float(np.sqrt(max(float(c @ self.K.times(c)), 0.0)))
        return self.radius / norm if norm > 0 else 1.0


class _RadiusSearch:
    """Find C with ``||f_C|| = radius``; every solution starts from the last one, rescaled."""

    def __init__(
        self, problem: _BallProblem, pattern: BoolArray, warm: HingePoint | None, tol: float
    ) -> None:
        self.problem, self.pattern, self.tol = problem, pattern, tol
        self.last = warm
        self.last_C = warm.C if isinstance(warm, _BallPoint) else 1.0
        self.steps = 0
        self.excess: dict[float, float] = {}

    def beyond(self, C: float) -> float:
        """How far the norm exceeds the radius.

        A second solution at one C may differ by the tolerance, so the first one counts: the
        ends of the bracket keep their signs.
        """
        if C not in self.excess:
            self.excess[C] = self.norm(C) - self.problem.radius
        return self.excess[C]

    def norm(self, C: float) -> float:
        point = self.problem.scaled_step(self.pattern, self.last, self.last_C, C, self.tol)
        self.last, self.last_C = point, C
        if point.step is not None:
            self.steps += point.step.n_iter
        return float(np.sqrt(max(point.squared_norm, 0.0)))

    def run(self, C: float) -> _BallPoint:
        low = high = C
        if self.beyond(C) >= 0:
            while self.beyond(low) >= 0:
                if low <= C / _LARGEST_GROWTH:
                    return self._point(active=True)
                high, low = low, 0.25 * low
        else:
            before = 0.0
            while self.beyond(high) < 0:
                norm = self.beyond(high) + self.problem.radius
                if (best := self._best_in_ball(norm, before)) is not None:
                    return best
                if high > C * _LARGEST_GROWTH:
                    return self._point(active=False, ball_gap=self._ball_gap(norm))
                low, high, before = high, 4.0 * high, norm
        C = float(brentq(self.beyond, low, high, xtol=1e-300, rtol=1e-13))
        self.norm(C)
        return self._point(active=True)

    def _best_in_ball(self, norm: float, before: float) -> _BallPoint | None:
        """The last point where no other in the ball is better, though the norm is below the radius.

        A norm that no longer grows may grow again with a larger C: the one is asked at which the
        dual point leaves no room for that.
        """
        point = self._point(active=False, ball_gap=self._ball_gap(norm))
        mean = self._mean_loss(point)
        enough = _AS_GOOD * (1.0 + abs(mean))
        if point.ball_gap <= enough:
            at_radius = norm >= (1.0 - _SATURATED) * self.problem.radius
            return replace(point, ball_active=at_radius)
        if norm > (1.0 + _SATURATED) * before:
            return None
        far = point.C * point.ball_gap / enough
        if self.beyond(far) >= 0:
            return None
        ball_gap = self._ball_gap(self.beyond(far) + self.problem.radius)
        assert self.last is not None
        fall = max(mean - self._mean_loss(self.last), 0.0)
        settled = ball_gap <= 2.0 * enough and fall <= _SATURATED * (1.0 + abs(mean))
        return replace(point, ball_gap=ball_gap + fall) if settled else None

    def _ball_gap(self, norm: float) -> float:
        """How far the mean loss may fall from that of the last ``f_C`` within the ball.

        The dual point of ``1/2 ||f||^2 + C loss`` says so: ``C loss(f) >= C loss(f_C) +
        ||f_C||^2 - <f, f_C>`` for every f.
        """
        total = float(self.problem.terms.weight.sum())
        return norm * max(self.problem.radius - norm, 0.0) / (self.last_C * total)

    def _mean_loss(self, point: HingePoint) -> float:
        """That of the convex step."""
        value = self.problem.step_value(self.pattern, point) - 0.5 * point.squared_norm
        return value / float(self.problem.terms.weight.sum())

    def _point(self, active: bool, ball_gap: float = 0.0) -> _BallPoint:
        last = self.last
        assert last is not None
        assert last.step is not None
        step = replace(last.step, n_iter=self.steps)
        return _BallPoint(last.c, last.g, last.threshold, step, self.last_C, active, ball_gap)
