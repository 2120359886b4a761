"""Approximate Newton steps for many columns: a low-rank Gram matrix, every row's own curvature.

The Newton equations of a column are ``(D K + 2 lam) step = -residual`` with D the curvatures of
its rows (zero for those held out). Replacing K by ``B B' + diag(rest)`` of low rank leaves a
system of the order of that rank, whose matrix ``I + B' W B`` is one row of the matrix product of
all columns' weights W with the products of pairs of columns of B.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import FAST, inner
from buttress.solvers.numerics.cholesky import factorise_small, solve_small
from buttress.solvers.numerics.lapack import single_product
from buttress.solvers.smooth.columns._models import Batch, KernelSystem, ModelRoom
from buttress.solvers.smooth.columns._plane_search import BLOCK
from buttress.solvers.smooth.margins import set_slopes

# Below this share of curved rows the loss is (nearly) linear: use the bound on its curvature.
_FLAT = 1e-3
# Largest eigenvalue left out of a model, times the mean curvature over twice the penalty.
_LEFT_OUT = 1.0
# Changes of the weights that matter together (four times as much: as fast), and the share of rows
# that are many (one in four takes .94 of the time with 5000 rows, and 1.4 times with 460).
_SMALL = 1.0
_MANY = 8
# Models up to which matrices are made one by one, as those are that are too large for products of
# pairs, which do not fit into the cache.
_FEW = 6
_KEPT, _IN_PART, _WHOLE = 0, 1, 2
_AS_THEY_ARE, _FIRST_TURNED, _SECOND_TURNED = (False, False), (True, False), (False, True)


@inner(fastmath=FAST)
def _change_packed(
    factor: Array,
    m: int,
    rows: IntArray,
    changes: Array,
    count: int,
    packed: Array,
    mean: Array,
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


@inner(fastmath=FAST)
def _set_curvatures(
    loss: Any, scores: Array, label: Array, omega: Array, lam: float, work: Array
) -> tuple[Any, Any]:
    """Slopes, and curvatures over twice the penalty, of one column in ``work[1]`` and ``work[2]``.

    Returns the weight of the curved rows, and the typical curvature of one.
    """
    one, zero = np.float32(1.0), np.float32(0.0)
    u, t, kappa = work[0], work[1], work[2]
    n, scale = u.size, np.float32(0.5 / lam)
    for i in range(n):
        u[i] = label[i] * scores[i]
    set_slopes(loss, u, t, kappa)
    curved, count, total = zero, zero, zero
    for i in range(n):
        curved += omega[i] if kappa[i] > zero else zero
        count += one if omega[i] * kappa[i] > zero else zero
        kappa[i] *= omega[i] * scale
        total += kappa[i]
    typical = total / (count if count > one else one)
    if curved < _FLAT:
        typical = scale / np.float32(n)
        for i in range(n):
            kappa[i] = omega[i] * scale
    return curved, typical


@inner(fastmath=FAST)
def _find_changes(
    kappa: Array,
    left: Array,
    model_weight: Array,
    slack: float,
    changed: IntArray,
    changes: Array,
) -> tuple[int, Any]:
    """Rows whose weight differs from the model's by more than a factor; their number, the sum."""
    free, matters, many = np.float32(slack), np.float32(0.0), 0
    for i in range(kappa.size):
        now = kappa[i] / (np.float32(1.0) + left[i] * kappa[i])
        high, low = (now, model_weight[i]) if now > model_weight[i] else (model_weight[i], now)
        if high > free * low:
            matters += high - low
            changed[many], changes[many] = i, now - model_weight[i]
            many += 1
    return many, matters


@inner(fastmath=FAST)
def _copy_row(rows: Array, lender: int, own_slot: int, size: int) -> None:
    for j in range(size):
        rows[own_slot, j] = rows[lender, j]


