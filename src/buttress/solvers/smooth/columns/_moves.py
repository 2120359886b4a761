"""One iteration of columns in kernel form: move them by their steps, and judge them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._compile import FAST, inner
from buttress.solvers.numerics.lapack import single_product
from buttress.solvers.smooth.columns._models import Batch, Room
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
# Iterations without a decrease to half after which a column is given up in single precision.
_PATIENCE = 30
# Factor by which the curvature of a row may differ from its model's, and for columns whose
# decreases fall more slowly than at a rate.
SLACK = 2.0
_LITTLE = 1.2
_SLOW = 0.3
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


class Moves(NamedTuple):
    """Where columns are on their way, besides what a batch says.

    Attributes
    ----------
    a0 : array of shape (columns,)
        Intercepts; they are part of the scores.
    e, e0, Q : arrays of shapes (columns, n), (columns,) and (columns, n)
        The last step of coefficients and intercept, and of the scores.
    P : array of shape (columns, n)
        Room for the change of the scores along new steps.
    iterations : array of shape (columns,)
    history : array of shape (columns, 6)
    verdict : array of shape (columns, 3)
        See the places above.
    """

    a0: Array
    e: Array
    e0: Array
    Q: Array
    P: Array
    iterations: IntArray
    history: Array
    verdict: BoolArray


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
    loss: Any, batch: Batch, moves: Moves, room: Room, row_norm: float, c: int, k: int
) -> tuple[float, float]:
    """Move column c, the k-th at hand, to the minimum over the plane of its new and last step.

    Returns what the gradient promises along the new step, and at the minimum of a quadratic
    model in the plane; and a bound of the changes of the scores that were added up: no score of
    a step is larger than its norm times `row_norm`.
    """
    coef, step, last = batch.a[c], room.d[k], moves.e[c]
    scores, along, before = batch.f[c], moves.P[k], moves.Q[c]
    d0, e0, two_lam = room.d0[k], moves.e0[c], 2.0 * batch.lam[c]
    n, problem = scores.size, batch.problem[c]
    sums = _penalty_sums(coef, step, last, along, before, e0, room.q[k])
    ad, ae, dd, de, ee, qd = sums
    shift = np.float32(d0)
    for i in range(n):
        along[i] += shift
    first, second, promise = plane_minimum(
        loss,
        scores,
        along,
        before,
        batch.y[problem],
        batch.omega[problem],
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
    moves.e0[c] = first * d0 + second * e0
    moves.a0[c] += moves.e0[c]
    pulled = abs(qd + room.sums[0, k] * d0)
    return (promise if promise > pulled else pulled), swing


@inner()
def _judge(
    batch: Batch,
    moves: Moves,
    c: int,
    iteration: int,
    norm: float,
    tols: tuple[float, float, bool],
    decrement: float,
    swing: float,
) -> bool:
    """Whether a column goes on after a step that promised a `decrement`.

    `tols` are the tolerance, that of columns whose held-out signs are settled, and whether to
    find out.
    """
    tol, certain_tol, certify = tols
    past, verdict, problem = moves.history[c], moves.verdict[c], batch.problem[c]
    # What is left after this step, when the decreases go on falling as they did.
    rate = measured_rate(decrement, past[_BEFORE], past[_EARLIER])
    left = decrement * rate / (1.0 - rate)
    enough = tol
    held_out, largest, size, change = column_sizes(
        batch.f[c], moves.Q[c], batch.a[c], batch.omega[problem]
    )
    past[DRIFT] += swing + largest
    drift, own = ROUNDOFF * past[DRIFT], score_rounding(norm, size)
    rounding = own + drift
    past[ERROR] = still_to_come(change, rate) + rounding
    verdict[_STALE_SCORES] = drift > _STALE * largest
    if certify:
        error = min(score_error(left, batch.lam[c], norm) + rounding, past[ERROR])
        certain, whole = held_out > error, held_out == np.inf
        if certain:
            enough = _WHOLE * tol if whole else certain_tol
        elif held_out > rounding:
            # More iterations, unless rounding is what leaves the signs in doubt.
            enough = _IN_DOUBT * tol
        # Models to keep are in doubt where rounding shows.
        verdict[DOUBTFUL] = not certain or (whole and rounding > _SHOWN * largest)
        verdict[_STALE_SCORES] |= verdict[DOUBTFUL] and drift > own
    past[_EARLIER], past[_BEFORE] = past[_BEFORE], decrement
    batch.slack[c] = _LITTLE if rate > _SLOW else SLACK
    if decrement < 0.5 * past[_LEAST]:
        past[_LEAST], past[_SINCE] = decrement, iteration
    moves.iterations[c] = iteration + 1
    verdict[CONVERGED] = left <= enough
    return not verdict[CONVERGED] and iteration - past[_SINCE] < _PATIENCE


@inner(fastmath=FAST)
def advance(
    loss: Any,
    matrix: Array,
    norm: float,
    batch: Batch,
    moves: Moves,
    room: Room,
    live: IntArray,
    iteration: int,
    tols: tuple[float, float, bool],
) -> int:
    """Move the columns `live` by their steps, and judge them.

    Those that go on become the first of `live`; returns their number.
    """
    count, n, staying = live.size, len(matrix), 0
    single_product(room.d, matrix, _AS_THEY_ARE, moves.P, (count, n, n))
    for k in range(count):
        c = live[k]
        decrement, swing = _move(loss, batch, moves, room, norm, c, k)
        if room.promise[k] > decrement:
            decrement = room.promise[k]
        if _judge(batch, moves, c, iteration, norm, tols, decrement, swing):
            live[staying] = c
            staying += 1
    return staying


@inner()
def refresh(matrix: Array, batch: Batch, moves: Moves, room: Room, live: IntArray) -> None:
    """Compute scores from coefficients where their rounding shows, or leaves signs in doubt."""
    # zero, but not as a constant, for which the product would be compiled again
    n, count, columns = len(matrix), 0 * live.size, room.renewed
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
        scores, fresh, shift = batch.f[c], moves.P[k], np.float32(moves.a0[c])
        for i in range(n):
            scores[i] = fresh[i] + shift
        moves.history[c, DRIFT] = 0.0


def new_moves(a0: Array, a: Array, drift: Array) -> Moves:
    """Columns that begin; `drift` are sizes of what their scores were added up from."""
    count = len(a)
    history = np.full((count, 6), np.inf)
    history[:, _SINCE], history[:, DRIFT] = 0.0, drift
    return Moves(
        a0,
        np.zeros_like(a),
        np.zeros(count),
        np.zeros_like(a),
        np.empty_like(a),
        np.zeros(count, dtype=np.int64),
        history,
        np.zeros((count, 3), dtype=bool),
    )
