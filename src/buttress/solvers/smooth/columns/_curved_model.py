"""Approximate Newton steps for many columns: a low-rank Gram matrix, every row's own curvature.

The Newton equations of a column are ``(D K + 2 lam) step = -residual`` with D the curvatures of
its rows (zero for those held out). Replacing K by ``B B' + diag(rest)`` of low rank leaves a
system of the order of that rank, whose matrix ``I + B' W B`` is one row of the matrix product of
all columns' weights W with the products of pairs of columns of B.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import FAST, compiled
from buttress.solvers.numerics.cholesky import factorise_small, row_length, solve_small
from buttress.solvers.numerics.lapack import single_product
from buttress.solvers.smooth.columns._low_rank import LowRank
from buttress.solvers.smooth.columns._plane_search import BLOCK, margin_slopes

# Below this share of curved rows the loss is (nearly) linear: use the bound on its curvature.
_FLAT = 1e-3
# Largest eigenvalue left out of a model, times the mean curvature over twice the penalty.
_LEFT_OUT = 1.0
# Changes of the weights that matter together, and the share of rows that are many.
_SMALL = 1.0
_MANY = 8
# Models up to which matrices are made one by one: the products of pairs do not fit into the cache.
_FEW = 6
_KEPT, _IN_PART, _WHOLE = 0, 1, 2


class CurvedModels(NamedTuple):
    """Models of many columns, kept and renewed when curvatures change.

    Every column has a slot. A column may begin with the model of another one near it, until its
    own is made.

    Attributes
    ----------
    source : array of shape (slots,)
        The slot whose model a column uses.
    level : array of shape (slots,)
        Which of the ranks; -1 for a model not yet made.
    weight : array of shape (slots, n)
        W: of every row ``c / (1 + rest c)``, c its curvature over twice the penalty.
    packed, mean : arrays of shapes (slots, m (m + 1) / 2) and (slots, m)
        The triangle of ``B'WB``, and ``B'W 1``.
    inner, lift : arrays of shapes (slots, m, row_length) and (slots, m)
        The factor of ``I + B'WB``, and its solution for `mean`.
    """

    source: IntArray
    level: IntArray
    weight: Array
    packed: Array
    mean: Array
    inner: Array
    lift: Array


def empty_models(low_rank: LowRank, slots: int) -> CurvedModels:
    """Room for models; none is made."""
    n, m = low_rank.factor.shape
    triangle = m * (m + 1) // 2
    return CurvedModels(
        np.arange(slots),
        np.full(slots, -1),
        np.empty((slots, n), dtype=np.float32),
        np.empty((slots, triangle), dtype=np.float32),
        np.empty((slots, m), dtype=np.float32),
        np.empty((slots, m, row_length(m, 4)), dtype=np.float32),
        np.empty((slots, m), dtype=np.float32),
    )


@compiled()
def copy_model(models: CurvedModels, lender: int, slot: int) -> None:
    """Give the column of `slot` the model of another one as its own."""
    models.source[slot], models.level[slot] = slot, models.level[lender]
    models.weight[slot] = models.weight[lender]
    models.packed[slot], models.mean[slot] = models.packed[lender], models.mean[lender]
    models.inner[slot], models.lift[slot] = models.inner[lender], models.lift[lender]


@compiled(fastmath=FAST)
def _change_packed(
    factor: Array, m: int, rows: IntArray, changes: Array, count: int, packed: Array, mean: Array
) -> None:
    """Add the products of `count` rows times `changes` to a triangle, four rows at a time.

    `rows` and `changes` have room for three more.
    """
    for extra in range(count, count + 3):
        rows[extra], changes[extra] = 0, np.float32(0.0)
    for first in range(0, count, 4):
        x0, x1 = factor[rows[first]], factor[rows[first + 1]]
        x2, x3 = factor[rows[first + 2]], factor[rows[first + 3]]
        at = 0
        for j in range(m):
            s0, s1 = changes[first] * x0[j], changes[first + 1] * x1[j]
            s2, s3 = changes[first + 2] * x2[j], changes[first + 3] * x3[j]
            mean[j] += s0 + s1 + s2 + s3
            line = packed[at : at + j + 1]
            for i in range(j + 1):
                line[i] += s0 * x0[i] + s1 * x1[i] + s2 * x2[i] + s3 * x3[i]
            at += j + 1


@compiled(fastmath=FAST)
def _column_rows(
    low_rank: LowRank,
    models: CurvedModels,
    f: Array,
    a: Array,
    at: IntArray,
    y: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
    r: float,
    slot: IntArray,
    slack: Array,
    q: Array,
    damped: Array,
    sums: Array,
    renewed: IntArray,
) -> None:
    """Fill rows, and `renewed`: which models stay, changed in a few rows, or must be made."""
    source, level, weight = models.source, models.level, models.weight
    packed, mean = models.packed, models.mean
    factor, rest, ranks = low_rank.factor, low_rank.rest, low_rank.ranks
    next_value = low_rank.next_value
    n = f.shape[1]
    one, zero = np.float32(1.0), np.float32(0.0)
    u = np.empty(n, dtype=np.float32)
    t, kappa = np.empty_like(u), np.empty_like(u)
    changed, changes = np.empty(n + 3, dtype=np.int64), np.empty(n + 3, dtype=np.float32)
    for k in range(at.size):
        scores, coef, own = f[at[k]], a[at[k]], slot[k]
        label, row_weight = y[problem[k]], omega[problem[k]]
        model = source[own]
        mine = weight[model]
        two_lam, scale = np.float32(2.0 * lam[k]), np.float32(0.5 / lam[k])
        for i in range(n):
            u[i] = label[i] * scores[i]
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
        rank = level[model]
        renewed[k] = _WHOLE if rank < 0 else _KEPT
        many = 0
        if rank >= 0:
            left, free = rest[rank], np.float32(slack[k])
            matters = zero
            for i in range(n):
                now = kappa[i] / (one + left[i] * kappa[i])
                high, low = max(now, mine[i]), min(now, mine[i])
                if high > free * low:
                    matters += high - low
                    changed[many], changes[many] = i, now - mine[i]
                    many += 1
            if matters > _SMALL:
                renewed[k] = _IN_PART if many < n // _MANY else _WHOLE
        if renewed[k] == _IN_PART:
            m = ranks[rank]
            if model != own:
                packed[own, : m * (m + 1) // 2] = packed[model, : m * (m + 1) // 2]
                mean[own, :m] = mean[model, :m]
                weight[own] = mine
                mine = weight[own]
                source[own], level[own] = own, rank
            for position in range(many):
                mine[changed[position]] += changes[position]
            _change_packed(factor, m, changed, changes, many, packed[own], mean[own])
        if renewed[k] == _WHOLE:
            rank = max(rank, 0)
            while rank + 1 < next_value.size and next_value[rank] * typical > _LEFT_OUT:
                rank += 1
            source[own], level[own] = own, rank
            left, mine = rest[rank], weight[own]
            for i in range(n):
                mine[i] = kappa[i] / (one + left[i] * kappa[i])
        left = rest[rank]
        for i in range(n):
            residual = -label[i] * row_weight[i] * t[i] + two_lam * coef[i]
            q[k, i] = residual
            damped[k, i] = (one - left[i] * mine[i]) * residual
        sum_z, sum_a, sum_damped = np.float64(0.0), np.float64(0.0), np.float64(0.0)
        sum_weight, sum_rest = np.float64(0.0), np.float64(0.0)
        for low in range(0, n, BLOCK):
            b1, b2, b3, b4, b5 = zero, zero, zero, zero, zero
            # Nothing is stored here: whether a loop of both is vectorised, and so how its sums
            # are rounded, depends on where the arrays are in memory.
            for i in range(low, min(low + BLOCK, n)):
                b1 -= label[i] * row_weight[i] * t[i]
                b2 += coef[i]
                b3 += damped[k, i]
                b4 += mine[i]
                b5 += left[i] * damped[k, i] * q[k, i]
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
def _make_packed(
    low_rank: LowRank, models: CurvedModels, slot: IntArray, renewed: IntArray
) -> None:
    """The matrices of models that must be made, a level at a time."""
    n = low_rank.factor.shape[0]
    weight, packed = models.weight, models.packed
    for level in range(low_rank.ranks.size):
        which = slot[(renewed == _WHOLE) & (models.level[slot] == level)]
        if which.size == 0:
            continue
        m = low_rank.ranks[level]
        size = m * (m + 1) // 2
        factor = low_rank.factor[:, :m]
        weights = np.empty((which.size, n), dtype=np.float32)
        for k in range(which.size):
            weights[k] = weight[which[k]]
        means = np.empty((which.size, m), dtype=np.float32)
        single_product(weights, False, factor, False, means)
        for k in range(which.size):
            models.mean[which[k], :m] = means[k]
        if which.size > _FEW:
            made = np.empty((which.size, size), dtype=np.float32)
            single_product(weights, False, low_rank.pairs[:, :size], False, made)
            for k in range(which.size):
                packed[which[k], :size] = made[k]
            continue
        weighted = np.empty((n, m), dtype=np.float32)
        matrix = np.empty((m, m), dtype=np.float32)
        for k in range(which.size):
            for i in range(n):
                for j in range(m):
                    weighted[i, j] = weights[k, i] * factor[i, j]
            single_product(weighted, True, factor, False, matrix)
            at = 0
            for i in range(m):
                for j in range(i + 1):
                    packed[which[k], at] = matrix[i, j]
                    at += 1


@compiled(fastmath=FAST)
def _factorise(low_rank: LowRank, models: CurvedModels, slot: IntArray, renewed: IntArray) -> None:
    """Factors of ``I + B'WB`` from packed triangles, and ``(I + B'WB)^-1 B'W 1``."""
    for k in range(slot.size):
        if renewed[k] == _KEPT:
            continue
        own = slot[k]
        m = low_rank.ranks[models.level[own]]
        factor, packed, lift = models.inner[own], models.packed[own], models.lift[own, :m]
        at = 0
        for i in range(m):
            factor[i, : i + 1] = packed[at : at + i + 1]
            factor[i, i] += np.float32(1.0)
            at += i + 1
        factorise_small(factor, m)
        lift[:] = models.mean[own, :m]
        solve_small(factor, lift)


