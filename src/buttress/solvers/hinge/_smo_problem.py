"""A box problem in signed variables, its points and how far they are from optimal."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers.hinge.kernel_rows import KernelMatrix
from buttress.solvers.numerics.rows import scores

# How near a bound, relative to the widest box, counts as at the bound. A variable 1e-17 away
# from its bound must not pass for a free one: it would fix the threshold.
_BOUND_TOLERANCE = 1e-11
_SNAP = 1e-10


@dataclass(eq=False)
class State:
    """A point; changed in place."""

    b: Array  # signed variables s_j a_j
    c: Array  # their sums per row
    g: Array  # K c


class BoxProblem:
    """The problem in signed variables ``b_j = s_j a_j``, where the group sums are plain sums."""

    def __init__(
        self,
        K: KernelMatrix,
        sign: Array,
        linear: Array,
        lower: Array,
        upper: Array,
        row: IntArray | None,
        group: IntArray | None,
    ) -> None:
        self.K = K
        self.sign = np.asarray(sign, dtype=np.float64)
        m = len(self.sign)
        lower = np.asarray(lower, dtype=np.float64)
        upper = np.asarray(upper, dtype=np.float64)
        positive = self.sign > 0
        self.q = self.sign * np.asarray(linear, dtype=np.float64)
        self.lower = np.where(positive, lower, -upper)
        self.upper = np.where(positive, upper, -lower)
        self.row = np.arange(m) if row is None else np.asarray(row, dtype=np.intp)
        self.group = (
            np.zeros(m, dtype=np.intp) if group is None else np.asarray(group, dtype=np.intp)
        )
        self.n_groups = int(self.group.max(initial=-1)) + 1
        width = self.upper - self.lower
        if (width < 0).any():
            raise ValueError("A lower bound of the box lies above its upper bound.")
        self.scale = float(K.diagonal.max(initial=0.0))
        self.widest = widest = float(width.max(initial=0.0))
        # A variable moved to its bound must not move the scores either.
        harmless = max(_SNAP / self.scale if self.scale > 0 else np.inf, 2e-15 * widest)
        self.slack = np.minimum(min(_BOUND_TOLERANCE * widest, harmless), 0.25 * width)
        # whether sums may be brought up to date with fewer digits (see `smo`)
        self.rough = False
        self.v = np.empty(m)
        self.best = np.empty((self.n_groups + 1, 2))

    @property
    def stiffness(self) -> float:
        """How far one variable can move the scores, in units of the margins; 0 if unclear."""
        margin = float(np.abs(self.q).max(initial=0.0))
        if margin == 0.0 or (self.lower > 0).any() or (self.upper < 0).any():
            return 0.0
        return self.widest * self.scale / margin

    def in_smaller_boxes(self, factor: float) -> BoxProblem:
        """The same problem with all bounds times `factor`."""
        small = copy(self)
        small.lower, small.upper = factor * self.lower, factor * self.upper
        small.slack = factor * self.slack
        small.widest = factor * self.widest
        return small

    def starting_state(self, start: Array | None, start_g: tuple[Array, Array] | None) -> State:
        """`start` moved into the box and made to meet the sum constraints."""
        given = np.zeros(len(self.q)) if start is None else self.sign * np.asarray(start)
        b = np.clip(given, self.lower, self.upper)
        c = self.row_sums(b)
        if start_g is None:
            g = self.K.times(c)
        else:
            g = np.array(start_g[1], dtype=np.float64)
            self.add(c - start_g[0], g)
        state = State(b, c, g)
        self._repair(state)
        return state

    def row_sums(self, b: Array) -> Array:
        """Signed variables summed per row."""
        sums: Array = np.bincount(self.row, weights=b, minlength=self.K.n).astype(np.float64)
        return sums

    def add(self, change: Array, g: Array) -> None:
        """``g += K change``, by as many rows as fit in the cache at a time."""
        moved = np.flatnonzero(change)
        for first in range(0, len(moved), self.K.most_rows):
            rows = moved[first : first + self.K.most_rows]
            self.K.add(rows, change[rows], g, self.rough)

    def _repair(self, state: State) -> None:
        """Make every group sum zero by moving the variables that gain most from it."""
        before = state.b.copy()
        v = -(state.g[self.row] + self.q)
        for k in range(self.n_groups):
            members = np.flatnonzero(self.group == k)
            excess = float(state.b[members].sum())
            if excess == 0.0:
                continue
            falling = excess > 0
            order = members[np.argsort(v[members] if falling else -v[members], kind="stable")]
            bound = self.lower if falling else self.upper
            room = np.abs(state.b[order] - bound[order])
            reached = np.cumsum(room)
            if len(reached) == 0 or reached[-1] < abs(excess) * (1 - 1e-9):
                raise ValueError(f"The box cannot meet the sum constraint of group {k}.")
            take = np.clip(abs(excess) - (reached - room), 0.0, room)
            state.b[order] -= np.sign(excess) * take
        if not np.array_equal(before, state.b):
            self.refresh(state)

    def refresh(self, state: State) -> None:
        """Bring the sums up to date with the variables."""
        c = self.row_sums(state.b)
        self.add(c - state.c, state.g)
        state.c = c

    def reachable(self, tol: float, c: Array, g: Array) -> float:
        """`tol`, or what rounding and the bound tolerance allow when that is more."""
        largest = float(np.abs(g).max(initial=0.0)) + float(np.abs(self.q).max(initial=0.0))
        # not `norm`: BLAS would wake its threads for a sum that takes microseconds
        norm = float(np.sqrt(np.einsum("i,i->", c, c))) * self.scale
        digits = np.finfo(np.float32 if self.rough else np.float64)
        snapped = float(self.slack.max(initial=0.0)) * self.scale
        return max(tol, 16.0 * float(digits.eps) * max(largest, norm), snapped)

    def violation(self, state: State) -> float:
        """Refresh the scores; the largest violation over the groups."""
        scores(
            state.g, self.q, self.row, self.group, state.b,
            self.lower, self.upper, self.slack, self.v, self.best,
        )  # fmt: skip
        worst = float(max(self.best[-1, 0], -self.best[-1, 1], 0.0))
        for high, deep in self.best[:-1]:
            if high > -1e299 and deep < 1e299:
                worst = max(worst, float(high - deep))
        return worst

    def may_rise(self, state: State) -> BoolArray:
        """Which variables are below their upper bound."""
        return np.asarray(state.b < self.upper - self.slack)

    def may_fall(self, state: State) -> BoolArray:
        """Which variables are above their lower bound."""
        return np.asarray(state.b > self.lower + self.slack)
