"""A Newton step on the free variables of a box problem, clipped or cut at the box."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._threads import one_blas_thread
from buttress.solvers.hinge._loops import reduced_system
from buttress.solvers.hinge._slide import slide, spread_inverse
from buttress.solvers.numerics.lapack import (
    cholesky_in_place,
    cholesky_solve,
    inverse_from_cholesky,
)

# How often variables that would leave their box are put on the bound before going slowly.
_CLIPPINGS = 8
# Copies of a row make the system singular; this shift, relative to its diagonal, keeps the
# factor and hardly moves the step.
_RIDGE = 1e-12


class NewtonStep(NamedTuple):
    """What a Newton step found, and what it took.

    Attributes
    ----------
    step : array of shape (m,) or None
        None when no descent was found (at the minimum, or by rounding).
    factors : int
        How many systems were factorised; an inverse counts as two more.
    bounds : int
        How many bounds were met one by one.
    """

    step: Array | None
    factors: int
    bounds: int


def newton_step(
    K: Array, v: Array, group: IntArray, n_groups: int, lower: Array, upper: Array
) -> NewtonStep:
    """A step d that lowers ``1/2 d'Kd - v'd`` inside ``[lower, upper]``, group sums zero.

    Variables that would leave their box are put on the bound and the others solved again; when
    that does not lower the objective, the step goes from bound to bound (`slide`, which overwrites
    K). Costs m³/3 operations for m variables, a few times, and m² for every bound.
    """
    # A second thread gains little here, and on a busy machine waiting for it costs seconds.
    with one_blas_thread():
        return _step(K, v, group, n_groups, lower, upper)


def _step(
    K: Array, v: Array, group: IntArray, n_groups: int, lower: Array, upper: Array
) -> NewtonStep:
    m = len(v)
    step: Array = np.zeros(m)
    inside = np.ones(m, dtype=bool)
    first: _Factor | None = None
    factors = 0
    for _ in range(_CLIPPINGS):
        fixed = np.where(inside, 0.0, step)
        factor = _Factor.of(K, group, n_groups, inside, fixed)
        factors += 1
        if factor is None:
            break
        first = first or factor
        step = factor.minimum(v - K @ fixed if fixed.any() else v, fixed)
        leaving = inside & ((step < lower) | (step > upper))
        if not leaving.any():
            if ((step >= lower) & (step <= upper)).all() and step @ (0.5 * (K @ step) - v) < 0:
                return NewtonStep(step, factors, 0)
            break
        inside &= ~leaving
        step = np.where(inside, 0.0, np.clip(step, lower, upper))
    if first is None:
        return NewtonStep(None, factors, 0)
    vectors = np.zeros((7, m))
    vectors[0], vectors[1], vectors[2] = v, lower, upper
    order = np.empty(m, dtype=np.intp)
    gained, bounds = slide(K, first.inverse(m), group.copy(), n_groups, vectors, order, m)
    slid = np.empty(m)
    slid[order] = vectors[3]
    return NewtonStep(slid if gained > 0.0 else None, factors + 2, bounds)


class _Factor:
    """The Cholesky factor of the system in the variables `inside`, group sums kept.

    One variable per group, its pivot, is eliminated, so that the sums hold to the last digit even
    when the system is close to singular.
    """

    def __init__(self, keep: IntArray, pivot: IntArray, matrix: Array) -> None:
        self.keep, self.pivot, self.matrix = keep, pivot, matrix

    @classmethod
    def of(
        cls, K: Array, group: IntArray, n_groups: int, inside: BoolArray, fixed: Array
    ) -> _Factor | None:
        """None when nothing is left to choose, or rounding made the system indefinite.

        `fixed` has the steps of the variables outside; it gets those of the pivots.
        """
        m = len(group)
        pivot = np.full(m, -1)
        for k in range(n_groups):
            members = np.flatnonzero(inside & (group == k))
            if len(members):
                # The middle one: no pivot that a previous clipping has pushed to an end.
                pivot[group == k] = members[len(members) // 2]
                fixed[pivot[members[0]]] = -fixed[group == k].sum()
            elif abs(fixed[group == k].sum()) > 0:
                return None
        keep = np.flatnonzero(inside & (pivot != np.arange(m)))
        if len(keep) == 0:
            return None
        matrix = np.empty((len(keep), len(keep)))
        trace = reduced_system(K, keep, pivot[keep], matrix)
        matrix[np.diag_indices_from(matrix)] += _RIDGE * max(trace / len(matrix), 1e-300)
        # not by SciPy's wrappers: they hold the interpreter's lock
        return cls(keep, pivot[keep], matrix) if cholesky_in_place(matrix) == 0 else None

    def minimum(self, force: Array, fixed: Array) -> Array:
        """The steps of all variables, those outside held at `fixed`."""
        grouped = self.pivot >= 0
        change = force[self.keep] - np.where(grouped, force[self.pivot], 0.0)
        cholesky_solve(self.matrix, change[None])
        step = fixed.copy()
        step[self.keep] = change
        step -= np.bincount(self.pivot[grouped], weights=change[grouped], minlength=len(fixed))
        return step

    def inverse(self, m: int) -> Array:
        """The inverse on the steps of all m variables that keep the sums; takes the factor."""
        H = np.zeros((m, m))
        inverse_from_cholesky(self.matrix)
        spread_inverse(self.matrix, self.keep, self.pivot, H)
        return H
