"""Approximate Newton steps for many columns: a low-rank Gram matrix, every row's own curvature.

The Newton equations of a column are ``(D K + 2 lam) step = -residual`` with D the curvatures of
its rows (zero for those held out). Replacing K by ``B B' + diag(rest)`` of low rank leaves a
system of the order of that rank, whose matrix ``I + B' W B`` is one row of the matrix product of
all columns' weights W with the products of pairs of columns of B.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import FAST, compiled, inner
from buttress.solvers.numerics.cholesky import factorise_small, row_length, solve_small
from buttress.solvers.smooth.columns._low_rank import LowRank
from buttress.solvers.smooth.columns._plane_search import BLOCK
from buttress.solvers.smooth.margins import for_loss, set_slopes

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


def copy_model(models: CurvedModels, lender: int, slot: int) -> None:
    """Give the column of `slot` the model of another one as its own."""
    models.source[slot], models.level[slot] = slot, models.level[lender]
    for part in (models.weight, models.packed, models.mean, models.inner, models.lift):
        part[slot] = part[lender]


@inner(fastmath=FAST)
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
    loss: Any,
    low_rank: LowRank,
    models: CurvedModels,
    f: Array,
    a: Array,
    at: IntArray,
    y: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
    slot: IntArray,
    slack: Array,
    q: Array,
    damped: Array,
    sums: Array,
    renewed: IntArray,
    work: Array,
    changed: IntArray,
    changes: Array,
) -> None:
    """Fill rows, and `renewed`: which models stay, changed in a few rows, or must be made."""
    source, level, weight = models.source, models.level, models.weight
    packed, mean = models.packed, models.mean
    factor, rest, ranks = low_rank.factor, low_rank.rest, low_rank.ranks
    next_value = low_rank.next_value
    n = f.shape[1]
    one, zero = np.float32(1.0), np.float32(0.0)
    u, t, kappa = work[0], work[1], work[2]
    for k in range(at.size):
        scores, coef, own = f[at[k]], a[at[k]], slot[k]
        label, row_weight = y[problem[k]], omega[problem[k]]
        model = source[own]
        mine = weight[model]
        two_lam, scale = np.float32(2.0 * lam[k]), np.float32(0.5 / lam[k])
        for i in range(n):
            u[i] = label[i] * scores[i]
        set_slopes(loss, u, t, kappa)
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
                for j in range(m * (m + 1) // 2):
                    packed[own, j] = packed[model, j]
                for j in range(m):
                    mean[own, j] = mean[model, j]
                for i in range(n):
                    weight[own, i] = mine[i]
                mine = weight[own]
                source[own], level[own] = own, rank
            for position in range(many):
                mine[changed[position]] += changes[position]
            _change_packed(factor, m, changed, changes, int(many), packed[own], mean[own])
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


def _make_packed(
    low_rank: LowRank, models: CurvedModels, slot: IntArray, renewed: IntArray
) -> None:
    """The matrices of models that must be made, a level at a time."""
    made = slot[renewed == _WHOLE]
    levels = models.level[made]
    for level in np.unique(levels):
        which = made[levels == level]
        m = int(low_rank.ranks[level])
        size = m * (m + 1) // 2
        factor, weights = low_rank.factor[:, :m], models.weight[which]
        models.mean[which, :m] = weights @ factor
        if len(which) > _FEW:
            models.packed[which, :size] = weights @ low_rank.pairs[:, :size]
            continue
        for k, one in enumerate(which):
            matrix = (factor * weights[k, :, None]).T @ factor
            models.packed[one, :size] = np.take(matrix, _triangle(m))


@cache
def _triangle(order: int) -> IntArray:
    """Where the lower triangle of a square matrix is, row by row."""
    rows, columns = np.tril_indices(order)
    return np.asarray(order * rows + columns)


@compiled(fastmath=FAST)
def _factorise(low_rank: LowRank, models: CurvedModels, slot: IntArray, renewed: IntArray) -> None:
    """Factors of ``I + B'WB`` from packed triangles, and ``(I + B'WB)^-1 B'W 1``."""
    ranks, level, factors = low_rank.ranks, models.level, models.inner
    triangles, means, lifts = models.packed, models.mean, models.lift
    for k in range(slot.size):
        if renewed[k] == _KEPT:
            continue
        own = slot[k]
        m = ranks[level[own]]
        factor, packed, lift, mean = factors[own], triangles[own], lifts[own, :m], means[own]
        at = 0
        for i in range(m):
            row = factor[i]
            for j in range(i + 1):
                row[j] = packed[at + j]
            row[i] += np.float32(1.0)
            at += i + 1
            lift[i] = mean[i]
        factorise_small(factor, m)
        solve_small(factor, lift)