@inner(fastmath=FAST)
def _begin_whole(
    rank: int,
    next_value: Array,
    typical: float,
    kappa: Array,
    remainder: Array,
    model_weight: Array,
) -> int:
    """The weights of a model that is made anew, and its rank, which does not fall."""
    while rank + 1 < next_value.size and next_value[rank] * typical > _LEFT_OUT:
        rank += 1
    left = remainder[rank]
    for i in range(kappa.size):
        model_weight[i] = kappa[i] / (np.float32(1.0) + left[i] * kappa[i])
    return rank


@inner(fastmath=FAST)
def _set_residual(
    coef: Array,
    label: Array,
    omega: Array,
    t: Array,
    lam: float,
    left: Array,
    model_weight: Array,
    residuals: Array,
    damped: Array,
) -> tuple[float, float, float, float, float]:
    """The residual of one column, damped.

    Returns sums over its rows: of ``-omega y t``, the coefficients, `damped`, the model's
    weights, and ``rest * damped * residuals``.
    """
    one, zero, two_lam = np.float32(1.0), np.float32(0.0), np.float32(2.0 * lam)
    n = residuals.size
    for i in range(n):
        residual = -label[i] * omega[i] * t[i] + two_lam * coef[i]
        residuals[i] = residual
        damped[i] = (one - left[i] * model_weight[i]) * residual
    sum_z, sum_a, sum_damped = np.float64(0.0), np.float64(0.0), np.float64(0.0)
    sum_weight, sum_rest = np.float64(0.0), np.float64(0.0)
    for low in range(0, n, BLOCK):
        b1, b2, b3, b4, b5 = zero, zero, zero, zero, zero
        # Nothing is stored here: whether a loop of both is vectorised, and so how its sums
        # are rounded, depends on where the arrays are in memory.
        end = low + BLOCK if low + BLOCK < n else n
        for i in range(low, end):
            b1 -= label[i] * omega[i] * t[i]
            b2 += coef[i]
            b3 += damped[i]
            b4 += model_weight[i]
            b5 += left[i] * damped[i] * residuals[i]
        sum_z += b1
        sum_a += b2
        sum_damped += b3
        sum_weight += b4
        sum_rest += b5
    return sum_z, sum_a, sum_damped, sum_weight, sum_rest


@inner(fastmath=FAST)
def _gather_made(
    level: int,
    levels: IntArray,
    slot: IntArray,
    at: IntArray,
    renewed: IntArray,
    weight: Array,
    rows: Array,
    which: IntArray,
) -> int:
    """The weights of models of one level that must be made, and which they are; their number."""
    count = 0
    for k in range(at.size):
        own_slot = slot[at[k]]
        if renewed[k] == _WHOLE and levels[own_slot] == level and count < which.size:
            for i in range(weight.shape[1]):
                rows[count, i] = weight[own_slot, i]
            renewed[k], which[count] = _IN_PART, own_slot
            count += 1
    return count


@inner(fastmath=FAST, allocates=True)
def _make_packed(
    factor: Array,
    pairs: Array,
    m: int,
    weights: Array,
    which: IntArray,
    count: int,
    work: tuple[Array, Array],
    packed: Array,
    mean: Array,
) -> None:
    """The matrices ``B'WB`` and ``B'W 1`` of the models `which`, for m columns of B."""
    n, size = len(factor), m * (m + 1) // 2
    matrix, made = work
    single_product(weights, factor, _AS_THEY_ARE, matrix, (count, n, m))
    for k in range(count):
        for j in range(m):
            mean[which[k], j] = matrix[k, j]
    if count > _FEW and size <= len(pairs):
        single_product(weights, pairs, _SECOND_TURNED, made, (count, n, size))
        for k in range(count):
            for j in range(size):
                packed[which[k], j] = made[k, j]
        return
    weighted = np.empty((n, m), np.float32)
    for k in range(count):
        for i in range(n):
            for j in range(m):
                weighted[i, j] = weights[k, i] * factor[i, j]
        single_product(weighted, factor, _FIRST_TURNED, matrix, (m, n, m))
        at = 0
        for j in range(m):
            for i in range(j + 1):
                packed[which[k], at + i] = matrix[j, i]
            at += j + 1


