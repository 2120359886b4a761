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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers._free_newton import newton_step
from buttress.solvers._smo_kernels import scores, solve_block
from buttress.solvers.kernel_rows import KernelMatrix, KernelSource, as_kernel_rows

# How near a bound, relative to the widest box, counts as at the bound. A variable 1e-17 away
# from its bound must not pass for a free one: it would fix the threshold.
_BOUND_TOLERANCE = 1e-11
_SNAP = 1e-10
_BLOCK = 256
_LARGEST_BLOCK = 3000
# Up to this many rows all of them are one block.
_WHOLE = 600
# A Newton step costs about as much as this many pair steps per free variable.
_NEWTON_AFTER = 2
_FEWEST_STEPS = 200
_LARGEST_NEWTON = 2500
_POLISH_BELOW = 1e-5


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
        ``K c``, recomputed in float64.
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


def solve_box_qp(
    K: KernelSource,
    *,
    sign: Array,
    linear: Array,
    lower: Array,
    upper: Array,
    row: IntArray | None = None,
    group: IntArray | None = None,
    start: Array | None = None,
    start_g: tuple[Array, Array] | None = None,
    tol: float = 1e-8,
    max_iter: int = 10_000_000,
) -> BoxSolution:
    """Solve one box problem (see the module's notes).

    Parameters
    ----------
    K : array of shape (n, n), `KernelMatrix` or `KernelRowCache`
        The kernel, positive semidefinite.
    sign : array of shape (m,)
        ``s_j``, ±1.
    linear, lower, upper : arrays of shape (m,)
        ``p_j`` and the box, ``lower <= 0 <= upper`` or any box that can meet the constraints.
    row : integer array of shape (m,), optional
        ``i(j)``; default ``j``.
    group : integer array of shape (m,), optional
        The group of every variable, 0, 1, ... or -1 for none; default all in group 0.
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
    A pair step costs O(256) operations, a block (some hundred to thousand steps) 256 rows of
    the kernel. Memory beyond the kernel is O(n + m).

    References
    ----------
    R.-E. Fan, P.-H. Chen and C.-J. Lin, "Working set selection using second order information
    for training support vector machines", Journal of Machine Learning Research 6, 2005.
    """
    problem = _Problem(as_kernel_rows(K), sign, linear, lower, upper, row, group)
    state = problem.starting_state(start, start_g)
    steps = problem.descend(state, tol, max_iter)
    solution = problem.solution(state, tol, steps)
    # Sums kept up to date drift by rounding; a second look starts from exact ones.
    while solution.violation > problem.reachable(tol, solution.c, solution.g) and steps < max_iter:
        state = _State(problem.sign * solution.a, solution.c, solution.g.copy())
        more = problem.descend(state, 0.5 * tol, max_iter - steps)
        steps += max(1, more)
        refined = problem.solution(state, tol, steps)
        if refined.violation >= solution.violation:
            break
        solution = refined
    return solution


@dataclass(eq=False)
class _State:
    b: Array  # signed variables s_j a_j
    c: Array  # their sums per row
    g: Array  # K c


@dataclass(frozen=True, eq=False)
class _Block:
    rows: IntArray
    members: IntArray  # their variables, sorted by group
    ends: IntArray  # where each group ends among them
    K: Array


