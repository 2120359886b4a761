"""The terms of a sum of hinges: their losses, where they are clipped, their best thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers.hinge._smo_loops import flat_minima

# Slopes below this share of all weights are zero.
_FLAT = 1e-12


def _not_given() -> Any:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class HingeTerms:
    """The terms of a sum of (clipped) hinges; arrays of one entry per term.

    Attributes
    ----------
    sign : array of ±1
        ``s_j``, the row's label.
    margin, weight : arrays
        ``m_j`` and ``w_j`` (the penalty C and the row's weight included).
    clip : array, optional
        ``k_j <= m_j``; -inf for a convex term. Default: all convex.
    row : integer array, optional
        ``i(j)``; default: one term per row, in order.
    group : integer array, optional
        Which threshold the term sees: 0, 1, ..., or -1 for none. Default: all 0.
    """

    sign: Array
    margin: Array
    weight: Array
    clip: Array = field(default_factory=_not_given)
    row: IntArray = field(default_factory=_not_given)
    group: IntArray = field(default_factory=_not_given)

    def __post_init__(self) -> None:
        m = len(self.sign)
        defaults = {
            "clip": np.full(m, -np.inf),
            "row": np.arange(m),
            "group": np.zeros(m, dtype=np.intp),
        }
        for name, default in defaults.items():
            if len(getattr(self, name)) == 0:
                object.__setattr__(self, name, default)

    @property
    def n_groups(self) -> int:
        """Number of thresholds."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def convex(self) -> bool:
        """Whether no term is clipped."""
        return bool(np.isneginf(self.clip).all())

    def margins(self, g: Array, threshold: Array) -> Array:
        """``t_j`` at the row values `g` and the thresholds."""
        return np.asarray(self.sign * (g[self.row] + np.append(threshold, 0.0)[self.group]))

    def loss(self, g: Array, threshold: Array) -> float:
        """The sum of the terms."""
        t = self.margins(g, threshold)
        return float(self.weight @ np.clip(self.margin - t, 0.0, self.margin - self.clip))

    def clipped(self, g: Array, threshold: Array) -> BoolArray:
        """Which terms lie on their flat part, ``t_j < k_j``."""
        return np.asarray(self.margins(g, threshold) < self.clip)

    def threshold_intervals(self, g: Array, clipped: BoolArray) -> Array:
        """Minimisers of the convex step (tangents at `clipped`) over each threshold.

        For fixed `g` the problem splits into one piecewise linear convex function of each
        threshold. Its kinks and slopes are exact up to rounding, so the ends of a flat piece do
        not depend on which dual variables the solver left a hair away from their bounds.

        Parameters
        ----------
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
        >>> terms.threshold_intervals(np.zeros(2), np.zeros(2, dtype=bool)).tolist()
        [[-1.0, 1.0]]
        """
        kinks = self.sign * self.margin - g[self.row]
        # slope at -inf: the hinges of the positive rows, and the tangents of all
        slope = self.weight * (clipped * self.sign - (self.sign > 0))
        sums = np.bincount(self.group + 1, weights=slope, minlength=self.n_groups + 1)
        intervals = np.empty((self.n_groups, 2))
        flat_minima(
            np.argsort(kinks), kinks, self.weight, self.group, sums[1:].astype(np.float64), _FLAT,
            intervals,
        )  # fmt: skip
        return intervals
