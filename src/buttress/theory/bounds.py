"""Risk bounds of the papers as numbers; every one returns its terms separately."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from buttress.losses import DoubleRamp
from buttress.theory.calibration import Calibration, calibration


@dataclass(frozen=True)
class ExcessRiskBound:
    """Excess 0-1 (or 0-d-1) risk from the excess risk of a loss.

    Attributes
    ----------
    bound : float
        The largest excess target risk compatible with `excess`.
    excess : float
        The excess risk of the loss.
    constant : float
        c of the linear bound ``excess / c``; 0 when only the curved one exists.
    method : str
        Whether psi is in closed form or numerical.
    """

    bound: float
    excess: float
    constant: float
    method: str

    def __float__(self) -> float:
        return self.bound


@dataclass(frozen=True)
class GeneralizationBound:
    """High-probability bound on the excess ramp risk of the empirical minimiser in a ball.

    Attributes
    ----------
    total : float
        ``complexity + deviation``; the approximation error of the ball comes on top.
    complexity : float
        Eight times radius times ``sqrt(kernel_bound / n)``: the Rademacher part.
    deviation : float
        The part that depends on the confidence.
    loss_range : float
        Difference of the largest and smallest loss in the ball ("tight" only uses it).
    kind : {"paper", "tight"}
        Which form.
    vacuous : bool
        Whether `total` exceeds the largest possible loss, ``1 - s``: it then says nothing.
    """

    total: float
    complexity: float
    deviation: float
    loss_range: float
    kind: str
    vacuous: bool

    def __float__(self) -> float:
        return self.total


@dataclass(frozen=True)
class ExistenceRadius:
    """A ball that holds every minimiser of the linear leaky hockey stick problem.

    Attributes
    ----------
    radius : float
        ``sqrt(intercept² + weights²)``.
    intercept : float
        Bound C1 on the intercept.
    weights : float
        Bound C2 on the norm of the weight vector.
    """

    radius: float
    intercept: float
    weights: float

    def __float__(self) -> float:
        return self.radius


@dataclass(frozen=True)
class RampRejectBound:
    """The double ramp risk as an upper bound of the 0-d-1 risk.

    Attributes
    ----------
    upper : float
        Mean double ramp loss: never below `risk`.
    risk : float
        Mean 0-d-1 loss, ``|f| <= rho`` rejected.
    ceiling : float
        ``1 + mu``: no loss exceeds it.
    flat : float
        ``d (1 + mu)``, the loss inside the rejection band where it is flat.
    """

    upper: float
    risk: float
    ceiling: float
    flat: float


def excess_risk_bound(loss: Any, excess: float, *, method: str = "auto") -> ExcessRiskBound:
    """Bound the excess 0-1 risk by that of a calibrated margin loss: solve ``psi(t) = excess``.

    Parameters
    ----------
    loss : object with ``value``, or Calibration
        See `buttress.theory.calibration`.
    excess : float >= 0
        Risk of a classifier under the loss minus the smallest possible one.
    method : {"auto", "closed form", "numerical"}

    Examples
    --------
    >>> from buttress.losses import Ramp
    >>> excess_risk_bound(Ramp(s=-1.0), 0.07).bound
    0.07
    """
    check_range("excess", excess, 0.0, math.inf, closed_low=True)
    calibrated = loss if isinstance(loss, Calibration) else calibration(loss, method=method)
    if not calibrated.calibrated:
        raise ValueError(
            f"{type(calibrated.loss).__name__} is not classification-calibrated: no excess risk, "
            "however small, bounds the excess 0-1 risk."
        )
    linear = excess / calibrated.constant if calibrated.constant > 0.0 else math.inf
    low, high = 0.0, 1.0
    if float(calibrated.psi(1.0)) > excess:
        while high - low > 1e-15 and low < (middle := 0.5 * (low + high)) < high:
            low, high = (middle, high) if float(calibrated.psi(middle)) <= excess else (low, middle)
    # The linear bound is exact where psi is |theta|; bisection would lose its last digits.
    bound = min(1.0, linear, high)
    return ExcessRiskBound(bound, float(excess), calibrated.constant, calibrated.method)


def generalization_bound(
    n: int,
    kernel_bound: float,
    radius: float,
    delta: float,
    s: float,
    kind: str = "paper",
) -> GeneralizationBound:
    """Bound of the ramp paper's Theorem 3 for the minimiser of the empirical ramp risk.

    Parameters
    ----------
    n : int
        Number of samples.
    kernel_bound : float
        At least ``k(x, x)`` for every x.
    radius : float
        The ball ``||f|| <= radius``.
    delta : float in (0, 1)
        The bound fails with at most this probability.
    s : float <= 0
        Where the ramp becomes flat.
    kind : {"paper", "tight"}
        As printed, or with the true range of the loss on the ball and the one-sided deviation
        (same proof).

    Notes
    -----
    paper: ``(8 + 2 sqrt(2 log(2/delta))) radius sqrt(kernel_bound / n)``; tight:
    ``8 radius sqrt(kernel_bound / n) + 2 c sqrt(log(1/delta) / (2n))`` with ``c =
    min(1 + radius sqrt(kernel_bound), 1 - s) - max(1 - radius sqrt(kernel_bound), 0)``. At
    practical radii both are above the largest loss; `vacuous` says so.

    Examples
    --------
    >>> round(generalization_bound(4240, 1.0, 1.0, 0.05, -0.75).total, 3)
    0.206
    >>> round(generalization_bound(4240, 1.0, 1.0, 0.05, -0.75, kind="tight").total, 3)
    0.189
    """
    check_range("n", n, 1.0, math.inf, closed_low=True)
    check_range("kernel_bound", kernel_bound, 0.0, math.inf)
    check_range("radius", radius, 0.0, math.inf)
    check_range("delta", delta, 0.0, 1.0)
    check_range("s", s, -math.inf, 0.0, closed_low=True, closed_high=True)
    if kind not in ("paper", "tight"):
        raise ValueError(f"kind={kind!r} is not accepted: expected 'paper' or 'tight'.")
    reach = radius * math.sqrt(kernel_bound)
    complexity = 8.0 * reach / math.sqrt(n)
    loss_range = min(1.0 + reach, 1.0 - s) - max(1.0 - reach, 0.0)
    if kind == "paper":
        deviation = 2.0 * math.sqrt(2.0 * math.log(2.0 / delta)) * reach / math.sqrt(n)
    else:
        deviation = 2.0 * loss_range * math.sqrt(math.log(1.0 / delta) / (2.0 * n))
    total = complexity + deviation
    return GeneralizationBound(
        total, complexity, deviation, loss_range, kind, vacuous=total > 1.0 - s
    )


def existence_radius(X: Any, y: Any, alpha: float) -> ExistenceRadius:
    """The ball of the leaky hockey stick paper's Theorem 2 that holds every solution.

    Parameters
    ----------
    X : array of shape (n, p)
        Rows of the linear problem ``mean L(y (b + x'w)) + alpha ||w||²``.
    y : array of shape (n,)
        Two labels.
    alpha : float > 0
        The penalty (the paper's lambda).

    Notes
    -----
    With p the share of the smaller class and ``m = max ||x||``: ``|b| <= C1 =
    ((1 - p)/p + 1/sqrt(p) + m / (2 sqrt(alpha p)))²`` or ``||w|| <= C2 = m/alpha +
    sqrt(C1/alpha)``; together ``b² + ||w||² <= C1² + C2²``. It proves existence; solutions
    are far inside.

    Examples
    --------
    >>> X = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    >>> existence_radius(X, [-1, -1, 1, 1], alpha=1.0).intercept > 1
    True
    """
    check_range("alpha", alpha, 0.0, math.inf)
    rows = np.asarray(X, dtype=float)
    labels, counts = np.unique(np.asarray(y), return_counts=True)
    if rows.ndim != 2 or len(rows) != counts.sum():
        raise ValueError(f"X must have shape (n, p) with n = len(y), got {rows.shape}.")
    if len(labels) != 2:
        raise ValueError(f"y must contain two labels, got {labels.tolist()}.")
    small = float(counts.min() / counts.sum())
    largest = float(np.sqrt((rows**2).sum(axis=1).max()))
    root = (1 - small) / small + 1 / math.sqrt(small) + largest / (2 * math.sqrt(alpha * small))
    intercept = root * root
    weights = largest / alpha + math.sqrt(intercept / alpha)
    return ExistenceRadius(math.hypot(intercept, weights), intercept, weights)


def reject_risk_bound(loss: DoubleRamp, y: Any, decision: Any) -> RampRejectBound:
    """Mean double ramp loss beside the mean 0-d-1 loss that it bounds from above.

    Parameters
    ----------
    loss : DoubleRamp
        With its cost d, width mu and half band rho.
    y : array of shape (n,)
        Labels, -1 or +1.
    decision : array of shape (n,)
        Scores; ``|f| <= rho`` is rejected (with rho = 0 nothing is).

    Examples
    --------
    >>> bound = reject_risk_bound(DoubleRamp(d=0.2, mu=0.5, rho=1.0), [1, -1, 1], [2.0, 0.1, -3.0])
    >>> bound.risk <= bound.upper <= bound.ceiling
    True
    """
    margins = np.asarray(y, dtype=float) * np.asarray(decision, dtype=float)
    if margins.size == 0 or not np.isin(np.asarray(y), (-1, 1)).all():
        raise ValueError("y must be non-empty and contain -1 and +1 only.")
    rejected = (np.abs(margins) <= loss.rho) & (loss.rho > 0.0)
    # A score of zero at rho = 0 is an answer; as a margin it is an error.
    risk = np.where(rejected, loss.d, (margins <= 0.0).astype(float))
    return RampRejectBound(
        upper=float(np.mean(loss.value(margins))),
        risk=float(np.mean(risk)),
        ceiling=1.0 + loss.mu,
        flat=loss.d * (1.0 + loss.mu),
    )


def check_range(
    name: str,
    value: Any,
    low: float,
    high: float,
    *,
    closed_low: bool = False,
    closed_high: bool = False,
) -> None:
    """Raise a ValueError that names the parameter unless `value` lies in the interval."""
    inside = isinstance(value, (Real, np.number)) and not isinstance(value, bool)
    if inside:
        inside = (value >= low if closed_low else value > low) and (
            value <= high if closed_high else value < high
        )
    if not inside:
        left, right = "[" if closed_low else "(", "]" if closed_high else ")"
        raise ValueError(
            f"{name}={value!r} is out of range: expected a number in "
            f"{left}{low:g}, {high:g}{right}."
        )