class _Problem:
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
        widest = float(width.max(initial=0.0))
        # A variable moved to its bound must not move the scores either.
        harmless = max(_SNAP / self.scale if self.scale > 0 else np.inf, 2e-15 * widest)
        self.slack = np.minimum(min(_BOUND_TOLERANCE * widest, harmless), 0.25 * width)
        self.whole: _Block | None = None
        self.v = np.empty(m)
        self.best = np.empty((self.n_groups + 1, 2))

    # -- points ----------------------------------------------------------------------------

    def starting_state(self, start: Array | None, start_g: tuple[Array, Array] | None) -> _State:
        given = np.zeros(len(self.q)) if start is None else self.sign * np.asarray(start)
        b = np.clip(given, self.lower, self.upper)
        c = self.row_sums(b)
        if start_g is None:
            g = self.K.times(c)
        else:
            g = np.array(start_g[1], dtype=np.float64)
            self._add(c - start_g[0], g)
        state = _State(b, c, g)
        self._repair(state)
        return state

    def row_sums(self, b: Array) -> Array:
        sums: Array = np.bincount(self.row, weights=b, minlength=self.K.n).astype(np.float64)
        return sums

    def _add(self, change: Array, g: Array) -> None:
        """``g += K change``, by as many rows as fit in the cache at a time."""
        moved = np.flatnonzero(change)
        for first in range(0, len(moved), self.K.most_rows):
            rows = moved[first : first + self.K.most_rows]
            self.K.add(rows, change[rows], g)

    def _repair(self, state: _State) -> None:
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
            c = self.row_sums(state.b)
            self._add(c - state.c, state.g)
            state.c = c

    def reachable(self, tol: float, c: Array, g: Array) -> float:
        """`tol`, or what rounding and the bound tolerance allow when that is more."""
        largest = float(np.abs(g).max(initial=0.0)) + float(np.abs(self.q).max(initial=0.0))
        norm = float(np.linalg.norm(c)) * self.scale
        snapped = float(self.slack.max(initial=0.0)) * self.scale
        return max(tol, 16.0 * np.finfo(np.float64).eps * max(largest, norm), snapped)

    # -- descent ---------------------------------------------------------------------------

    def violation(self, state: _State) -> float:
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

    def descend(self, state: _State, tol: float, max_iter: int) -> int:
        """Alternate blocks of pair steps with Newton steps on the free variables."""
        steps = since_newton = 0
        block: _Block | None = None
        while steps < max_iter:
            worst = self.violation(state)
            target = self.reachable(tol, state.c, state.g)
            free = np.flatnonzero(self._may_rise(state) & self._may_fall(state))
            # Once the last block has found which variables are free, one Newton step makes a
            # tight tolerance as cheap as a loose one.
            pause = _NEWTON_AFTER * max(len(free), _FEWEST_STEPS)
            polish = worst <= target and tol < _POLISH_BELOW and since_newton > 0
            if polish or (worst > target and since_newton > pause):
                since_newton = 0
                if self._newton(state, free):
                    worst = self.violation(state)
            if worst <= target:
                break
            block = self._next_block(state, block, len(free))
            # A block of all rows can go straight to the end.
            inner = 0.5 * target if block is self.whole else max(0.1 * worst, 0.5 * target)
            taken = max(
                1, self._solve_block(state, block, inner, min(max_iter - steps, pause + 64))
            )
            steps += taken
            since_newton += taken
        return steps

    def _may_rise(self, state: _State) -> BoolArray:
        return np.asarray(state.b < self.upper - self.slack)

    def _may_fall(self, state: _State) -> BoolArray:
        return np.asarray(state.b > self.lower + self.slack)

    def _newton(self, state: _State, free: IntArray) -> bool:
        """Minimise over the free variables at once; False when there are too many or none."""
        rows = self.row[free]
        if not 1 < len(free) <= _LARGEST_NEWTON or len(free) > self.K.most_rows:
            return False
        K = self.K.submatrix(rows)
        step = newton_step(
            K, self.v[free], self.group[free], self.n_groups,
            self.lower[free] - state.b[free], self.upper[free] - state.b[free],
        )  # fmt: skip
        if step is None:
            return False
        state.b[free] += step
        np.clip(state.b, self.lower, self.upper, out=state.b)
        c = self.row_sums(state.b)
        self._add(c - state.c, state.g)
        state.c = c
        return True

    def _next_block(self, state: _State, last: _Block | None, n_free: int) -> _Block:
        """The rows of the worst violators, then free ones of the last block, then any free."""
        size = min(max(_BLOCK, int(1.25 * n_free)), _LARGEST_BLOCK, self.K.most_rows)
        if size >= self.K.n or self.K.n <= min(_WHOLE, self.K.most_rows):
            if self.whole is None:
                self.whole = self._block(np.arange(self.K.n))
            return self.whole
        may_rise, may_fall = self._may_rise(state), self._may_fall(state)
        chosen = []
        share = max(2, size // (4 * max(1, self.n_groups)))
        for k in range(-1, self.n_groups):
            member = self.group == k
            high, deep = self.best[k] if k >= 0 else (0.0, 0.0)
            rising = member & may_rise & (self.v > deep)
            falling = member & may_fall & (self.v < high)
            chosen.append(_top(np.where(rising, self.v, -np.inf), share))
            chosen.append(_top(np.where(falling, -self.v, -np.inf), share))
        rows = _unique(self.row[np.concatenate(chosen)])[:size]
        if len(rows) < size:
            free = np.zeros(self.K.n, dtype=bool)
            free[self.row[may_rise & may_fall]] = True
            before = np.empty(0, dtype=np.intp) if last is None else last.rows
            kept = before[free[before]]
            rows = _unique(np.concatenate([rows, kept, before, np.flatnonzero(free)]))[:size]
        return self._block(np.sort(rows))

    def _block(self, rows: IntArray) -> _Block:
        inside = np.zeros(self.K.n, dtype=bool)
        inside[rows] = True
        members = np.flatnonzero(inside[self.row])
        group = self.group[members]
        order = np.argsort(np.where(group < 0, self.n_groups, group), kind="stable")
        members, group = members[order], group[order]
        ends = [np.count_nonzero((group >= 0) & (group <= k)) for k in range(self.n_groups)]
        local = self.K.submatrix(self.row[members])
        return _Block(rows, members, np.array([*ends, len(members)], dtype=np.intp), local)

    def _solve_block(self, state: _State, block: _Block, tol: float, max_iter: int) -> int:
        members = block.members
        b = state.b[members]
        steps = solve_block(
            block.K, block.ends, self.v[members], b, self.lower[members], self.upper[members],
            self.slack[members], tol, max_iter,
        )  # fmt: skip
        state.b[members] = b
        c = self.row_sums(state.b)
        self._add(c - state.c, state.g)
        state.c = c
        return int(steps)

    # -- certificate -----------------------------------------------------------------------

    def solution(self, state: _State, tol: float, steps: int) -> BoxSolution:
        b = state.b
        b = np.where(b <= self.lower + self.slack, self.lower, b)
        b = np.where(b >= self.upper - self.slack, self.upper, b)
        c = self.row_sums(b)
        g = self.K.times(c)
        final = _State(b, c, g)
        violation = self.violation(final)
        interval = self.best[:-1].copy()
        interval[interval <= -1e299] = -np.inf
        interval[interval >= 1e299] = np.inf
        threshold = np.array([_middle(low, high) for low, high in interval])
        shift = np.append(threshold, 0.0)[self.group]
        residual = self.v - shift
        gap = np.where(residual > 0, residual * (self.upper - b), -residual * (b - self.lower))
        return BoxSolution(
            a=self.sign * b,
            c=c,
            g=g,
            threshold=threshold,
            interval=np.sort(interval, axis=1),
            objective=float(0.5 * c @ g + self.q @ b),
            gap=float(gap.sum()),
            violation=violation,
            n_iter=steps,
            converged=violation <= 2.0 * self.reachable(tol, c, g),
        )


def _top(score: Array, count: int) -> IntArray:
    """Positions of the `count` largest finite scores, the largest first."""
    count = min(count, len(score))
    positions = np.argpartition(-score, count - 1)[:count] if count else np.empty(0, np.intp)
    positions = positions[np.argsort(-score[positions], kind="stable")]
    return np.asarray(positions[score[positions] > -np.inf])


def _unique(rows: IntArray) -> IntArray:
    """Distinct entries in the order of their first appearance."""
    _, first = np.unique(rows, return_index=True)
    return np.asarray(rows[np.sort(first)])


def _middle(low: float, high: float) -> float:
    if np.isinf(low):
        return 0.0 if np.isinf(high) else float(high)
    return float(low) if np.isinf(high) else float(0.5 * (low + high))
