"""Columns of all problems and penalties: the order in which they are solved, and their starts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, permutations

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._threads import in_threads, one_blas_thread
from buttress.solvers.smooth.columns._threads import FeatureColumns, KernelColumns
from buttress.solvers.smooth.paths import Paths

# Every so many penalties are solved first; then those between them.
_STRIDES = (6, 1)
# Growth with falling penalties that interpolation takes out, as a share of the scaling tail's.
_GROWTH = 0.6
# Decrease of the objective at which a column is near enough to start the next penalty from.
_NEAR = 1e-2
# And at which it is solved: held-out scores no longer change (benchmarks/path_cv.py).
_SOLVED = 1e-10
# And at which it is when only answers at held-out rows matter, and are certain.
_CERTAIN = 1e-6
# To which columns are solved, one after the other, until the largest of several scores is certain.
_UNTIL_CERTAIN = (1e-10, 1e-12)
# Error of a row's slope, as a share of it, to which columns are refined.
_SLOPES = 1e-5
# And where it is in doubt which of several classes has the largest score: intercepts that are
# large and nearly equal tell slowly.
_COMPARED = 1e-11
# From a problem, penalties and where to start to solutions by Newton's method.
Follow = Callable[[int, Array, "tuple[Array, float] | None"], Paths]


class Table:
    """Solutions of all problems at all penalties, as far as they are known."""

    def __init__(
        self,
        solver: KernelColumns | FeatureColumns,
        Y: Array,
        omega: Array,
        lambdas: Array,
        exponent: float,
        answers: IntArray,
        follow: Follow,
    ) -> None:
        q, n, count = *Y.shape, len(lambdas)
        self.solver, self.Y, self.omega = solver, Y, omega
        self.lambdas, self.exponent, self.follow = lambdas, exponent, follow
        # Problems of which one answers alone, by a sign, and sets of problems that do together.
        _, place, size = np.unique(answers, return_inverse=True, return_counts=True)
        self.signs_only = (answers >= 0) & (size[place] == 1)
        together = (answers >= 0) & (size[place] > 1)
        self.rival = together & isinstance(solver, KernelColumns)
        self.rivals = [np.flatnonzero(answers == one) for one in np.unique(answers[self.rival])]
        self.coef = np.zeros((q, count, solver.size), dtype=np.float32)
        self.intercept = np.zeros((q, count))
        self.scores = np.zeros((q, count, n), dtype=np.float32)
        self.iterations = np.zeros((q, count), dtype=np.int64)
        self.converged = np.zeros((q, count), dtype=bool)
        self.doubtful = np.zeros((q, count), dtype=bool)
        self.drift = np.zeros((q, count))  # what scores were added up from, by size
        self.error = np.zeros((q, count))  # how far held-out scores may be from the solution's
        self.refined: dict[tuple[int, int], Array] = {}  # coefficients in double precision
        self.tail = np.full(q, count)  # index of the first penalty on the scaling tail

    def fill(self, n_threads: int) -> None:
        """Solve everything; what did not converge says so."""
        count = len(self.lambdas)
        grids = [np.array(sorted({*range(0, count, stride), count - 1})) for stride in _STRIDES]
        self._solve_coarse(grids[0])
        self._refine_unsolved()
        self._follow_unsolved(n_threads)
        for coarse, fine in pairwise(grids):
            self._solve_between(coarse, np.setdiff1d(fine, coarse))
        self._settle_rivals()
        if isinstance(self.solver, KernelColumns):
            self._refine(self.solver, self.doubtful & self.converged)

    def _settle_rivals(self) -> None:
        """Solve on where it is not certain which of several scores is the largest."""
        if not self.rivals:
            return
        for tol in _UNTIL_CERTAIN:
            undecided = np.argwhere(self._undecided() & self.converged & ~self.doubtful)
            pairs = [(q, index) for q, index in undecided.tolist()]
            self._solve(pairs, tol)
            for q, index in pairs:
                if index == self.tail[q] - 1:
                    self._fill_tail(q, self.tail[q])
        self.doubtful |= self._undecided()

    def _undecided(self) -> BoolArray:
        """Columns that may yet change which score is the largest at a held-out row.

        A column on the scaling tail is named by the one that it is a multiple of.
        """
        found = np.zeros(self.converged.shape, dtype=bool)
        last = np.minimum(np.arange(len(self.lambdas)), self.tail[:, None] - 1)
        for members in self.rivals:
            rows = np.flatnonzero(self.omega[members[0]] == 0.0)
            for index in range(len(self.lambdas)):
                scores = self.scores[members, index][:, rows] + self.intercept[members, index, None]
                error = self.error[members, index, None]
                top, every = scores.argmax(axis=0), np.arange(len(rows))
                near = scores + error >= scores[top, every] - error[top, 0]
                near[top, every] = False
                near[top, every] = near.any(axis=0)
                going = members[near.any(axis=1)]
                found[going, last[going, index]] = True
        return found

    def _solve_between(self, coarse: IntArray, fine: IntArray) -> None:
        """Solve the penalties `fine` from interpolated solutions at those around them."""
        after = np.searchsorted(coarse, fine)
        # Lagrange's polynomial through four solved penalties around
        first = np.clip(after - 2, 0, max(len(coarse) - 4, 0))
        near = first[:, None] + np.arange(min(4, len(coarse)))
        shares = np.zeros((len(fine), len(coarse)))
        found = _lagrange(np.log(self.lambdas), coarse[near], fine)
        np.put_along_axis(shares, near, found, axis=1)
        # Where a penalty beside it was left to Newton's method, so is one between.
        good = self.converged[:, coarse[after - 1]] & self.converged[:, coarse[after]]
        good &= fine < self.tail[:, None]
        for q in range(len(self.Y)):
            inside = fine < self.tail[q]
            self._combine(q, fine[inside], coarse, shares[inside])
        pairs = [(q, fine[k]) for k, q in np.argwhere(good.T).tolist()]
        self._solve([pair for pair in pairs if not self.rival[pair[0]]], _SOLVED, signs=True)
        self._solve([pair for pair in pairs if self.rival[pair[0]]], _CERTAIN)
        self._refine_unsolved()

    def _refine_unsolved(self) -> None:
        if isinstance(self.solver, KernelColumns):
            self._refine(self.solver, (self.iterations > 0) & ~self.converged)

    def _follow_unsolved(self, n_threads: int) -> None:
        """Newton's method for what is unsolved, so that what is between may start from it."""
        if not isinstance(self.solver, KernelColumns):
            return
        # the largest penalty of all is not near enough to any other solution
        unsolved = np.argwhere((self.iterations > 0) & ~self.converged)
        pairs = [(q, index) for q, index in unsolved.tolist() if index > 0]

        def run(pair: tuple[int, int]) -> Paths:
            q, index = pair
            start = self.coef[pair].astype(np.float64), float(self.intercept[pair])
            return self.follow(q, self.lambdas[index : index + 1], start)

        with one_blas_thread():
            everything = in_threads(run, pairs, n_threads)
        for pair, found in zip(pairs, everything, strict=True):
            q, index = pair
            coef = found.coefs[0, 0]
            self.refined[pair], self.coef[pair] = coef, coef
            self.intercept[pair] = found.intercept[0, 0]
            self.scores[pair] = self.solver.geometry.matrix @ coef
            self.iterations[pair] += found.iterations[0, 0]
            self.drift[pair] = self.error[pair] = 0.0
            self.converged[pair] = found.converged[0, 0]
            if self.converged[pair] and self.tail[q] == len(self.lambdas) and self._beyond(*pair):
                self._fill_tail(q, index + 1)

    def _refine(self, solver: KernelColumns, chosen: BoolArray) -> None:
        """Settle what single precision leaves in doubt or unsolved, in double precision."""
        problem, index = np.argwhere(chosen).T
        if len(problem) == 0:
            return
        start = self.coef[problem, index], self.intercept[problem, index]
        tol = np.where(self.rival[problem] & self.doubtful[problem, index], _COMPARED, _SLOPES)
        found = solver.refine(problem, index, start, tol, self.signs_only[problem])
        pairs = zip(problem.tolist(), index.tolist(), strict=True)
        self.refined |= dict(zip(pairs, found.coef, strict=True))
        self.coef[problem, index] = found.coef
        self.intercept[problem, index] = found.intercept
        self.scores[problem, index] = found.scores
        self.drift[problem, index] = self.error[problem, index] = 0.0
        self.doubtful[problem, index] = False
        self.converged[problem, index] |= found.solved
        for q in problem[index == self.tail[problem] - 1]:
            self._fill_tail(q, self.tail[q])

    def _solve_coarse(self, coarse: IntArray) -> None:
        count = len(self.lambdas)
        # Large penalties start from zero together, then each from where the path was heading.
        largest = 1e-3 * min(1.0, self.lambdas[0])
        together = max(1, int(np.sum(self.lambdas[coarse] >= largest)))
        done = np.zeros(len(self.Y), dtype=np.int64)
        moving = list(range(len(self.Y)))
        while moving:
            near: list[tuple[int, int]] = []
            while moving:
                pairs = []
                for q in moving:
                    here, done[q] = done[q], max(done[q] + 1, together)
                    pairs += [(q, i) for i in coarse[here : done[q]]]
                    if here > 1:
                        last, new = coarse[here - 2 : here], coarse[here : here + 1]
                        heading = _lagrange(np.log(self.lambdas), last[None], new)
                        self._combine(q, new, last, heading)
                self._solve(pairs, _NEAR)
                near += pairs
                # Where all margins seem to exceed one the scaling tail may have been reached.
                moving = [
                    q
                    for q in moving
                    if done[q] < len(coarse) and not self._beyond(q, coarse[done[q] - 1])
                ]
            self._solve([pair for pair in near if not self.rival[pair[0]]], _SOLVED, signs=True)
            self._solve([pair for pair in near if self.rival[pair[0]]], _SOLVED)
            for q, i in sorted(near):
                if self.tail[q] == count and self.converged[q, i] and self._beyond(q, i):
                    self._fill_tail(q, i + 1)
            moving = np.flatnonzero((done < len(coarse)) & (self.tail == count)).tolist()

    def _solve(self, pairs: list[tuple[int, int]], tol: float, *, signs: bool = False) -> None:
        """Solve some (problem, penalty) from what the table has.

        With `signs` those of held-out scores are asked for: columns go on for them, or stop.
        """
        if not pairs:
            return
        problem, index = np.array(sorted(pairs, key=lambda pair: (pair[1], pair[0]))).T
        start = (
            self.coef[problem, index],
            self.intercept[problem, index],
            self.scores[problem, index],
            self.drift[problem, index],
        )
        # columns without held-out rows never stop early
        certain_tol = _CERTAIN if self.signs_only.any() else _SOLVED
        found = self.solver.solve(problem, index, start, tol, certain_tol if signs else None)
        self.coef[problem, index] = found.coef
        self.intercept[problem, index] = found.intercept
        self.scores[problem, index] = found.scores - found.intercept[:, None].astype(np.float32)
        self.iterations[problem, index] += found.iterations
        self.converged[problem, index] = found.converged & (tol < _NEAR)
        self.doubtful[problem, index] = found.doubtful
        self.drift[problem, index], self.error[problem, index] = found.drift, found.error

    def _combine(self, q: int, targets: IntArray, nodes: IntArray, shares: Array) -> None:
        """Guess the solutions at some penalties from those at others."""
        # Solutions grow as penalties fall: what is interpolated is what is left of that.
        growth = _GROWTH * self.exponent
        shares = shares * (self.lambdas[nodes] / self.lambdas[targets, None]) ** growth
        single = shares.astype(np.float32)
        self.coef[q, targets] = single @ self.coef[q, nodes]
        self.scores[q, targets] = single @ self.scores[q, nodes]
        self.intercept[q, targets] = shares @ self.intercept[q, nodes]
        self.drift[q, targets] = np.abs(shares) @ self.drift[q, nodes]

    def _beyond(self, q: int, index: int) -> bool:
        """Whether the scaling tail begins: all margins of the rows that count are at least one."""
        if self.exponent == 0.0:
            return False
        u = self.Y[q] * (self.scores[q, index] + self.intercept[q, index])
        return bool(np.all((u >= 1.0) | (self.omega[q] == 0.0)))

    def _fill_tail(self, q: int, first: int) -> None:
        """From the penalty `first` on solutions are known multiples of the one before."""
        self.tail[q] = first
        factor = (self.lambdas[first - 1] / self.lambdas[first:]) ** self.exponent
        self.coef[q, first:] = factor[:, None] * self.coef[q, first - 1]
        self.scores[q, first:] = factor[:, None] * self.scores[q, first - 1]
        self.intercept[q, first:] = factor * self.intercept[q, first - 1]
        self.error[q, first:] = factor * self.error[q, first - 1]
        self.converged[q, first:] = True
        self.iterations[q, first:] = 0


def _lagrange(x: Array, nodes: IntArray, targets: IntArray) -> Array:
    """Shares of the values at ``x[nodes]`` in their polynomials' values at ``x[targets]``.

    `nodes` has shape (t, m), a row for each target.
    """
    at = x[nodes]
    count = nodes.shape[1]
    shares = np.ones(nodes.shape)
    for k, other in permutations(range(count), 2):
        shares[:, k] *= (x[targets] - at[:, other]) / (at[:, k] - at[:, other])
    return shares
