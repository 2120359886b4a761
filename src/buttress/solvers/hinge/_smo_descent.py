"""The descent of the box solver: blocks of pair steps, and Newton steps on the free variables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.solvers.hinge._block_kernel import BlockKernel
from buttress.solvers.hinge._free_newton import newton_step
from buttress.solvers.hinge._smo_block import solve_block, workspace
from buttress.solvers.hinge._smo_loops import choose_rows, enter_block, leave_block
from buttress.solvers.hinge._smo_problem import BoxPoint, BoxProblem

# Rows of a block, at least.
_BLOCK = 256
# Up to this many rows all of them are one block.
_WHOLE = 600
# Free variables up to which their system is solved, and rows of a block up to which it stays in the
# processor's cache.
_LARGEST_NEWTON = 5000
_CACHED = 1500
# Tolerances below this are reached by Newton steps: the first once the violation, relative to
# the margins, is down to `_POLISHED_FROM`, because by then most free variables are known.
_TIGHT = 1e-5
_POLISHED_FROM = 1e-3
# Pair steps before a Newton step, in times of the latter. Half of it takes a twentieth less on the
# problems of `benchmarks/worst_case.py`, and twice as long on those of `benchmarks/hinge.py` with
# 2000 rows and more and C = 100, which pair steps end before a Newton step pays.
_PATIENCE = 3.0
# Microseconds of a bound met by a Newton step, for every pair of free variables: from 700 steps
# with up to 540 of them on problems of `benchmarks/worst_case.py`, as the times of Newton steps.
_PER_BOUND = 8e-5
# With features a run is given up when the violation in margins, times the cube of the share of the
# work that is spent, exceeds this: one margin halfway, ten at a quarter. On problems of
# `benchmarks/worst_case.py` four of five such runs would end without their tolerance. (With kernels
# three of five; the interior point costs more there, and waiting is the better bet.)
_HOPELESS = 0.1
# Microseconds of a block besides its pair steps.
_PER_BLOCK = 100.0


@dataclass(frozen=True, eq=False)
class _RowBlock:
    rows: IntArray
    members: IntArray  # their variables by layer; the last variable of all where there is none
    K: Array  # the leading rows and columns are those of the block


class Descent:
    """Minimises a `BoxProblem`."""

    def __init__(self, problem: BoxProblem) -> None:
        self.problem, self.terms = problem, problem.terms
        self.whole: _RowBlock | None = None
        # whether the last run ended without its tolerance, and its work in microseconds
        self.exhausted = False
        self.spent = 0.0

    def run(self, state: BoxPoint, tol: float, max_iter: int, allowance: float = np.inf) -> int:
        """Alternate blocks of pair steps with Newton steps; the number of pair steps.

        Ends early when the work, in microseconds by measured times, exceeds `allowance`, or will.
        """
        problem = self.problem
        steps = since_newton = 0
        self.spent = 0.0
        self.exhausted = True
        tight = tol < _TIGHT
        near = _POLISHED_FROM * self.terms.margin if tight else 0.0
        features = problem.K.features is not None
        hopeless = _HOPELESS * self.terms.margin
        block: _RowBlock | None = None
        while steps < max_iter and self.spent < allowance:
            seen = problem.survey(state)
            target = problem.reachable(tol, seen)
            newton, pair = self._times(len(seen.free))
            pause = int(_PATIENCE * newton / pair)
            polish = tight and since_newton > 0 and seen.worst <= max(near, target)
            if polish or (seen.worst > target and since_newton > pause):
                since_newton = 0
                moved, took = self._newton(state, seen.free)
                self.spent += took
                if moved:
                    seen = problem.survey(state)
                near = min(near, 0.01 * seen.worst)
            if seen.worst <= target:
                self.exhausted = False
                break
            if features and seen.worst * (self.spent / allowance) ** 3 > hopeless:
                break
            block = self._next_block(state, block, len(seen.free))
            # A block of all rows can go straight to the end.
            inner = max(0.5 * target, 0.5 * near if block is self.whole else 0.1 * seen.worst)
            taken = max(
                1, self._solve_block(state, block, inner, min(max_iter - steps, pause + 64))
            )
            steps += taken
            since_newton += taken
            self.spent += taken * pair + _PER_BLOCK
        return steps

    def _times(self, n_free: int) -> tuple[float, float]:
        """Microseconds of a Newton step and of a pair step, as measured."""
        newton = 50.0 + 3e-3 * n_free**2 + 8e-6 * n_free**3
        rows = min(max(_BLOCK, 1.25 * n_free), self.problem.K.n)
        # rows of a large block come from memory, not from the cache
        step = 0.1 + (1.2e-3 if rows < _CACHED else 2e-3) * rows * len(self.terms.layers)
        return newton, step

    def _newton(self, state: BoxPoint, free: IntArray) -> tuple[bool, float]:
        """Minimise over the free variables at once; False when there are too many or none.

        Also the work in microseconds.
        """
        problem = self.problem
        if not 1 < len(free) <= min(_LARGEST_NEWTON, problem.K.most_rows):
            return False, 0.0
        rows = problem.row[free]
        K = (self.terms.kernel or problem.K).submatrix(rows)
        outcome = newton_step(
            K, problem.v[free], problem.group[free], problem.n_groups,
            problem.lower[free] - state.b[free], problem.upper[free] - state.b[free],
        )  # fmt: skip
        newton, _ = self._times(len(free))
        took = outcome.factors * newton + outcome.bounds * (1.0 + _PER_BOUND * len(free) ** 2)
        if outcome.step is None:
            return False, took
        state.b[free] += outcome.step
        np.clip(state.b, problem.lower, problem.upper, out=state.b)
        problem.refresh(state)
        return True, took

    # -- blocks ----------------------------------------------------------------------------

    def _next_block(self, state: BoxPoint, last: _RowBlock | None, n_free: int) -> _RowBlock:
        """The rows of the worst violators, then free ones of the last block, then any free."""
        problem = self.problem
        n = problem.K.n
        size = min(max(_BLOCK, int(1.25 * n_free)), self.terms.most)
        if size >= n or n <= min(_WHOLE, problem.K.most_rows):
            if self.whole is None:
                self.whole = self._block(np.arange(n))
            return self.whole
        share = max(2, size // (4 * max(1, problem.n_groups)))
        rows = np.empty(size, dtype=np.intp)
        lines = (2 * (problem.n_groups + 1), len(problem.q) + 1)
        count = choose_rows(
            state.b, problem.v, problem.best, problem.box,
            (problem.q, problem.row, problem.group), rows[:0] if last is None else last.rows, share,
            (rows, np.zeros(n, bool), np.zeros(n, bool), np.empty(lines), np.empty(lines, np.intp)),
        )  # fmt: skip
        return self._block(rows[:count])

    def _block(self, rows: IntArray) -> _RowBlock:
        K = self.problem.K.whole if len(rows) == self.problem.K.n else None
        # a single-precision kernel is copied: the loop is compiled for one precision
        if K is None or K.dtype != np.float64:
            if self.terms.kernel is None:
                self.terms.kernel = BlockKernel(self.problem.K, self.terms.most)
            kernel = self.terms.kernel
            kernel.move_to(rows)
            rows, K = kernel.rows, kernel.matrix
        return _RowBlock(rows, self.terms.layers[:, rows], K)

    def _solve_block(self, state: BoxPoint, block: _RowBlock, tol: float, max_iter: int) -> int:
        problem, members = self.problem, block.members
        inside = np.empty((5, *members.shape))
        enter_block(members, state.b, problem.v, problem.box, inside)
        room = workspace(*members.shape)
        steps = solve_block(block.K, self.terms.ends, inside, tol, max_iter, room)
        where, change = np.empty(len(block.rows), dtype=np.intp), np.empty(len(block.rows))
        moved = leave_block(block.rows, members, inside, state.b, state.c, (where, change))
        problem.add(where[:moved], change[:moved], state.g)
        return int(steps)
