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
from buttress.solvers._curved_model import FAST, CurvedModels, LowRank, margin_slopes, newton_step

# Trial points of the search in the plane; two or three are the rule.
_PLANE_STEPS = 6
# Iterations after which scores are recomputed from the coefficients.
_REFRESH = 12
# Iterations at which a column's model is made anew.
_RENEW = (5, 14, 30, 70)
# Share of curved rows below which intercepts are found by bisection.
_FEW_CURVED = 0.05
# Rounding of the scores, as a share of the largest, beyond which single precision is not enough.
_ROUNDING = 1e-4
# Rows summed in single precision before they are added in double.
_BLOCK = 256


@compiled(fastmath=FAST)
def _residuals(
    f: Array,
    a: Array,
    y: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
    r: float,
    q: Array,
    sums: Array,
) -> None:
    """Row by row ``q = 2 lam a - omega y t``.

    `sums` has, for every column, the sum of the last part, of `a`, and the weight of the rows
    that are curved.
    """
    bend = 1.0 / r
    zero = np.float32(0.0)
    n = f.shape[1]
    u = np.empty(_BLOCK, dtype=np.float32)
    t, kappa = np.empty_like(u), np.empty_like(u)
    for k in range(f.shape[0]):
        two_lam = np.float32(2.0 * lam[k])
        for i in range(3):
            sums[i, k] = 0.0
        for low in range(0, n, _BLOCK):
            m = min(_BLOCK, n - low)
            scores, label = f[k, low : low + m], y[problem[k], low : low + m]
            row_weight, coef = omega[problem[k], low : low + m], a[k, low : low + m]
            residual = q[k, low : low + m]
            for i in range(m):
                u[i] = label[i] * scores[i]
            margin_slopes(u[:m], bend, t, kappa)
            sum_z, sum_a, curved = zero, zero, zero
            for i in range(m):
                z = -label[i] * row_weight[i] * t[i]
                sum_z += z
                sum_a += coef[i]
                curved += row_weight[i] if kappa[i] > zero else zero
                residual[i] = z + two_lam * coef[i]
            sums[0, k] += sum_z
            sums[1, k] += sum_a
            sums[2, k] += curved


