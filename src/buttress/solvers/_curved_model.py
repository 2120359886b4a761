"""Approximate Newton steps for many columns: a low-rank Gram matrix, every row's own curvature.

The Newton equations of a column are ``(D K + 2 lam) step = -residual`` with D the curvatures of
its rows (zero for those held out). Replacing K by ``B B' + diag(rest)`` of low rank leaves a
system of the order of that rank, whose matrix ``I + B' W B`` is one row of the matrix product of
all columns' weights W with the products of pairs of columns of B.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._compile import compiled
from buttress.solvers._lapack import single_cholesky_solve
from buttress.solvers._low_rank import LowRank
from buttress.solvers._plane_search import BLOCK, FAST, margin_slopes

# Below this share of curved rows the loss is (nearly) linear: use the bound on its curvature.
_FLAT = 1e-3
# Largest eigenvalue left out of a model, times the mean curvature over twice the penalty.
_LEFT_OUT = 1.0
# A model is renewed in the rows whose weight changed by more than a factor, when together they
# matter; when they are a large share of all, it is made anew.
_CHANGED = 2.0
_SMALL = 0.1
_MANY = 16
_KEPT, _IN_PART, _WHOLE = 0, 1, 2


class Rows(NamedTuple):
    """Residuals of columns, and what the models need of them.

    Attributes
    ----------
    q : array of shape (k, n)
        ``2 lam a - omega y t``.
    damped : array of shape (k, n)
        `q` over ``1 + rest c``, c a row's curvature over twice the penalty.
    sums : array of shape (6, k)
        Over the rows: of ``-omega y t``, `a`, the weights omega of curved rows, `damped`, the
        models' weights, and ``rest * damped * q``.
    """

    q: Array
    damped: Array
    sums: Array


@compiled(fastmath=FAST)
def _column_rows(
    f: Array,
    a: Array,
    y: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
    r: float,
    next_value: Array,
    rest: Array,
    factor: Array,
    pairs: Array,
    ranks: IntArray,
    level: IntArray,
    weight: Array,
    packed: Array,
    mean: Array,
    q: Array,
    damped: Array,
    sums: Array,
    renewed: IntArray,
) -> None:
    """Fill `Rows`, and `renewed`: which models stay, changed in a few rows, or must be made."""
    n = f.shape[1]
    one, zero = np.float32(1.0), np.float32(0.0)
    u = np.empty(n, dtype=np.float32)
    t, kappa = np.empty_like(u), np.empty_like(u)
    for k in range(f.shape[0]):
        label, row_weight, mine = y[problem[k]], omega[problem[k]], weight[k]
        two_lam, scale = np.float32(2.0 * lam[k]), np.float32(0.5 / lam[k])
        for i in range(n):
            u[i] = label[i] * f[k, i]
        margin_slopes(u, 1.0 / r, t, kappa)
        curved, count, total = zero, zero, zero
        for i in range(n):
            curved += row_weight[i] if kappa[i] > zero else zero
            count += one if row_weight[i] * kappa[i] > zero else zero
            kappa[i] *= row_weight[i] * scale
            total += kappa[i]
        sums[2, k] = curved
        typical = total / max(count, one)
        if curved < _FLAT:
            typical = scale / np.float32(n)
            for i in range(n):
                kappa[i] = row_weight[i] * scale
        renewed[k] = _WHOLE if level[k] < 0 else _KEPT
        if level[k] >= 0:
            left = rest[level[k]]
            changed, many = zero, 0
            for i in range(n):
                now = kappa[i] / (one + left[i] * kappa[i])
                high, low = max(now, mine[i]), min(now, mine[i])
                if high > _CHANGED * low:
                    changed += high - low
                    many += 1
            if changed > _SMALL:
                renewed[k] = _IN_PART if many < n // _MANY else _WHOLE
        if renewed[k] == _IN_PART:
            m = ranks[level[k]]
            left = rest[level[k]]
            for i in range(n):
                now = kappa[i] / (one + left[i] * kappa[i])
                if max(now, mine[i]) > _CHANGED * min(now, mine[i]):
                    more = now - mine[i]
                    mine[i] = now
                    for j in range(m):
                        mean[k, j] += more * factor[i, j]
                    for j in range(m * (m + 1) // 2):
                        packed[k, j] += more * pairs[i, j]
        if renewed[k] == _WHOLE:
            chosen = max(level[k], 0)
            while chosen + 1 < next_value.size and next_value[chosen] * typical > _LEFT_OUT:
                chosen += 1
            level[k] = chosen
            left = rest[chosen]
            for i in range(n):
                mine[i] = kappa[i] / (one + left[i] * kappa[i])
        left = rest[level[k]]
        sum_z, sum_a, sum_damped = np.float64(0.0), np.float64(0.0), np.float64(0.0)
        sum_weight, sum_rest = np.float64(0.0), np.float64(0.0)
        for low in range(0, n, BLOCK):
            b1, b2, b3, b4, b5 = zero, zero, zero, zero, zero
            for i in range(low, min(low + BLOCK, n)):
                z = -label[i] * row_weight[i] * t[i]
                residual = z + two_lam * a[k, i]
                less = (one - left[i] * mine[i]) * residual
                q[k, i] = residual
                damped[k, i] = less
                b1 += z
                b2 += a[k, i]
                b3 += less
                b4 += mine[i]
                b5 += left[i] * less * residual
            sum_z += b1
            sum_a += b2
            sum_damped += b3
            sum_weight += b4
            sum_rest += b5
        sums[0, k] = sum_z
        sums[1, k] = sum_a
        sums[3, k] = sum_damped
        sums[4, k] = sum_weight
        sums[5, k] = sum_rest


@compiled(fastmath=FAST)
def _factorise(
    packed: Array, mean: Array, size: IntArray, renewed: IntArray, inner: Array, lift: Array
) -> None:
    """Factors of ``I + B'WB`` from packed triangles, and ``(I + B'WB)^-1 B'W 1``."""
    for k in range(packed.shape[0]):
        if renewed[k] == _KEPT:
            continue
        m = size[k]
        matrix = inner[k, : m * m].reshape(m, m)
        at = 0
        for i in range(m):
            for j in range(i + 1):
                matrix[i, j] = packed[k, at]
                at += 1
            matrix[i, i] += np.float32(1.0)
        right = mean[k : k + 1, :m].copy()
        single_cholesky_solve(matrix, right)
        lift[k, :m] = right[0]


