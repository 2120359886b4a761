"""Brute-force conditional risks of a margin loss, vectorised over the class probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array

# Scores tried first: dense around zero, out to 5e12 on either side.
_SCORES = np.sinh(np.linspace(-30.0, 30.0, 6001))
_GOLDEN_SECTION = (np.sqrt(5.0) - 1.0) / 2.0
# Shrinks of an interval, which leave 1e-23 of its length.
_SHRINKS = 110


def least_risk(loss: Any, eta: Array, *, wrong: bool = False) -> tuple[Array, Array]:
    """Infimum over the score a of ``eta value(a) + (1 - eta) value(-a)``, and where it is.

    With `wrong`, only over scores whose sign disagrees with the Bayes rule (zero included).
    The best of 6001 scores is refined by golden section in its neighbourhood, so the result
    is the infimum up to rounding for every loss that is unimodal between neighbouring scores.
    """
    eta = np.asarray(eta, dtype=float)
    flat = eta.ravel()
    with np.errstate(all="ignore"):
        table = _risk(loss, flat[:, None], _SCORES[None, :])
        allowed = np.ones_like(table, dtype=bool)
        if wrong:
            allowed = _SCORES[None, :] * (2.0 * flat[:, None] - 1.0) <= 0.0
        table = np.where(allowed & ~np.isnan(table), table, np.inf)
        least = table.min(axis=1, keepdims=True)
        tied = table <= least + 1e-13 * np.maximum(1.0, np.abs(least))
        index = np.argmin(np.where(tied, np.abs(_SCORES), np.inf), axis=1)
        rows = np.arange(len(flat))
        low = _SCORES[np.maximum(index - 1, 0)]
        high = _SCORES[np.minimum(index + 1, len(_SCORES) - 1)]
        if wrong:
            low = np.where(flat < 0.5, np.maximum(low, 0.0), low)
            high = np.where(flat > 0.5, np.minimum(high, 0.0), high)
        best, where = table[rows, index], _SCORES[index]
        for _ in range(_SHRINKS):
            inner = high - _GOLDEN_SECTION * (high - low), low + _GOLDEN_SECTION * (high - low)
            values = [_risk(loss, flat, point) for point in inner]
            for value, point in zip(values, inner, strict=True):
                where = np.where(value < best, point, where)
                best = np.fmin(best, value)
            left = values[0] <= values[1]
            low, high = np.where(left, low, inner[0]), np.where(left, inner[1], high)
    return best.reshape(eta.shape), where.reshape(eta.shape)


def lower_hull(x: Array, y: Array) -> tuple[Array, Array]:
    """Vertices of the lower convex hull of points with increasing x."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) >= 2:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return x[kept], y[kept]


def _risk(loss: Any, eta: Array, score: Array) -> Array:
    # 0 * inf at a certain label is no risk, not an undefined one
    positive = np.where(eta > 0.0, eta * loss.value(score), 0.0)
    negative = np.where(eta < 1.0, (1.0 - eta) * loss.value(-score), 0.0)
    return np.asarray(positive + negative)
