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
from buttress._compile import FAST, compiled
from buttress.solvers.smooth.columns._balance import balance_intercepts
from buttress.solvers.smooth.columns._curved_model import CurvedModels, model_steps, set_rows
from buttress.solvers.smooth.columns._low_rank import LowRank
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
# Share of curved rows below which intercepts are found by bisection.
_FEW_CURVED = 0.05
# Rounding of the scores, as a share of the largest, beyond which single precision is not enough.
_ROUNDING = 1e-3


@compiled(fastmath=FAST)
def move_columns(
    loss: Any,
    at: IntArray,
    y: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
    a: Array,
    a0: Array,
    f: Array,
    d: Array,
    d0: Array,
    P: Array,
    e: Array,
    e0: Array,
    Q: Array,
    q: Array,
    slope0: Array,
    row_norm: float,
    decrement: Array,
    swing: Array,
) -> None:
    """Move the columns `at` to the minimum over the plane of `d` and `e`; `e` becomes the step.

    `a`, `a0`, `f`, `e`, `e0` and `Q` have all columns, the other arrays only these. `P` is ``K d``
    (it becomes ``K d + d0``), `Q` is ``K e + e0``; `decrement` is what the gradient promises along
    `d`, and at the minimum of a quadratic model in the plane. `swing` bounds the changes of the
    scores that were added up: no score of a step is larger than its norm times `row_norm`.
    """
    zero = np.float32(0.0)
    n = f.shape[1]
    for k in range(at.size):
        here = at[k]
        coef, step, last = a[here], d[k], e[here]
        scores, along, before, residual = f[here], P[k], Q[here], q[k]
        ad, ae, dd = np.float64(0.0), np.float64(0.0), np.float64(0.0)
        de, ee, qd = np.float64(0.0), np.float64(0.0), np.float64(0.0)
        shift_d, shift_e = np.float32(d0[k]), np.float32(e0[here])
        for low in range(0, n, BLOCK):
            b1, b2, b3, b4, b5, b6 = zero, zero, zero, zero, zero, zero
            for i in range(low, min(low + BLOCK, n)):
                kd, ke = along[i], before[i] - shift_e
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
        for i in range(n):
            along[i] += shift_d
        two_lam = 2.0 * lam[k]
        first, second, promise = plane_minimum(
            loss,
            scores,
            along,
            before,
            y[problem[k]],
            omega[problem[k]],
            (two_lam * ad, two_lam * ae),
            (two_lam * dd, two_lam * de, two_lam * ee),
        )
        decrement[k] = max(abs(qd + slope0[k] * d0[k]), promise)
        swing[k] = abs(first) * (row_norm * np.sqrt(max(dd, 0.0)) + abs(d0[k]))
        swing[k] += abs(second) * (row_norm * np.sqrt(max(ee, 0.0)) + abs(e0[here]))
        c1, c2 = np.float32(first), np.float32(second)
        for i in range(n):
            last[i] = c1 * step[i] + c2 * last[i]
            coef[i] += last[i]
        for i in range(n):
            before[i] = c1 * along[i] + c2 * before[i]
            scores[i] += before[i]
        e0[here] = first * d0[k] + second * e0[here]
        a0[here] += e0[here]


class Progress(NamedTuple):
    """What is known of every column while they are solved.

    Attributes
    ----------
    iterations, converged, doubtful : arrays of shape (columns,)
        See `Columns`.
    before, earlier, least : arrays of shape (columns,)
        Decreases of the last two steps, and the least that was halved; infinite at first.
    since : array of shape (columns,)
        The iteration of the latter.
    slack : array of shape (columns,)
        Factor by which curvatures may differ from a model's.
    drift : array of shape (columns,)
        Sizes of the scores that were added up since they were recomputed.
    stale : array of shape (columns,)
        Whether they show.
    """

    iterations: IntArray
    converged: BoolArray
    doubtful: BoolArray
    before: Array
    earlier: Array
    least: Array
    since: IntArray
    slack: Array
    drift: Array
    stale: BoolArray


