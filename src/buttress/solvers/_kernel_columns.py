"""All folds and all penalties as columns of one matrix, in kernel form.

As `_columns`, for Gram matrices of high rank, without their eigendecomposition.
Every problem ``sum_i omega_i L(y_i f_i) + lam a'K a``, ``f = K a + b``, shares the Gram matrix;
a held-out row has weight zero. Each iteration moves a column to the minimum over the plane of
an approximate Newton step (`_curved_model`) and its previous step; that needs one product with
`K`, the search in the plane none. The products of all columns are matrix products in single
precision.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import compiled
from buttress.solvers._columns import Columns, balance_intercepts
from buttress.solvers._curved_model import CurvedModels
from buttress.solvers._low_rank import LowRank
from buttress.solvers._plane_search import BLOCK, FAST, plane_minimum
from buttress.solvers._sign_certificate import score_errors, smallest_held_out

# Iterations after which scores are recomputed from the coefficients.
_REFRESH = 12
# Iterations without a decrease to half after which a column is given up in single precision.
_PATIENCE = 30
# Rate beyond which decreases of the objective are not taken to fall on as they did.
_SLOWEST = 0.9
# Share of the tolerance down to which columns go whose held-out signs are in doubt.
_IN_DOUBT = 0.01
# Rounding of the scores of models to keep, as a share of the largest, that wants refinement.
_SHOWN = 1e-5
# Share of the tolerance for them: models to keep have certificates.
_WHOLE = 0.1
# Share of curved rows below which intercepts are found by bisection.
_FEW_CURVED = 0.05
# Rounding of the scores, as a share of the largest, beyond which single precision is not enough.
_ROUNDING = 1e-4


@compiled(fastmath=FAST)
def move_columns(
    y: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
    r: float,
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
    decrement: Array,
) -> None:
    """Move every column to the minimum over the plane of `d` and `e`; `e` becomes the step.

    `P` is ``K d`` (it becomes ``K d + d0``), `Q` is ``K e + e0``; `decrement` is what the
    gradient promises along `d`, and at the minimum of a quadratic model in the plane.
    """
    zero = np.float32(0.0)
    n = f.shape[1]
    for k in range(a.shape[0]):
        ad, ae, dd = np.float64(0.0), np.float64(0.0), np.float64(0.0)
        de, ee, qd = np.float64(0.0), np.float64(0.0), np.float64(0.0)
        shift_d, shift_e = np.float32(d0[k]), np.float32(e0[k])
        for low in range(0, n, BLOCK):
            m = min(BLOCK, n - low)
            coef, step, last = a[k, low : low + m], d[k, low : low + m], e[k, low : low + m]
            along, before = P[k, low : low + m], Q[k, low : low + m]
            residual = q[k, low : low + m]
            b1, b2, b3, b4, b5, b6 = zero, zero, zero, zero, zero, zero
            for i in range(m):
                kd, ke = along[i], before[i] - shift_e
                b1 += coef[i] * kd
                b2 += coef[i] * ke
                b3 += step[i] * kd
                b4 += last[i] * kd
                b5 += last[i] * ke
                b6 += residual[i] * kd
                along[i] = kd + shift_d
            ad += b1
            ae += b2
            dd += b3
            de += b4
            ee += b5
            qd += b6
        two_lam = 2.0 * lam[k]
        first, second, promise = plane_minimum(
            f[k],
            P[k],
            Q[k],
            y[problem[k]],
            omega[problem[k]],
            1.0 / r,
            (two_lam * ad, two_lam * ae),
            (two_lam * dd, two_lam * de, two_lam * ee),
        )
        decrement[k] = max(abs(qd + slope0[k] * d0[k]), promise)
        c1, c2 = np.float32(first), np.float32(second)
        for i in range(n):
            e[k, i] = c1 * d[k, i] + c2 * e[k, i]
            a[k, i] += e[k, i]
            Q[k, i] = c1 * P[k, i] + c2 * Q[k, i]
            f[k, i] += Q[k, i]
        e0[k] = first * d0[k] + second * e0[k]
        a0[k] += e0[k]


def solve_kernel_columns(
    product: Callable[[Array], Array],
    low_rank: LowRank,
    y: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
    *,
    r: float,
    fit_intercept: bool,
    start: tuple[Array, Array, Array],
    tol: float,
    certain_tol: float | None,
    max_iter: int,
) -> Columns:
    """Solve many problems together.

    Parameters
    ----------
    product : callable
        From an array of shape (columns, n) to its product with the Gram matrix, in float32.
    low_rank : LowRank
        The Gram matrix's leading part.
    y, omega : arrays of shape (q, n), float32
        Labels and normalised weights of the q problems (classes and folds).
    problem, lam : arrays of shape (columns,)
        Which problem and penalty a column is, by falling penalty.
    r : float
        The loss's exponent.
    start : tuple of arrays of shapes (columns, n), (columns,) and (columns, n)
        Coefficients and intercepts to start from, and their scores without the intercepts.
    tol : float
        On the decrease of the objective that is left.
    certain_tol : float or None
        The same for columns whose held-out scores have certain signs. None asks for no
        certainty.

    Notes
    -----
    Each iteration costs ``2 n (n + m² / 2 + 3 m)`` operations a column in matrix products, for a
    leading part of rank m.
    """
    k = len(lam)
    # Coefficients and scores in single precision, sums in double.
    a = np.array(start[0], dtype=np.float32)
    a0 = np.array(start[1], dtype=np.float64)
    n = a.shape[1]
    f = start[2] + a0.astype(np.float32)[:, None]
    e, Q = np.zeros_like(a), np.zeros_like(a)
    e0 = np.zeros(k)
    live = np.arange(k)
    models = CurvedModels(low_rank, k)
    earlier = np.full((2, k), np.inf)
    least, since = np.full(k, np.inf), np.zeros(k, dtype=np.int64)
    out = Columns(
        np.empty((k, n), dtype=np.float32),
        np.empty(k),
        np.empty((k, n), dtype=np.float32),
        np.zeros(k, dtype=np.int64),
        np.zeros(k, dtype=bool),
        np.zeros(k, dtype=bool),
    )
    for iteration in range(max_iter):
        mine, penalty = problem[live], lam[live]
        rows = models.rows(f, a, y, omega, mine, penalty, r)
        few = np.flatnonzero(rows.sums[2] < _FEW_CURVED)
        if fit_intercept and len(few):
            # Where few margins exceed 1 the objective is almost piecewise linear in the
            # intercept: steps by curvature would creep from kink to kink.
            balance_intercepts(f, y, omega, mine, few, r, a0)
            rows = models.rows(f, a, y, omega, mine, penalty, r)
        d, d0, promise = models.step(rows, penalty, fit_intercept)
        P = product(d)
        decrement = np.empty(len(live))
        move_columns(
            y,
            omega,
            mine,
            penalty,
            r,
            a,
            a0,
            f,
            d,
            d0,
            P,
            e,
            e0,
            Q,
            rows.q,
            rows.sums[0],
            decrement,
        )
        np.maximum(decrement, promise, out=decrement)
        # What is left after this step, when the decreases go on falling as they did.
        rate = np.minimum(np.sqrt(decrement / earlier[1]), _SLOWEST)
        left = np.where(np.isfinite(earlier[1]), decrement * rate / (1.0 - rate), decrement)
        enough = np.full(len(live), tol)
        if certain_tol is not None:
            held_out = smallest_held_out(f, omega, mine)
            distance, rounding = score_errors(left, penalty, low_rank.norm, a)
            certain = held_out > distance + rounding
            # Signs in doubt want more iterations, unless rounding is what leaves them in doubt.
            enough[~certain & (held_out > rounding)] *= _IN_DOUBT
            enough[certain] = np.where(np.isfinite(held_out[certain]), certain_tol, _WHOLE * tol)
            # Models to keep are in doubt where rounding shows.
            kept = np.isinf(held_out) & (rounding > _SHOWN * np.abs(f).max(axis=1))
            out.doubtful[live] = ~certain | kept
        converged = left <= enough
        earlier = np.array([decrement, earlier[0]])
        better = decrement < 0.5 * least
        least[better], since[better] = decrement[better], iteration
        stalled = iteration - since >= _PATIENCE
        leaving = converged | stalled | (iteration == max_iter - 1)
        if leaving.any():
            where = live[leaving]
            out.coef[where], out.intercept[where] = a[leaving], a0[leaving]
            out.scores[where] = f[leaving]
            out.iterations[where] = iteration + 1
            out.converged[where] = converged[leaving]
            stay = ~leaving
            live = live[stay]
            if len(live) == 0:
                break
            a, f, e, Q = a[stay], f[stay], e[stay], Q[stay]
            a0, e0, earlier = a0[stay], e0[stay], earlier[:, stay]
            least, since = least[stay], since[stay]
            models.keep(stay)
        if iteration % _REFRESH == 1:
            # Scores are updated step by step: take rounding out now and then, and soon after a
            # start whose coefficients may have been much larger.
            f = product(a) + a0.astype(np.float32)[:, None]
    # Large coefficients that cancel (nearly singular Gram matrix, tiny penalty) lose the scores.
    rounding = np.finfo(np.float32).eps * low_rank.norm * np.linalg.norm(out.coef, axis=1)
    np.logical_and(
        out.converged, rounding <= _ROUNDING * np.abs(out.scores).max(axis=1), out=out.converged
    )
    return out