@compiled()
def set_rows(
    low_rank: LowRank,
    models: CurvedModels,
    f: Array,
    a: Array,
    at: IntArray,
    y: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
    r: float,
    slot: IntArray,
    slack: Array,
    q: Array,
    damped: Array,
    sums: Array,
) -> None:
    """Residuals of the columns ``f[at]`` with models in `slot`, which are renewed as needed.

    A model is renewed in the rows whose weight changed by more than a factor of `slack`, when
    together they matter; when they are a large share of all, it is made anew.

    Parameters
    ----------
    f, a : arrays with columns of shape (n,), float32
        Scores and coefficients.
    at, problem, lam, slot, slack : arrays of shape (k,)
        Where the columns are in `f` and `a`, which problems and penalties they are.
    q : array of shape (k, n)
        Becomes ``2 lam a - omega y t``.
    damped : array of shape (k, n)
        Becomes `q` over ``1 + rest c``, c a row's curvature over twice the penalty.
    sums : array of shape (6, k)
        Over the rows: of ``-omega y t``, `a`, the weights omega of curved rows, `damped`, the
        models' weights, and ``rest * damped * q``.
    """
    renewed = np.empty(at.size, dtype=np.int64)
    _column_rows(
        low_rank,
        models,
        f,
        a,
        at,
        y,
        omega,
        problem,
        lam,
        r,
        slot,
        slack,
        q,
        damped,
        sums,
        renewed,
    )
    _make_packed(low_rank, models, slot, renewed)
    _factorise(low_rank, models, slot, renewed)


