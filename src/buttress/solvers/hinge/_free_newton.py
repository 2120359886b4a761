"""A Newton step on the free variables of a box problem, clipped or cut at the box."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._threads import one_blas_thread
from buttress.solvers.numerics.lapack import cholesky_in_place, cholesky_solve
from buttress.solvers.numerics.rows import reduced_system

# How often variables that would leave their box are put on the bound before going slowly.
_CLIPPINGS = 8
# Operations spent on going from bound to bound (about 20 ms).
_SLIDE = 1e8
# Copies of a row make the system singular; this shift, relative to its diagonal, keeps the
# factor and hardly moves the step.
_RIDGE = 1e-12


def newton_step(
    K: Array, v: Array, group: IntArray, n_groups: int, lower: Array, upper: Array
) -> tuple[Array | None, int]:
    """A step d that lowers ``1/2 d'Kd - v'd`` inside ``[lower, upper]``, group sums zero.

    Variables that would leave their box are put on the bound and the others solved again; when
    that does not lower the objective, the step goes from bound to bound: to the first one it
    meets, and on without the variable that met it. Costs m³/3 operations for m variables, a few
    times, or up to m times for few variables.

    Returns
    -------
    array of shape (m,) or None
        None when no descent was found (at the minimum, or by rounding).
    int
        How many systems were solved.
    """
    # A second thread gains little here, and on a busy machine waiting for it costs seconds.
    with one_blas_thread():
        return _step(K, v, group, n_groups, lower, upper)


def _step(
    K: Array, v: Array, group: IntArray, n_groups: int, lower: Array, upper: Array
) -> tuple[Array | None, int]:
    step: Array = np.zeros(len(v))
    inside = np.ones(len(v), dtype=bool)
    solves = 0
    for _ in range(_CLIPPINGS):
        solves += 1
        solved = _minimum_given(K, v, group, n_groups, step, inside)
        if solved is None:
            break
        step = solved
        leaving = inside & ((step < lower) | (step > upper))
        if not leaving.any():
            if ((step >= lower) & (step <= upper)).all() and step @ (0.5 * (K @ step) - v) < 0:
                return step, solves
            break
        inside &= ~leaving
        step = np.where(inside, 0.0, np.clip(step, lower, upper))
    slid, more = _slide(K, v, group, n_groups, lower, upper)
    return slid, solves + more


def _minimum_given(
    K: Array, v: Array, group: IntArray, n_groups: int, step: Array, inside: BoolArray
) -> Array | None:
    """Minimise over the variables `inside`, the others held at `step`.

    One variable per group is eliminated, so that the sums hold to the last digit even when the
    system is close to singular.
    """
    solved = np.where(inside, 0.0, step)
    pivot = np.full(len(v), -1)
    for k in range(n_groups):
        members = np.flatnonzero(inside & (group == k))
        if len(members):
            # The middle one: no pivot that a previous clipping has pushed to an end.
            pivot[group == k] = members[len(members) // 2]
            solved[pivot[members[0]]] = -solved[group == k].sum()
        elif abs(solved[group == k].sum()) > 0:
            return None
    right = v - K @ solved if solved.any() else v
    keep = np.flatnonzero(inside & (pivot != np.arange(len(v))))
    if len(keep) == 0:
        return None
    of = pivot[keep]
    grouped = of >= 0
    A = np.empty((len(keep), len(keep)))
    trace = reduced_system(K, keep, of, A)
    A[np.diag_indices_from(A)] += _RIDGE * max(trace / len(A), 1e-300)
    # not by SciPy's wrappers: they hold the interpreter's lock
    if cholesky_in_place(A) != 0:
        return None
    change = right[keep] - np.where(grouped, right[of], 0.0)
    cholesky_solve(A, change[None])
    solved[keep] = change
    solved -= np.bincount(of[grouped], weights=change[grouped], minlength=len(v))
    return solved


def _slide(
    K: Array, v: Array, group: IntArray, n_groups: int, lower: Array, upper: Array
) -> tuple[Array | None, int]:
    """Towards the minimum, from bound to bound; also how many systems were solved.

    With a nearly singular system the minimum lies far outside the box, and a step cut at its
    first bound would change next to nothing; after as many bounds as the system has directions
    without curvature it is inside.
    """
    m = len(v)
    step: Array = np.zeros(m)
    inside = np.ones(m, dtype=bool)
    solves = 0
    for _ in range(1 + min(m, int(_SLIDE / m**3))):
        solves += 1
        solved = _minimum_given(K, v, group, n_groups, step, inside)
        if solved is None:
            break
        way = solved - step
        slope = float((v - K @ step) @ way)
        curvature = float(way @ (K @ way))
        # The ridge keeps the system's solution from being the minimum along its own direction.
        length = slope / curvature if curvature > 0 else np.inf
        if not slope > 0:
            break
        size = np.where(way == 0, 1.0, way)
        room = np.where(way > 0, (upper - step) / size, (lower - step) / size)
        room[way == 0] = np.inf
        first = float(room.min())
        if first >= length:
            step = step + length * way
            break
        step = step + first * way
        met = room <= first
        step[met] = np.where(way[met] > 0, upper[met], lower[met])
        inside &= ~met
    return (step if step @ (v - 0.5 * (K @ step)) > 0 else None), solves
