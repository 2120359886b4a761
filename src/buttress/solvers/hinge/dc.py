"""The concave-convex outer loop: every loss that is a convex plus a concave function.

At a point the concave part is replaced by its tangent, and the convex problem that is left is
solved from the last solution; the objective can only fall. For the piecewise linear losses of
this package the tangents are described by an *active pattern* (which terms are clipped), so
that the loop ends, at a stationary point, when a pattern repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from buttress._arrays import Array, BoolArray
from buttress._deadline import check_time
from buttress.solvers.hinge.hinges import HingePoint

Point = TypeVar("Point", bound=HingePoint)

# A decrease below this, relative to 1 + |objective|, ends the loop: patterns can flip for ever
# on a kink without any progress.
_NEGLIGIBLE_DECREASE = 1e-9
_TIGHTEST = 1e-13
# A gap above what is accepted falls about as the tolerance: what is aimed at, as a part of it, and
# how much tighter a tolerance may become at once. Where the gap keeps this part of itself, only
# rounding is left.
_AIM = 0.5
_TIGHTENING = 0.01
_STUCK = 0.9


class DCProblem(Protocol[Point]):
    """The loss-specific pieces of the loop (`buttress.solvers.hinge.hinges.HingeProblem`)."""

    def initial_pattern(self) -> BoolArray:
        """The pattern with nothing clipped: the convex problem."""
        ...

    def objective(self, point: Point, /) -> float:
        """The true objective."""
        ...

    def pattern(self, point: Point, /) -> BoolArray:
        """Which tangent of the concave part is active at the point."""
        ...

    def step(self, pattern: BoolArray, warm: Point | None, tol: float, /) -> Point:
        """The minimiser of the convex problem with that tangent."""
        ...

    def gap(self, pattern: BoolArray, point: Point, /) -> float:
        """The duality gap of that problem at its minimiser, in units of the objective."""
        ...

    def accepted_gap(self, objective: float, tol: float, /) -> float:
        """The gap up to which a solution to the tolerance `tol` keeps its promise."""
        ...


@dataclass(frozen=True, eq=False)
class DCSolution(Generic[Point]):
    """A stationary point.

    Attributes
    ----------
    point : Point
        The last (best) point.
    pattern : array of bool
        The active pattern of the convex problem that `point` solves.
    objective : float
        The true objective there.
    objective_path : array
        Its value after every outer step; never increases.
    gap : float
        Duality gap of the last convex problem.
    violation : float
        Violation of the optimality conditions of the last convex problem, which at a repeated
        pattern are those of the true problem.
    n_outer : int
        Outer steps.
    n_iter : int
        Inner (pair) steps in all.
    converged : bool
        Whether the pattern repeated or the decrease became negligible, with every inner
        problem solved to its tolerance.
    """

    point: Point
    pattern: BoolArray
    objective: float
    objective_path: Array
    gap: float
    violation: float
    n_outer: int
    n_iter: int
    converged: bool


def minimize_dc(
    problem: DCProblem[Point],
    *,
    start: Point | BoolArray | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> DCSolution[Point]:
    """Run the outer loop until it is stationary.

    Parameters
    ----------
    problem : DCProblem
        For example `buttress.solvers.hinge.hinges.HingeProblem`.
    start : point, array of bool or None
        Where the first tangent is taken: a point (``problem.point(c, threshold)``), an active
        pattern, or None for the pattern with nothing clipped (the convex problem first).
    tol : float
        Tolerance of the convex problems; tightened when the objective would increase, and at
        the end while the duality gap is more than the problem accepts.
    max_iter : int
        Cap on the outer steps.

    Returns
    -------
    DCSolution

    Notes
    -----
    Two to ten outer steps are typical; each one after the first starts from the last solution
    and costs a fraction of the first.

    References
    ----------
    A. L. Yuille and A. Rangarajan, "The concave-convex procedure", Neural Computation 15, 2003.
    """
    point: Point | None = None
    best = float("inf")
    if start is None:
        pattern = problem.initial_pattern()
    elif isinstance(start, np.ndarray):
        pattern = start.astype(bool)
    else:
        point, pattern, best = start, problem.pattern(start), problem.objective(start)
    used = pattern
    path: list[float] = []
    n_iter = 0
    settled = refining = False
    promised = tol
    gap: float | None = None  # that of `point`, once it is wanted
    while (len(path) < max_iter or refining) and not settled:
        new, value, steps = _descending_step(problem, pattern, point, best, tol)
        n_iter += steps
        after = problem.pattern(new)
        if value > best and path:
            settled = True
            # Only rounding is left: keep the better point, unless the new one is stationary,
            # its own tangents being those of its problem.
            if value > best + _rounding(best) or not np.array_equal(after, pattern):
                break
            value = best
        used, pattern = pattern, after
        stalled = np.isfinite(best) and best - value <= _NEGLIGIBLE_DECREASE * (1.0 + abs(best))
        settled = settled or bool(stalled or np.array_equal(used, pattern))
        point, best = new, value
        path[len(path) - refining :] = [value]
        before, gap = gap, problem.gap(used, point) if settled else None
        refining = False
        if gap is None or (before is not None and gap > _STUCK * before):
            continue
        excess = gap / problem.accepted_gap(best, promised)
        tighter = _tighter(point, tol, excess)
        if tighter < tol:
            tol, settled = tighter, False
            # the same problem again, to more digits, is no outer step of its own
            refining = np.array_equal(used, pattern)
    if point is None or point.step is None:
        raise ValueError(f"max_iter={max_iter!r} is out of range: expected a whole number >= 1.")
    return DCSolution(
        point=point,
        pattern=used,
        objective=best,
        objective_path=np.array(path),
        gap=problem.gap(used, point) if gap is None else gap,
        violation=point.step.violation,
        n_outer=len(path),
        n_iter=n_iter,
        converged=settled and point.step.converged,
    )


def _descending_step(
    problem: DCProblem[Point], pattern: BoolArray, warm: Point | None, best: float, tol: float
) -> tuple[Point, float, int]:
    """One convex step, solved more and more exactly until the objective does not rise."""
    steps = 0
    while True:
        check_time()
        new = problem.step(pattern, warm, tol)
        value = problem.objective(new)
        if new.step is not None:
            steps += new.step.n_iter
        if value <= best + _rounding(best) or tol <= _TIGHTEST:
            return new, value, steps
        warm, tol = new, max(0.01 * tol, _TIGHTEST)


def _tighter(point: HingePoint, tol: float, excess: float) -> float:
    """A tolerance for a gap that is `excess` times what is accepted.

    It is `tol` where that is enough, and where rounding allows for no less.
    """
    step = point.step
    if excess <= 1.0 or step is None or not step.converged or step.reachable > tol:
        return tol
    wanted = min(tol, step.violation) * max(_AIM / excess, _TIGHTENING)
    return min(tol, max(wanted, _TIGHTEST))


def _rounding(value: float) -> float:
    return 1e-13 * (1.0 + abs(value))
