"""Conditions of the leaky hockey stick paper's consistency theorems, for given functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import integrate

from buttress._arrays import Array
from buttress.theory.bounds import check_range


@dataclass(frozen=True)
class Finiteness:
    """Whether the best leaky hockey stick risk is finite.

    Attributes
    ----------
    finite : bool
        The verdict, from the trend of the last decades.
    integral : float
        ``int g(delta)/delta`` over the range looked at.
    decades : array
        The integral's part in every decade, from the largest deltas down.
    evidence : str
        The integral is computed down to a smallest delta only: evidence, not a proof.
    """

    finite: bool
    integral: float
    decades: tuple[float, ...]
    evidence: str = "evidence from a finite range of delta"


def risk_is_finite(g: Any, *, delta_max: float = 0.1, decades: int = 12) -> Finiteness:
    """Condition of the leaky hockey stick paper's Theorem 4 for a given g.

    Parameters
    ----------
    g : callable
        ``g(delta) = P(p(X)(1 - p(X)) <= delta/2 (1 - delta/2))``: how much of the input has
        almost no label noise. Takes and returns floats.
    delta_max : float in (0, 1]
        Upper end of the integral (the theorem's delta', below which g is continuous).
    decades : int
        How far down to look.

    Notes
    -----
    The risk is finite if and only if ``int_0 g(delta)/delta d delta`` is. In the variable
    log delta each decade contributes the integral of g: the verdict is "finite" when the
    contributions fall geometrically or faster, or are summable by their power of the decade.

    Examples
    --------
    >>> risk_is_finite(lambda delta: delta).finite
    True
    >>> risk_is_finite(lambda delta: 0.1).finite
    False
    """
    check_range("delta_max", delta_max, 0.0, 1.0, closed_high=True)
    ends = math.log(delta_max) - math.log(10.0) * np.arange(decades + 1)
    by_decade = [
        float(integrate.quad(lambda t: float(g(math.exp(t))), low, high, limit=200)[0])
        for high, low in pairwise(ends)
    ]
    return Finiteness(_summable(np.array(by_decade)), float(sum(by_decade)), tuple(by_decade))


def admissible_schedule(n: Any, *, scale: float = 1.0, power: float = 0.5) -> Array:
    """Penalties ``scale * n^-power`` that satisfy the consistency theorems of the LHS paper.

    Theorems 5 and 7 ask for ``lambda_n -> 0`` and ``1/lambda_{n+1} - 1/lambda_n -> 0``: for a
    power of n, an exponent strictly between 0 and 1.

    Parameters
    ----------
    n : int or array
        Sample sizes.
    scale : float > 0
    power : float in (0, 1)

    Examples
    --------
    >>> admissible_schedule([100, 10000])
    array([0.1 , 0.01])
    """
    check_range("scale", scale, 0.0, math.inf)
    check_range("power", power, 0.0, 1.0)
    sizes = np.asarray(n, dtype=float)
    if not np.all(sizes >= 1.0):
        raise ValueError(f"n={n!r} is out of range: expected numbers of at least 1.")
    return np.asarray(scale * sizes**-power)


def schedule_is_admissible(schedule: Any, *, n_max: float = 1e12) -> bool:
    """Whether a schedule ``n -> lambda_n`` meets both conditions, judged up to `n_max`.

    Parameters
    ----------
    schedule : callable
        Penalty for a (float) sample size.
    n_max : float
        How far to look; the verdict is evidence, not a proof.

    Examples
    --------
    >>> schedule_is_admissible(lambda n: n**-0.5), schedule_is_admissible(lambda n: 1 / n)
    (True, False)
    """
    sizes = np.geomspace(1e3, n_max, 10)
    values = np.array([float(schedule(size)) for size in sizes])
    if not (np.all(values > 0.0) and np.all(np.diff(values) < 0.0)):
        return False
    # The step of 1/lambda at n, by a wide difference: neighbours differ by rounding only.
    later = np.array([float(schedule(2.0 * size)) for size in sizes])
    steps = np.abs(1.0 / later - 1.0 / values) / sizes
    return bool(_vanishes(values) and _vanishes(steps))


def noise_condition(g: Any, *, r: float = math.inf, delta_min: float = 1e-12) -> bool:
    """Whether g falls fast enough for consistency, judged down to `delta_min`.

    Theorem 5 (r = inf) asks for ``-log(delta) g(delta) -> 0``, Theorem 7 for
    ``g(delta)^((r-1)/r) delta^(2/(1-r)) -> 0``.

    Parameters
    ----------
    g : callable
        As in `risk_is_finite`.
    r : float in (1, inf]
        Member of the family of losses.
    delta_min : float
        How far to look; the verdict is evidence, not a proof.

    Examples
    --------
    >>> noise_condition(lambda delta: delta), noise_condition(lambda delta: 0.2)
    (True, False)
    """
    check_range("r", r, 1.0, math.inf, closed_high=True)
    deltas = np.geomspace(1e-2, delta_min, 10)
    noise = np.array([float(g(delta)) for delta in deltas])
    if math.isinf(r):
        return _vanishes(-np.log(deltas) * noise)
    return _vanishes(noise ** ((r - 1.0) / r) * deltas ** (2.0 / (1.0 - r)))


def _vanishes(values: Array) -> bool:
    """Still falling at the end, and well below where it began (or already nothing)."""
    falls = values[-1] < values[-2] < values[-3] and values[-1] < 0.6 * values[0]
    return bool(falls or values[-1] < 1e-12)


def _summable(by_decade: Array) -> bool:
    if by_decade[-1] <= 1e-12 * max(by_decade[0], 1e-300):
        return True
    ratios = by_decade[1:] / np.maximum(by_decade[:-1], 1e-300)
    if ratios[-1] < 0.9:
        return True
    # Slower than geometric: parts like k^-a sum when a > 1; read a off the tail.
    k = np.arange(1, len(by_decade) + 1)
    tail = slice(len(by_decade) // 2, None)
    exponent = -np.polyfit(np.log(k[tail]), np.log(np.maximum(by_decade[tail], 1e-300)), 1)[0]
    return bool(exponent > 1.05)
