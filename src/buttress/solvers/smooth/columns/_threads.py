"""The two column methods with their columns divided among threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._threads import one_blas_thread
from buttress.solvers.smooth.columns._conjugate import Columns, FeatureSystem, solve_columns
from buttress.solvers.smooth.columns._kernel_columns import KernelSystem, solve_kernel_columns
from buttress.solvers.smooth.columns._low_rank import leading_part
from buttress.solvers.smooth.columns._models import CurvedModels, copy_model, empty_models
from buttress.solvers.smooth.columns._refinement import Refined, Refinement, refine_columns
from buttress.solvers.smooth.geometry import Geometry
from buttress.solvers.smooth.margins import compiled_loss
from buttress.solvers.smooth.paths import in_pool

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


class KernelColumns:
    """Kernel form: the Gram matrix in single precision, and its leading part."""

    def __init__(
        self,
        geometry: Geometry,
        Y: Array,
        omega: Array,
        lambdas: Array,
        loss: Any,
        fit_intercept: bool,
        n_threads: int,
        pool: ThreadPoolExecutor,
    ) -> None:
        self.size = n = Y.shape[1]
        matrix = geometry.matrix.astype(np.float32)
        slots = len(Y) * len(lambdas)
        # Models, a triangle and a square for every column, take no more room than the Gram matrix.
        rank = int(np.clip(n / np.sqrt(1.5 * slots), _LEAST_RANK, _LARGEST_RANK))
        with one_blas_thread() if n <= _NOT_DIVIDED else nullcontext():
            low_rank = leading_part(matrix, min(n, rank))
        self.models = empty_models(low_rank, slots)
        self.system = KernelSystem(
            matrix,
            low_rank,
            self.models,
            Y.astype(np.float32),
            omega.astype(np.float32),
            compiled_loss(loss),
            fit_intercept,
        )
        self.geometry, self.targets, self.weights, self.loss = geometry, Y, omega, loss
        self.lambdas = lambdas
        self.n_threads, self.pool = n_threads, pool

    def in_geometry(self, coef: Array) -> Array:
        """Coefficients of shape (L, n) in the geometry's coordinates: the same."""
        return coef

    def solve(
        self,
        problem: IntArray,
        index: IntArray,
        start: tuple[Array, Array, Array, Array],
        tol: float,
        certain_tol: float | None,
    ) -> Columns:
        """Solve columns from `start`: see `solve_kernel_columns`."""
        slot = self._slots(problem, index)
        shares = _shares(problem, self.n_threads)

        def run(part: int) -> Columns:
            mine = shares[part]
            found = solve_kernel_columns(
                self.system,
                slot[mine],
                problem[mine],
                self.lambdas[index[mine]],
                (start[0][mine], start[1][mine], start[2][mine], start[3][mine]),
                tol,
                certain_tol,
                max(40, int(_COLUMN_SHARE * self.size)),
            )
            return Columns(*found)

        with one_blas_thread():
            parts = in_pool(self.pool, run, len(shares))
        return Columns(*_merged(parts, shares))

    def _slots(self, problem: IntArray, index: IntArray) -> IntArray:
        """Where the columns' models are; a column without one borrows that of its neighbour."""
        slots = problem * len(self.lambdas) + index
        _borrow_models(self.models, self.lambdas, slots)
        return slots

    def refine(
        self,
        problem: IntArray,
        index: IntArray,
        start: tuple[Array, Array],
        tol: Array,
        signs_only: BoolArray,
        pool: ThreadPoolExecutor | None = None,
    ) -> Refined:
        """Bring columns from near a solution to double precision.

        `pool` has the threads, once those that the columns were solved with have ended.
        """
        slot = self._slots(problem, index)
        # With few rows it is the interpreter that is busy, and a second thread is in its way.
        shares = _shares(problem, self.n_threads if self.size > _INTERPRETED else 1)

        def run(part: int) -> Refined:
            mine = shares[part]
            task = Refinement(
                self.system,
                self.geometry.matrix,
                self.loss,
                self.targets[problem[mine]],
                self.weights[problem[mine]],
                slot[mine],
                problem[mine],
                self.lambdas[index[mine]],
            )
            near = start[0][mine].astype(np.float64), start[1][mine]
            return refine_columns(task, near, tol[mine], signs_only[mine])

        with one_blas_thread():
            parts = in_pool(pool or self.pool, run, len(shares))
        return Refined(*_merged(parts, shares))


