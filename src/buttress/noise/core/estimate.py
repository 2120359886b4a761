"""A number with its interval, and the checks that the noise model makes of its input."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, IntArray

# Sums of squares of larger weights are no longer finite numbers.
_LARGEST_WEIGHT = 1e100


class Estimate(float):
    """A float that knows its interval.

    Parameters
    ----------
    value : float
    low, high : float
        Ends of the interval.
    level : float
        The share of cases in which the interval should hold the true value.

    Examples
    --------
    >>> rate = Estimate(0.1, 0.05, 0.17)
    >>> rate
    0.1 (0.05 to 0.17)
    >>> rate > 0.05, rate.high
    (True, 0.17)
    """

    low: float
    high: float
    level: float

    def __new__(cls, value: float, low: float, high: float, level: float = 0.9) -> Self:
        """Make the number; floats cannot be changed later."""
        made = super().__new__(cls, value)
        made.low, made.high, made.level = float(low), float(high), float(level)
        return made

    def __repr__(self) -> str:
        return f"{float(self):.3g} ({self.low:.3g} to {self.high:.3g})"

    def __reduce__(self) -> Any:
        return (Estimate, (float(self), self.low, self.high, self.level))

    @property
    def interval(self) -> tuple[float, float]:
        """The two ends."""
        return self.low, self.high


def check_weight(sample_weight: Any, n: int) -> Array:
    """Weights as floats, one number for all rows or one a row; at least one must be positive."""
    if sample_weight is None or isinstance(sample_weight, Real):
        sample_weight = np.full(n, 1.0 if sample_weight is None else sample_weight)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected {(n,)}.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must hold finite numbers that are not negative.")
    if weight.max(initial=0.0) > _LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight holds numbers up to {weight.max():.3g}: expected at most "
            f"{_LARGEST_WEIGHT:.0e}, which can be added up. Divide all of them by one number."
        )
    if not (weight > 0).any():
        raise ValueError("All values of sample_weight are zero: no row is left to judge.")
    return weight


def encode(y: Any, classes: NDArray[Any]) -> IntArray:
    """Index of every label in `classes`; unknown labels are an error that names them."""
    labels = np.asarray(y)
    codes = np.searchsorted(classes, labels)
    codes = np.minimum(codes, len(classes) - 1)
    unknown = classes[codes] != labels
    if unknown.any():
        strange = np.unique(labels[unknown])[:5].tolist()
        raise ValueError(f"y holds the labels {strange}; the model knows {classes.tolist()}.")
    return codes
