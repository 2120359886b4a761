"""Quadratic programs in a box that share one positive semidefinite matrix.

One problem takes two ingredients. *Active set*: a pass of exact coordinate minimisation
finds which variables leave their bounds, a Newton step settles those that are inside; from
a good start two or three rounds end at rounding level, each costing one Cholesky
factorisation of the free variables only. *Interior point*: when the matrix is nearly
singular and the rounds do not end, Mehrotra's method finds the right bounds in about 15
factorisations (of the small inner system when the numerical rank is low), and the active
set finishes from there. The certificate is a duality gap in every case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from buttress._arrays import Array
from buttress._threads import one_blas_thread
from buttress.solvers.boxqp._active_set import active_set, box_state, exchange
from buttress.solvers.boxqp._interior import interior_point

# Eigenvalues below this fraction of the largest are left out of the interior point; the
# active set that follows works with the full matrix.
_RANK_TOLERANCE = 1e-9
# Rounds of the active set before other means: fewer where they are less likely to end.
_ROUNDS_LOW_RANK = 4
_ROUNDS_FULL_RANK = 10
_INTERIOR_STEPS = 15.0


@dataclass(frozen=True, eq=False)
class SharedMatrix:
    """What all problems with one matrix share.

    Attributes
    ----------
    K : array of shape (n, n)
        Positive semidefinite, float64, C-ordered.
    root : array of shape (n, r)
        ``root @ root.T`` is `K` up to small eigenvalues; no column when the rank is not low.
    ridge : float
        Added to a diagonal before it is factorised (a proximal term, not a change of the
        problem).
    """

    K: Array
    root: Array
    ridge: float


@dataclass(frozen=True, eq=False)
class BoxQPResult:
    """The minimiser of one problem and its certificate.

    Attributes
    ----------
    x : array of shape (n,)
    gradient : array of shape (n,)
        ``K x - b``.
    objective : float
    gap : float
        Duality gap, from the gradient at `x`: the objective is within it of the minimum.
    n_iter : int
        Rounds of the active set plus steps of the interior point.
    converged : bool
        Whether `gap` is at most the tolerance.
    """

    x: Array
    gradient: Array
    objective: float
    gap: float
    n_iter: int
    converged: bool


def share_matrix(K: Array) -> SharedMatrix:
    """Prepare a positive semidefinite matrix; costs one eigendecomposition."""
    K = np.ascontiguousarray(K, dtype=np.float64)
    n = len(K)
    values, vectors = linalg.eigh(K, check_finite=False)
    largest = max(float(values[-1]), 0.0)
    kept = values > _RANK_TOLERANCE * largest
    root = np.zeros((n, 0))
    if 2 * kept.sum() <= n:
        root = np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))
    scale = float(np.max(np.diagonal(K)))
    ridge = 1e-10 * scale + 1e-15 * n * largest - 2.0 * min(float(values[0]), 0.0)
    # An all-zero matrix still needs a factorisable system, and steps that reach the bounds.
    return SharedMatrix(K, root, ridge if ridge > 0.0 else 1e-30)


def box_qp(
    K: Array | SharedMatrix,
    b: Array,
    lower: Array,
    upper: Array,
    *,
    start: Array | None = None,
    tol: float = 1e-12,
) -> BoxQPResult:
    """Minimise ``x'Kx/2 - b'x`` subject to ``lower <= x <= upper``.

    Parameters
    ----------
    K : array of shape (n, n) or SharedMatrix
        Positive semidefinite; `share_matrix` once when many problems share it.
    b, lower, upper : array of shape (n,)
        Finite bounds.
    start : array of shape (n,), optional
        Moved into the box first; zero when not given.
    tol : float
        On the duality gap.

    Examples
    --------
    >>> result = box_qp(np.eye(2), np.array([3.0, 0.5]), np.zeros(2), np.ones(2))
    >>> result.x
    array([1. , 0.5])
    >>> result.converged
    True
    """
    shared = K if isinstance(K, SharedMatrix) else share_matrix(K)
    x = np.clip(np.zeros(len(b)) if start is None else start, lower, upper).astype(np.float64)
    b, lower, upper = (np.ascontiguousarray(v, dtype=np.float64) for v in (b, lower, upper))
    g = shared.K @ x - b
    with one_blas_thread():
        gap, n_iter = minimise_in_box(shared, b, lower, upper, x, g, tol)
    objective = float(0.5 * (x @ g) - 0.5 * (b @ x))
    return BoxQPResult(x, g, objective, float(gap), int(n_iter), bool(gap <= tol))


def minimise_in_box(
    shared: SharedMatrix, b: Array, lower: Array, upper: Array, x: Array, g: Array, tol: float
) -> tuple[float, int]:
    """Solve one problem in place, from a feasible `x` with ``g = Kx - b``.

    Returns the duality gap and the number of iterations.
    """
    K, root, ridge = shared.K, shared.root, shared.ridge
    n, r = root.shape
    interior_cost = _INTERIOR_STEPS * (2.0 * n * r * r + r**3 / 3.0 if r > 0 else n**3 / 3.0)
    n_iter = 0
    gap, n_free, n_wrong = box_state(g, lower, upper, x, tol)
    if gap > tol and (n_free > n // 8 or n_wrong > max(8, n // 16)):
        rounds = _ROUNDS_LOW_RANK if r > 0 else _ROUNDS_FULL_RANK
        gap, n_iter = active_set(K, b, lower, upper, x, g, tol, rounds, ridge)
    if gap > tol:
        gap, more = exchange(K, b, lower, upper, x, g, tol, interior_cost, ridge)
        n_iter += more
    # The second try, rarely needed, uses the full matrix and a closer target.
    for factor, target in ((root, 1e2 * tol), (root[:, :0], tol)):
        if gap <= tol:
            break
        n_iter += interior_point(K, factor, b, lower, upper, x, target, ridge)
        snap = 1e-7 * (upper - lower)
        x[:] = np.where(x < lower + snap, lower, np.where(x > upper - snap, upper, x))
        g[:] = K @ x - b
        gap, more = exchange(K, b, lower, upper, x, g, tol, 10.0 * interior_cost, ridge)
        n_iter += more
    return gap, n_iter