def set_rows(
    loss: Any,
    low_rank: LowRank,
    models: CurvedModels,
    f: Array,
    a: Array,
    at: IntArray,
    y: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
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
    loss : scalars of a loss
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
    n = f.shape[1]
    renewed = np.empty(len(at), dtype=np.int64)
    room = (np.empty((3, n), np.float32), np.empty(n + 3, np.int64), np.empty(n + 3, np.float32))
    for_loss(_column_rows, loss)(
        loss,
        low_rank,
        models,
        f,
        a,
        at,
        y,
        omega,
        problem,
        lam,
        slot,
        slack,
        q,
        damped,
        sums,
        renewed,
        *room,
    )
    if renewed.any():
        _make_packed(low_rank, models, slot, renewed)
        _factorise(low_rank, models, slot, renewed)


@compiled(fastmath=FAST)
def _solve_models(
    low_rank: LowRank,
    models: CurvedModels,
    slot: IntArray,
    lam: Array,
    fit_intercept: bool,
    sums: Array,
    projected: Array,
    d0: Array,
    promise: Array,
) -> None:
    """Solve the models' equations for the projected residuals, which are overwritten."""
    sources, levels, ranks = models.source, models.level, low_rank.ranks
    factors, means, lifts = models.inner, models.mean, models.lift
    right = np.empty(projected.shape[1], dtype=np.float32)
    for k in range(slot.size):
        model = sources[slot[k]]
        m = ranks[levels[model]]
        mean, lift, row = means[model], lifts[model], projected[k]
        for j in range(m):
            right[j] = row[j]
        solve_small(factors[model], right[:m])
        scale = 0.5 / lam[k]
        along, lifted, decrease = 0.0, sums[4, k], sums[5, k]
        for j in range(m):
            along += mean[j] * right[j]
            lifted -= mean[j] * lift[j]
            decrease += row[j] * right[j]
        d0[k] = 0.0
        if fit_intercept and lifted > 0.0:
            d0[k] = (sums[1, k] + scale * (along - sums[3, k])) / lifted
        promise[k] = scale * decrease
        half, shift = np.float32(scale), np.float32(d0[k])
        for j in range(m):
            row[j] = half * right[j] + shift * lift[j]
        for j in range(m, row.size):
            row[j] = np.float32(0.0)


@compiled(fastmath=FAST)
def _finish_steps(
    models: CurvedModels, slot: IntArray, lam: Array, d0: Array, damped: Array, d: Array
) -> None:
    """From the models' projections `d` to steps of coefficients."""
    sources, weights = models.source, models.weight
    for k in range(slot.size):
        scale, shift = np.float32(0.5 / lam[k]), np.float32(d0[k])
        mine, row, residual = weights[sources[slot[k]]], d[k], damped[k]
        for i in range(row.size):
            row[i] = mine[i] * (row[i] - shift) - scale * residual[i]


def model_steps(
    low_rank: LowRank,
    models: CurvedModels,
    slot: IntArray,
    lam: Array,
    fit_intercept: bool,
    damped: Array,
    sums: Array,
) -> tuple[Array, Array, Array]:
    """Steps of coefficients (k, n) and intercepts (k,) that solve the models' equations.

    The new coefficients sum to zero. The last array is the decrease that the model promises: it
    cannot vanish away from the solution, as the true slope along a step from an inexact model
    may.
    """
    widest = int(low_rank.ranks[models.level[models.source[slot]]].max())
    factor = low_rank.factor[:, :widest]
    projected = damped @ factor
    d0, promise = np.empty((2, len(slot)))
    _solve_models(low_rank, models, slot, lam, fit_intercept, sums, projected, d0, promise)
    d = projected @ factor.T
    _finish_steps(models, slot, lam, d0, damped, d)
    return d, d0, promise
