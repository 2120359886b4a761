"""Columns of all problems and penalties: the order in which they are solved, and their starts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._threads import in_threads, one_blas_thread
from buttress.solvers.smooth.columns._balance import off_balance
from buttress.solvers.smooth.columns._models import SolvedColumns, no_columns
from buttress.solvers.smooth.columns._threads import FeatureColumns, KernelColumns
from buttress.solvers.smooth.margins import tail_exponent
from buttress.solvers.smooth.paths import Paths
from buttress.solvers.smooth.problems import Problems

# Every so many penalties are solved first, fewer where so many decades hold fewer; then those
# between them. Of 50 penalties (letter, 26 classes) every third takes 0.96 of the time of every
# fourth, and that 0.89 of every sixth's.
_STRIDE = 6
_DECADES = 0.45
# Growth with falling penalties that interpolation takes out, as a share of the scaling tail's.
_GROWTH = 0.6
# Decrease of the objective at which a column is near enough to start the next penalty from; a
# tenth of it makes the first penalties of 5000 rows take 1.13 times as long, five times it as long.
_NEAR = 1e-1
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
# Multiple of the distance of an intercept from its minimum, to first order, by which it may be off.
_FAR = 4.0
# From a problem, penalties and where to start to solutions by Newton's method.
Follow = Callable[[int, Array, "tuple[Array, float] | None"], Paths]


def solved_first(lambdas: Array) -> IntArray:
    """Which penalties come first, so that the others start between them."""
    count = len(lambdas)
    apart = np.log10(lambdas[0] / lambdas[-1]) / max(count - 1, 1)
    stride = int(np.clip(_DECADES / max(apart, 1e-3), 1, _STRIDE))
    return np.array(sorted({*range(0, count, stride), count - 1}))


class SolutionTable:
    """Solutions of all problems at all penalties, as far as they are known.

    Arrays of shape (problems, penalties, ...) are views of those of `columns`, which has all of
    them in one row.
    """

    def __init__(
        self, problems: Problems, solver: KernelColumns | FeatureColumns, follow: Follow
    ) -> None:
        n_problems, n, count = *problems.Y.shape, len(problems.lambdas)
        self.solver, self.Y, self.omega = solver, problems.Y, problems.omega
        self.lambdas, self.follow, self.start = problems.lambdas, follow, problems.start
        self.exponent = tail_exponent(problems.loss)
        self.signs_only, self.rivals = problems.signs_only, problems.rivals
        if isinstance(solver, FeatureColumns):
            self.rivals = []
        self.rival = np.zeros(n_problems, dtype=bool)
        for members in self.rivals:
            self.rival[members] = True
        self.columns = no_columns(n_problems * count, solver.size, n)
        fields: Any = (field.reshape(n_problems, count, *field.shape[1:]) for field in self.columns)
        views = SolvedColumns(*fields)
        self.coef, self.intercept, self.scores = views.coef, views.intercept, views.scores
        self.iterations, self.converged = views.iterations, views.converged
        self.doubtful, self.drift, self.error = views.doubtful, views.drift, views.error
        # coefficients in double precision, and their scores without the intercept
        self.refined: dict[tuple[int, int], tuple[Array, Array]] = {}
        self.tail = np.full(n_problems, count)  # index of the first penalty on the scaling tail

    def fill(self, n_threads: int) -> None:
        """Solve everything; what did not converge says so."""
        count = len(self.lambdas)
        coarse = solved_first(self.lambdas)
        if self.start is None:
            self._solve_coarse(coarse)
        else:
            self._solve_near(*self.start)
        self._refine_unsolved()
        self._follow_unsolved(n_threads)
        self._solve_between(coarse, np.setdiff1d(np.arange(count), coarse))
        self._settle_rivals()
        if isinstance(self.solver, KernelColumns):
            self._refine(self.solver, self.doubtful & self.converged)

    def _settle_rivals(self) -> None:
        """Solve on where it is not certain which of several scores is the largest."""
        if not self.rivals:
            return
        self._add_imbalance(self.converged & self.rival[:, None])
        for tol in _UNTIL_CERTAIN:
            undecided = self._undecided() & self.converged & ~self.doubtful
            self._solve(undecided, tol)
            self._add_imbalance(undecided)
            for problem, index in np.argwhere(undecided).tolist():
                if index == self.tail[problem] - 1:
                    self._fill_tail(problem, self.tail[problem])
        self.doubtful |= self._undecided()

    def _add_imbalance(self, chosen: BoolArray) -> None:
        """Held-out scores may also be as far off as the intercepts are."""
        system, which = self.solver.system, np.flatnonzero(chosen)
        problem = which // len(self.lambdas)
        shared = system.loss, self.columns.scores, system.y, system.omega
        self.columns.error[which] += _FAR * off_balance(*shared, problem, which)

    def _undecided(self) -> BoolArray:
        """Columns that may yet change which score is the largest at a held-out row.

        A column on the scaling tail is named by the one that it is a multiple of.
        """
        undecided = np.zeros(self.converged.shape, dtype=bool)
        last = np.minimum(np.arange(len(self.lambdas)), self.tail[:, None] - 1)
        for members in self.rivals:
            rows = np.flatnonzero(self.omega[members[0]] == 0.0)
            for index in range(len(self.lambdas)):
                scores = self.scores[members[:, None], index, rows]
                error = self.error[members, index, None]
                top, every = scores.argmax(axis=0), np.arange(len(rows))
                near = scores + error >= scores[top, every] - error[top, 0]
                near[top, every] = False
                near[top, every] = near.any(axis=0)
                going = members[near.any(axis=1)]
                undecided[going, last[going, index]] = True
        return undecided

    def _solve_between(self, coarse: IntArray, fine: IntArray) -> None:
        """Solve the penalties `fine` from interpolated solutions at those around them."""
        after = np.searchsorted(coarse, fine)
        # Lagrange's polynomial through four solved penalties around
        first = np.clip(after - 2, 0, max(len(coarse) - 4, 0))
        near = first[:, None] + np.arange(min(4, len(coarse)))
        shares = np.zeros((len(fine), len(coarse)))
        np.put_along_axis(shares, near, _lagrange(np.log(self.lambdas), coarse[near], fine), axis=1)
        # Where a penalty beside it was left to Newton's method, so is one between.
        good = self.converged[:, coarse[after - 1]] & self.converged[:, coarse[after]]
        good &= fine < self.tail[:, None]
        for problem in range(len(self.Y)):
            inside = fine < self.tail[problem]
            self._combine(problem, fine[inside], coarse, shares[inside])
        chosen = np.zeros_like(self.converged)
        chosen[:, fine] = good
        self._solve(chosen & ~self.rival[:, None], _SOLVED, signs=True)
        self._solve(chosen & self.rival[:, None], _CERTAIN)
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
        pairs = [(problem, index) for problem, index in unsolved.tolist() if index > 0]

        def run(pair: tuple[int, int]) -> Paths:
            problem, index = pair
            start = self.coef[pair].astype(np.float64), float(self.intercept[pair])
            return self.follow(problem, self.lambdas[index : index + 1], start)

        with one_blas_thread():
            everything = in_threads(run, pairs, n_threads)
        for pair, exact in zip(pairs, everything, strict=True):
            problem, index = pair
            self.take(problem, np.array([index]), exact)
            self.coef[pair] = exact.coefs[0][0]
            self.scores[pair] = self.refined[pair][1] + self.intercept[pair]
            self.drift[pair] = self.error[pair] = 0.0
            if (
                self.converged[pair]
                and self.tail[problem] == len(self.lambdas)
                and self._beyond(*pair)
            ):
                self._fill_tail(problem, index + 1)

    def _refine(self, solver: KernelColumns, chosen: BoolArray) -> None:
        """Settle what single precision leaves in doubt or unsolved, in double precision."""
        problem, index = np.argwhere(chosen).T
        if len(problem) == 0:
            return
        which = problem * len(self.lambdas) + index
        start = self.columns.coef[which], self.columns.intercept[which]
        compared = self.rival[problem] & self.doubtful[problem, index]
        tol = np.where(compared, _COMPARED, _SLOPES)
        columns = solver.refine(which, start, tol, self.signs_only[problem])
        pairs = zip(problem.tolist(), index.tolist(), strict=True)
        refined = zip(columns.coef, columns.scores.astype(np.float32), strict=True)
        self.refined |= dict(zip(pairs, refined, strict=True))
        self.coef[problem, index] = columns.coef
        self.intercept[problem, index] = columns.intercept
        self.scores[problem, index] = columns.scores + columns.intercept[:, None]
        self.drift[problem, index] = self.error[problem, index] = 0.0
        self.doubtful[problem, index] = False
        self.converged[problem, index] |= columns.solved
        # what was to be compared and is not that precise is left to Newton's method
        self.converged[problem, index] &= ~compared | (columns.residual <= tol)
        for ending in problem[index == self.tail[problem] - 1]:
            self._fill_tail(ending, self.tail[ending])

    def _solve_coarse(self, coarse: IntArray) -> None:
        count = len(self.lambdas)
        # Large penalties start from zero together, then each from where the path was heading.
        largest = 1e-3 * min(1.0, self.lambdas[0])
        together = max(1, int(np.sum(self.lambdas[coarse] >= largest)))
        done = np.zeros(len(self.Y), dtype=np.int64)
        moving = list(range(len(self.Y)))
        while moving:
            near = np.zeros_like(self.converged)
            while moving:
                chosen = np.zeros_like(near)
                for problem in moving:
                    first, done[problem] = done[problem], max(done[problem] + 1, together)
                    chosen[problem, coarse[first : done[problem]]] = True
                    if first > 1:
                        last, new = coarse[first - 2 : first], coarse[first : first + 1]
                        heading = _lagrange(np.log(self.lambdas), last[None], new)
                        self._combine(problem, new, last, heading)
                self._solve(chosen, _NEAR)
                near |= chosen
                # Where all margins seem to exceed one the scaling tail may have been reached.
                moving = [
                    problem
                    for problem in moving
                    if done[problem] < len(coarse)
                    and not self._beyond(problem, coarse[done[problem] - 1])
                ]
            self._solve(near & ~self.rival[:, None], _SOLVED, signs=True)
            self._solve(near & self.rival[:, None], _CERTAIN)
            for problem, index in np.argwhere(near).tolist():
                if (
                    self.tail[problem] == count
                    and self.converged[problem, index]
                    and self._beyond(problem, index)
                ):
                    self._fill_tail(problem, index + 1)
            moving = np.flatnonzero((done < len(coarse)) & (self.tail == count)).tolist()

    def _solve_near(self, coef: Array, intercept: Array) -> None:
        """Solve the one penalty that there is from coefficients near its solution."""
        assert isinstance(self.solver, KernelColumns)
        single = coef.astype(np.float32)
        self.coef[:, 0], self.intercept[:, 0] = single, intercept
        self.scores[:, 0] = single @ self.solver.system.matrix + intercept[:, None]
        self._solve(np.ones_like(self.converged), _SOLVED, signs=True)

    def _solve(self, chosen: BoolArray, tol: float, *, signs: bool = False) -> None:
        """Solve some (problem, penalty) from what the table has.

        With `signs` those of held-out scores are asked for: columns go on for them, or stop.
        """
        # the smallest penalties first: they take longest
        index, problem = np.argwhere(chosen.T)[::-1].T
        if len(index) == 0:
            return
        which = problem * len(self.lambdas) + index
        # columns without held-out rows never stop early
        certain_tol = _CERTAIN if self.signs_only.any() else _SOLVED
        self.solver.solve(self.columns, which, tol, certain_tol if signs else None)
        self.columns.converged[which] &= tol < _NEAR

    def _combine(self, problem: int, targets: IntArray, nodes: IntArray, shares: Array) -> None:
        """Guess the solutions at some penalties from those at others."""
        # Solutions grow as penalties fall: what is interpolated is what is left of that.
        growth = _GROWTH * self.exponent
        shares = shares * (self.lambdas[nodes] / self.lambdas[targets, None]) ** growth
        single = shares.astype(np.float32)
        self.coef[problem, targets] = single @ self.coef[problem, nodes]
        self.scores[problem, targets] = single @ self.scores[problem, nodes]
        self.intercept[problem, targets] = shares @ self.intercept[problem, nodes]
        self.drift[problem, targets] = np.abs(shares) @ self.drift[problem, nodes]

    def scores_without_intercepts(self) -> Array:
        """The scores of all columns less their intercepts, in place of those with them.

        An intercept may be so large that a score and it, in single precision, are the same for
        several classes; where a column is known in double precision the rest is exact.
        """
        scores = self.scores
        scores -= self.intercept[:, :, None].astype(np.float32)
        for (problem, index), (_, exact) in self.refined.items():
            scores[problem, index] = exact
            if index == self.tail[problem] - 1:
                scores[problem, index + 1 :] = self._tail_factors(index)[:, None] * exact
        return scores

    def take(self, problem: int, run: IntArray, exact: Paths) -> None:
        """Penalties `run` of one problem by Newton's method, and with the last one its tail."""
        self.intercept[problem, run] = exact.intercept[0]
        rows = zip(exact.coefs[0], exact.scores_at(0).astype(np.float32), strict=True)
        self.refined |= {
            (problem, index): row for index, row in zip(run.tolist(), rows, strict=True)
        }
        self.converged[problem, run] = exact.converged[0]
        self.iterations[problem, run] += exact.iterations[0]
        last = int(run[-1])
        if last == self.tail[problem] - 1:
            self.intercept[problem, last + 1 :] = (
                self._tail_factors(last) * self.intercept[problem, last]
            )

    def _beyond(self, problem: int, index: int) -> bool:
        """Whether the scaling tail begins: all margins of the rows that count are at least one."""
        if self.exponent == 0.0:
            return False
        u = self.Y[problem] * self.scores[problem, index]
        return bool(np.all((u >= 1.0) | (self.omega[problem] == 0.0)))

    def _tail_factors(self, last: int) -> Array:
        """What solutions after the penalty `last`, where the tail begins, are multiples by."""
        return np.asarray((self.lambdas[last] / self.lambdas[last + 1 :]) ** self.exponent)

    def _fill_tail(self, problem: int, first: int) -> None:
        """From the penalty `first` on solutions are known multiples of the one before."""
        self.tail[problem] = first
        factor = self._tail_factors(first - 1)
        self.coef[problem, first:] = factor[:, None] * self.coef[problem, first - 1]
        self.scores[problem, first:] = factor[:, None] * self.scores[problem, first - 1]
        self.intercept[problem, first:] = factor * self.intercept[problem, first - 1]
        self.error[problem, first:] = factor * self.error[problem, first - 1]
        self.converged[problem, first:] = True
        self.iterations[problem, first:] = 0


def _lagrange(x: Array, nodes: IntArray, targets: IntArray) -> Array:
    """Shares of the values at ``x[nodes]`` in their polynomials' values at ``x[targets]``.

    `nodes` has shape (t, m), a row for each target.
    """
    at = x[nodes]
    count = nodes.shape[1]
    shares = np.ones(nodes.shape)
    for j, k in permutations(range(count), 2):
        shares[:, j] *= (x[targets] - at[:, k]) / (at[:, j] - at[:, k])
    return shares
