"""Box-constrained quadratic programs over a kernel: every hinge-shaped dual.

The problem, over variables ``a_j`` that stand for row ``i(j)`` with sign ``s_j``::

    min  1/2 sum_jk s_j s_k a_j a_k K[i(j), i(k)] + sum_j p_j a_j
    s.t. l_j <= a_j <= u_j,   sum_{j in group k} s_j a_j = 0  for every group k

There may be no group, one (support vector machine, ramp, double and generalised hinge) or
two (double ramp); variables outside all groups are free of sum constraints.

Method: sequential minimal optimisation with second-order choice of the pair, inside blocks that
hold the free variables and the worst violators. A pair step costs O(block) instead of O(n), the
kernel rows of a block are used once per block instead of once per step, and rows that sit at
their bounds cost nothing (this is the shrinking). When the pair steps have cost as much as one
linear system in the free variables, that system is solved: a Newton step, clipped at the box.
Where that takes long (kernels of low rank) or rounding ends it too early (wide boxes, features
far from one), an interior point goes on (`buttress.solvers.boxqp.group_sums`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array
from buttress.solvers.hinge._interior_finish import (
    interior_first,
    interior_point,
    work_before_interior,
)
from buttress.solvers.hinge._smo_descent import Descent
from buttress.solvers.hinge._smo_problem import BoxPoint, BoxProblem, BoxTerms

__all__ = ["BoxSolution", "BoxTerms", "middle", "solve_box_qp"]

# Boxes so wide that one variable can move the scores by more than this many margins are entered
# through smaller ones, each this much larger than the last and solved roughly.
_STIFF = 1000.0
_BOX_GROWTH = 10.0
_ROUGH = 1e-2
# Sums of few digits are brought this far below the tolerance, so that it holds with all digits.
_BELOW = 0.9
# Violations that rounding leaves are accepted up to this part of the largest score.
_COARSE = 1e-8
# Up to so many times what is wanted, pair and Newton steps get their time again: the last digits
# fall at once when the right variables are free.
_CLOSE = 100.0
# Work on what the interior point leaves, as a multiple of its own.
_POLISH = 4.0
# With features an interior point is asked for violations above this (or `tol`).
_FINE = 1e-9
# A gap, relative to the objective, that says nothing of two solutions.
_TINY = 1e-10


@dataclass(frozen=True, eq=False)
class BoxSolution:
    """The solution of a box problem.

    Attributes
    ----------
    a : array of shape (m,)
        The variables.
    c : array of shape (n,)
        Signed coefficients of the rows, ``c_i = sum_{i(j) = i} s_j a_j``.
    g : array of shape (n,)
        ``K c``, recomputed in float64; where there is a vector `w`, its values.
    threshold : array of shape (n_groups,)
        The multiplier of every group's constraint: the midpoint of its interval, or the finite
        end when the other is infinite.
    interval : array of shape (n_groups, 2)
        Ends of the optimal thresholds (equal up to the tolerance when a variable is free).
    objective : float
        The minimum.
    gap : float
        The exact duality gap at ``(a, threshold)``, an upper bound of the error of `objective`.
    violation : float
        The largest violation of the optimality conditions in units of the scores, which is
        what `tol` bounds.
    n_iter : int
        Pair steps taken.
    converged : bool
        Whether `tol` was reached.
    w : array of shape (p,) or None
        The function as a vector, where the kernel has features: ``sum_i c_i x_i``, or a point
        that is optimal beyond the digits of that sum.
    square : float
        ``c'Kc``.
    reachable : float
        The tolerance asked for, or what rounding allows when that is more.
    """

    a: Array
    c: Array
    g: Array
    threshold: Array
    interval: Array
    objective: float
    gap: float
    violation: float
    n_iter: int
    converged: bool
    w: Array | None = None
    square: float = 0.0
    reachable: float = 0.0


def solve_box_qp(
    terms: BoxTerms,
    lower: Array,
    upper: Array,
    *,
    start: Array | None = None,
    start_g: tuple[Array, Array] | None = None,
    tol: float = 1e-8,
    max_iter: int = 10_000_000,
) -> BoxSolution:
    """Solve one box problem (see the module's notes).

    Parameters
    ----------
    terms : BoxTerms
        The kernel and the linear part; problems that differ in their boxes share it.
    lower, upper : arrays of shape (m,)
        The box, ``lower <= 0 <= upper`` or any box that can meet the constraints.
    start : array of shape (m,), optional
        Any point: it is clipped to the box and its group sums are repaired.
    start_g : pair of arrays of shape (n,), optional
        ``(c, K c)`` for coefficients `c` near those of `start`; saves forming ``K c``.
    tol : float
        Bound on the violation of the optimality conditions, in units of the scores
        ``-(g + s p)`` (those of a decision function).
    max_iter : int
        Cap on the number of pair steps.

    Returns
    -------
    BoxSolution

    Notes
    -----
    A pair step costs as many operations as the block has rows (256, or a quarter more than the
    free variables), a block (some hundred to thousand steps) the rows of the kernel that moved.
    Memory beyond the kernel: that of the largest block, at most 6000 rows, squared.

    References
    ----------
    R.-E. Fan, P.-H. Chen and C.-J. Lin, "Working set selection using second order information
    for training support vector machines", Journal of Machine Learning Research 6, 2005.

    Examples
    --------
    >>> y = np.array([1.0, -1.0])
    >>> terms = BoxTerms(np.eye(2), sign=y, linear=-np.ones(2))
    >>> solve_box_qp(terms, np.zeros(2), np.ones(2)).a
    array([1., 1.])
    """
    problem = BoxProblem(terms, lower, upper)
    problem.rough = problem.K.has_rough_sums
    descent = Descent(problem)
    steps = 0
    allowance = work_before_interior(problem)
    if start is None and problem.stiffness > _STIFF:
        if interior_first(problem):
            allowance = 0.0
            state = problem.starting_state(None, None)
        else:
            allowance = work_before_interior(problem)  # the rank is known now
            state, steps, spent = _from_smaller_boxes(problem, tol, max_iter, allowance)
            allowance -= spent
    else:
        state = problem.starting_state(start, start_g)
    if problem.rough:
        steps += _roughly(problem, descent, state, tol, max_iter - steps)
    steps += descent.run(state, tol, max_iter - steps, allowance)
    unknown = problem.K.known_rank(problem.accuracy) is None and np.isfinite(allowance)
    if descent.exhausted and unknown:
        # Now that it matters, find out the rank: where it is high the interior point costs more.
        problem.K.rank(problem.accuracy)
        more = work_before_interior(problem) - allowance
        if more > allowance:
            steps += descent.run(state, tol, max_iter - steps, more)
    solution = _refined(problem, descent, state, tol, steps, max_iter, allowance)
    if descent.exhausted and solution.violation <= _CLOSE * solution.reachable:
        price = work_before_interior(problem)
        steps += descent.run(state, tol, max_iter - steps, price)
        solution = _refined(problem, descent, state, tol, steps, max_iter, price)
    short = solution.violation > _wanted(solution, tol)
    if short and solution.n_iter < max_iter and np.isfinite(allowance):
        solution = _by_interior_point(problem, descent, solution, tol, max_iter)
    return solution


def _roughly(
    problem: BoxProblem, descent: Descent, state: BoxPoint, tol: float, max_iter: int
) -> int:
    """Descend with sums of few digits as far as they allow; the pair steps taken.

    Sums of all digits follow, where `tol` asks for more; the certificate has them in any case.
    """
    steps = descent.run(state, _BELOW * tol, max_iter)
    enough = problem.reachable(_BELOW * tol, problem.survey(state)) < tol
    problem.rough = False
    if not enough:
        state.g = problem.K.times(state.c)
    return steps


def _wanted(solution: BoxSolution, tol: float) -> float:
    """What to go on for: where there is a vector, its values are not bound by rounding."""
    if solution.w is not None:
        return max(tol, _FINE)
    return 2.0 * solution.reachable


def _refined(
    problem: BoxProblem,
    descent: Descent,
    state: BoxPoint,
    tol: float,
    steps: int,
    max_iter: int,
    allowance: float,
) -> BoxSolution:
    """Certify; sums kept up to date drift by rounding, so a second look starts from exact ones."""
    solution = _certified(problem, state, tol, steps)
    while solution.violation > solution.reachable and steps < max_iter:
        if descent.exhausted:
            break
        values = solution.g if solution.w is None else problem.K.times(solution.c)
        state = BoxPoint(problem.sign * solution.a, solution.c.copy(), values.copy())
        steps += max(1, descent.run(state, 0.5 * tol, max_iter - steps, allowance))
        refined = _certified(problem, state, tol, steps)
        # Where no more than a third is gained rounding, or the interior point, has the word.
        if refined.violation >= 0.7 * solution.violation:
            return refined if refined.violation < solution.violation else solution
        solution = refined
    return solution


def _by_interior_point(
    problem: BoxProblem, descent: Descent, solution: BoxSolution, tol: float, max_iter: int
) -> BoxSolution:
    """The better of `solution` and what the interior point finds."""
    b, w, n_iter = interior_point(problem)
    steps = solution.n_iter + n_iter
    if problem.K.features is not None:
        point = BoxPoint(b, solution.c, solution.g)
        expansion = _certified(problem, point, tol, steps)
        candidate = _certified(problem, point, tol, steps, w)
        # The vector may be far from the sum of the variables with a gap that rounding hides.
        enough = max(candidate.gap, _TINY * (1.0 + abs(expansion.objective)))
        if expansion.violation <= 2.0 * tol and expansion.gap <= enough:
            return expansion
        # Two gaps of rounding's size say nothing; whether the conditions hold does.
        solution = min(candidate, solution, key=lambda each: (not each.converged, each.gap))
        if solution.converged:
            return solution
    state = problem.starting_state(problem.sign * b, None)
    more = _POLISH * work_before_interior(problem)
    steps += descent.run(state, tol, max_iter - steps, more)
    candidate = _refined(problem, descent, state, tol, steps, max_iter, more)
    return candidate if candidate.violation < solution.violation else solution


def _from_smaller_boxes(
    problem: BoxProblem, tol: float, max_iter: int, allowance: float
) -> tuple[BoxPoint, int, float]:
    """A start from problems whose boxes grow to this one's; also the pair steps and the work.

    Pair steps that are short against the box take very many to find which variables end at
    their bounds (features of unlike scales, large penalties). In a small box most do so at
    once, and the next larger box keeps nearly all of them.
    """
    levels = int(np.ceil(np.log(problem.stiffness / _STIFF) / np.log(_BOX_GROWTH)))
    small = problem.in_smaller_boxes(_BOX_GROWTH**-levels)
    state = small.starting_state(None, None)
    steps, spent = 0, 0.0
    rough = max(tol, _ROUGH * problem.terms.margin)
    for level in range(levels, 0, -1):
        small = problem.in_smaller_boxes(_BOX_GROWTH**-level)
        descent = Descent(small)
        share = (allowance - spent) / (level + 1)
        steps += descent.run(state, rough, max_iter - steps, share)
        spent += descent.spent
        state = BoxPoint(_BOX_GROWTH * state.b, _BOX_GROWTH * state.c, _BOX_GROWTH * state.g)
    np.clip(state.b, problem.lower, problem.upper, out=state.b)
    return state, steps, spent


def _certified(
    problem: BoxProblem, state: BoxPoint, tol: float, steps: int, w: Array | None = None
) -> BoxSolution:
    """The point with what is near a bound on it, and everything recomputed from there.

    The gap between the values of a vector `w` and the variables b is the sum of their
    complementarity and ``1/2 ||w - sum_j b_j x_j||^2``.
    """
    b = state.b
    b = np.where(b <= problem.lower + problem.slack, problem.lower, b)
    b = np.where(b >= problem.upper - problem.slack, problem.upper, b)
    c = problem.row_sums(b)
    expansion = g = problem.K.times(c)
    apart, square = 0.0, float(c @ expansion)
    features = problem.K.features
    if features is not None:
        vector: Array = features.T @ c
        w = vector if w is None else w
        square = float(vector @ vector)
        g, apart = features @ w, 0.5 * float(np.sum((w - vector) ** 2))
    seen = problem.survey(BoxPoint(b, c, g))
    reachable = problem.reachable(tol, seen)
    interval = problem.best[:-1].copy()
    interval[interval <= -1e299] = -np.inf
    interval[interval >= 1e299] = np.inf
    threshold = np.array([middle(low, high) for low, high in interval.tolist()])
    residual = problem.v - np.append(threshold, 0.0)[problem.group]
    gap = np.where(residual > 0, residual * (problem.upper - b), -residual * (b - problem.lower))
    # `tol`, or what rounding allows; but not where rounding spoils the scores themselves.
    acceptable = max(tol, min(reachable, _COARSE * (1.0 + seen.largest)))
    return BoxSolution(
        a=problem.sign * b,
        c=c,
        g=g,
        threshold=threshold,
        interval=np.sort(interval, axis=1),
        objective=0.5 * square + float(problem.q @ b),
        gap=float(gap.sum()) + apart,
        violation=seen.worst,
        n_iter=steps,
        converged=seen.worst <= 2.0 * acceptable,
        w=w,
        square=square,
        reachable=reachable,
    )


def middle(low: float, high: float) -> float:
    """The midpoint, or the finite end, of an interval; 0 for the whole line."""
    if np.isinf(low):
        return 0.0 if np.isinf(high) else high
    return low if np.isinf(high) else 0.5 * (low + high)