@inner(fastmath=FAST)
def _factorise(m: int, packed: Array, mean: Array, factor: Array, lift: Array) -> None:
    """The factor of ``I + B'WB`` from its packed triangle, and ``(I + B'WB)^-1 B'W 1``."""
    at = 0
    for i in range(m):
        for j in range(i + 1):
            factor[i, j] = packed[at + j]
        factor[i, i] += np.float32(1.0)
        at += i + 1
        lift[i] = mean[i]
    factorise_small(factor, m)
    solve_small(factor, lift[:m])


@inner(fastmath=FAST)
def set_rows(system: KernelSystem, batch: Batch, at: IntArray, room: ModelRoom) -> None:
    """Residuals of the columns `at` of a batch; their models are renewed as needed.

    `room` gets `residuals`, `damped` and `sums`.
    """
    low_rank, models = system.low_rank, system.models
    n, levels, renewed, sums = (
        batch.f.shape[1],
        low_rank.ranks.size,
        room.renewed,
        room.sums,
    )
    source, level, weight = models.source, models.level, models.weight
    packed, mean, factor, ranks = (
        models.packed,
        models.mean,
        low_rank.factor,
        low_rank.ranks,
    )
    remainder, changed, changes = low_rank.remainder, room.changed, room.changes
    work, t, kappa = room.work, room.work[1], room.work[2]
    for k in range(at.size):
        c = at[k]
        own_slot, lam, label = batch.slot[c], batch.lam[c], system.y[batch.problem[c]]
        omega, model = system.omega[batch.problem[c]], source[own_slot]
        rank = level[model]
        sums[2, k], typical = _set_curvatures(system.loss, batch.f[c], label, omega, lam, work)
        renewed[k] = _WHOLE
        if rank >= 0:
            many, matters = _find_changes(
                kappa, remainder[rank], weight[model], batch.slack[c], changed, changes
            )
            if matters <= _SMALL:
                renewed[k] = _KEPT
            elif many < n // _MANY:
                renewed[k], m = _IN_PART, ranks[rank]
                if model != own_slot:
                    _copy_row(packed, model, own_slot, m * (m + 1) // 2)
                    _copy_row(mean, model, own_slot, m)
                    _copy_row(weight, model, own_slot, n)
                    source[own_slot], level[own_slot] = own_slot, rank
                for position in range(many):
                    weight[own_slot, changed[position]] += changes[position]
                _change_packed(factor, m, changed, changes, many, packed[own_slot], mean[own_slot])
        if renewed[k] == _WHOLE:
            level[own_slot] = _begin_whole(
                rank if rank > 0 else 0,
                low_rank.next_value,
                typical,
                kappa,
                remainder,
                weight[own_slot],
            )
            source[own_slot] = own_slot
        model = source[own_slot]
        left, model_weight = remainder[level[model]], weight[model]
        sums[0, k], sums[1, k], sums[3, k], sums[4, k], sums[5, k] = _set_residual(
            batch.a[c], label, omega, t, lam, left, model_weight, room.residuals[k], room.damped[k]
        )
    for one in range(levels):
        count = 1
        while count > 0:
            count = _gather_made(one, level, batch.slot, at, renewed, weight, room.rows, changed)
            room_for = room.projected, room.made
            if count > 0:
                making = room.rows, changed, count, room_for, packed, mean
                _make_packed(factor, low_rank.pairs, ranks[one], *making)
    for k in range(at.size):
        own_slot = batch.slot[at[k]]
        if renewed[k] != _KEPT:
            m = ranks[level[own_slot]]
            _factorise(
                m, packed[own_slot], mean[own_slot], models.inner[own_slot], models.lift[own_slot]
            )