@compiled(fastmath=FAST)
def _solve_inner(
    inner: Array,
    lift: Array,
    mean: Array,
    size: IntArray,
    lam: Array,
    sums: Array,
    fit_intercept: bool,
    projected: Array,
    d0: Array,
    promise: Array,
) -> None:
    """From ``B' damped`` to the step's coordinates along B, and the intercept's step."""
    for k in range(projected.shape[0]):
        m = size[k]
        right = projected[k, :m].copy()
        factor = inner[k, : m * m].reshape(m, m)
        # forward and back substitution
        for i in range(m):
            row = factor[i, :i]
            total = right[i]
            for j in range(i):
                total -= row[j] * right[j]
            right[i] = total / factor[i, i]
        for i in range(m - 1, -1, -1):
            right[i] /= factor[i, i]
            top = right[i]
            row = factor[i, :i]
            for j in range(i):
                right[j] -= row[j] * top
        scale = 0.5 / lam[k]
        along, lifted, decrease = 0.0, sums[4, k], sums[5, k]
        for j in range(m):
            along += mean[k, j] * right[j]
            lifted -= mean[k, j] * lift[k, j]
            decrease += projected[k, j] * right[j]
        d0[k] = 0.0
        if fit_intercept and lifted > 0.0:
            d0[k] = (sums[1, k] + scale * (along - sums[3, k])) / lifted
        promise[k] = scale * decrease
        half, shift = np.float32(scale), np.float32(d0[k])
        for j in range(m):
            projected[k, j] = half * right[j] + shift * lift[k, j]
        for j in range(m, projected.shape[1]):
            projected[k, j] = np.float32(0.0)


