"""All folds and all penalties as columns of one matrix: preconditioned conjugate directions.

Every problem ``sum_i omega_i L(y_i (a0 + W_i b)) + lam ||b||^2`` shares the features `W`, the
scaled eigenvectors of one Gram matrix; a held-out row has weight zero. The majoriser of the
loss (curvature M everywhere) is diagonal in these coordinates apart from the intercept, so one
preconditioner serves every fold, with the curvature replaced by its mean. Each iteration
moves a column to the minimum over the plane of its preconditioned gradient and its previous
step; that needs one product with `W`, the search in the plane none, and the next gradient one
with `W'`. The products of all columns are matrix products in the precision of `W`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._compile import FAST, compiled
from buttress.solvers.smooth.columns._balance import balance_intercepts
from buttress.solvers.smooth.columns._plane_search import plane_minimum
from buttress.solvers.smooth.margins import for_loss, set_slopes

# Iterations after which scores are recomputed from the coefficients.
_REFRESH = 12
# Mean curvature below which intercepts are found by bisection.
_FEW_CURVED = 0.05
# A mean curvature below this says that (nearly) all margins are at most 1: use the bound then.
_FLAT = 1e-4


class ConjugateSolutions(NamedTuple):
    """Solutions of many problems: weights of the features, intercepts, scores, and how it went."""

    coef: Array
    intercept: Array
    scores: Array
    iterations: IntArray
    converged: BoolArray


@compiled(fastmath=FAST)
def _slopes(
    loss: Any,
    f: Array,
    y: Array,
    omega: Array,
    problem: IntArray,
    work: Array,
    z: Array,
    total: Array,
    curvature: Array,
) -> None:
    """Row by row ``z = -omega y t``, its sum, and the mean curvature, for every column."""
    u, t, kappa = work[0], work[1], work[2]
    for k in range(f.shape[0]):
        label, weight, scores, pulls = y[problem[k]], omega[problem[k]], f[k], z[k]
        for i in range(u.size):
            u[i] = label[i] * scores[i]
        set_slopes(loss, u, t, kappa)
        sum_z, sum_kappa = 0.0, 0.0
        for i in range(u.size):
            pulls[i] = -weight[i] * label[i] * t[i]
            sum_z += pulls[i]
            sum_kappa += weight[i] * kappa[i]
        total[k] = sum_z
        curvature[k] = sum_kappa


@compiled(fastmath=FAST)
def _precondition(
    G: Array,
    g0: Array,
    S: Array,
    w: Array,
    mass: float,
    c: Array,
    fit_intercept: bool,
    d: Array,
    d0: Array,
    decrement: Array,
) -> None:
    """Solve the majoriser's equations for every column; `decrement` is gradient times step."""
    for k in range(G.shape[0]):
        top, bottom = 0.0, mass
        if fit_intercept:
            for j in range(G.shape[1]):
                share = w[j] / (S[j] + c[k])
                top += share * G[k, j]
                bottom -= share * w[j]
            d0[k] = (g0[k] - top) / bottom
        else:
            d0[k] = 0.0
        product = g0[k] * d0[k]
        for j in range(G.shape[1]):
            d[k, j] = (G[k, j] - w[j] * d0[k]) / (S[j] + c[k])
            product += G[k, j] * d[k, j]
        decrement[k] = product


class Way(NamedTuple):
    """Where the columns `live` are: weights, intercepts and scores, and their last steps.

    `Q` is the change of the scores along the steps `e` and `e0`.
    """

    live: IntArray
    b: Array
    a0: Array
    f: Array
    e: Array
    e0: Array
    Q: Array

    def those(self, staying: BoolArray) -> Way:
        """The columns that go on."""
        rows: Any = (rows[staying] for rows in self)
        return Way(*rows)


class Steps(NamedTuple):
    """New steps of weights and intercepts, and the change of the scores along them."""

    d: Array
    d0: Array
    P: Array


@compiled(fastmath=FAST)
def _move(
    loss: Any, y: Array, omega: Array, problem: IntArray, lam: Array, way: Way, steps: Steps
) -> None:
    """Move every column to the minimum over the plane of its new and its last step."""
    b, f, e, Q, d, P = way.b, way.f, way.e, way.Q, steps.d, steps.P
    for k in range(b.shape[0]):
        bd, be, dd, de, ee = 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(b.shape[1]):
            bd += b[k, j] * d[k, j]
            be += b[k, j] * e[k, j]
            dd += d[k, j] * d[k, j]
            de += d[k, j] * e[k, j]
            ee += e[k, j] * e[k, j]
        two_lam = 2.0 * lam[k]
        first, second, _ = plane_minimum(
            loss,
            f[k],
            P[k],
            Q[k],
            y[problem[k]],
            omega[problem[k]],
            (two_lam * bd, two_lam * be),
            (two_lam * dd, two_lam * de, two_lam * ee),
        )
        for j in range(b.shape[1]):
            e[k, j] = first * d[k, j] + second * e[k, j]
            b[k, j] += e[k, j]
        way.e0[k] = first * steps.d0[k] + second * way.e0[k]
        way.a0[k] += way.e0[k]
        for i in range(f.shape[1]):
            Q[k, i] = first * P[k, i] + second * Q[k, i]
            f[k, i] += Q[k, i]


