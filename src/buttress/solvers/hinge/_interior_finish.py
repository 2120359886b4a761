"""When the box solver hands over to the interior point, and what it gets back."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array
from buttress._threads import blas_threads_for
from buttress.solvers.boxqp.group_sums import SumsProblem, minimise_with_sums
from buttress.solvers.hinge._smo_problem import BoxProblem
from buttress.solvers.hinge._vertex import at_vertex

# The factor of a kernel, and the systems of the interior point, up to this many rows and columns.
_LARGEST_KERNEL = 4000
_LARGEST_FEATURES = 2000
# Where pair steps are not even tried: up to so many rows, and a rank of this part of them.
_LARGEST_FIRST = 2000
_FEW_DIMENSIONS = 0.25
# The interior point's price in microseconds: its steps, and the rest of each besides a product of
# matrices; measured with 50 to 1000 rows.
_STEPS = 20.0
_PER_STEP = 200.0
_PER_OPERATION = 7e-5
# A kernel's rank is not asked for before it matters; low ranks are where pair steps stall.
_GUESSED_RANK = 100


def work_before_interior(problem: BoxProblem) -> float:
    """Microseconds of pair and Newton steps after which the interior point is the better bet.

    Infinite where there is none: a kernel too large to factorise, or held by rows only.
    """
    K = problem.K
    if K.features is not None:
        rank = K.features.shape[1]
        return _price(_by_points(problem, rank)) if rank <= _LARGEST_FEATURES else np.inf
    if K.n > _LARGEST_KERNEL or not K.factorable:
        return np.inf
    known = K.known_rank(problem.accuracy)
    rank = min(_GUESSED_RANK, K.n) if known is None else known
    return _price(min(_by_points(problem, rank), _by_products(problem)))


def _price(operations: float) -> float:
    """Microseconds for steps of so many operations."""
    return _STEPS * (_PER_STEP + _PER_OPERATION * operations)


def _by_points(problem: BoxProblem, rank: int) -> float:
    """Operations of a step in the dimensions of the points."""
    # variables of one group that share a row share its place in the system
    m = problem.K.n * max(1, problem.n_groups)
    return float(m * rank**2)


def _by_products(problem: BoxProblem) -> float:
    """Operations of a step with the products of the points, where they are held.

    It is one Cholesky factor, at nearly twice the rate of the products of centred points.
    """
    return np.inf if problem.K.whole is None else problem.K.n**3 / 5.0


def interior_first(problem: BoxProblem) -> bool:
    """Whether a problem with wide boxes is better begun by the interior point.

    That is so when its points have few dimensions.
    """
    K = problem.K
    if K.features is None and (K.n > _LARGEST_FIRST or not K.factorable):
        return False
    return K.rank(problem.accuracy) <= _FEW_DIMENSIONS * K.n


def interior_point(problem: BoxProblem) -> tuple[Array, Array, int]:
    """Signed variables, those that belong to a bound put on it; the vector; the steps taken.

    The vector is of use where the kernel has features.
    """
    K = problem.K
    rank = K.rank(problem.accuracy)
    gram = K.features is None and _by_products(problem) < _by_points(problem, rank)
    points = K.whole if gram else K.points(problem.accuracy)
    assert points is not None
    points = points.astype(np.float64, copy=False)
    with blas_threads_for(K.n):
        inside = minimise_with_sums(
            SumsProblem(
                points, problem.q, problem.lower, problem.upper, problem.row, problem.group,
                np.zeros(problem.n_groups), gram,
            )
        )  # fmt: skip
    # Forces in units of the margins against distances in units of the box.
    margin = max(problem.terms.margin, 1e-300)
    width = np.maximum(problem.upper - problem.lower, 1e-300)
    low = (inside.b - problem.lower) / width < inside.low_force / margin
    high = (problem.upper - inside.b) / width < inside.high_force / margin
    b = np.where(low, problem.lower, np.where(high, problem.upper, inside.b))
    room = np.minimum(b - problem.lower, problem.upper - b)
    for k in range(problem.n_groups):
        members = np.flatnonzero(problem.group == k)
        inner = members[int(np.argmax(room[members]))]
        # What snapping changed in the sum goes to the variable that feels it least.
        b[inner] -= b[members].sum()
    b = np.clip(b, problem.lower, problem.upper)
    if K.features is None and not gram:
        b = at_vertex(problem, b, points)
    return b, inside.w, inside.n_iter
