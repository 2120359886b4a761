"""Approximate Newton steps for many columns: a low-rank Gram matrix, every row's own curvature.

The Newton equations of a column are ``(D K + 2 lam) step = -residual`` with D the curvatures of
its rows (zero for those held out). Replacing K by ``B B' + diag(rest)`` of low rank leaves a
system of the order of that rank. Curvature over penalty varies slowly along a path, so that one
such model serves the penalties nearby.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from buttress._arrays import Array, IntArray
from buttress._compile import compiled

FAST = {"contract", "reassoc", "nsz"}
# Share of what the leading eigenvectors leave of the diagonal that enters the model. All of it
# would be right if the rest of the Gram matrix were diagonal.
_REST = 0.3
# Below this share of curved rows the loss is (nearly) linear: use the bound on its curvature.
_FLAT = 1e-3


@compiled(fastmath=FAST)
def margin_slopes(u: Array, bend: float, t: Array, kappa: Array) -> None:
    """Minus the derivative of the loss, and its curvature, at margins in single precision."""
    one, zero = np.float32(1.0), np.float32(0.0)
    if bend == 0.0:
        for i in range(u.size):
            t[i] = one / max(u[i], one)
            kappa[i] = t[i] * t[i] if u[i] > one else zero
        return
    power, share = np.float32(bend - 1.0), np.float32(1.0 - bend)
    for i in range(u.size):
        bounded = max(u[i], one)
        t[i] = bounded**power
        kappa[i] = share * t[i] / bounded if u[i] > one else zero


class CurvedModels(NamedTuple):
    """Models of m columns; names as in `newton_step`, all float32.

    Attributes
    ----------
    damping, curvature, lift : arrays of shape (m, n)
        Of every row: ``1 / (1 + rest D / (2 lam))``, that times ``D / (2 lam)``, and the change
        of the coefficients when the intercept falls by one.
    inner : array of shape (m, rank, rank)
        ``(I + B' diag(curvature) B)^-1``.
    """

    damping: Array
    curvature: Array
    lift: Array
    inner: Array


class LowRank(NamedTuple):
    """``K ~ B B' + diag(rest)``, from approximate leading eigenvectors; float32.

    `norm` is the largest norm of a row, the root of the largest diagonal entry of K.
    """

    factor: Array
    rest: Array
    norm: float

    def models(
        self, f: Array, y: Array, omega: Array, problem: IntArray, lam: Array, r: float
    ) -> CurvedModels:
        """The models of columns with scores `f`, shape (m, n)."""
        m, n = f.shape
        rank = self.factor.shape[1]
        made = CurvedModels(
            np.empty((m, n), dtype=np.float32),
            np.empty((m, n), dtype=np.float32),
            np.empty((m, n), dtype=np.float32),
            np.empty((m, rank, rank), dtype=np.float32),
        )
        _row_curvatures(f, y, omega, problem, lam, r, self.rest, made.damping, made.curvature)
        for k, curvature in enumerate(made.curvature):
            rows = self.factor * np.sqrt(curvature)[:, None]
            inner = rows.T @ rows
            inner.flat[:: rank + 1] += 1.0
            half = lapack.spotri(lapack.spotrf(inner.T, overwrite_a=1)[0], overwrite_c=1)[0]
            made.inner[k] = np.triu(half) + np.triu(half, 1).T
            along = made.inner[k] @ (curvature @ self.factor)
            made.lift[k] = curvature * (1.0 - self.factor @ along)
        return made


def leading_part(
    product: Callable[[Array], Array], diagonal: Array, rank: int, passes: int = 2
) -> LowRank:
    """Leading eigenvectors of the Gram matrix by subspace iteration from fixed random vectors.

    Parameters
    ----------
    product : callable
        From an array of shape (m, n) to its product with the Gram matrix.
    diagonal : array of shape (n,)
        Of the Gram matrix.
    """
    basis = np.random.default_rng(0).standard_normal((rank, len(diagonal)), dtype=np.float32)
    for _ in range(passes):
        basis = linalg.qr(product(basis).T, mode="economic", check_finite=False)[0].T
    values, rotation = linalg.eigh((basis @ product(basis).T).astype(np.float64))
    keep = values > 1e-6 * values[-1]
    turn = (rotation[:, keep] * np.sqrt(values[keep])).astype(np.float32)
    factor = np.ascontiguousarray(basis.T @ turn)
    rest = diagonal - np.einsum("ij,ij->i", factor, factor)
    model_rest = (_REST * np.maximum(rest, 0.0)).astype(np.float32)
    return LowRank(factor, model_rest, float(np.sqrt(np.max(diagonal))))


@compiled(fastmath=FAST)
def _row_curvatures(
    f: Array,
    y: Array,
    omega: Array,
    problem: IntArray,
    lam: Array,
    r: float,
    rest: Array,
    damping: Array,
    curvature: Array,
) -> None:
    n = f.shape[1]
    one, zero = np.float32(1.0), np.float32(0.0)
    u, t, kappa = np.empty_like(rest), np.empty_like(rest), np.empty_like(rest)
    for k in range(f.shape[0]):
        label, row_weight = y[problem[k]], omega[problem[k]]
        for i in range(n):
            u[i] = label[i] * f[k, i]
        margin_slopes(u, 1.0 / r, t, kappa)
        curved = zero
        for i in range(n):
            curved += row_weight[i] if kappa[i] > zero else zero
        scale = np.float32(0.5 / lam[k])
        for i in range(n):
            ratio = row_weight[i] * (one if curved < _FLAT else kappa[i]) * scale
            damping[k, i] = one / (one + rest[i] * ratio)
            curvature[k, i] = damping[k, i] * ratio


@compiled(fastmath=FAST)
def _damp(q: Array, damping: Array, which: IntArray, damped: Array) -> None:
    for k in range(q.shape[0]):
        factor = damping[which[k]]
        for i in range(q.shape[1]):
            damped[k, i] = factor[i] * q[k, i]


@compiled(fastmath=FAST)
def _solve_inner(projected: Array, inner: Array, which: IntArray, solved: Array) -> None:
    for k in range(projected.shape[0]):
        matrix = inner[which[k]]
        for i in range(matrix.shape[0]):
            total = np.float32(0.0)
            for j in range(matrix.shape[1]):
                total += matrix[i, j] * projected[k, j]
            solved[k, i] = total


@compiled(fastmath=FAST)
def _lift_step(
    damped: Array,
    curvature: Array,
    lift: Array,
    which: IntArray,
    lam: Array,
    total_a: Array,
    fit_intercept: bool,
    d: Array,
    d0: Array,
) -> None:
    """From ``d = B (...)`` to the step, with the intercept that balances the coefficients."""
    n = d.shape[1]
    for k in range(d.shape[0]):
        weight, change = curvature[which[k]], lift[which[k]]
        scale = np.float32(0.5 / lam[k])
        total, lifted = 0.0, 0.0
        for i in range(n):
            d[k, i] = scale * (weight[i] * d[k, i] - damped[k, i])
            total += d[k, i]
            lifted += change[i]
        d0[k] = 0.0
        if fit_intercept and lifted > 0.0:
            d0[k] = (total_a[k] + total) / lifted
            shift = np.float32(d0[k])
            for i in range(n):
                d[k, i] -= shift * change[i]


def newton_step(
    low_rank: LowRank,
    models: CurvedModels,
    which: IntArray,
    q: Array,
    lam: Array,
    slope0: Array,
    total_a: Array,
    fit_intercept: bool,
) -> tuple[Array, Array, Array]:
    """Steps of coefficients (k, n) and intercepts (k,) for residuals `q` of shape (k, n).

    `which` says which model serves each column; the new coefficients sum to zero, `total_a` being
    the sum of the old. The third array is the decrease that the model promises: it cannot vanish
    away from the solution, as the true slope along a step from an inexact model may.
    """
    damped = np.empty_like(q)
    _damp(q, models.damping, which, damped)
    projected = damped @ low_rank.factor
    solved = np.empty_like(projected)
    _solve_inner(projected, models.inner, which, solved)
    d = solved @ low_rank.factor.T
    d0 = np.empty(len(q))
    _lift_step(damped, models.curvature, models.lift, which, lam, total_a, fit_intercept, d, d0)
    promise = np.einsum("ij,ij->i", q @ low_rank.factor, d @ low_rank.factor)
    promise += np.einsum("ij,ij,j->i", q, d, low_rank.rest)
    return d, d0, np.abs(promise + slope0 * d0)
