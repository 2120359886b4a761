"""All folds and all penalties as columns of one matrix, in kernel form.

As `_conjugate`, for Gram matrices of high rank, without their eigendecomposition.
Every problem ``sum_i omega_i L(y_i f_i) + lam a'K a``, ``f = K a + b``, shares the Gram matrix;
a held-out row has weight zero. Each iteration moves a column to the minimum over the plane of
an approximate Newton step (`_curved_model`) and its previous step; that needs one product with
`K`, the search in the plane none. The products of all columns are matrix products in single
precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._compile import compiled
from buttress.solvers.smooth.columns._low_rank import LowRank
from buttress.solvers.smooth.columns._model_steps import find_steps
from buttress.solvers.smooth.columns._models import Batch, CurvedModels, Room, empty_room
from buttress.solvers.smooth.columns._moves import (
    CONVERGED,
    DOUBTFUL,
    DRIFT,
    ERROR,
    SLACK,
    Moves,
    advance,
    new_moves,
    refresh,
)
from buttress.solvers.smooth.columns._sign_certificate import ROUNDOFF, score_rounding
from buttress.solvers.smooth.margins import for_loss

# Rounding of the scores, as a share of the largest, beyond which single precision is not enough.
_ROUNDING = 1e-3
# Factor by which the curvature of a row may differ from that of a model that is borrowed.
_BORROWED = 4.0
# No residuals in double precision, nor sums.
_UNKNOWN = np.empty((1, 0)), np.empty(0)


@compiled(allocates=True)
def _run(
    loss: Any,
    matrix: Array,
    low_rank: LowRank,
    models: CurvedModels,
    batch: Batch,
    moves: Moves,
    room: Room,
    fit_intercept: bool,
    exact: tuple[Array, Array],
    tols: tuple[float, float, bool],
    max_iter: int,
) -> None:
    """Move the columns of a batch until they are solved or given up.

    With residuals in double precision (`exact`, see `find_steps`) the steps are found and none is
    taken. Both go through this door: another would cost as much compilation as many a loop.
    """
    size, a0, norm = batch.lam.size, moves.a0, low_rank.norm
    live = np.arange(size)[:size]  # of one type with what is left of it later
    for iteration in range(max_iter):
        find_steps(loss, low_rank, models, batch, live, a0, fit_intercept, exact, room)
        if exact[0].size > 0:
            return
        staying = advance(loss, matrix, norm, batch, moves, room, live, iteration, tols)
        live = live[:staying]
        if staying == 0:
            break
        # Scores are updated step by step: take rounding out where changes have cancelled.
        refresh(matrix, batch, moves, room, live)


@dataclass(frozen=True, eq=False)
class KernelSystem:
    """What all columns of a fit share.

    Attributes
    ----------
    matrix : array of shape (n, n), float32
        The Gram matrix.
    low_rank : LowRank
        Its leading part.
    models : CurvedModels
        Of columns.
    y, omega : arrays of shape (q, n), float32
        Labels and normalised weights of the q problems (classes and folds).
    loss : scalars of a loss
    fit_intercept : bool
    """

    matrix: Array
    low_rank: LowRank
    models: CurvedModels
    y: Array
    omega: Array
    loss: Any
    fit_intercept: bool

    def run(
        self,
        batch: Batch,
        moves: Moves,
        room: Room,
        tols: tuple[float, float, bool],
        max_iter: int,
        exact: tuple[Array, Array] = _UNKNOWN,
    ) -> None:
        """Move columns until they are solved: see `_run`."""
        for_loss(_run, self.loss)(
            self.loss,
            self.matrix,
            self.low_rank,
            self.models,
            batch,
            moves,
            room,
            self.fit_intercept,
            exact,
            tols,
            max_iter,
        )

    def find_steps(self, batch: Batch, exact: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        """Steps of coefficients and intercepts by the models, and the decreases they promise.

        `exact` are residuals, and sums of the coefficients, in double precision.
        """
        room = empty_room(self.low_rank, len(batch.lam))
        moves = new_moves(np.zeros(0), batch.a[:0], np.zeros(0))
        self.run(batch, moves, room, (0.0, 0.0, True), 1, exact)
        return room.d, room.d0, room.promise


def solve_kernel_columns(
    system: KernelSystem,
    slot: IntArray,
    problem: IntArray,
    lam: Array,
    start: tuple[Array, Array, Array, Array],
    tol: float,
    certain_tol: float | None,
    max_iter: int,
) -> tuple[Array, Array, Array, IntArray, BoolArray, BoolArray, Array, Array]:
    """Solve many problems together; the fields of `Columns`.

    Parameters
    ----------
    slot : array of shape (columns,)
        Where a column's model is.
    problem, lam : arrays of shape (columns,)
        Which problem and penalty a column is, by falling penalty.
    start : tuple of arrays of shapes (columns, n), (columns,), (columns, n) and (columns,)
        Coefficients and intercepts to start from, their scores without the intercepts, and what
        these were added up from, by size; overwritten.
    tol : float
        On the decrease of the objective that is left.
    certain_tol : float or None
        As `tol`, for columns where the signs of held-out scores are settled; None does not ask.

    Notes
    -----
    Each iteration costs ``2 n (n + m² / 2 + 3 m)`` operations a column in matrix products, for a
    leading part of rank m. All of it is one compiled call without the interpreter's lock, so that
    threads do not wait for each other.
    """
    # Coefficients and scores in single precision, sums in double.
    a, a0, f, drift = start
    f += a0[:, None].astype(np.float32)
    # A model that is borrowed is good enough for one step, unless it is of another problem: what
    # steps promise where it has too much curvature looks like a solution.
    slack = np.where(system.models.source[slot] != slot, _BORROWED, SLACK)
    batch = Batch(problem, lam, slot, slack, f, a, system.y, system.omega)
    moves, room = new_moves(a0, a, drift), empty_room(system.low_rank, len(a))
    system.run(batch, moves, room, (tol, certain_tol or 0.0, certain_tol is not None), max_iter)
    converged, doubtful = moves.verdict[:, CONVERGED], moves.verdict[:, DOUBTFUL]
    # Large coefficients that cancel (nearly singular Gram matrix, tiny penalty) lose the scores,
    # and so does an intercept beyond which they cannot be told apart.
    high, low = f.max(axis=1), f.min(axis=1)
    largest = np.maximum(high, -low)
    converged &= ~(ROUNDOFF * largest > high - low)
    converged &= ~(
        score_rounding(system.low_rank.norm, np.linalg.norm(a, axis=1)) > _ROUNDING * largest
    )
    drift, error = moves.history[:, DRIFT], moves.history[:, ERROR]
    return a, a0, f, moves.iterations, converged, doubtful, drift, error