class FeatureColumns:
    """Feature form: the eigenbasis in single precision."""

    def __init__(
        self,
        geometry: Geometry,
        smallest: float,
        weight: Array | None,
        Y: Array,
        omega: Array,
        lambdas: Array,
        loss: Any,
        fit_intercept: bool,
        n_threads: int,
        pool: ThreadPoolExecutor,
    ) -> None:
        v = np.ones(Y.shape[1]) if weight is None else weight
        self.basis = geometry.eigenbasis(weight, smallest)
        self.size = len(self.basis.eigenvalues)
        self.system = FeatureSystem(
            np.ascontiguousarray(self.basis.features, dtype=np.float32),
            self.basis.eigenvalues,
            self.basis.features.T @ v,
            float(v.sum()),
            Y.astype(np.float32),
            omega.astype(np.float32),
            (omega / v).max(axis=1),
            compiled_loss(loss),
            fit_intercept,
        )
        self.lambdas = lambdas
        self.n_threads, self.pool = n_threads, pool

    def in_geometry(self, coef: Array) -> Array:
        """Coefficients of shape (L, m) in the geometry's coordinates."""
        return self.basis.coefficients(coef)

    def solve(
        self,
        problem: IntArray,
        index: IntArray,
        start: tuple[Array, Array, Array, Array],
        tol: float,
        certain_tol: float | None,
    ) -> Columns:
        """Solve columns from `start`: weights and intercepts; the scores follow from them."""
        shares = _shares(problem, self.n_threads)

        def run(part: int) -> Columns:
            mine = shares[part]
            return solve_columns(
                self.system,
                problem[mine],
                self.lambdas[index[mine]],
                (start[0][mine], start[1][mine]),
                tol,
                max(40, int(_COLUMN_SHARE * len(self.system.W))),
            )

        with one_blas_thread():
            parts = in_pool(self.pool, run, len(shares))
        return Columns(*_merged(parts, shares))


def _borrow_models(models: CurvedModels, lambdas: Array, slots: IntArray) -> None:
    """Let columns without a model use that of the nearest penalty, when it is near enough.

    They get a copy where that model is renewed in the same solve, maybe by another thread.
    """
    logs = np.log(lambdas)
    levels = models.level.reshape(-1, len(lambdas))
    without = slots[models.level[slots] < 0]
    problem, index = np.divmod(without, len(lambdas))
    # How far the penalties of the same problem are that have a model.
    far = np.abs(logs[index, None] - logs)
    far[levels[problem] < 0] = np.inf
    nearest = np.argmin(far, axis=1)
    near = far[np.arange(len(without)), nearest] < np.log(_BORROWED)
    models.source[without[near]] = (problem * len(lambdas) + nearest)[near]
    renewed = np.zeros(len(models.source), dtype=bool)
    renewed[slots] = True
    lenders = models.source[slots]
    for k in np.flatnonzero((lenders != slots) & renewed[lenders]):
        copy_model(models, lenders[k], slots[k])


def _shares(problem: IntArray, n_threads: int) -> list[IntArray]:
    """Which columns each thread takes: those of one problem in turn, for they are as much work."""
    order = np.argsort(problem, kind="stable")
    ordered = problem[order]
    turn = np.empty_like(problem)
    turn[order] = ordered + np.arange(len(order)) - np.searchsorted(ordered, ordered)
    shares = [np.flatnonzero(turn % n_threads == part) for part in range(n_threads)]
    return [share for share in shares if len(share)]


def _merged(parts: Sequence[Sequence[Array]], shares: list[IntArray]) -> list[Any]:
    """Put together arrays of which each part has the rows of its share."""
    merged = []
    total = sum(map(len, shares))
    for pieces in zip(*parts, strict=True):
        whole = np.empty((total, *pieces[0].shape[1:]), dtype=pieces[0].dtype)
        for share, piece in zip(shares, pieces, strict=True):
            whole[share] = piece
        merged.append(whole)
    return merged
