"""Whether the signs of held-out scores can still change.

Cross-validated accuracy reads nothing but the signs of the held-out scores, so that a model of a
fold is good enough when these are certain, and no model is before. By strong convexity a
solution that leaves the objective ``P - P* = left`` to gain is nearer than ``sqrt(left / lam)``
in the norm of the penalty ``lam ||f||²``, and no score is further off than that times the norm of
its row; the intercept that balances the classes then moves by no more than the scores. The bound
is taken twice for it, and twice again because `left` is itself an estimate: what is to come when
decreases of the objective go on falling at the rate that was measured.

That bound would be met if all that is left to gain were due to one row. When decreases fall at a
rate, the changes of the scores fall at its root, and no score has further to go than the sum of
what the largest change of any of them leads to: four times that is the other bound. For signs
the smaller one counts. Where scores of several classes are compared it is this one: an intercept
that hardly any curvature holds is far off when there is nothing left to gain, and all the scores
of its class with it.
"""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable

from buttress._arrays import Array
from buttress._compile import FAST, inner

_BOUNDS = 4.0
# Rate beyond which decreases of the objective are not taken to fall on as they did.
_SLOWEST = 0.9
# Rounding of the scores over the unit roundoff times the norm of the coefficients (measured: 7).
_ROUNDINGS = 10.0
ROUNDOFF = float(np.finfo(np.float32).eps)


@register_jitable
def measured_rate(decrement: float, before: float, earlier: float) -> float:
    """The factor by which decreases of the objective fall from step to step.

    Parameters
    ----------
    decrement : float
        Decrease that the last step promised.
    before, earlier : float
        Those of the step before and the one before that; infinite where there was none.

    Returns
    -------
    float
        The larger of the last factor and the mean of the last two. It takes three steps to
        believe in a rate below one half.
    """
    if decrement == 0.0:
        return 0.0
    if before == 0.0 or earlier == 0.0:
        return _SLOWEST
    rate = max(decrement / before, math.sqrt(decrement / earlier))
    return min(max(rate, 0.5) if math.isinf(earlier) else rate, _SLOWEST)


@register_jitable
def score_error(left: float, lam: float, row_norm: float) -> float:
    """How far scores may be from the solution's when the objective has `left` to fall."""
    return _BOUNDS * row_norm * math.sqrt(left / lam)


@register_jitable
def still_to_come(change: float, rate: float) -> float:
    """How far scores may be from the solution's when the last step moved none by more.

    `rate` is that of decreases of the objective.
    """
    root = math.sqrt(rate)
    return _BOUNDS * change * root / (1.0 - root)


@register_jitable
def score_rounding(row_norm: float, norm: float) -> float:
    """Rounding of scores in single precision: largest norm of a row, norm of the coefficients."""
    return _ROUNDINGS * ROUNDOFF * row_norm * norm


@inner(fastmath=FAST)
def column_sizes(
    f: Array, step: Array, a: Array, omega: Array
) -> tuple[float, float, float, float, float]:
    """Sizes of one column's scores `f`, of their last change and of its coefficients `a`.

    Returns
    -------
    held_out : float
        The smallest held-out score, by size; infinite when no row is held out.
    low, high : float
        The smallest and the largest score.
    norm : float
        Of the coefficients.
    change : float
        The largest change of a held-out score by the last step.
    """
    zero, infinite = np.float32(0.0), np.float32(np.inf)
    held_out, low, high, total, change = infinite, infinite, -infinite, zero, zero
    for i in range(f.size):
        size = np.float32(abs(f[i]))
        low = f[i] if f[i] < low else low
        high = f[i] if f[i] > high else high
        moved = np.float32(abs(step[i])) if omega[i] == 0.0 else zero
        change = moved if moved > change else change
        outside = size if omega[i] == 0.0 else infinite
        held_out = outside if outside < held_out else held_out
        total += np.float32(a[i] * a[i])
    return float(held_out), float(low), float(high), math.sqrt(total), float(change)
