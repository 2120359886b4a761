"""The bias that makes the fewest errors on given scores, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array

# Errors that differ by less than this part of the total weight count as equal: then not a few
# rows of negligible weight decide, but the reference.
_EQUAL = 1e-6


@dataclass(frozen=True)
class BiasResult:
    """The bias of least training error.

    Attributes
    ----------
    bias : float
        The chosen bias.
    errors : float
        Weight of the rows with ``y (s + bias) <= 0``.
    interval : tuple of float
        The open interval around `bias` on which the errors are the same.
    """

    bias: float
    errors: float
    interval: tuple[float, float]


def error_rate_bias(
    scores: Array, y: Array, sample_weight: Array | None = None, *, reference: float = 0.0
) -> BiasResult:
    """Minimise the weight of rows with ``y_i (s_i + b) <= 0`` over ``b``.

    Parameters
    ----------
    scores : array of shape (n,)
        Values of a decision function without its bias.
    y : array of shape (n,)
        Labels, ±1.
    sample_weight : array of shape (n,), optional
        Non-negative; an integer weight counts as that many rows.
    reference : float
        Decides between optimal intervals: the nearest to it is taken, and it is itself
        returned when it lies inside; otherwise the midpoint.

    Returns
    -------
    BiasResult

    Notes
    -----
    One sort and cumulative sums, O(n log n). A score of zero is an error for both classes, so
    only the open intervals between distinct thresholds ``-s_i`` count. Thresholds that differ
    by rounding only are one, and errors that differ by less than 1e-6 of the total weight are
    equal. Unbounded intervals are cut one mean gap beyond the last
    threshold.

    Examples
    --------
    >>> result = error_rate_bias(np.array([0.0, 1.0, 3.0]), np.array([-1.0, 1.0, 1.0]))
    >>> result.bias, result.errors
    (-0.5, 0.0)
    """
    scores = np.asarray(scores, dtype=np.float64)
    y = np.asarray(y)
    weight = np.ones(len(scores)) if sample_weight is None else np.asarray(sample_weight, float)
    order = np.argsort(-scores, kind="stable")
    t = -scores[order]
    w = weight[order]
    positive = y[order] > 0
    rounding = 1e-10 * float(np.max(np.abs(t), initial=0.0))
    first = np.flatnonzero(np.r_[True, np.diff(t) > rounding])
    start, end = t[first], t[np.r_[first[1:], len(t)] - 1]
    # interval j lies below group j: positives from group j on are wrong, negatives before it
    wrong_positive = np.add.reduceat(np.where(positive, w, 0.0), first)
    wrong_negative = np.add.reduceat(np.where(positive, 0.0, w), first)
    errors = (
        np.r_[np.cumsum(wrong_positive[::-1])[::-1], 0.0] + np.r_[0.0, np.cumsum(wrong_negative)]
    )
    low = np.r_[-np.inf, end]
    high = np.r_[start, np.inf]
    best = np.flatnonzero(errors <= errors.min() + _EQUAL * w.sum())
    away = np.maximum(np.maximum(low[best] - reference, reference - high[best]), 0.0)
    k = best[int(np.argmin(away))]
    left, right = float(low[k]), float(high[k])
    if left < reference < right:
        bias = float(reference)
    else:
        gap = (end[-1] - start[0]) / (len(start) - 1) if len(start) > 1 else 1.0
        near = left if np.isfinite(left) else right - gap
        far = right if np.isfinite(right) else left + gap
        bias = 0.5 * (near + far)
    return BiasResult(float(bias), float(errors[k]), (left, right))