@compiled(fastmath=FAST)
def _lift_step(damped: Array, weight: Array, lam: Array, d0: Array, d: Array) -> None:
    """From ``d = B (...)`` to the step."""
    for k in range(d.shape[0]):
        scale, shift = np.float32(0.5 / lam[k]), np.float32(d0[k])
        for i in range(d.shape[1]):
            d[k, i] = weight[k, i] * (d[k, i] - shift) - scale * damped[k, i]


class CurvedModels:
    """Models of k columns, kept from iteration to iteration and renewed when curvatures change.

    Attributes
    ----------
    level : array of shape (k,)
        Which of the ranks; -1 for a model not yet made.
    weight : array of shape (k, n)
        W: of every row ``c / (1 + rest c)``, c its curvature over twice the penalty.
    packed, mean : arrays of shapes (k, m (m + 1) / 2) and (k, m)
        The triangle of ``B'WB``, and ``B'W 1``.
    inner, lift : arrays of shapes (k, m²) and (k, m)
        The factor of ``I + B'WB``, and its solution for `mean`.
    """

    def __init__(self, low_rank: LowRank, k: int) -> None:
        n, m = low_rank.factor.shape
        self.low_rank = low_rank
        self.level = np.full(k, -1)
        self.weight = np.empty((k, n), dtype=np.float32)
        self.packed = np.empty((k, m * (m + 1) // 2), dtype=np.float32)
        self.mean = np.empty((k, m), dtype=np.float32)
        self.inner = np.empty((k, m * m), dtype=np.float32)
        self.lift = np.empty((k, m), dtype=np.float32)

    def keep(self, stay: BoolArray) -> None:
        """Forget all columns but some."""
        self.level, self.weight, self.packed = (
            self.level[stay],
            self.weight[stay],
            self.packed[stay],
        )
        self.mean, self.inner, self.lift = self.mean[stay], self.inner[stay], self.lift[stay]

    def rows(
        self,
        f: Array,
        a: Array,
        y: Array,
        omega: Array,
        problem: IntArray,
        lam: Array,
        r: float,
    ) -> Rows:
        """Residuals of columns with scores `f`; models with changed curvatures are renewed."""
        low_rank = self.low_rank
        found = Rows(np.empty_like(f), np.empty_like(f), np.empty((6, len(f))))
        renewed = np.empty(len(f), dtype=np.int64)
        _column_rows(
            f,
            a,
            y,
            omega,
            problem,
            lam,
            r,
            low_rank.next_value,
            low_rank.rest,
            low_rank.factor,
            low_rank.pairs,
            low_rank.ranks,
            self.level,
            self.weight,
            self.packed,
            self.mean,
            found.q,
            found.damped,
            found.sums,
            renewed,
        )
        for level in np.unique(self.level[renewed == _WHOLE]):
            which = np.flatnonzero((renewed == _WHOLE) & (self.level == level))
            m = low_rank.ranks[level]
            size, weight = m * (m + 1) // 2, self.weight[which]
            self.packed[which, :size] = weight @ low_rank.pairs[:, :size]
            self.mean[which, :m] = weight @ low_rank.factor[:, :m]
        if renewed.any():
            size = low_rank.ranks[self.level]
            _factorise(self.packed, self.mean, size, renewed, self.inner, self.lift)
        return found

    def step(self, rows: Rows, lam: Array, fit_intercept: bool) -> tuple[Array, Array, Array]:
        """Steps of coefficients (k, n) and intercepts (k,) that solve the models' equations.

        The new coefficients sum to zero. The third array is the decrease that the model
        promises: it cannot vanish away from the solution, as the true slope along a step from
        an inexact model may.
        """
        factor = self.low_rank.factor
        along, d0, promise = rows.damped @ factor, np.empty(len(lam)), np.empty(len(lam))
        _solve_inner(
            self.inner,
            self.lift,
            self.mean,
            self.low_rank.ranks[self.level],
            lam,
            rows.sums,
            fit_intercept,
            along,
            d0,
            promise,
        )
        d = along @ factor.T
        _lift_step(rows.damped, self.weight, lam, d0, d)
        return d, d0, promise