@compiled(fastmath=FAST)
def set_steps(
    low_rank: LowRank,
    models: CurvedModels,
    slot: IntArray,
    lam: Array,
    fit_intercept: bool,
    damped: Array,
    sums: Array,
    d: Array,
    d0: Array,
    promise: Array,
) -> None:
    """Steps of coefficients (k, n) and intercepts (k,) that solve the models' equations.

    The new coefficients sum to zero. `promise` is the decrease that the model promises: it
    cannot vanish away from the solution, as the true slope along a step from an inexact model
    may.
    """
    model = models.source[slot]
    ranks = low_rank.ranks[models.level[model]]
    factor = low_rank.factor[:, : ranks.max()]
    projected = np.empty((slot.size, factor.shape[1]), dtype=np.float32)
    single_product(damped, False, factor, False, projected)
    for k in range(slot.size):
        m = ranks[k]
        mean, lift = models.mean[model[k]], models.lift[model[k]]
        right = projected[k, :m].copy()
        solve_small(models.inner[model[k]], right)
        scale = 0.5 / lam[k]
        along, lifted, decrease = 0.0, sums[4, k], sums[5, k]
        for j in range(m):
            along += mean[j] * right[j]
            lifted -= mean[j] * lift[j]
            decrease += projected[k, j] * right[j]
        d0[k] = 0.0
        if fit_intercept and lifted > 0.0:
            d0[k] = (sums[1, k] + scale * (along - sums[3, k])) / lifted
        promise[k] = scale * decrease
        half, shift = np.float32(scale), np.float32(d0[k])
        for j in range(m):
            projected[k, j] = half * right[j] + shift * lift[j]
        projected[k, m:] = np.float32(0.0)
    single_product(projected, False, factor, True, d)
    for k in range(slot.size):
        scale, shift = np.float32(0.5 / lam[k]), np.float32(d0[k])
        mine = models.weight[model[k]]
        for i in range(d.shape[1]):
            d[k, i] = mine[i] * (d[k, i] - shift) - scale * damped[k, i]
