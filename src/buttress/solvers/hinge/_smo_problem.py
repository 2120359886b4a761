"""A box problem in signed variables, its points and how far they are from optimal."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.solvers.hinge._block_kernel import BlockKernel
from buttress.solvers.hinge._smo_loops import balance, survey
from buttress.solvers.hinge.kernel_rows import KernelSource, as_kernel_rows

# How near a bound, relative to the widest box, counts as at the bound. A variable 1e-17 away
# from its bound must not pass for a free one: it would fix the threshold.
_BOUND_TOLERANCE = 1e-11
_SNAP = 1e-10
_LARGEST_BLOCK = 6000
# What the interior point may leave to the steps that follow it, in margins: with 1e-7 kernels of
# `benchmarks/worst_case.py` have four fifths of the dimensions, and some take those steps longer.
_UNFELT = 1e-9
# Errors of a kernel's entries by rounding, relative to its diagonal.
_KERNEL_ROUNDING = 1e-13


@dataclass(eq=False)
class BoxPoint:
    """A point; changed in place."""

    b: Array  # signed variables s_j a_j
    c: Array  # their sums per row
    g: Array  # K c


class Survey(NamedTuple):
    """How far a point is from optimal.

    Attributes
    ----------
    worst : float
        The largest violation over the groups.
    free : integer array
        Variables between their bounds.
    largest : float
        Of the ``|g|``.
    norm : float
        Of the coefficients.
    """

    worst: float
    free: IntArray
    largest: float
    norm: float


class BoxTerms:
    """What problems that differ in their boxes only have in common.

    The kernel of the last block of rows is among it: the next problem begins where the last one
    ended.

    Parameters
    ----------
    K : array of shape (n, n), `KernelMatrix` or `KernelRowCache`
        The kernel, positive semidefinite.
    sign : array of shape (m,)
        ``s_j``, ±1.
    linear : array of shape (m,)
        ``p_j``.
    row : integer array of shape (m,), optional
        ``i(j)``; default ``j``.
    group : integer array of shape (m,), optional
        The group of every variable, 0, 1, ... or -1 for none; default all in group 0.
    """

    def __init__(
        self,
        K: KernelSource,
        sign: Array,
        linear: Array,
        row: IntArray | None = None,
        group: IntArray | None = None,
    ) -> None:
        self.K = K = as_kernel_rows(K)
        self.sign = np.asarray(sign, dtype=np.float64)
        m = len(self.sign)
        self.positive = self.sign > 0
        self.q = self.sign * np.asarray(linear, dtype=np.float64)
        self.row = np.arange(m) if row is None else np.asarray(row, dtype=np.intp)
        self.group = (
            np.zeros(m, dtype=np.intp) if group is None else np.asarray(group, dtype=np.intp)
        )
        self.n_groups = int(self.group.max(initial=-1)) + 1
        self.scale = float(K.diagonal.max(initial=0.0))
        self.margin = float(np.abs(self.q).max(initial=0.0))
        self.most = min(_LARGEST_BLOCK, K.most_rows)
        self.layers, self.ends = _layers(self)
        self.kernel: BlockKernel | None = None


class BoxProblem:
    """The problem in signed variables ``b_j = s_j a_j``, where the group sums are plain sums."""

    def __init__(self, terms: BoxTerms, lower: Array, upper: Array) -> None:
        self.terms, self.K = terms, terms.K
        self.sign, self.q, self.row, self.group = terms.sign, terms.q, terms.row, terms.group
        self.n_groups, self.scale = terms.n_groups, terms.scale
        lower = np.asarray(lower, dtype=np.float64)
        upper = np.asarray(upper, dtype=np.float64)
        self.lower = np.where(terms.positive, lower, -upper)
        self.upper = np.where(terms.positive, upper, -lower)
        width = self.upper - self.lower
        if width.min(initial=0.0) < 0:
            raise ValueError("A lower bound of the box lies above its upper bound.")
        self.widest = widest = float(width.max(initial=0.0))
        # A variable moved to its bound must not move the scores either.
        harmless = max(_SNAP / self.scale if self.scale > 0 else np.inf, 2e-15 * widest)
        self.slack = np.minimum(min(_BOUND_TOLERANCE * widest, harmless), 0.25 * width)
        self.widest_slack = float(self.slack.max(initial=0.0))
        # whether sums may be brought up to date with fewer digits (see `smo`)
        self.rough = False
        self.v = np.empty(len(self.q))
        self.best = np.empty((self.n_groups + 1, 2))
        self._free = np.empty(len(self.q), dtype=np.intp)

    @property
    def box(self) -> tuple[Array, Array, Array]:
        """Bounds, and how near one counts as at it."""
        return self.lower, self.upper, self.slack

    @property
    def stiffness(self) -> float:
        """How far one variable can move the scores, in units of the margins; 0 if unclear."""
        margin = self.terms.margin
        if margin == 0.0 or (self.lower > 0).any() or (self.upper < 0).any():
            return 0.0
        return self.widest * self.scale / margin

    @property
    def accuracy(self) -> float:
        """An error of the kernel's entries that no point of the box feels; a power of ten, or 0.

        It moves no score by more than `_UNFELT` margins, whatever the point.
        """
        total = float((self.upper - self.lower).sum())
        unfelt = _UNFELT * self.terms.margin / total if total > 0 else 0.0
        return 10.0 ** np.floor(np.log10(unfelt)) if unfelt > _KERNEL_ROUNDING * self.scale else 0.0

    def in_smaller_boxes(self, factor: float) -> BoxProblem:
        """The same problem with all bounds times `factor`."""
        small = copy(self)
        small.lower, small.upper = factor * self.lower, factor * self.upper
        small.slack = factor * self.slack
        small.widest = factor * self.widest
        small.widest_slack = factor * self.widest_slack
        return small

    def starting_state(self, start: Array | None, start_g: tuple[Array, Array] | None) -> BoxPoint:
        """`start` moved into the box and made to meet the sum constraints."""
        given = np.zeros(len(self.q)) if start is None else self.sign * np.asarray(start)
        b = np.clip(given, self.lower, self.upper)
        if start_g is None:
            c = self.row_sums(b)
            state = BoxPoint(b, c, self.K.times(c))
        else:
            state = BoxPoint(b, start_g[0], np.array(start_g[1], dtype=np.float64))
            self.refresh(state)
        self._repair(state)
        return state

    def row_sums(self, b: Array) -> Array:
        """Signed variables summed per row."""
        sums: Array = np.bincount(self.row, weights=b, minlength=self.K.n).astype(np.float64)
        return sums

    def add(self, rows: IntArray, steps: Array, g: Array) -> None:
        """``g += K[:, rows] @ steps``, by as many rows as fit in the cache at a time."""
        for first in range(0, len(rows), self.K.most_rows):
            some = slice(first, first + self.K.most_rows)
            self.K.add(rows[some], steps[some], g, self.rough)

    def _repair(self, state: BoxPoint) -> None:
        """Make every group sum zero by moving the variables that gain most from it."""
        sums = np.bincount(self.group + 1, weights=state.b, minlength=self.n_groups + 1)
        excess = sums[1:].astype(np.float64)
        if not excess.any():
            return
        v = -(state.g[self.row] + self.q)
        short = balance(state.b, self.box, self.group, excess, np.argsort(v))
        if short >= 0:
            raise ValueError(f"The box cannot meet the sum constraint of group {short}.")
        self.refresh(state)

    def refresh(self, state: BoxPoint) -> None:
        """Bring the sums up to date with the variables."""
        c = self.row_sums(state.b)
        change = c - state.c
        moved = np.flatnonzero(change)
        self.add(moved, change[moved], state.g)
        state.c = c

    def survey(self, state: BoxPoint) -> Survey:
        """Refresh the scores `v` and their extremes `best`; what they say of the point."""
        worst, n_free, largest, square = survey(
            (state.b, state.c, state.g), self.box, (self.q, self.row, self.group),
            self.v, self.best, self._free,
        )  # fmt: skip
        return Survey(worst, self._free[:n_free], largest, float(np.sqrt(square)))

    def reachable(self, tol: float, seen: Survey) -> float:
        """`tol`, or what rounding and the bound tolerance allow when that is more."""
        digits = np.finfo(np.float32 if self.rough else np.float64)
        largest = max(seen.largest + self.terms.margin, seen.norm * self.scale)
        return max(tol, 16.0 * float(digits.eps) * largest, self.widest_slack * self.scale)


def _layers(terms: BoxTerms) -> tuple[IntArray, IntArray]:
    """Variables as (layers, rows), one per row and layer, the layers sorted by group.

    The k-th variable of a row within a group stands in the group's k-th layer. Returns the
    layers and where each group's end; variables without a group come last.
    """
    m = len(terms.row)
    groups = [*range(terms.n_groups), -1]
    layers: list[IntArray] = []
    ends = []
    for k in groups:
        members = np.flatnonzero(terms.group == k)
        while len(members):
            _, first = np.unique(terms.row[members], return_index=True)
            layer = np.full(terms.K.n, m, dtype=np.intp)
            layer[terms.row[members[first]]] = members[first]
            layers.append(layer)
            members = np.delete(members, first)
        ends.append(len(layers))
    return np.array(layers, dtype=np.intp).reshape(-1, terms.K.n), np.array(ends, dtype=np.intp)
