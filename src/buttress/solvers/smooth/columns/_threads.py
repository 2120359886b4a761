"""The two column methods with their columns divided among threads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._threads import in_threads, one_blas_thread
from buttress.solvers.smooth.columns._conjugate import FeatureSystem, solve_columns
from buttress.solvers.smooth.columns._kernel_columns import run_columns
from buttress.solvers.smooth.columns._low_rank import leading_part
from buttress.solvers.smooth.columns._models import (
    Batch,
    KernelSystem,
    Shared,
    SolvedColumns,
    empty_models,
    empty_room,
)
from buttress.solvers.smooth.columns._moves import (
    CONVERGED,
    DOUBTFUL,
    DRIFT,
    ERROR,
    Limits,
    new_moves,
)
from buttress.solvers.smooth.columns._refinement import Refined, Refinement, refine_columns
from buttress.solvers.smooth.margins import compiled_loss
from buttress.solvers.smooth.problems import Problems

# A column that takes more iterations than this share of n is cheaper by Newton's method.
_COLUMN_SHARE = 1 / 4
# Ranks of the model of the Gram matrix: a larger one saves iterations, each of which is a product
# (of 10 000 rows a third of the time), and its factor of order 256 is the largest for our loops.
_LEAST_RANK = 96
_LARGEST_RANK = 256
# Rows up to which refining columns takes longer in two threads than in one (7.6 ms in one, 11 to 14
# in two at 460 rows; 9.4 and 7.3 at 2130).
_INTERPRETED = 1000
# Rows up to which the leading part of the Gram matrix is found by one thread: small products and
# factors, a few hundredths of a second, of which a second thread that is not free makes many.
_NOT_DIVIDED = 4000
# A column begins with the model of another one when their penalties differ by no more.
_BORROWED = 2.0
# Columns that a thread works on at a time: 128 and 512 take as long (26 classes of letter, 2000
# rows), more need memory, and fewer make narrow products.
_SEATS = 256


class KernelColumns:
    """Kernel form: the Gram matrix in single precision, and its leading part.

    Columns at the penalties `kept` keep their models, and lend them to those between. `shared` is
    from other problems with the same Gram matrix.
    """

    def __init__(
        self,
        problems: Problems,
        kept: IntArray,
        n_threads: int,
        shared: Shared | None = None,
    ) -> None:
        Y, omega, lambdas = problems.Y, problems.omega, problems.lambdas
        self.size = n = Y.shape[1]
        columns, count = len(Y) * len(lambdas), len(lambdas)
        seats = min(_SEATS, -(-columns // n_threads))
        lent = len(Y) * len(kept)
        slots = lent + n_threads * seats
        matrix = shared.matrix if shared else problems.geometry.matrix.astype(np.float32)
        low_rank = shared.low_rank if shared else None
        if low_rank is None:
            # Models, a triangle and a square each, take no more room than the Gram matrix.
            rank = int(np.clip(n / np.sqrt(1.5 * slots), _LEAST_RANK, _LARGEST_RANK))
            with one_blas_thread() if n <= _NOT_DIVIDED else nullcontext():
                low_rank = leading_part(matrix, min(n, rank))
        self.models = empty_models(low_rank, slots)
        single = Y.astype(np.float32), omega.astype(np.float32)
        loss, fit_intercept = compiled_loss(problems.loss), problems.fit_intercept
        self.system = KernelSystem(loss, matrix, low_rank, self.models, *single, fit_intercept)
        self.problems, self.geometry = problems, problems.geometry
        self.lambdas, self.kept = lambdas, kept
        self.problem, self.lam = np.repeat(np.arange(len(Y)), count), np.tile(lambdas, len(Y))
        slot = np.full((len(Y), count), -1)
        slot[:, kept] = np.arange(lent).reshape(len(Y), -1)
        self.slot = slot.reshape(-1)
        self.slack, self.stuck = np.empty(columns), np.zeros(columns, dtype=bool)
        self.moves = [
            new_moves(columns, n, lent + thread * seats + np.arange(seats))
            for thread in range(n_threads)
        ]
        self.rooms = [empty_room(low_rank, seats) for _ in range(n_threads)]
        self.n_threads = n_threads

    def in_geometry(self, coef: Array) -> Array:
        """Coefficients of shape (L, n) in the geometry's coordinates: the same."""
        return coef

    def solve(
        self, columns: SolvedColumns, which: IntArray, tol: float, certain_tol: float | None
    ) -> None:
        """Solve the columns `which`, the hardest first, from where they are.

        `certain_tol` is the tolerance of columns where the signs of held-out scores are settled;
        None does not ask.
        """
        lender = np.full(len(self.lam), -1)
        lender[which] = self._lenders(which)
        limits = Limits(
            tol,
            certain_tol or 0.0,
            certain_tol is not None,
            max(40, int(_COLUMN_SHARE * self.size)),
        )
        at = columns.scores, columns.coef, columns.intercept
        batch = Batch(self.problem, self.lam, self.slot, lender, self.slack, self.stuck, *at)
        shares = _shares(self.problem[which], self.n_threads)

        def run(thread: int) -> None:
            queue, moves = which[shares[thread]], self.moves[thread]
            moves.history[queue, DRIFT] = columns.drift[queue]
            run_columns(self.system, batch, moves, self.rooms[thread], queue, limits)
            columns.iterations[queue] += moves.iterations[queue]
            columns.converged[queue] = moves.verdict[queue, CONVERGED]
            columns.doubtful[queue] = moves.verdict[queue, DOUBTFUL]
            columns.drift[queue] = moves.history[queue, DRIFT]
            columns.error[queue] = moves.history[queue, ERROR]

        with one_blas_thread():
            in_threads(run, range(len(shares)), len(shares))

    def _lenders(self, which: IntArray) -> IntArray:
        """The slots of models that columns without one borrow: of the nearest penalty.

        None (-1) is near enough, or all that are may be renewed in the same solve, maybe by
        another thread.
        """
        count, kept = len(self.lambdas), self.kept
        problem, index = np.divmod(which, count)
        logs = np.log(self.lambdas)
        far = np.abs(logs[index, None] - logs[kept])
        slots = self.slot.reshape(-1, count)[:, kept]
        busy = np.zeros(len(self.lam), dtype=bool)
        busy[which] = True
        without = (self.models.level[slots] < 0) | busy.reshape(-1, count)[:, kept]
        far[without[problem]] = np.inf
        nearest = np.argmin(far, axis=1)
        near = far[np.arange(len(which)), nearest] < np.log(_BORROWED)
        return np.where(near, slots[problem, nearest], -1)

    def refine(
        self,
        which: IntArray,
        start: tuple[Array, Array],
        tol: Array,
        signs_only: BoolArray,
    ) -> Refined:
        """Bring columns from near a solution to double precision."""
        # With few rows it is the interpreter that is busy, and a second thread is in its way.
        n_threads = self.n_threads if self.size > _INTERPRETED else 1
        most = n_threads * len(self.moves[0].slot)
        waves = [slice(first, first + most) for first in range(0, len(which), most)]
        pieces = [
            self._refine_at_once(
                which[wave],
                (start[0][wave], start[1][wave]),
                tol[wave],
                signs_only[wave],
                n_threads,
            )
            for wave in waves
        ]
        return Refined(*(np.concatenate(fields) for fields in zip(*pieces, strict=True)))

    def _refine_at_once(
        self,
        which: IntArray,
        start: tuple[Array, Array],
        tol: Array,
        signs_only: BoolArray,
        n_threads: int,
    ) -> Refined:
        """As `refine`, for no more columns than there are seats."""
        lenders, shares = self._lenders(which), _shares(self.problem[which], n_threads)

        def run(thread: int) -> Refined:
            share, seats = shares[thread], self.moves[thread].slot
            columns, slot = which[share], self.slot[which[share]]
            without = slot < 0
            slot[without] = seats[: len(slot)][without]
            self.models.level[slot[without]] = -1
            begin = self.models.level[slot] < 0
            self.models.source[slot] = np.where(begin & (lenders[share] >= 0), lenders[share], slot)
            problem = self.problem[columns]
            task = Refinement(
                self.system,
                self.geometry.matrix,
                self.problems.loss,
                self.problems.Y[problem],
                self.problems.omega[problem],
                slot,
                problem,
                self.lam[columns],
            )
            near = start[0][share].astype(np.float64), start[1][share]
            return refine_columns(task, near, tol[share], signs_only[share])

        with one_blas_thread():
            of_threads = in_threads(run, range(len(shares)), len(shares))
        return Refined(*_merged(of_threads, shares))