@compiled(fastmath=FAST)
def _plane_search(
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
    bend = 1.0 / r
    zero = np.float32(0.0)
    n = f.shape[1]
    u = np.empty(_BLOCK, dtype=np.float32)
    t, kappa = np.empty_like(u), np.empty_like(u)
    for k in range(a.shape[0]):
        p = problem[k]
        ad, ae, dd = np.float64(0.0), np.float64(0.0), np.float64(0.0)
        de, ee, qd = np.float64(0.0), np.float64(0.0), np.float64(0.0)
        shift_d, shift_e = np.float32(d0[k]), np.float32(e0[k])
        for low in range(0, n, _BLOCK):
            m = min(_BLOCK, n - low)
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
        decrement[k] = abs(qd + slope0[k] * d0[k])
        first, second, promise = 0.0, 0.0, 0.0
        try1, try2 = 0.0, 0.0
        two_lam = 2.0 * lam[k]
        for trial in range(_PLANE_STEPS):
            g1 = two_lam * (ad + try1 * dd + try2 * de)
            g2 = two_lam * (ae + try1 * de + try2 * ee)
            h11, h12, h22 = two_lam * dd, two_lam * de, two_lam * ee
            c1, c2 = np.float32(try1), np.float32(try2)
            for low in range(0, n, _BLOCK):
                m = min(_BLOCK, n - low)
                scores, label = f[k, low : low + m], y[p, low : low + m]
                along, before = P[k, low : low + m], Q[k, low : low + m]
                row_weight = omega[p, low : low + m]
                for i in range(m):
                    u[i] = label[i] * (scores[i] + c1 * along[i] + c2 * before[i])
                margin_slopes(u[:m], bend, t, kappa)
                b1, b2, b3, b4, b5 = zero, zero, zero, zero, zero
                for i in range(m):
                    p1, p2 = along[i], before[i]
                    pull = row_weight[i] * t[i] * label[i]
                    curved = row_weight[i] * kappa[i]
                    b1 += pull * p1
                    b2 += pull * p2
                    b3 += curved * p1 * p1
                    b4 += curved * p1 * p2
                    b5 += curved * p2 * p2
                g1, g2 = g1 - b1, g2 - b2
                h11, h12, h22 = h11 + b3, h12 + b4, h22 + b5
            # By convexity the value has not risen since the accepted point unless this is
            # positive; then come back half of the way.
            move1, move2 = try1 - first, try2 - second
            if trial > 0 and move1 * g1 + move2 * g2 > 0.5 * promise:
                try1, try2 = first + 0.3 * move1, second + 0.3 * move2
                promise *= 0.3
                continue
            first, second = try1, try2
            determinant = h11 * h22 - h12 * h12
            if determinant > 1e-10 * h11 * h22:
                step1 = -(h22 * g1 - h12 * g2) / determinant
                step2 = -(h11 * g2 - h12 * g1) / determinant
            else:
                step1 = -g1 / h11 if h11 > 0.0 else 0.0
                step2 = 0.0
            # what the gradient at the accepted point promises along the step
            promise = -(g1 * step1 + g2 * step2)
            if trial == 0:
                decrement[k] = max(decrement[k], promise)
            try1, try2 = first + step1, second + step2
            if trial > 0 and abs(step1) + abs(step2) <= 0.02 * (abs(first) + abs(second)):
                first, second = try1, try2
                break
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
    start: tuple[Array, Array],
    models: tuple[CurvedModels, IntArray] | None,
    tol: float,
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
        Which problem and penalty a column is.
    r : float
        The loss's exponent.
    start : tuple of arrays of shapes (columns, n) and (columns,)
        Coefficients and intercepts to start from.
    models : tuple of CurvedModels and array of shape (columns,), optional
        Models made near the solutions, and which of them serves each column.
    tol : float
        On the predicted decrease of the objective.

    Notes
    -----
    Each iteration costs ``2 n (n + 2 m)`` operations a column in matrix products, for a leading
    part of rank m.
    """
    k = len(lam)
    # Coefficients and scores in single precision, sums in double.
    a = np.array(start[0], dtype=np.float32)
    a0 = np.array(start[1], dtype=np.float64)
    n = a.shape[1]
    f = product(a) if a.any() else np.zeros_like(a)
    f += a0.astype(np.float32)[:, None]
    e, Q = np.zeros_like(a), np.zeros_like(a)
    e0 = np.zeros(k)
    live = np.arange(k)
    # Models made at neighbours' solutions last longer than those of a first guess.
    renewals = _RENEW if models is None else _RENEW[1:]
    out = Columns(
        np.empty((k, n), dtype=np.float32),
        np.empty(k),
        np.empty((k, n), dtype=np.float32),
        np.zeros(k, dtype=np.int64),
        np.zeros(k, dtype=bool),
    )
    for iteration in range(max_iter):
        mine, penalty = problem[live], lam[live]
        q, totals = np.empty_like(a), np.empty((3, len(live)))
        _residuals(f, a, y, omega, mine, penalty, r, q, totals)
        few = np.flatnonzero(totals[2] < _FEW_CURVED)
        if fit_intercept and len(few):
            # Where few margins exceed 1 the objective is almost piecewise linear in the
            # intercept: steps by curvature would creep from kink to kink.
            balance_intercepts(f, y, omega, mine, few, r, a0)
            _residuals(f, a, y, omega, mine, penalty, r, q, totals)
        if models is None or iteration in renewals:
            models = low_rank.models(f, y, omega, mine, penalty, r), np.arange(len(live))
        slope0, total_a = totals[:2]
        d, d0, promise = newton_step(
            low_rank, models[0], models[1], q, penalty, slope0, total_a, fit_intercept
        )
        P = product(d)
        decrement = np.empty(len(live))
        _plane_search(
            y, omega, mine, penalty, r, a, a0, f, d, d0, P, e, e0, Q, q, slope0, decrement
        )
        converged = np.maximum(decrement, promise) <= tol
        leaving = converged | (iteration == max_iter - 1)
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
            a0, e0 = a0[stay], e0[stay]
            models = models[0], models[1][stay]
        if iteration % _REFRESH == _REFRESH - 1:
            # Scores are updated step by step: take rounding out now and then.
            f = product(a) + a0.astype(np.float32)[:, None]
    # Large coefficients that cancel (nearly singular Gram matrix, tiny penalty) lose the scores.
    rounding = np.finfo(np.float32).eps * low_rank.norm * np.linalg.norm(out.coef, axis=1)
    np.logical_and(
        out.converged, rounding <= _ROUNDING * np.abs(out.scores).max(axis=1), out=out.converged
    )
    return out
