"""Machines with a rejection band, on top of the sums of hinges.

With ``r_A = b - rho`` and ``r_B = b + rho`` the double ramp loss splits into two cost-weighted
ramp machines that share one function g: the threshold of saying +1 (``g + r_A > 0``, group A)
and the threshold of saying -1 (``g + r_B < 0``, group B)::

    sum L =   sum_{y=+} d     R(g + r_A) + sum_{y=-} (1-d) R(-g - r_A)     group A
            + sum_{y=+} (1-d) R(g + r_B) + sum_{y=-} d     R(-g - r_B)     group B

with ``R(t) = ([mu - t]_+ - [-mu^2 - t]_+) / mu``. The convex rivals (double and generalised
hinge) are two stacked hinges with one threshold.

Costs may differ from row to row. With the cost ``a_i`` of a wrong answer and ``b_i`` of a refusal
on row i, its two ramps weigh ``b_i`` and ``a_i - b_i`` in place of ``d`` and ``1 - d``: a row on
the wrong side of the near threshold has lost b_i, on the wrong side of both a_i. In the dual only
the boxes change; the two sum constraints stay. Refusing can pay for some row only if
``b_+/a_+ + b_-/a_- < 1`` (compare the posterior costs of the three decisions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array
from buttress.solvers.hinge._double_ramp import DoubleRampMachine, DoubleRampSolution
from buttress.solvers.hinge._solution import HingeSolution
from buttress.solvers.hinge.certificate import certificate_of
from buttress.solvers.hinge.dc import DCSolution, minimize_dc
from buttress.solvers.hinge.hinges import HingePoint, HingeProblem, HingeTerms
from buttress.solvers.hinge.kernel_rows import KernelSource

__all__ = [
    "DoubleRampSolution",
    "DoubleRampTerms",
    "StackedHingeSolution",
    "double_ramp_step",
    "solve_double_ramp",
    "solve_stacked_hinge",
]


@dataclass(frozen=True, eq=False)
class StackedHingeSolution(HingeSolution):
    """The minimiser of a convex sum of hinges.

    Attributes
    ----------
    b_interval : array of shape (2,)
        Ends of the optimal intercepts; `b` is the midpoint, or the finite end.
    """

    b_interval: Array


def solve_stacked_hinge(
    K: KernelSource,
    y: Array,
    terms: Sequence[tuple[float | Array, float | Array]],
    *,
    C: float = 1.0,
    weight: Array | None = None,
    fit_intercept: bool = True,
    tol: float = 1e-8,
    max_iter: int = 10_000_000,
) -> StackedHingeSolution:
    """Minimise ``1/2 ||g||^2 + C sum_i weight_i sum_k w_k [m_k - y_i (g_i + b)]_+``.

    Parameters
    ----------
    K : array of shape (n, n), `KernelMatrix` or `KernelRowCache`
    y : array of ±1
    terms : pairs (w_k, m_k)
        A loss's ``terms``, as of `buttress.losses.GeneralizedHinge` or `DoubleHinge`; each entry
        a number, or an array of shape (n,) where it differs from row to row. For example with
        costs ``a_i`` of a wrong answer and ``b_i <= a_i / 2`` of a refusal the generalised hinge
        is ``((b, 1.0), (a - 2 * b, 0.0))``.
    C : float
    weight : array of shape (n,), optional
    fit_intercept : bool
        Without, ``b = 0``.
    tol : float
        Bound on the violation of the optimality conditions, on the scale of f.
    max_iter : int
        Cap on the pair steps.

    Returns
    -------
    StackedHingeSolution

    Examples
    --------
    >>> solve_stacked_hinge(np.eye(2), np.array([1.0, -1.0]), ((1.0, 1.0),)).g
    array([ 1., -1.])
    """
    y = np.asarray(y, dtype=np.float64)
    n = len(y)
    cost = C * (np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64))
    used = [(w, m) for w, m in terms if np.any(np.asarray(w) > 0)]
    stacked = HingeTerms(
        sign=np.tile(y, len(used)),
        margin=np.concatenate([np.broadcast_to(m, n) for _, m in used]).astype(np.float64),
        weight=np.concatenate([w * cost for w, _ in used]),
        row=np.tile(np.arange(n), len(used)),
        group=np.full(n * len(used), 0 if fit_intercept else -1),
    )
    problem = HingeProblem(K, stacked, max_iter=max_iter)
    # a problem without clipped terms is one convex step of the loop
    minimum = minimize_dc(problem, tol=tol)
    point, step = minimum.point, minimum.point.step
    assert step is not None
    return StackedHingeSolution(
        c=point.c,
        g=point.g,
        b=float(point.threshold[0]) if fit_intercept else 0.0,
        b_interval=step.interval[0] if fit_intercept else np.zeros(2),
        objective=minimum.objective,
        gap=minimum.gap,
        violation=minimum.violation,
        n_iter=minimum.n_iter,
        converged=minimum.converged,
        w=step.w,
        certificate=certificate_of(stacked, minimum.pattern, step),
    )


@dataclass(frozen=True, eq=False)
class DoubleRampTerms:
    """The loss and whose it is.

    Attributes
    ----------
    d : float in (0, 0.5]
        Cost of a rejection; 0.5 forces ``rho = 0``.
    mu : float in (0, 1]
        Width of the ramps' slope.
    weight : array of shape (n,), optional
        Of the rows.
    error_cost, refusal_cost : arrays of shape (n,), optional
        Costs ``a_i`` of a wrong answer and ``b_i`` of a refusal on every row, ``0 < b_i < a_i``,
        in place of 1 and `d` (usually one pair per class, ``np.where(y > 0, ..., ...)``). One
        without the other is completed by 1 or by ``d * error_cost``. Where some
        ``b_i > a_i / 2``, ``rho >= 0`` is a constraint of every convex step.
    fit_intercept : bool
        Without, ``b = 0``.
    """

    d: float = 0.2
    mu: float = 1.0
    weight: Array | None = None
    error_cost: Array | None = None
    refusal_cost: Array | None = None
    fit_intercept: bool = True

    def machine(
        self, K: KernelSource, y: Array, C: float, warm: DoubleRampSolution | None = None
    ) -> DoubleRampMachine:
        """The machine of these rows."""
        outer, inner = self.ramp_weights(len(y))
        return DoubleRampMachine(K, y, C, self.mu, outer, inner, self.fit_intercept, warm)

    def ramp_weights(self, n: int) -> tuple[Array, Array]:
        """Weights of the ramps at rho and at -rho, ``w_i b_i`` and ``w_i (a_i - b_i)``."""
        w = np.ones(n) if self.weight is None else np.asarray(self.weight, dtype=np.float64)
        if self.error_cost is None and self.refusal_cost is None:
            return self.d * w, (1.0 - self.d) * w
        a, b = np.ones(n), self.refusal_cost
        if self.error_cost is not None:
            a = np.asarray(self.error_cost, dtype=np.float64)
        b = self.d * a if b is None else np.asarray(b, dtype=np.float64)
        if a.shape != (n,) or b.shape != (n,):
            raise ValueError(
                f"error_cost and refusal_cost need one number per row, shape ({n},); got "
                f"{a.shape} and {b.shape}."
            )
        if not ((b > 0) & (b < a)).all():
            raise ValueError("Every refusal_cost must lie between 0 and the row's error_cost.")
        return w * b, w * (a - b)


def solve_double_ramp(
    K: KernelSource,
    y: Array,
    terms: DoubleRampTerms = DoubleRampTerms(),
    *,
    C: float = 1.0,
    start: tuple[Array, float, float] | None = None,
    warm: DoubleRampSolution | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> DoubleRampSolution:
    """Run the concave-convex loop of the double ramp machine to a stationary point.

    Parameters
    ----------
    K : array of shape (n, n), `KernelMatrix` or `KernelRowCache`
    y : array of ±1
    terms : DoubleRampTerms
    C : float > 0
    start : (c, b, rho), optional
        Where the first tangents are taken; default zero, so that the first step is the convex
        problem.
    warm : DoubleRampSolution, optional
        A solution of the same rows for other parameters. Only the first convex step starts
        from it: the loop goes the same way as without, in less time.
    tol : float
        Bound on the violation of the optimality conditions of a convex step, on the scale of
        f; tightened when the objective would rise.
    max_iter : int
        Cap on the outer steps.

    Returns
    -------
    DoubleRampSolution

    Notes
    -----
    Every convex step is a box problem in two variables per row with two sum constraints;
    `buttress.solvers.hinge.smo` states its cost. Two to eight outer steps are typical.

    References
    ----------
    N. Manwani, K. Desai, S. Sasidharan and R. Sundararajan, "Double ramp loss based reject
    option classifier", Pacific-Asia Conference on Knowledge Discovery and Data Mining, 2015.

    Examples
    --------
    >>> K, y = np.eye(4), np.array([1.0, 1.0, -1.0, -1.0])
    >>> solution = solve_double_ramp(K, y, C=10.0)
    >>> (solution.g + solution.b > solution.rho).tolist()
    [True, True, False, False]
    """
    machine = terms.machine(K, y, C, warm)
    first = None if start is None else machine.point(*start)
    stationary, path, n_iter = _until_patterns_repeat(machine, first, tol, max_iter)
    return machine.solution(
        stationary.point,
        stationary.pattern,
        gap=stationary.gap,
        objective_path=np.array(path),
        n_outer=len(path),
        n_iter=n_iter,
        converged=stationary.converged,
    )


def _until_patterns_repeat(
    machine: DoubleRampMachine, first: HingePoint | None, tol: float, max_iter: int
) -> tuple[DCSolution[HingePoint], list[float], int]:
    """The loop, and again from where it ended while that leads to new patterns.

    A step without progress can still move to another pattern, from which there is progress.
    """
    stationary = minimize_dc(machine, start=first, tol=tol, max_iter=max_iter)
    path, n_iter = list(stationary.objective_path), stationary.n_iter
    seen = [stationary.pattern]
    while stationary.converged and len(path) < max_iter:
        pattern = machine.pattern(stationary.point)
        if any(np.array_equal(pattern, old) for old in seen):
            break
        seen.append(pattern)
        more = minimize_dc(machine, start=stationary.point, tol=tol, max_iter=max_iter - len(path))
        n_iter += more.n_iter
        if more.objective > stationary.objective:
            break
        path.extend(more.objective_path)
        stationary = more
    return stationary, path, n_iter


def double_ramp_step(
    K: KernelSource,
    y: Array,
    terms: DoubleRampTerms = DoubleRampTerms(),
    *,
    C: float = 1.0,
    start: tuple[Array, float, float] | None = None,
    tol: float = 1e-8,
) -> DoubleRampSolution:
    """Solve one convex step, with the tangents taken at `start` (default zero).

    Parameters and result as in `solve_double_ramp`.
    """
    machine = terms.machine(K, y, C)
    pattern = machine.initial_pattern()
    if start is not None:
        pattern = machine.pattern(machine.point(*start))
    point = machine.step(pattern, None, tol)
    assert point.step is not None
    return machine.solution(
        point,
        pattern,
        gap=machine.gap(pattern, point),
        objective_path=np.array([machine.objective(point)]),
        n_outer=1,
        n_iter=point.step.n_iter,
        converged=point.step.converged,
    )
