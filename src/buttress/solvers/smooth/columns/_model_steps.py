"""Steps of many columns by their models (`_curved_model`)."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import FAST, inner
from buttress.solvers.numerics.cholesky import solve_small
from buttress.solvers.numerics.lapack import single_product
from buttress.solvers.smooth.columns._balance import balance_column
from buttress.solvers.smooth.columns._curved_model import set_rows
from buttress.solvers.smooth.columns._models import Batch, KernelSystem, ModelRoom

# Share of curved rows below which intercepts are found by bisection.
_FEW_CURVED = 0.05
_AS_THEY_ARE, _SECOND_TURNED = (False, False), (False, True)


@inner(fastmath=FAST)
def _solve_model(
    factor: Array, m: int, mean: Array, lift: Array, row: Array, right: Array
) -> tuple[float, float, float]:
    """Solve a model's equations for the projected residual `row`; the solution is `right`.

    Returns its products with `mean` and `row`, and that of `mean` with `lift`.
    """
    for j in range(m):
        right[j] = row[j]
    solve_small(factor, right[:m])
    along, decrease, lifted = 0.0, 0.0, 0.0
    for j in range(m):
        along += mean[j] * right[j]
        decrease += row[j] * right[j]
        lifted += mean[j] * lift[j]
    return along, decrease, lifted


@inner(fastmath=FAST)
def _set_steps(system: KernelSystem, batch: Batch, at: IntArray, room: ModelRoom) -> None:
    """Steps of coefficients and intercepts that solve the models' equations, after `set_rows`.

    The new coefficients sum to zero. `room` gets `d`, `d0` and `promise`.
    """
    low_rank, models = system.low_rank, system.models
    source, level, ranks = models.source, models.level, low_rank.ranks
    # zero, but not as a constant, for which products would be compiled again
    factor, count, widest, sums = low_rank.factor, at.size, 0 * at.size, room.sums
    n, right = len(factor), room.work[0]
    for k in range(count):
        rank = ranks[level[source[batch.slot[at[k]]]]]
        if rank > widest:
            widest = rank
    projected, d, d0 = room.projected, room.d, room.d0
    single_product(room.damped, factor, _AS_THEY_ARE, projected, (count, n, widest))
    for k in range(count):
        model, scale, row = (
            source[batch.slot[at[k]]],
            0.5 / batch.lam[at[k]],
            projected[k],
        )
        m, mean, lift = ranks[level[model]], models.mean[model], models.lift[model]
        solved = _solve_model(models.inner[model], m, mean, lift, row, right)
        along, decrease, lifted = solved[0], solved[1], sums[4, k] - solved[2]
        room.promise[k], d0[k] = scale * (sums[5, k] + decrease), 0.0
        if system.fit_intercept and lifted > 0.0:
            d0[k] = (sums[1, k] + scale * (along - sums[3, k])) / lifted
        half, shift = np.float32(scale), np.float32(d0[k])
        for j in range(m):
            row[j] = half * right[j] + shift * lift[j]
        for j in range(m, row.size):
            row[j] = np.float32(0.0)
    single_product(projected, factor, _SECOND_TURNED, d, (count, widest, n))
    for k in range(count):
        scale, shift = np.float32(0.5 / batch.lam[at[k]]), np.float32(d0[k])
        model_weight, row, residual = (
            models.weight[source[batch.slot[at[k]]]],
            d[k],
            room.damped[k],
        )
        for i in range(n):
            row[i] = model_weight[i] * (row[i] - shift) - scale * residual[i]
        if batch.stuck[at[k]]:
            # What the model leaves out may make a step of it lead nowhere; the gradient cannot.
            d0[k], residual = 0.0, room.residuals[k]
            for i in range(n):
                row[i] = -scale * residual[i]


@inner(fastmath=FAST)
def _set_exactly(exact: Array, left: Array, model_weight: Array, damped: Array) -> float:
    """The damped residual of a column from its residual in double precision; its sum."""
    total = 0.0
    for i in range(damped.size):
        share = (1.0 - left[i] * model_weight[i]) * exact[i]
        damped[i] = share
        total += share
    return total


@inner()
def _balance_few(system: KernelSystem, batch: Batch, at: IntArray, room: ModelRoom) -> bool:
    """Balance the intercepts of columns with hardly a curved row; whether there are any.

    Where few margins exceed 1 the objective is almost piecewise linear in the intercept: steps
    by curvature would creep from kink to kink.
    """
    balanced = False
    for k in range(at.size):
        if room.sums[2, k] < _FEW_CURVED:
            c = at[k]
            label, omega = system.y[batch.problem[c]], system.omega[batch.problem[c]]
            batch.a0[c] += balance_column(system.loss, batch.f[c], label, omega, room.work)
            balanced = True
    return balanced


@inner()
def find_steps(
    system: KernelSystem, batch: Batch, at: IntArray, exact: tuple[Array, Array], room: ModelRoom
) -> None:
    """Steps of the columns `at` of a batch by their models, which are renewed as needed.

    A model is renewed in the rows whose weight changed by more than the column's slack, when
    together they matter; when they are a large share of all, it is made anew. Intercepts that no
    curvature holds are moved, with the scores.

    Parameters
    ----------
    exact : tuple of arrays of shapes (len(at), n) and (len(at),), float64
        Residuals, and sums of the coefficients, where they are known in double precision; empty
        otherwise.
    room : ModelRoom
        Gets residuals and steps.
    """
    (residuals, totals), models = exact, system.models
    for attempt in range(2):
        set_rows(system, batch, at, room)
        known = attempt == 1 or residuals.size > 0 or not system.fit_intercept
        if known or not _balance_few(system, batch, at, room):
            break
    if residuals.size > 0:
        for k in range(at.size):
            model = models.source[batch.slot[at[k]]]
            left, model_weight = (
                system.low_rank.remainder[models.level[model]],
                models.weight[model],
            )
            room.sums[1, k] = totals[k]
            room.sums[3, k] = _set_exactly(residuals[k], left, model_weight, room.damped[k])
    _set_steps(system, batch, at, room)
