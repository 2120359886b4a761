"""When the box solver hands over to the interior point, and what it gets back."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array
from buttress.solvers.boxqp.group_sums import minimise_with_sums
from buttress.solvers.hinge._smo_problem import BoxProblem

# The factor of a kernel, and the systems of the interior point, up to this many rows and columns.
_LARGEST_KERNEL = 4000
_LARGEST_FEATURES = 2000
# Work that is never worth interrupting, and the price of a factor, in microseconds.
_SMALL = 3e4
_FACTOR = 1e-4


def work_before_interior(problem: BoxProblem) -> float:
    """Microseconds of pair and Newton steps after which the interior point is the better bet.

    Infinite where there is none: a kernel too large to factorise, or held by rows only.
    """
    K = problem.K
    if K.features is not None:
        n, r = K.features.shape
        return _SMALL + _FACTOR * n * r**2 if r <= _LARGEST_FEATURES else np.inf
    if K.n > _LARGEST_KERNEL or not K.factorable:
        return np.inf
    return _SMALL + 3.0 * _FACTOR * K.n**3


def interior_point(problem: BoxProblem) -> tuple[Array, Array, int]:
    """Signed variables, those that belong to a bound put on it; the vector; the steps taken."""
    points = problem.K.points()
    assert points is not None
    found = minimise_with_sums(
        points, problem.q, problem.lower, problem.upper, problem.row, problem.group,
        np.zeros(problem.n_groups),
    )  # fmt: skip
    # Forces in units of the margins against distances in units of the box.
    margin = max(float(np.abs(problem.q).max(initial=0.0)), 1e-300)
    width = np.maximum(problem.upper - problem.lower, 1e-300)
    low = (found.b - problem.lower) / width < found.low_force / margin
    high = (problem.upper - found.b) / width < found.high_force / margin
    b = np.where(low, problem.lower, np.where(high, problem.upper, found.b))
    room = np.minimum(b - problem.lower, problem.upper - b)
    for k in range(problem.n_groups):
        members = np.flatnonzero(problem.group == k)
        inner = members[int(np.argmax(room[members]))]
        # What snapping changed in the sum goes to the variable that feels it least.
        b[inner] -= b[members].sum()
    return np.clip(b, problem.lower, problem.upper), found.w, found.n_iter
