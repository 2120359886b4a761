"""How much of a Newton step to take so that the objective falls, from slopes along it alone.

Along a step the objective is convex, so that ``phi(1) - phi(0) <= (phi'(1/2) + phi'(1)) / 2``; no
loss is evaluated, and with it no logarithm. Both loops of Newton's method, compiled and in NumPy,
look for a share of the step with the function here.
"""

from __future__ import annotations

from numba.extending import register_jitable

# The first few steps need no safeguard while the slopes change by less than this.
UNGUARDED_CHANGE = 1e-3
UNGUARDED_STEPS = 4
# Halvings after which rounding hides that the objective falls.
BISECTIONS = 60


@register_jitable
def narrowed(
    low: float, high: float, slope: float, slopes: tuple[float, float]
) -> tuple[float, float, bool]:
    """Ends between which the share lies once the slope in the middle of `low` and `high` is known.

    Parameters
    ----------
    slope : float
        Of the objective at the middle.
    slopes : tuple of floats
        At the beginning of the step, and at its end.

    Returns
    -------
    low, high : float
    found : bool
        Whether both are the share to take.
    """
    start, end = slopes
    if low == 0.0 and high == 1.0 and slope + end <= 0.1 * start:
        return 1.0, 1.0, True
    middle = 0.5 * (low + high)
    if slope > 0.05 * start:
        return low, middle, False
    if slope < 0.5 * start:
        return middle, high, False
    return middle, middle, True
