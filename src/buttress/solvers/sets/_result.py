"""What the distance solver returns, and what it asks of the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.losses import NuHinge, steepest_slope


@dataclass(frozen=True, eq=False)
class DistanceResult:
    """Nearest points, the function between them, and the certificate.

    Attributes
    ----------
    coef : array of shape (n,)
        Signed coefficients: ``f(x) = sum_i coef_i k(x_i, x)``.
    weight_vector : array of shape (p,) or None
        The function as a vector when features were given.
    intercept, rho : float
        The primal ``b`` and ``rho``, midpoints where they are not unique.
    values : array of shape (n,)
        ``f(x_i)`` without intercept.
    alpha : array of shape (n,)
        The nearest points as weights on the rows: they sum to one in each class.
    levels : tuple of float
        The levels ``c`` of the positive and the negative set on which the nearest points lie.
    norm : float
        ``||f||``.
    distance : float
        ``||z_p - z_n||``.
    penalty : float
        The multiplier ``mu`` with ``z_p - z_n = 2 mu f``.
    active : bool
        Whether the norm constraint is.
    objective, dual_objective : float
        ``P`` and ``-D``.
    gap : float
        ``P + D``, recomputed from the arrays above.
    n_iter : int
        Newton (or interior-point) steps.
    converged : bool
        Whether the gap is below the tolerance times ``max(1, |P|)``.
    """

    coef: Array
    weight_vector: Array | None
    intercept: float
    rho: float
    values: Array
    alpha: Array
    levels: tuple[float, float]
    norm: float
    distance: float
    penalty: float
    active: bool
    objective: float
    dual_objective: float
    gap: float
    n_iter: int
    converged: bool


def check_feasible(loss: Any, y: Array, sample_weight: Array | None = None) -> None:
    """Raise when the loss cannot give the classes their weights.

    The mean of ``l'`` over a class of weight ``m_o`` must be ``m / m_o``, so a loss of bounded
    slope needs one above ``m / min(m_+, m_-)``.
    """
    bound = steepest_slope(loss)
    if np.isinf(bound):
        return
    w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    share = min(float(w[y > 0].sum()), float(w[y < 0].sum())) / float(w.sum())
    limit = 2.0 * share
    if isinstance(loss, NuHinge):
        if loss.nu > limit * (1.0 + 1e-12):
            raise ValueError(
                f"nu={loss.nu:g} is infeasible for these classes: it may be at most "
                f"2 * min(m_+, m_-) / m = {limit:.6g}."
            )
    elif bound * share <= 1.0:
        raise ValueError(
            f"The slope of {type(loss).__name__} is bounded by {bound:g}, but these classes need "
            f"more than m / min(m_+, m_-) = {1.0 / share:.6g} (that is, nu = 2 / slope below "
            f"2 * min(m_+, m_-) / m = {limit:.6g})."
        )
