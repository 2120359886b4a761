"""All folds and all penalties as columns of one matrix, in kernel form.

As `_conjugate`, for Gram matrices of high rank, without their eigendecomposition.
Every problem ``sum_i omega_i L(y_i f_i) + lam a'K a``, ``f = K a + b``, shares the Gram matrix;
a held-out row has weight zero. Each iteration moves a column to the minimum over the plane of
an approximate Newton step (`_curved_model`) and its previous step; that needs one product with
`K`, the search in the plane none. The products of all columns are matrix products in single
precision.
"""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import compiled
from buttress.solvers.smooth.columns._model_steps import find_steps
from buttress.solvers.smooth.columns._models import Batch, KernelSystem, ModelRoom, empty_room
from buttress.solvers.smooth.columns._moves import (
    Limits,
    Moves,
    advance,
    new_moves,
    refresh,
    take_seat,
)
from buttress.solvers.smooth.margins import for_loss

# No residuals in double precision, nor sums.
_UNKNOWN = np.empty((1, 0)), np.empty(0)
_ONE_STEP = Limits(0.0, 0.0, True, 1)


@compiled(allocates=True)
def _run(
    system: KernelSystem,
    batch: Batch,
    moves: Moves,
    room: ModelRoom,
    queue: IntArray,
    exact: tuple[Array, Array],
    limits: Limits,
) -> None:
    """Move the columns `queue` of a batch until they are solved or given up.

    With residuals in double precision (`exact`, see `find_steps`) the steps are found and none is
    taken. Both go through this door: another would cost as much compilation as many a loop.
    """
    if exact[0].size > 0:
        find_steps(system, batch, queue, exact, room)
        return
    begun = min(queue.size, moves.slot.size)
    live = queue[:begun].copy()
    for seat in range(begun):
        take_seat(system.models, batch, moves, live[seat], seat)
    while live.size > 0:
        find_steps(system, batch, live, exact, room)
        staying, more = advance(system, batch, moves, room, live, queue[begun:], limits)
        live, begun = live[:staying], begun + more
        # Scores are updated step by step: take rounding out where changes have cancelled.
        refresh(system, batch, moves, room, live)


def run_columns(
    system: KernelSystem,
    batch: Batch,
    moves: Moves,
    room: ModelRoom,
    queue: IntArray,
    limits: Limits,
) -> None:
    """Solve the columns `queue` of a batch, from where they are.

    ``moves.history`` has what their scores were added up from, by size, and gets it; the verdict
    is in `moves`.

    Notes
    -----
    Each iteration costs ``2 n (n + m² / 2 + 3 m)`` operations a column in matrix products, for a
    leading part of rank m. All of it is one compiled call without the interpreter's lock, so that
    threads do not wait for each other.
    """
    for_loss(_run, system.loss)(system, batch, moves, room, queue, _UNKNOWN, limits)


def model_steps(
    system: KernelSystem, batch: Batch, exact: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """Steps of all columns of a batch by the models, and the decreases they promise.

    `exact` are residuals, and sums of the coefficients, in double precision.
    """
    columns = np.arange(len(batch.lam))
    room = empty_room(system.low_rank, len(columns))
    moves = new_moves(0, 0, columns[:0])
    for_loss(_run, system.loss)(system, batch, moves, room, columns, exact, _ONE_STEP)
    return room.d, room.d0, room.promise
