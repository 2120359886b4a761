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
from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._compile import FAST, compiled, inner
from buttress.solvers.numerics.lapack import single_product
from buttress.solvers.smooth.columns._low_rank import LowRank
from buttress.solvers.smooth.columns._model_steps import find_steps
from buttress.solvers.smooth.columns._models import (
    Batch,
    CurvedModels,
    Room,
    empty_room,
)
from buttress.solvers.smooth.columns._plane_search import BLOCK, plane_minimum
from buttress.solvers.smooth.columns._sign_certificate import (
    ROUNDOFF,
    column_sizes,
    measured_rate,
    score_error,
    score_rounding,
)
from buttress.solvers.smooth.margins import for_loss

# Iterations after which scores are recomputed from the coefficients, and their rounding, as a
# share of the largest, with which it is done at once.
_REFRESH = 12
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
# Rounding of the scores, as a share of the largest, beyond which single precision is not enough.
_ROUNDING = 1e-3
# Places of what is known of a column: decreases of the last two steps, the least that was halved
# and its iteration, and sizes of the scores that were added up since they were recomputed.
_BEFORE, _EARLIER, _LEAST, _SINCE, _DRIFT = range(5)
# Of what was found out: whether it converged, whether its held-out signs are in doubt, and
# whether the rounding of its scores shows.
_CONVERGED, _DOUBTFUL, _STALE_SCORES = range(3)
# No residuals in double precision, nor sums.
_UNKNOWN = np.empty((1, 0)), np.empty(0)
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
    history : array of shape (columns, 5)
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
        for i in range(low, min(low + BLOCK, n)):
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
    swing = abs(first) * (row_norm * np.sqrt(max(dd, 0.0)) + abs(d0))
    swing += abs(second) * (row_norm * np.sqrt(max(ee, 0.0)) + abs(e0))
    c1, c2 = np.float32(first), np.float32(second)
    for i in range(n):
        last[i] = c1 * step[i] + c2 * last[i]
        coef[i] += last[i]
    for i in range(n):
        before[i] = c1 * along[i] + c2 * before[i]
        scores[i] += before[i]
    moves.e0[c] = first * d0 + second * e0
    moves.a0[c] += moves.e0[c]
    return max(abs(qd + room.sums[0, k] * d0), promise), swing


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
    past[_DRIFT] += swing
    if certify:
        held_out, largest, size = column_sizes(batch.f[c], batch.a[c], batch.omega[problem])
        past[_DRIFT] += largest
        drift = ROUNDOFF * past[_DRIFT]
        rounding = score_rounding(norm, size) + drift
        verdict[_STALE_SCORES] = drift > _STALE * largest
        certain = held_out > score_error(left, batch.lam[c], norm) + rounding
        whole = held_out == np.inf
        if certain:
            enough = _WHOLE * tol if whole else certain_tol
        elif held_out > rounding:
            # More iterations, unless rounding is what leaves the signs in doubt.
            enough = _IN_DOUBT * tol
        # Models to keep are in doubt where rounding shows.
        verdict[_DOUBTFUL] = not certain or (whole and rounding > _SHOWN * largest)
    past[_EARLIER], past[_BEFORE] = past[_BEFORE], decrement
    batch.slack[c] = _LITTLE if rate > _SLOW else SLACK
    if decrement < 0.5 * past[_LEAST]:
        past[_LEAST], past[_SINCE] = decrement, iteration
    moves.iterations[c] = iteration + 1
    verdict[_CONVERGED] = left <= enough
    return not verdict[_CONVERGED] and iteration - past[_SINCE] < _PATIENCE


@inner(fastmath=FAST)
def _advance(
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
        decrement = max(decrement, room.promise[k])
        if _judge(batch, moves, c, iteration, norm, tols, decrement, swing):
            live[staying] = c
            staying += 1
    return staying


@inner()
def _refresh(
    matrix: Array, batch: Batch, moves: Moves, room: Room, live: IntArray, every: bool
) -> None:
    """Compute scores from coefficients, of `every` column or of those whose rounding shows."""
    n, count, columns = len(matrix), 0, room.renewed
    for k in range(live.size):
        c = live[k]
        if every or moves.verdict[c, _STALE_SCORES]:
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
        moves.history[c, _DRIFT] = 0.0


@compiled()
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
    size, a0, norm, rough = batch.lam.size, moves.a0, low_rank.norm, not tols[2]
    live = np.arange(size)[:size]  # of one type with what is left of it later
    for iteration in range(max_iter):
        find_steps(loss, low_rank, models, batch, live, a0, fit_intercept, exact, room)
        if exact[0].size > 0:
            return
        staying = _advance(loss, matrix, norm, batch, moves, room, live, iteration, tols)
        live = live[:staying]
        if staying == 0:
            break
        # Scores are updated step by step: take rounding out now and then, soon after a start
        # whose coefficients may have been much larger, and after changes that cancelled.
        _refresh(matrix, batch, moves, room, live, iteration % _REFRESH == 1)
    if rough:
        # A rough solution is where others start; what it came by may have been much larger.
        _refresh(matrix, batch, moves, room, np.arange(size)[:size], rough)


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
        self.run(batch, _new_moves(np.zeros(0), batch.a[:0]), room, (0.0, 0.0, True), 1, exact)
        return room.d, room.d0, room.promise


def solve_kernel_columns(
    system: KernelSystem,
    slot: IntArray,
    problem: IntArray,
    lam: Array,
    start: tuple[Array, Array, Array],
    tol: float,
    certain_tol: float | None,
    max_iter: int,
) -> tuple[Array, Array, Array, IntArray, BoolArray, BoolArray]:
    """Solve many problems together; the fields of `Columns`.

    Parameters
    ----------
    slot : array of shape (columns,)
        Where a column's model is.
    problem, lam : arrays of shape (columns,)
        Which problem and penalty a column is, by falling penalty.
    start : tuple of arrays of shapes (columns, n), (columns,) and (columns, n)
        Coefficients and intercepts to start from, and their scores without the intercepts;
        overwritten.
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
    a, a0, f = start
    f += a0[:, None].astype(np.float32)
    # A model that is borrowed is good enough for one step.
    slack = np.where(system.models.source[slot] != slot, np.inf, SLACK)
    batch = Batch(problem, lam, slot, slack, f, a, system.y, system.omega)
    moves, room = _new_moves(a0, a), empty_room(system.low_rank, len(a))
    system.run(batch, moves, room, (tol, certain_tol or 0.0, certain_tol is not None), max_iter)
    converged, doubtful = moves.verdict[:, _CONVERGED], moves.verdict[:, _DOUBTFUL]
    # Large coefficients that cancel (nearly singular Gram matrix, tiny penalty) lose the scores,
    # and so does an intercept beyond which they cannot be told apart.
    high, low = f.max(axis=1), f.min(axis=1)
    largest = np.maximum(high, -low)
    converged &= ~(ROUNDOFF * largest > high - low)
    converged &= ~(
        score_rounding(system.low_rank.norm, np.linalg.norm(a, axis=1)) > _ROUNDING * largest
    )
    return a, a0, f, moves.iterations, converged, doubtful


def _new_moves(a0: Array, a: Array) -> Moves:
    count = len(a)
    history = np.full((count, 5), np.inf)
    history[:, (_SINCE, _DRIFT)] = 0.0
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