@compiled()
def _judge(
    progress: Progress,
    live: IntArray,
    iteration: int,
    f: Array,
    a: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
    norm: float,
    tols: tuple[float, float, bool],
    decrements: Array,
    promise: Array,
    swings: Array,
) -> int:
    """Which columns have converged; those that go on become the first of `live`, their number.

    `tols` are the tolerance, that of columns whose held-out signs are settled, and whether to
    find out.
    """
    tol, certain_tol, certify = tols
    before, earlier, least, since = (
        progress.before,
        progress.earlier,
        progress.least,
        progress.since,
    )
    drift, stale, doubtful = progress.drift, progress.stale, progress.doubtful
    iterations, converged, slack = progress.iterations, progress.converged, progress.slack
    staying = 0
    for j in range(live.size):
        c = live[j]
        decrement = max(decrements[j], promise[j])
        # What is left after this step, when the decreases go on falling as they did.
        rate = measured_rate(decrement, before[c], earlier[c])
        left = decrement * rate / (1.0 - rate)
        enough = tol
        drift[c] += swings[j]
        if certify:
            held_out, largest, size = column_sizes(f[c], a[c], omega[problem[c]])
            drift[c] += largest
            rounding = score_rounding(norm, size) + ROUNDOFF * drift[c]
            stale[c] = ROUNDOFF * drift[c] > _STALE * largest
            certain = held_out > score_error(left, lam[c], norm) + rounding
            whole = held_out == np.inf
            if certain:
                enough = _WHOLE * tol if whole else certain_tol
            elif held_out > rounding:
                # More iterations, unless rounding is what leaves the signs in doubt.
                enough = _IN_DOUBT * tol
            # Models to keep are in doubt where rounding shows.
            doubtful[c] = not certain or (whole and rounding > _SHOWN * largest)
        earlier[c], before[c] = before[c], decrement
        slack[c] = _LITTLE if rate > _SLOW else SLACK
        if decrement < 0.5 * least[c]:
            least[c], since[c] = decrement, iteration
        iterations[c] = iteration + 1
        converged[c] = left <= enough
        if not converged[c] and iteration - since[c] < _PATIENCE:
            live[staying] = c
            staying += 1
    return staying


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

    def recompute_scores(self, a: Array, a0: Array, at: IntArray, f: Array) -> None:
        """The scores of the columns `at` from their coefficients and intercepts."""
        fresh = a[at] @ self.matrix
        fresh += a0[at, None].astype(np.float32)
        f[at] = fresh


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
    leading part of rank m.
    """
    loss, low_rank, models = system.loss, system.low_rank, system.models
    y, omega, norm = system.y, system.omega, low_rank.norm
    tols = tol, certain_tol or 0.0, certain_tol is not None
    # Coefficients and scores in single precision, sums in double.
    a, a0, f = start
    k, n = a.shape
    f += a0[:, None].astype(np.float32)
    e, Q, e0 = np.zeros_like(a), np.zeros_like(a), np.zeros(k)
    progress = _new_progress(k)
    # A model that is borrowed is good enough for one step.
    progress.slack[models.source[slot] != slot] = np.inf
    move = for_loss(move_columns, loss)
    live = np.arange(k)
    for iteration in range(max_iter):
        mine, penalty, place = problem[live], lam[live], slot[live]
        q, damped = np.empty((2, len(live), n), np.float32)
        sums = np.empty((6, len(live)))
        columns = (f, a, live, y, omega, mine, penalty, place, progress.slack[live])
        set_rows(loss, low_rank, models, *columns, q, damped, sums)
        few = live[sums[2] < _FEW_CURVED]
        if system.fit_intercept and len(few) > 0:
            # Where few margins exceed 1 the objective is almost piecewise linear in the
            # intercept: steps by curvature would creep from kink to kink.
            balance_intercepts(loss, f, y, omega, problem, few, a0)
            set_rows(loss, low_rank, models, *columns, q, damped, sums)
        d, d0, promise = model_steps(
            low_rank, models, place, penalty, system.fit_intercept, damped, sums
        )
        P = d @ system.matrix
        decrements, swings = np.empty((2, len(live)))
        move(
            loss,
            live,
            y,
            omega,
            mine,
            penalty,
            a,
            a0,
            f,
            d,
            d0,
            P,
            e,
            e0,
            Q,
            q,
            sums[0],
            norm,
            decrements,
            swings,
        )
        staying = _judge(
            progress,
            live,
            iteration,
            f,
            a,
            omega,
            problem,
            lam,
            norm,
            tols,
            decrements,
            promise,
            swings,
        )
        live = live[:staying]
        if staying == 0:
            break
        # Scores are updated step by step: take rounding out now and then, soon after a start
        # whose coefficients may have been much larger, and after changes that cancelled.
        old = live if iteration % _REFRESH == 1 else live[progress.stale[live]]
        if len(old) > 0:
            system.recompute_scores(a, a0, old, f)
            progress.drift[old] = 0.0
    if certain_tol is None:
        # A rough solution is where others start; what it came by may have been much larger.
        system.recompute_scores(a, a0, np.arange(k), f)
    # Large coefficients that cancel (nearly singular Gram matrix, tiny penalty) lose the scores,
    # and so does an intercept beyond which they cannot be told apart.
    high, low = f.max(axis=1), f.min(axis=1)
    largest = np.maximum(high, -low)
    progress.converged[ROUNDOFF * largest > high - low] = False
    rounding = score_rounding(norm, np.linalg.norm(a, axis=1))
    progress.converged[rounding > _ROUNDING * largest] = False
    return a, a0, f, progress.iterations, progress.converged, progress.doubtful


def _new_progress(count: int) -> Progress:
    return Progress(
        iterations=np.zeros(count, dtype=np.int64),
        converged=np.zeros(count, dtype=bool),
        doubtful=np.zeros(count, dtype=bool),
        before=np.full(count, np.inf),
        earlier=np.full(count, np.inf),
        least=np.full(count, np.inf),
        since=np.zeros(count, dtype=np.int64),
        slack=np.full(count, SLACK),
        drift=np.zeros(count),
        stale=np.zeros(count, dtype=bool),
    )
