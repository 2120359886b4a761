"""The optimal thresholds of a sum of hinges for given row values, by weighted medians.

For fixed g the problem splits into one piecewise linear convex function of each threshold. Its
kinks and slopes are exact up to rounding, so the ends of a flat piece do not depend on which
dual variables the solver left a hair away from their bounds.
"""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, BoolArray
from buttress.solvers.hinge._smo_loops import flat_minima
from buttress.solvers.hinge.hinges import HingeTerms

# Slopes below this share of all weights are zero.
_FLAT = 1e-12


def threshold_intervals(terms: HingeTerms, g: Array, clipped: BoolArray) -> Array:
    """Minimisers of the convex step (tangents at `clipped`) over each threshold.

    Parameters
    ----------
    terms : HingeTerms
    g : array of shape (n,)
        Row values.
    clipped : array of bool of shape (m,)
        Terms replaced by their tangent on the flat part.

    Returns
    -------
    array of shape (n_groups, 2)
        Ends of the intervals; infinite where the function is flat to that side.

    Examples
    --------
    >>> y = np.array([1.0, -1.0])
    >>> terms = HingeTerms(sign=y, margin=np.ones(2), weight=np.ones(2))
    >>> threshold_intervals(terms, np.zeros(2), np.zeros(2, dtype=bool)).tolist()
    [[-1.0, 1.0]]
    """
    kinks = terms.sign * terms.margin - g[terms.row]
    # slope at -inf: the hinges of the positive rows, and the tangents of all
    slope = terms.weight * (clipped * terms.sign - (terms.sign > 0))
    sums = np.bincount(terms.group + 1, weights=slope, minlength=terms.n_groups + 1)
    slopes = sums[1:].astype(np.float64)
    intervals = np.empty((terms.n_groups, 2))
    order = np.argsort(kinks)
    flat_minima(order, kinks, terms.weight, terms.group, slopes, _FLAT, intervals)
    return intervals


def middle(interval: Array) -> float:
    """The midpoint, or the finite end, of an interval; 0 for the whole line."""
    low, high = float(interval[0]), float(interval[1])
    if np.isinf(low):
        return 0.0 if np.isinf(high) else high
    return low if np.isinf(high) else 0.5 * (low + high)
