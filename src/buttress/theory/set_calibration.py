"""The modified calibration condition of the uncertainty-set paper, checked on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.losses import EllipsoidError, Loss, require

# Until an interval is as short as its numbers allow, and until it holds the infimum.
_PSI_BISECTIONS = 200
_PSI_DOUBLINGS = 60


@dataclass(frozen=True, eq=False)
class SetCalibration:
    """What a grid says about ``psi(theta, rho)`` of a set loss.

    Attributes
    ----------
    loss : object
        The loss.
    thetas, rhos : arrays
        The grid; the smallest rho is the end of the domain, ``-l(0)/2``.
    psi : array of shape (len(thetas), len(rhos))
        ``l(rho) - inf_z [(1 + theta)/2 l(rho - z) + (1 - theta)/2 l(rho + z)]``.
    infimum : array of shape (len(thetas),)
        Its minimum over the rhos of the grid.
    slope : float
        ``l'(-l(0)/2)``; the first part of Assumption 4 wants it positive.
    positive, increasing : bool
        Whether `infimum` is positive and strictly increasing for theta > 0 (second part).
    monotone_in_rho : bool
        Whether psi never falls in rho: the conclusion of Lemma 6. It is sufficient, not
        necessary.
    curvature_ratio : float
        Largest ``xi(z, rho) / z`` on the grid, ``xi = (l(rho + z) + l(rho - z) - 2 l(rho)) /
        (z l'(rho))``: when finite, Lemma 7 applies with ``xi(z) <= curvature_ratio * z``.
    scale_condition : tuple of float, or None
        For `EllipsoidError`: omega, and ``(1 + 2h) / (4 (1 + h))`` which it must exceed for a
        positive `slope` (sharp).
    passed : bool
        All conditions of Assumption 4 hold on the grid.
    evidence : str
        "evidence on a grid": never a proof.
    """

    loss: Any
    thetas: Array
    rhos: Array
    psi: Array
    infimum: Array
    slope: float
    positive: bool
    increasing: bool
    monotone_in_rho: bool
    curvature_ratio: float
    scale_condition: tuple[float, float] | None
    passed: bool
    evidence: str = "evidence on a grid"


def set_calibration(
    loss: Any, *, thetas: Any = None, rhos: Any = None, rho_max: float = 20.0
) -> SetCalibration:
    """Check Assumption 4 of the uncertainty-set paper for a set loss, on a grid.

    Parameters
    ----------
    loss : object with ``value`` and ``derivative``
        A convex, non-decreasing function of ``z = rho - y f``.
    thetas : array in [0, 1), optional
        Default: 34 values, denser near both ends.
    rhos : array, optional
        Values of at least ``-l(0)/2``. Default: 401 of them up to `rho_max`.
    rho_max : float
        The end of the default rhos.

    Notes
    -----
    The infimum over z is found by bisection on the derivative, which rises with z, for the
    whole grid at once.

    References
    ----------
    T. Kanamori, A. Takeda and T. Suzuki, "Conjugate relation between loss functions and
    uncertainty sets in classification problems", JMLR 14, 2013.

    Examples
    --------
    >>> from buttress.losses import TruncatedQuadratic
    >>> result = set_calibration(TruncatedQuadratic())
    >>> result.passed, result.evidence
    (True, 'evidence on a grid')
    >>> bool(np.allclose(result.infimum, result.thetas**2 / 4))
    True
    """
    require(loss, Loss, "set_calibration")
    end = -0.5 * float(loss.value(np.zeros(1))[0])
    thetas = _default_thetas() if thetas is None else np.sort(np.asarray(thetas, dtype=float))
    if not np.all((thetas >= 0.0) & (thetas < 1.0)):
        raise ValueError("thetas are out of range: expected numbers in [0, 1).")
    if rhos is None:
        if not rho_max > end:
            raise ValueError(f"rho_max={rho_max!r} is out of range: expected more than {end:g}.")
        rhos = end + (rho_max - end) * np.linspace(0.0, 1.0, 401) ** 2
    rhos = np.sort(np.asarray(rhos, dtype=float))
    if not np.all(rhos >= end - 1e-12):
        raise ValueError(f"rhos are out of range: expected numbers of at least {end:g}.")

    psi = _psi(loss, thetas[:, None], rhos[None, :])
    infimum = psi.min(axis=1)
    slope = float(loss.derivative(np.array([end]))[0])
    scale = 1e-9 * max(1.0, float(np.abs(loss.value(rhos[:1]))[0]))
    inner = infimum[thetas > 0.0]
    positive = bool(np.all(inner > scale * 1e-3))
    increasing = bool(np.all(np.diff(infimum) > 0.0))
    monotone = bool(np.all(np.diff(psi, axis=1) >= -1e-10 * (1.0 + np.abs(psi[:, 1:]))))
    condition = None
    if isinstance(loss, EllipsoidError):
        condition = (loss.omega, (1.0 + 2.0 * loss.h) / (4.0 * (1.0 + loss.h)))
    return SetCalibration(
        loss=loss,
        thetas=thetas,
        rhos=rhos,
        psi=psi,
        infimum=infimum,
        slope=slope,
        positive=positive,
        increasing=increasing,
        monotone_in_rho=monotone,
        curvature_ratio=_curvature_ratio(loss, rhos),
        scale_condition=condition,
        passed=slope > 0.0 and positive and increasing,
    )


def _psi(loss: Any, theta: Array, rho: Array) -> Array:
    theta, rho = np.broadcast_arrays(theta, rho)
    heavy, light = (1.0 + theta) / 2.0, (1.0 - theta) / 2.0

    def rising(z: Array) -> Array:
        return np.asarray(-heavy * loss.derivative(rho - z) + light * loss.derivative(rho + z))

    low, high = np.zeros_like(rho), np.ones_like(rho)
    for _ in range(_PSI_DOUBLINGS):
        short = rising(high) < 0.0
        # Losses that grow exponentially settle at once; flat ones never do, and need not.
        if not short.any() or float(high.max()) > 1e6:
            break
        low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
    for _ in range(_PSI_BISECTIONS):
        middle = 0.5 * (low + high)
        short = rising(middle) < 0.0
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    risk = heavy * loss.value(rho - high) + light * loss.value(rho + high)
    return np.asarray(np.maximum(loss.value(rho) - risk, 0.0))


def _curvature_ratio(loss: Any, rhos: Array) -> float:
    slope = loss.derivative(rhos)
    if not np.all(slope > 0.0):
        return float("inf")
    # Away from z = 0, where the difference of nearly equal values would be all rounding.
    z = np.geomspace(1e-3, 1.0, 13)[:, None]
    bend = loss.value(rhos + z) + loss.value(rhos - z) - 2.0 * loss.value(rhos)
    return float(np.max(bend / (z * z * slope)))


def _default_thetas() -> Array:
    return np.concatenate(
        [[0.0], np.geomspace(1e-2, 0.5, 16)[:-1], 1.0 - np.geomspace(0.5, 1e-2, 18)]
    )
