"""One iteration of columns in kernel form: move them by their steps, and judge them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._compile import FAST, inner
from buttress.solvers.numerics.lapack import single_product
from buttress.solvers.smooth.columns._models import Batch, CurvedModels, KernelSystem, ModelRoom
from buttress.solvers.smooth.columns._plane_search import BLOCK, plane_minimum
from buttress.solvers.smooth.columns._sign_certificate import (
    ROUNDOFF,
    column_sizes,
    measured_rate,
    score_error,
    score_rounding,
    still_to_come,
)

# Rounding of scores that were added up, as a share of the largest, with which they are recomputed.
_STALE = 1e-5
# Rounding of the scores, as a share of the largest, beyond which single precision is not enough.
_ROUNDING = 1e-3
# Iterations without a decrease to half after which a column is given up in single precision.
_PATIENCE = 30
# Factor by which the curvature of a row may differ from its model's, and for columns whose
# decreases fall more slowly than at a rate.
SLACK = 2.0
_LOOSE = 4.0  # that of a model which is borrowed
_LITTLE = 1.2
_SLOW = 0.3
# Share of a step, when it is cut short to less, after which the next one is along the gradient:
# without it nine of 7800 columns of letter stay where they are and are left to Newton's method, a
# fifth of the time; ten times as large, it takes a thirtieth more iterations.
_CUT_SHORT = 0.01
# Share of the tolerance down to which columns go whose held-out signs are in doubt.
_IN_DOUBT = 0.01
# Rounding of the scores of models to keep, as a share of the largest, that wants refinement.
_SHOWN = 1e-5
# Share of the tolerance for them: models to keep have certificates.
_WHOLE = 0.1
# Places of what is known of a column: decreases of the last two steps, the least that was halved
# and its iteration, sizes of the scores that were added up since they were recomputed, and how far
# held-out scores may be from the solution's.
_BEFORE, _EARLIER, _LEAST, _SINCE, DRIFT, ERROR = range(6)
# Of what was found out: whether it converged, whether its held-out signs are in doubt, and
# whether the rounding of its scores shows.
CONVERGED, DOUBTFUL, _STALE_SCORES = range(3)
_AS_THEY_ARE = (False, False)


class Limits(NamedTuple):
    """When a column is solved, or given up.

    Attributes
    ----------
    tol : float
        On the decrease of the objective that is left.
    certain_tol : float
        As `tol`, for columns where the signs of held-out scores are settled.
    certify : bool
        Whether to find out.
    max_iter : int
    """

    tol: float
    certain_tol: float
    certify: bool
    max_iter: int


class Moves(NamedTuple):
    """Where columns are on their way, besides what a batch says.

    A column takes a seat while it is solved; the next one in the queue has it afterwards.

    Attributes
    ----------
    e, e0, Q : arrays of shapes (seats, n), (seats,) and (seats, n)
        The last step of coefficients and intercept, and of the scores.
    P : array of shape (seats, n)
        Room for the change of the scores along new steps.
    slot : array of shape (seats,)
        Where the models are of columns that have none when they are not at work.
    seat, iterations : arrays of shape (columns,)
    history : array of shape (columns, 6)
    verdict : array of shape (columns, 3)
        See the places above.
    """

    e: Array
    e0: Array
    Q: Array
    P: Array
    slot: IntArray
    seat: IntArray
    iterations: IntArray
    history: Array
    verdict: BoolArray


@inner()
def take_seat(models: CurvedModels, batch: Batch, moves: Moves, c: int, seat: int) -> None:
    """Column c begins; its model is its own, borrowed, or none yet."""
    own_slot, past = batch.slot[c], moves.history[c]
    if own_slot < 0:
        own_slot = moves.slot[seat]
        batch.slot[c], models.level[own_slot] = own_slot, -1
    if models.level[own_slot] < 0:
        models.source[own_slot] = batch.lender[c] if batch.lender[c] >= 0 else own_slot
    # A model that is borrowed is good enough for one step, unless it is of another problem: what
    # steps promise where it has too much curvature looks like a solution.
    batch.slack[c] = _LOOSE if models.source[own_slot] != own_slot else SLACK
    moves.seat[c], moves.iterations[c], moves.e0[seat] = seat, 0, 0.0
    batch.stuck[c] = False
    for i in range(moves.e.shape[1]):
        moves.e[seat, i] = np.float32(0.0)
        moves.Q[seat, i] = np.float32(0.0)
    past[_BEFORE], past[_EARLIER], past[_LEAST], past[_SINCE] = np.inf, np.inf, np.inf, 0.0
    for k in range(moves.verdict.shape[1]):
        moves.verdict[c, k] = False


@inner()
def _leave_seat(batch: Batch, moves: Moves, c: int) -> int:
    """Column c ends; the seat that it leaves."""
    seat = moves.seat[c]
    if batch.slot[c] == moves.slot[seat]:
        batch.slot[c] = -1
    return int(seat)


@inner(fastmath=FAST)
def _penalty_sums(
    coef: Array,
    step: Array,
    last: Array,
    along: Array,
    before: Array,
    shift: float,
    residual: Array,
) -> tuple[float, float, float, float, float, float]:
    """Products of coefficients, new and last step with the scores of the two steps.

    They are ``a K d``, ``a K e``, ``d K d``, ``e K d``, ``e K e``, and that of the residual with
    ``K d``; `before` is ``K e + shift``.
    """
    zero, by = np.float32(0.0), np.float32(shift)
    ad, ae, dd = np.float64(0.0), np.float64(0.0), np.float64(0.0)
    de, ee, qd = np.float64(0.0), np.float64(0.0), np.float64(0.0)
    n = coef.size
    for low in range(0, n, BLOCK):
        b1, b2, b3, b4, b5, b6 = zero, zero, zero, zero, zero, zero
        end = low + BLOCK if low + BLOCK < n else n
        for i in range(low, end):
            kd, ke = along[i], before[i] - by
            b1 += coef[i] * kd
            b2 += coef[i] * ke
            b3 += step[i] * kd
            b4 += last[i] * kd
            b5 += last[i] * ke
            b6 += residual[i] * kd
        ad += b1
        ae += b2
        dd += b3
        de += b4
        ee += b5
        qd += b6
    return ad, ae, dd, de, ee, qd


@inner(fastmath=FAST)
def _move(
    system: KernelSystem, batch: Batch, moves: Moves, room: ModelRoom, c: int, k: int
) -> tuple[float, float]:
    """Move column c, the k-th at hand, to the minimum over the plane of its new and last step.

    Returns what the gradient promises along the new step, and at the minimum of a quadratic
    model in the plane; and a bound of the changes of the scores that were added up: no score of
    a step is larger than its norm times that of the largest row.
    """
    seat, row_norm = moves.seat[c], system.low_rank.norm
    coef, step, last = batch.a[c], room.d[k], moves.e[seat]
    scores, along, before = batch.f[c], moves.P[k], moves.Q[seat]
    d0, e0, two_lam = room.d0[k], moves.e0[seat], 2.0 * batch.lam[c]
    n, problem = scores.size, batch.problem[c]
    sums = _penalty_sums(coef, step, last, along, before, e0, room.residuals[k])
    ad, ae, dd, de, ee, qd = sums
    shift = np.float32(d0)
    for i in range(n):
        along[i] += shift
    first, second, promise = plane_minimum(
        system.loss,
        scores,
        along,
        before,
        system.y[problem],
        system.omega[problem],
        (two_lam * ad, two_lam * ae),
        (two_lam * dd, two_lam * de, two_lam * ee),
    )
    swing = abs(first) * (row_norm * np.sqrt(dd if dd > 0.0 else 0.0) + abs(d0))
    swing += abs(second) * (row_norm * np.sqrt(ee if ee > 0.0 else 0.0) + abs(e0))
    c1, c2 = np.float32(first), np.float32(second)
    for i in range(n):
        last[i] = c1 * step[i] + c2 * last[i]
        coef[i] += last[i]
    for i in range(n):
        before[i] = c1 * along[i] + c2 * before[i]
        scores[i] += before[i]
    batch.stuck[c] = not batch.stuck[c] and abs(first) < _CUT_SHORT
    moves.e0[seat] = first * d0 + second * e0
    batch.a0[c] += moves.e0[seat]
    pulled = abs(qd + room.sums[0, k] * d0)
    return (promise if promise > pulled else pulled), swing


@inner()
def _judge(
    system: KernelSystem,
    batch: Batch,
    moves: Moves,
    c: int,
    limits: Limits,
    decrement: float,
    swing: float,
) -> bool:
    """Whether a column goes on after a step that promised a `decrement`."""
    tol, norm, iteration = limits.tol, system.low_rank.norm, moves.iterations[c]
    past, verdict, problem = moves.history[c], moves.verdict[c], batch.problem[c]
    # What is left after this step, when the decreases go on falling as they did.
    rate = measured_rate(decrement, past[_BEFORE], past[_EARLIER])
    left = decrement * rate / (1.0 - rate)
    enough = tol
    held_out, low, high, size, change = column_sizes(
        batch.f[c], moves.Q[moves.seat[c]], batch.a[c], system.omega[problem]
    )
    largest = high if high > -low else -low
    past[DRIFT] += swing + largest
    drift, product = ROUNDOFF * past[DRIFT], score_rounding(norm, size)
    rounding = product + drift
    past[ERROR] = still_to_come(change, rate) + rounding
    verdict[_STALE_SCORES] = drift > _STALE * largest
    if limits.certify:
        error = min(score_error(left, batch.lam[c], norm) + rounding, past[ERROR])
        certain, whole = held_out > error, held_out == np.inf
        if certain:
            enough = _WHOLE * tol if whole else limits.certain_tol
        elif held_out > rounding:
            # More iterations, unless rounding is what leaves the signs in doubt.
            enough = _IN_DOUBT * tol
        # Models to keep are in doubt where rounding shows.
        verdict[DOUBTFUL] = not certain or (whole and rounding > _SHOWN * largest)
        verdict[_STALE_SCORES] |= verdict[DOUBTFUL] and drift > product
    past[_EARLIER], past[_BEFORE] = past[_BEFORE], decrement
    batch.slack[c] = _LITTLE if rate > _SLOW else SLACK
    if decrement < 0.5 * past[_LEAST]:
        past[_LEAST], past[_SINCE] = decrement, iteration
    moves.iterations[c] = iteration + 1
    # Large coefficients that cancel (nearly singular Gram matrix, tiny penalty) lose the scores,
    # and so does an intercept beyond which they cannot be told apart.
    lost = ROUNDOFF * largest > high - low or product > _ROUNDING * largest
    verdict[CONVERGED] = left <= enough and not lost
    waited = moves.iterations[c] - past[_SINCE] > _PATIENCE
    return left > enough and not waited and moves.iterations[c] < limits.max_iter


@inner(fastmath=FAST)
def advance(
    system: KernelSystem,
    batch: Batch,
    moves: Moves,
    room: ModelRoom,
    live: IntArray,
    queue: IntArray,
    limits: Limits,
) -> tuple[int, int]:
    """Move the columns `live` by their steps, and judge them.

    Those that go on become the first of `live`, with the first of `queue` in the seats of those
    that do not. Returns how many these are, and how many of `queue` are among them.
    """
    count, n, staying, begun = live.size, len(system.matrix), 0, 0
    single_product(room.d, system.matrix, _AS_THEY_ARE, moves.P, (count, n, n))
    for k in range(count):
        c = live[k]
        decrement, swing = _move(system, batch, moves, room, c, k)
        if room.promise[k] > decrement:
            decrement = room.promise[k]
        if not _judge(system, batch, moves, c, limits, decrement, swing):
            seat = _leave_seat(batch, moves, c)
            if begun == queue.size:
                continue
            c = queue[begun]
            take_seat(system.models, batch, moves, c, seat)
            begun += 1
        live[staying] = c
        staying += 1
    return staying, begun


@inner()
def refresh(
    system: KernelSystem, batch: Batch, moves: Moves, room: ModelRoom, live: IntArray
) -> None:
    """Compute scores from coefficients where their rounding shows, or leaves signs in doubt."""
    # zero, but not as a constant, for which the product would be compiled again
    matrix, columns = system.matrix, room.renewed
    n, count = len(matrix), 0 * live.size
    for k in range(live.size):
        c = live[k]
        if moves.verdict[c, _STALE_SCORES]:
            columns[count] = c
            for i in range(n):
                room.d[count, i] = batch.a[c, i]
            count += 1
    if count == 0:
        return
    single_product(room.d, matrix, _AS_THEY_ARE, moves.P, (count, n, n))
    for k in range(count):
        c = columns[k]
        scores, fresh, shift = batch.f[c], moves.P[k], np.float32(batch.a0[c])
        for i in range(n):
            scores[i] = fresh[i] + shift
        moves.history[c, DRIFT] = 0.0


def new_moves(columns: int, n: int, slot: IntArray) -> Moves:
    """Room for columns on their way, with seats whose models are at `slot`."""
    seats, single = len(slot), np.float32
    return Moves(
        np.empty((seats, n), single),
        np.empty(seats),
        np.empty((seats, n), single),
        np.empty((seats, n), single),
        slot,
        np.empty(columns, dtype=np.int64),
        np.empty(columns, dtype=np.int64),
        np.zeros((columns, 6)),
        np.zeros((columns, 3), dtype=bool),
    )
