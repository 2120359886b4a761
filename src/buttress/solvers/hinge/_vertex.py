"""From inside the optimal face of a box problem to one of its vertices.

Over points of few dimensions very many weights give the same function. An interior point ends in
the middle of them, with nearly all variables between their bounds, and a Newton step on so many
is slow and close to singular. At a vertex no more of them are free than the points have
dimensions and the problem has sums.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr, solve_triangular

from buttress._arrays import Array, IntArray
from buttress._compile import compiled
from buttress._threads import one_blas_thread
from buttress.solvers.hinge._smo_problem import BoxProblem

# Directions of the points below this part of the largest are rounding.
_FLAT = 1e-11
# A variable whose share in a combination is below this does not end a push.
_SMALLEST_PIVOT = 1e-9


def at_vertex(problem: BoxProblem, b: Array, points: Array) -> Array:
    """A point of the box with the sums and the function of `b`, and few variables free.

    Parameters
    ----------
    problem : BoxProblem
    b : array of shape (m,)
        Signed variables.
    points : array of shape (n, r)
        Points whose products are the kernel.

    Returns
    -------
    array of shape (m,)

    Notes
    -----
    The variables furthest from their bounds whose points (with the group as a coordinate) span
    those of all free ones are kept; every other one is pushed towards a bound while the kept ones
    balance it, and changes place with the one that meets a bound first. Costs some r^2 operations
    for every free variable.
    """
    room = np.minimum(b - problem.lower, problem.upper - b)
    free = np.flatnonzero(room > problem.slack)
    r, k = points.shape[1], problem.n_groups
    if len(free) <= r + k:
        return b
    group = problem.group[free]
    coordinates = np.zeros((r + k, len(free)))
    coordinates[:r] = points[problem.row[free]].T / np.sqrt(problem.scale)
    grouped = np.flatnonzero(group >= 0)
    coordinates[r + group[grouped], grouped] = 1.0
    inside = room[free] / (problem.upper - problem.lower)[free]
    with one_blas_thread():
        triangle, order = qr(coordinates * inside, mode="r", pivoting=True, check_finite=False)
        size = np.abs(np.diagonal(triangle))
        rank = int(np.count_nonzero(size > _FLAT * size[0]))
        shares = solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
    kept, others = order[:rank], order[rank:]
    shares = (shares * inside[kept][:, None] / inside[others]).T
    nearest = np.argsort(inside[others])
    x = b[free]
    box = (problem.lower[free], problem.upper[free])
    _push_all(x, box, kept, others[nearest], np.ascontiguousarray(shares[nearest]))
    vertex = b.copy()
    vertex[free] = np.clip(x, *box)
    return vertex


@compiled()
def _push_all(
    x: Array, box: tuple[Array, Array], kept: IntArray, others: IntArray, shares: Array
) -> None:
    """Push the others to a bound one by one; line j of `shares` says how the kept make up for it.

    Overwrites everything but the box.
    """
    lower, upper = box
    for p in range(others.shape[0]):
        j = others[p]
        share = shares[p]
        # the nearer bound first; where a kept variable is in the way, the other one may be free
        way = 1.0 if upper[j] - x[j] < x[j] - lower[j] else -1.0
        length, first, pivot = 0.0, -1, 0.0
        for side in (way, -way):
            end = upper[j] - x[j] if side > 0.0 else x[j] - lower[j]
            met = -1
            for i in range(kept.shape[0]):
                rate = -side * share[i]
                if abs(rate) < _SMALLEST_PIVOT:
                    continue
                q = kept[i]
                reach = max(0.0, ((upper[q] if rate > 0.0 else lower[q]) - x[q]) / rate)
                if reach < end:
                    end, met = reach, i
            if met < 0 or abs(share[met]) > pivot:
                way, length, first = side, end, met
                pivot = abs(share[met]) if met >= 0 else 1e300
            if met < 0:
                break
        x[j] += way * length
        for i in range(kept.shape[0]):
            x[kept[i]] -= way * length * share[i]
        if first < 0:
            x[j] = upper[j] if way > 0.0 else lower[j]
            continue
        out = kept[first]
        x[out] = upper[out] if way * share[first] < 0.0 else lower[out]
        kept[first] = j
        for l in range(p + 1, others.shape[0]):
            ratio = shares[l, first] / share[first]
            if ratio != 0.0:
                for i in range(kept.shape[0]):
                    shares[l, i] -= ratio * share[i]
                shares[l, first] = ratio