class FeatureColumns:
    """Feature form: the eigenbasis in single precision."""

    def __init__(self, problems: Problems, n_threads: int) -> None:
        Y, omega, weight = problems.Y, problems.omega, problems.weight
        v = np.ones(Y.shape[1]) if weight is None else weight
        # Dropping an eigenvalue s moves f by at most s / (2 lambda sqrt(n)).
        smallest = 1e-4 * 2.0 * float(problems.lambdas[-1]) * np.sqrt(len(v))
        self.basis = problems.geometry.eigenbasis(weight, smallest)
        self.size = len(self.basis.eigenvalues)
        self.system = FeatureSystem(
            np.ascontiguousarray(self.basis.features, dtype=np.float32),
            self.basis.eigenvalues,
            self.basis.features.T @ v,
            float(v.sum()),
            Y.astype(np.float32),
            omega.astype(np.float32),
            (omega / v).max(axis=1),
            compiled_loss(problems.loss),
            problems.fit_intercept,
        )
        self.lambdas = problems.lambdas
        self.n_threads = n_threads

    def in_geometry(self, coef: Array) -> Array:
        """Coefficients of shape (L, m) in the geometry's coordinates."""
        return self.basis.coefficients(coef)

    def solve(
        self, columns: SolvedColumns, which: IntArray, tol: float, certain_tol: float | None
    ) -> None:
        """Solve the columns `which` from where they are: weights and intercepts count."""
        problem, index = np.divmod(which, len(self.lambdas))
        shares = _shares(problem, self.n_threads)

        def run(thread: int) -> None:
            share = shares[thread]
            some = which[share]
            solved = solve_columns(
                self.system,
                problem[share],
                self.lambdas[index[share]],
                (columns.coef[some], columns.intercept[some]),
                tol,
                max(40, int(_COLUMN_SHARE * len(self.system.W))),
            )
            columns.coef[some], columns.intercept[some] = solved.coef, solved.intercept
            columns.scores[some], columns.converged[some] = solved.scores, solved.converged
            columns.iterations[some] += solved.iterations

        with one_blas_thread():
            in_threads(run, range(len(shares)), len(shares))


def _shares(problem: IntArray, n_threads: int) -> list[IntArray]:
    """Which columns each thread takes: those of one problem in turn, for they are as much work."""
    order = np.argsort(problem, kind="stable")
    shares = [np.sort(order[thread::n_threads]) for thread in range(n_threads)]
    return [share for share in shares if len(share)]


def _merged(of_threads: Sequence[Sequence[Any]], shares: list[IntArray]) -> list[Any]:
    """Put together arrays of which each part has the rows of its share."""
    merged = []
    total = sum(map(len, shares))
    for pieces in zip(*of_threads, strict=True):
        whole = np.empty((total, *pieces[0].shape[1:]), dtype=pieces[0].dtype)
        for share, piece in zip(shares, pieces, strict=True):
            whole[share] = piece
        merged.append(whole)
    return merged
