"""Interior point for a box problem over points, with prescribed sums of groups of variables.

The problem, over variables ``b_j`` that weigh the points ``x_{i(j)}``, and its dual::

    min_b  1/2 || sum_j b_j x_{i(j)} ||^2 + q'b     s.t.  l <= b <= u,  sum_{j in k} b_j = e_k
    max    over a vector w and one multiplier per group of a sum of hinges of x_{i(j)} . w

Both are carried along: ``w`` is a variable of its own and not recomputed as ``sum b_j x_j``, so
that the values ``x . w`` keep their digits where that sum loses them by cancellation (wide boxes,
features far from one). The number of steps hardly depends on the conditioning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.solvers.boxqp._sums_gram import GramSpace
from buttress.solvers.boxqp._sums_points import PointSpace

# Complementarity below this part of the objective is rounding.
_GAP = 1e-14
# A step this short, or so many in a row without a smaller complementarity, end the search; fewer
# where it is so small already, relative to the objective, that rounding is to blame.
_SHORTEST = 1e-9
_PATIENCE = 5
_NEAR_THE_END, _LAST_PATIENCE = 1e-9, 1


@dataclass(frozen=True, eq=False)
class SumsResult:
    """A near-minimiser strictly inside its box, and the dual point beside it.

    Attributes
    ----------
    b : array of shape (m,)
        The variables.
    w : array of shape (r,) or (2 n,)
        The dual vector; equals ``sum_j b_j x_{i(j)}`` up to rounding. With `gram`, the weights of
        the points in it and its products with them.
    multiplier : array of shape (n_groups,)
        Of the sums.
    low_force, high_force : arrays of shape (m,)
        Multipliers of the bounds: a variable belongs to the bound whose force exceeds its
        distance from it.
    n_iter : int
        Steps; each costs ``n r^2`` operations for every group, or ``n^3 / 3``.
    """

    b: Array
    w: Array
    multiplier: Array
    low_force: Array
    high_force: Array
    n_iter: int


@dataclass(frozen=True, eq=False)
class SumsProblem:
    """A box problem with sums.

    Attributes
    ----------
    points : array of shape (n, r)
        The points as rows of features; or, with `gram`, all products of two of them.
    q, lower, upper : arrays of shape (m,)
        The linear part and the box; a variable with ``lower == upper`` stays there.
    row, group : integer arrays of shape (m,)
        The point of every variable, and its group: 0, 1, ... or -1 for none.
    sums : array of shape (n_groups,)
    gram : bool
        Which of the two `points` are. Products are the better choice from a rank of about half
        the number of points on.
    """

    points: Array
    q: Array
    lower: Array
    upper: Array
    row: IntArray
    group: IntArray
    sums: Array
    gram: bool = False


def minimise_with_sums(
    problem: SumsProblem, *, start: Array | None = None, max_iter: int = 100, enough: float = 0.0
) -> SumsResult:
    """Mehrotra's predictor-corrector method.

    Parameters
    ----------
    problem : SumsProblem
    start : array of shape (m,), optional
        A point that has the sums and lies inside its box; by default the middle of the box.
    max_iter : int
    enough : float
        A duality gap that needs no more steps, whatever the size of the objective.

    Returns
    -------
    SumsResult

    Examples
    --------
    >>> points = np.array([[1.0], [-1.0]])  # two support vectors, box [0, 10] and [-10, 0]
    >>> problem = SumsProblem(
    ...     points, np.array([-1.0, 1.0]), np.array([0.0, -10.0]), np.array([10.0, 0.0]),
    ...     np.arange(2), np.zeros(2, dtype=int), np.zeros(1))
    >>> result = minimise_with_sums(problem)
    >>> np.round(result.b, 6), np.round(result.w, 6)
    (array([ 0.5, -0.5]), array([1.]))
    """
    search = _InteriorRun(problem)
    if not len(search.q):
        m, k = len(problem.q), len(problem.sums)
        w = search.space.vector(search.fixed)
        return SumsResult(problem.lower.copy(), w, np.zeros(k), np.zeros(m), np.zeros(m), 0)
    begin = search.in_the_middle() if start is None else search.at(start)
    return search.run(begin, max_iter, enough)


# Distances from the lower and the upper bound, the dual vector, the multipliers of the sums, the
# forces of the lower and of the upper bound.
_Interior = tuple[Array, Array, Array, Array, Array, Array]


class _InteriorRun:
    """One run; variables whose box is a point are part of the constants."""

    def __init__(self, problem: SumsProblem) -> None:
        free = problem.upper > problem.lower
        lower, row, group = problem.lower, problem.row, problem.group
        self.free, self.whole = free, lower
        self.q, self.lower, self.upper = problem.q[free], lower[free], problem.upper[free]
        self.row, self.group = row[free], group[free]
        n, n_groups = len(problem.points), len(problem.sums)
        space = GramSpace if problem.gram else PointSpace
        self.space: GramSpace | PointSpace = space(problem.points, self.row, self.group, n_groups)
        self.fixed = np.asarray(np.bincount(row[~free], lower[~free], n), dtype=np.float64)
        self.groups = [np.flatnonzero(self.group == k) for k in range(n_groups)]
        held = [lower[~free & (group == k)].sum() for k in range(n_groups)]
        self.sums = np.asarray(problem.sums, dtype=np.float64) - np.array(held, dtype=np.float64)

    def in_the_middle(self) -> _Interior:
        """The middle of the box, and the dual point zero."""
        s = 0.5 * (self.upper - self.lower)
        # The forces of the dual point zero, where they are the margins.
        unit = max(float(np.abs(self.q).mean()), 1e-3 * self.space.spread)
        zl, zu = np.maximum(self.q, 0.0) + unit, np.maximum(-self.q, 0.0) + unit
        return s, s.copy(), self.space.zero(), np.zeros(len(self.groups)), zl, zu

    def at(self, start: Array) -> _Interior:
        """A point that has the sums, and the dual point that belongs to it."""
        b = start[self.free]
        n = len(self.fixed)
        w = self.space.vector(np.bincount(self.row, weights=b, minlength=n) + self.fixed)
        force = self.space.values(w)[self.row] + self.q
        level = np.array(
            [-force[members].mean() if len(members) else 0.0 for members in self.groups]
        )
        force = force + np.append(level, 0.0)[self.group]
        unit = max(float(np.abs(force).mean()), 1e-12)
        zl, zu = np.maximum(force, 0.0) + unit, np.maximum(-force, 0.0) + unit
        return b - self.lower, self.upper - b, w, level, zl, zu

    def run(self, start: _Interior, max_iter: int, enough: float) -> SumsResult:
        s, t, w, multiplier, zl, zu = best = start
        smallest, waited, n_iter = np.inf, 0, 0
        while n_iter < max_iter:
            gap = float(s @ zl + t @ zu)
            step = _NewtonStep(self, s, t, zl, zu, w, multiplier)
            total = gap + step.infeasibility
            if total < smallest:
                best = (s, t, w, multiplier, zl, zu)
                smallest, waited = total, 0
            else:
                waited += 1
            size = 0.5 * self.space.square(w) + abs(float(self.q @ self._b(s, t)))
            patience = _PATIENCE if smallest > _NEAR_THE_END * size else _LAST_PATIENCE
            if total <= max(_GAP * size, enough) or waited > patience or not step.factorise():
                break
            n_iter += 1
            ds, dw, dm, dl, du = step.corrected(gap)
            length = min(1.0, 0.995 * longest_step((s, ds), (t, -ds), (zl, dl), (zu, du)))
            if not (np.isfinite(length) and length > _SHORTEST):
                break
            s, t = s + length * ds, t - length * ds
            w, multiplier = w + length * dw, multiplier + length * dm
            zl, zu = zl + length * dl, zu + length * du
        return self._result(best, n_iter)

    def _b(self, s: Array, t: Array) -> Array:
        """The variables, from the nearer bound."""
        return np.asarray(np.where(s < t, self.lower + s, self.upper - t))

    def _result(self, best: _Interior, n_iter: int) -> SumsResult:
        s, t, w, multiplier, zl, zu = best
        b = self.whole.copy()
        b[self.free] = self._b(s, t)
        low, high = np.zeros(len(b)), np.zeros(len(b))
        low[self.free], high[self.free] = zl, zu
        return SumsResult(b, w, multiplier, low, high, n_iter)


class _NewtonStep:
    """The linear system at one point: residuals, its factor, and directions.

    With ``theta = zl / s + zu / t`` the forces are eliminated.
    """

    def __init__(
        self,
        search: _InteriorRun,
        s: Array,
        t: Array,
        zl: Array,
        zu: Array,
        w: Array,
        multiplier: Array,
    ) -> None:
        self.search, self.s, self.t, self.zl, self.zu = search, s, t, zl, zu
        space, row = search.space, search.row
        b = search._b(s, t)
        force = space.values(w)[row] + search.q + np.append(multiplier, 0.0)[search.group]
        self.residual = zl - zu - force
        self.missing = np.array(
            [e - b[members].sum() for e, members in zip(search.sums, search.groups, strict=True)]
        )
        weights = np.bincount(row, weights=b, minlength=len(search.fixed)) + search.fixed
        self.vector, surplus = space.away(weights, w)
        # What a missing sum is worth: its multiplier, or the forces while that is not yet known.
        price = np.abs(multiplier) + float(np.mean(zl + zu))
        off = float(np.abs(self.residual) @ (s + t)) + float(np.abs(self.missing) @ price)
        self.infeasibility = off + 0.5 * abs(surplus)

    def factorise(self) -> bool:
        """Form and factorise the system; False when rounding has made it indefinite."""
        self.system = self.search.space.system(1.0 / (self.zl / self.s + self.zu / self.t))
        return self.system is not None

    def corrected(self, gap: float) -> tuple[Array, Array, Array, Array, Array]:
        """The predictor, then the corrector that aims at the centre it points to."""
        zero = np.zeros_like(self.s)
        ds, _, _, dl, du = self._direction(zero, zero)
        length = min(1.0, longest_step((self.s, ds), (self.t, -ds), (self.zl, dl), (self.zu, du)))
        after = float((self.s + length * ds) @ (self.zl + length * dl))
        after += float((self.t - length * ds) @ (self.zu + length * du))
        centre = (after / gap) ** 3 * gap / (2 * len(self.s))
        return self._direction(centre - ds * dl, centre + ds * du)

    def _direction(self, tl: Array, tu: Array) -> tuple[Array, Array, Array, Array, Array]:
        assert self.system is not None
        right = self.residual + tl / self.s - self.zl - (tu / self.t - self.zu)
        db, dw, dm = self.system.solve(right, self.vector, self.missing)
        dl = tl / self.s - self.zl - self.zl / self.s * db
        du = tu / self.t - self.zu + self.zu / self.t * db
        return db, dw, dm, dl, du


def longest_step(*pairs: tuple[Array, Array]) -> float:
    """The longest step that keeps every first entry non-negative along its second."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fastest = min(float(np.fmin.reduce(change / value)) for value, change in pairs)
    return -1.0 / fastest if fastest < 0.0 else np.inf
