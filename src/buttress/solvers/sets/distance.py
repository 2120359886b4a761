"""Nearest points of two uncertainty sets: the classifiers of set losses.

For labels ``y = ±1``, weights ``w`` with sum ``M`` and a set loss ``l`` the problem is

    P = min -2 rho + (1/M) sum_i w_i l(rho - y_i (f(x_i) + b))   subject to ||f|| <= radius,

and its dual the distance of two sets,

    D = min (1/M) sum_i w_i l*(M alpha_i / w_i) + radius ||z_p - z_n||,   P = -D,

over ``alpha >= 0`` with sum one in each class and ``z = sum alpha_i phi(x_i)`` of the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress._deadline import check_time
from buttress._threads import one_blas_thread
from buttress.solvers.sets._problem import DistanceProblem
from buttress.solvers.sets._result import DistanceResult, check_feasible
from buttress.solvers.sets.geometry import CentredGeometry

__all__ = [
    "CentredGeometry",
    "DistanceResult",
    "check_feasible",
    "distance_path",
    "solve_distance",
    "solve_penalised_distance",
]

# Up to this many rows two BLAS threads cost more in waiting than they gain.
_ONE_THREAD_BELOW = 2500


def solve_distance(
    geometry: CentredGeometry | Array,
    y: Array,
    loss: Any,
    radius: float,
    *,
    sample_weight: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    method: str = "newton",
    storage: Any = np.float64,
) -> DistanceResult:
    """The constrained problem at one radius.

    Parameters
    ----------
    geometry : CentredGeometry or array of shape (n, n)
        The prepared points, or their Gram matrix.
    y : array of shape (n,)
        Labels, ±1, both present.
    loss : object
        A set loss: `NuHinge`, `HardMargin`, or one with value, derivative, curvature and
        conjugate.
    radius : float
        The bound on ``||f||``, positive.
    sample_weight : array of shape (n,), optional
        Positive; an integer weight equals that many copies of the row.
    tol : float
        Bound on the duality gap relative to ``max(1, |P|)``.
    max_iter : int
        Cap on the number of Newton steps.
    method : {"newton", "conic"}
        "conic" hands the dual to Clarabel, for comparison.
    storage : dtype
        The precision in which the coefficients will be kept: they are rounded to it before the
        certificate is computed.

    Returns
    -------
    DistanceResult

    Notes
    -----
    Newton steps in ``f`` and the multiplier together, 4 to 10 in all; a step costs at most one
    Cholesky factorisation: n^3/3 operations in kernel form, n r^2 for points of rank r.
    Hinge-shaped losses are solved by an interior-point method on the dual, about 15
    factorisations.

    Examples
    --------
    >>> from buttress.losses import EllipsoidError
    >>> X = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> result = solve_distance(X @ X.T, np.array([-1.0, -1, 1, 1]), EllipsoidError(), 1.0)
    >>> round(result.intercept, 6), result.gap < 1e-9
    (-2.0, True)
    """
    if method == "conic":
        problem = DistanceProblem(geometry, y, loss, sample_weight, tol, max_iter, storage=storage)
        return problem.by_cone(radius)
    return distance_path(
        geometry,
        y,
        loss,
        [radius],
        sample_weight=sample_weight,
        tol=tol,
        max_iter=max_iter,
        storage=storage,
    )[0]


def distance_path(
    geometry: CentredGeometry | Array,
    y: Array,
    loss: Any,
    radii: Sequence[float] | Array,
    *,
    sample_weight: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    precision: float = 1e-10,
    storage: Any = np.float64,
) -> list[DistanceResult]:
    """The constrained problem at several radii, each started from the one before.

    Parameters are those of `solve_distance`; results come in the order of `radii`, which are
    visited from small to large. `precision` is the accepted relative error of ``f``; a larger
    one saves a Newton step or two of about four per radius.
    """
    problem = DistanceProblem(geometry, y, loss, sample_weight, tol, max_iter, precision, storage)
    order = np.argsort(np.asarray(radii, dtype=np.float64), kind="stable")
    problem.largest_radius = max(map(float, radii), default=0.0)
    results: dict[int, DistanceResult] = {}
    with _threads(problem.geometry.n):
        for k in order:
            check_time()
            radius = float(radii[k])
            if not (0.0 < radius < np.inf):
                raise ValueError(f"radius={radius!r} is out of range: expected (0, inf).")
            results[int(k)] = problem.at_radius(radius)
    return [results[k] for k in range(len(results))]


def solve_penalised_distance(
    geometry: CentredGeometry | Array,
    y: Array,
    loss: Any,
    penalty: float,
    *,
    sample_weight: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> DistanceResult:
    """The problem with ``penalty * ||f||^2`` added instead of the norm constraint.

    The result is also that of the constrained problem at ``radius = ||f||``, and its
    certificate is that problem's. Parameters are those of `solve_distance`, for smooth losses.
    """
    if not (0.0 < penalty < np.inf):
        raise ValueError(f"penalty={penalty!r} is out of range: expected (0, inf).")
    problem = DistanceProblem(geometry, y, loss, sample_weight, tol, max_iter)
    with _threads(problem.geometry.n):
        return problem.at_penalty(penalty)


def _threads(n: int) -> Any:
    return one_blas_thread() if n < _ONE_THREAD_BELOW else nullcontext()
