"""The descent of the box solver: blocks of pair steps, and Newton steps on the free variables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers.hinge._block_kernel import BlockKernel
from buttress.solvers.hinge._free_newton import newton_step
from buttress.solvers.hinge._smo_block import solve_block, workspace
from buttress.solvers.hinge._smo_problem import BoxProblem, State

_BLOCK = 256
_LARGEST_BLOCK = 6000
# Up to this many rows all of them are one block.
_WHOLE = 600
_LARGEST_NEWTON = 5000
_CACHED = 1500
# Tolerances below this are reached by Newton steps: the first once the violation, relative to
# the margins, is down to `_NEAR`, because by then most free variables are known.
_TIGHT = 1e-5
_NEAR = 1e-3
# Microseconds of a block besides its pair steps.
_PER_BLOCK = 100.0


@dataclass(frozen=True, eq=False)
class _Block:
    rows: IntArray
    members: IntArray  # their variables by layer; the last variable of all where there is none
    K: Array  # the leading rows and columns are those of the block


class Descent:
    """Minimises a `BoxProblem`; keeps the kernel of its blocks between runs."""

    def __init__(self, problem: BoxProblem) -> None:
        self.problem = problem
        self.most = min(_LARGEST_BLOCK, problem.K.most_rows)
        self.layers, self.ends = _layers(problem)
        self.whole: _Block | None = None
        self.kernel: BlockKernel | None = None
        # whether the last run ended without its tolerance, and its work in microseconds
        self.exhausted = False
        self.spent = 0.0
        # one more variable, with an empty box, fills the layers where a row has none
        self.box = [np.append(x, 0.0) for x in (problem.lower, problem.upper, problem.slack)]

    def run(self, state: State, tol: float, max_iter: int, allowance: float = np.inf) -> int:
        """Alternate blocks of pair steps with Newton steps; the number of pair steps.

        Ends early when the work, in microseconds by measured times, exceeds `allowance`.
        """
        problem = self.problem
        steps = since_newton = 0
        self.spent = 0.0
        self.exhausted = True
        tight = tol < _TIGHT
        near = _NEAR * float(np.abs(problem.q).max(initial=0.0)) if tight else 0.0
        block: _Block | None = None
        while steps < max_iter and self.spent < allowance:
            worst = problem.violation(state)
            target = problem.reachable(tol, state.c, state.g)
            may_rise, may_fall = problem.may_rise(state), problem.may_fall(state)
            free = np.flatnonzero(may_rise & may_fall)
            newton, pair = self._times(len(free))
            # So many pair steps take half as long again as a Newton step.
            pause = int(1.5 * newton / pair)
            polish = tight and since_newton > 0 and worst <= max(near, target)
            if polish or (worst > target and since_newton > pause):
                since_newton = 0
                moved, solves = self._newton(state, free)
                self.spent += newton * solves
                if moved:
                    worst = problem.violation(state)
                    may_rise, may_fall = problem.may_rise(state), problem.may_fall(state)
                near = min(near, 0.01 * worst)
            if worst <= target:
                self.exhausted = False
                break
            block = self._next_block(may_rise, may_fall, block, len(free))
            # A block of all rows can go straight to the end.
            inner = max(0.5 * target, 0.5 * near if block is self.whole else 0.1 * worst)
            taken = max(
                1, self._solve_block(state, block, inner, min(max_iter - steps, pause + 64))
            )
            steps += taken
            since_newton += taken
            self.spent += taken * pair + _PER_BLOCK
        return steps

    def _times(self, n_free: int) -> tuple[float, float]:
        """Microseconds of a Newton step and of a pair step, as measured."""
        newton = 150.0 + 2e-3 * n_free**2 + 1.7e-5 * n_free**3
        rows = min(max(_BLOCK, 1.25 * n_free), self.problem.K.n)
        # rows of a large block come from memory, not from the cache
        step = 0.1 + (1.2e-3 if rows < _CACHED else 2e-3) * rows * len(self.layers)
        return newton, step

    def _newton(self, state: State, free: IntArray) -> tuple[bool, int]:
        """Minimise over the free variables at once; False when there are too many or none.

        Also the number of linear systems that it took.
        """
        problem = self.problem
        if not 1 < len(free) <= min(_LARGEST_NEWTON, problem.K.most_rows):
            return False, 0
        rows = problem.row[free]
        K = (self.kernel or problem.K).submatrix(rows)
        step, solves = newton_step(
            K, problem.v[free], problem.group[free], problem.n_groups,
            problem.lower[free] - state.b[free], problem.upper[free] - state.b[free],
        )  # fmt: skip
        if step is None:
            return False, solves
        state.b[free] += step
        np.clip(state.b, problem.lower, problem.upper, out=state.b)
        problem.refresh(state)
        return True, solves

    # -- blocks ----------------------------------------------------------------------------

    def _next_block(
        self, may_rise: BoolArray, may_fall: BoolArray, last: _Block | None, n_free: int
    ) -> _Block:
        """The rows of the worst violators, then free ones of the last block, then any free."""
        problem = self.problem
        n = problem.K.n
        size = min(max(_BLOCK, int(1.25 * n_free)), self.most)
        if size >= n or n <= min(_WHOLE, problem.K.most_rows):
            if self.whole is None:
                self.whole = self._block(np.arange(n))
            return self.whole
        v = problem.v
        chosen = []
        share = max(2, size // (4 * max(1, problem.n_groups)))
        for k in range(-1, problem.n_groups):
            member = problem.group == k
            high, deep = problem.best[k] if k >= 0 else (0.0, 0.0)
            rising = np.flatnonzero(member & may_rise & (v > deep))
            falling = np.flatnonzero(member & may_fall & (v < high))
            chosen.append(rising[_top(v[rising], share)])
            chosen.append(falling[_top(-v[falling], share)])
        rows = _unique(problem.row[np.concatenate(chosen)])[:size]
        if len(rows) < size:
            free = np.zeros(n, dtype=bool)
            free[problem.row[may_rise & may_fall]] = True
            before = np.empty(0, dtype=np.intp) if last is None else last.rows
            kept = before[free[before]]
            rows = _unique(np.concatenate([rows, kept, before, np.flatnonzero(free)]))[:size]
        return self._block(rows)

    def _block(self, rows: IntArray) -> _Block:
        K = self.problem.K.whole if len(rows) == self.problem.K.n else None
        # a single-precision kernel is copied: the loop is compiled for one precision
        if K is None or K.dtype != np.float64:
            if self.kernel is None:
                self.kernel = BlockKernel(self.problem.K, self.most)
            self.kernel.move_to(rows)
            rows, K = self.kernel.rows, self.kernel.matrix
        return _Block(rows, self.layers[:, rows], K)

    def _solve_block(self, state: State, block: _Block, tol: float, max_iter: int) -> int:
        members = block.members
        lower, upper, slack = (x[members] for x in self.box)
        b = np.append(state.b, 0.0)
        local = b[members]
        v = np.append(self.problem.v, 0.0)[members]
        room = workspace(*members.shape)
        steps = solve_block(block.K, self.ends, v, local, lower, upper, slack, tol, max_iter, *room)
        b[members] = local
        state.b[:] = b[:-1]
        self.problem.refresh(state)
        return int(steps)


def _layers(problem: BoxProblem) -> tuple[IntArray, IntArray]:
    """Variables as (layers, rows), one per row and layer, the layers sorted by group.

    The k-th variable of a row within a group stands in the group's k-th layer. Returns the
    layers and where each group's end; variables without a group come last.
    """
    m = len(problem.row)
    groups = [*range(problem.n_groups), -1]
    layers: list[IntArray] = []
    ends = []
    for k in groups:
        members = np.flatnonzero(problem.group == k)
        while len(members):
            _, first = np.unique(problem.row[members], return_index=True)
            layer = np.full(problem.K.n, m, dtype=np.intp)
            layer[problem.row[members[first]]] = members[first]
            layers.append(layer)
            members = np.delete(members, first)
        ends.append(len(layers))
    return np.array(layers, dtype=np.intp).reshape(-1, problem.K.n), np.array(ends, dtype=np.intp)


def _top(score: Array, count: int) -> IntArray:
    """Positions of the `count` largest scores, the largest first."""
    if len(score) > count:
        positions = np.argpartition(-score, count - 1)[:count]
        return np.asarray(positions[np.argsort(-score[positions], kind="stable")])
    return np.argsort(-score, kind="stable")


def _unique(rows: IntArray) -> IntArray:
    """Distinct entries in the order of their first appearance."""
    _, first = np.unique(rows, return_index=True)
    return np.asarray(rows[np.sort(first)])