@dataclass(frozen=True, eq=False)
class FeatureSystem:
    """What all columns of a fit share.

    Attributes
    ----------
    W : array of shape (n, m)
        Features; its precision is that of the products.
    S : array of shape (m,)
        Eigenvalues: with row weights `v`, ``W' diag(v) W = diag(S)``.
    w, mass : array of shape (m,) and float
        ``W' v``, and the sum of `v`.
    y, omega : arrays of shape (problems, n)
        Labels and normalised weights of the problems (classes and folds), as precise as W.
    bound : array of shape (problems,)
        The factors such that ``omega <= bound * v``.
    loss : scalars of a loss
    fit_intercept : bool
    """

    W: Array
    S: Array
    w: Array
    mass: float
    y: Array
    omega: Array
    bound: Array
    loss: Any
    fit_intercept: bool


def solve_columns(
    system: FeatureSystem,
    problem: IntArray,
    lam: Array,
    start: tuple[Array, Array],
    tol: float,
    max_iter: int,
) -> ConjugateSolutions:
    """Solve many problems together.

    Parameters
    ----------
    problem, lam : arrays of shape (columns,)
        Which problem and penalty a column is.
    start : tuple of arrays of shapes (columns, m) and (columns,)
        Weights and intercepts to start from.
    tol : float
        On the predicted decrease of the objective.

    Notes
    -----
    Each iteration costs ``4 n m`` operations a column in two matrix products.
    """
    W, y, omega, loss = system.W, system.y, system.omega, system.loss
    dtype = W.dtype
    k = len(lam)
    # Scores in the data's precision, coefficients in float64 only where a sum decides.
    b: Array = np.array(start[0], dtype=dtype)
    a0 = np.array(start[1], dtype=np.float64)
    f: Array = b @ W.T + a0.astype(dtype)[:, None]
    way = Way(np.arange(k), b, a0, f, np.zeros_like(b), np.zeros(k), np.zeros_like(f))
    quiet, iterations = np.zeros((2, k), dtype=np.int64)
    converged = np.zeros(k, dtype=bool)
    out = ConjugateSolutions(np.empty_like(b), np.empty(k), np.empty_like(f), iterations, converged)
    work = np.empty((3, len(W)), dtype=dtype)
    slopes, move = for_loss(_slopes, loss), for_loss(_move, loss)
    for iteration in range(max_iter):
        live, f, b = way.live, way.f, way.b
        z, (g0, curvature) = np.empty_like(f), np.empty((2, len(live)))
        slopes(loss, f, y, omega, problem[live], work, z, g0, curvature)
        few = np.flatnonzero(curvature < _FEW_CURVED)
        if system.fit_intercept and len(few) > 0:
            # Where few margins exceed 1 the objective is almost piecewise linear in the
            # intercept: steps by curvature would creep from kink to kink.
            balance_intercepts(loss, f, y, omega, problem[live], few, way.a0)
            slopes(loss, f, y, omega, problem[live], work, z, g0, curvature)
        # The majoriser has curvature 1 everywhere. The search in the plane makes any positive
        # level safe, and the mean curvature is far nearer to the truth at small penalties.
        level = np.where(curvature < _FLAT, 1.0, curvature) * system.bound[problem[live]]
        G, c = z @ W, 2.0 * lam[live]
        G += c.astype(dtype)[:, None] * b
        G /= level.astype(dtype)[:, None]
        d, (d0, decrement) = np.empty_like(b), np.empty((2, len(live)))
        _precondition(
            *(G, g0 / level, system.S, system.w, system.mass, c / level),
            *(system.fit_intercept, d, d0, decrement),
        )
        decrement *= level
        quiet[live] = np.where(decrement <= tol, quiet[live] + 1, 0)
        finished = (quiet[live] >= 2) | ((decrement <= 0.01 * tol) & (iteration > 0))
        last = iteration == max_iter - 1
        if last or finished.any():
            leaving = np.ones_like(finished) if last else finished
            _keep(way, leaving, out)
            out.iterations[live[leaving]] = iteration
            out.converged[live[leaving]] = finished[leaving]
            if leaving.all():
                break
            way, d, d0 = way.those(~leaving), d[~leaving], d0[~leaving]
            live = way.live
        P = d @ W.T
        P += d0.astype(dtype)[:, None]
        move(loss, y, omega, problem[live], lam[live], way, Steps(d, d0, P))
        if iteration % _REFRESH == _REFRESH - 1:
            # Scores are updated step by step: take rounding out now and then.
            way.f[:] = way.b @ W.T + way.a0.astype(dtype)[:, None]
    return out


def _keep(way: Way, leaving: BoolArray, out: ConjugateSolutions) -> None:
    """Put down where the columns that leave are."""
    where = way.live[leaving]
    out.coef[where], out.intercept[where] = way.b[leaving], way.a0[leaving]
    out.scores[where] = way.f[leaving]
