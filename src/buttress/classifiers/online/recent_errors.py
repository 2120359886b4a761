"""How often answers of each confidence were wrong lately: where a stream's band should end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

# Bins of the confidence, on the scale from 0 to 1 of `BandTracker`.
BINS = 50
# Rows that the counts look back on. With 500, 1000, 2000 and 4000 the mean 0-d-1 risk at d = 0.2 of
# four learners on elec2, covtype_sample and adult is .1831, .1835, .1842 and .1847; errors of one
# in a hundred cannot be told from 500 rows.
LOOKS_BACK = 1000
_GROWTH = 1.0 / (1.0 - 1.0 / LOOKS_BACK)
# Weights are scaled down before they lose precision.
_LARGEST_WEIGHT = 1e9


def _nothing() -> list[float]:
    return [0.0] * BINS


@dataclass
class RecentErrors:
    """Discounted counts of rows and of wrong answers, by confidence.

    Attributes
    ----------
    rows, wrong : list of float
        Per bin ``(k / BINS, (k + 1) / BINS]`` of the confidence, answered or refused.
    unit : float
        Weight of the next row: the weights grow instead of all counts being discounted.

    Examples
    --------
    >>> recent = RecentErrors()
    >>> for k in range(800):
    ...     recent.add(0.9 if k % 2 else 0.3, k % 4 == 0)
    >>> 0.3 <= recent.threshold_for_error(0.1) < 0.9, recent.threshold_for_error(0.4)
    (True, 0.0)
    """

    rows: list[float] = field(default_factory=_nothing)
    wrong: list[float] = field(default_factory=_nothing)
    unit: float = 1.0

    def add(self, u: float, is_wrong: bool) -> None:
        """Count one row of confidence `u` in [0, 1)."""
        k = min(max(math.ceil(u * BINS) - 1, 0), BINS - 1)
        self.unit *= _GROWTH
        self.rows[k] += self.unit
        if is_wrong:
            self.wrong[k] += self.unit
        if self.unit > _LARGEST_WEIGHT:
            self.rows = [x / self.unit for x in self.rows]
            self.wrong = [x / self.unit for x in self.wrong]
            self.unit = 1.0

    def threshold_for_error(self, aim: float) -> float:
        """The lowest threshold above which the error was at most `aim`, one error more counted.

        1 where there is none.
        """
        best, answered, wrong = BINS, 0.0, self.unit
        for k in range(BINS - 1, -1, -1):
            answered += self.rows[k]
            wrong += self.wrong[k]
            if self.rows[k] > 0.0 and wrong <= aim * answered:
                best = k
        # nothing was seen below: as good as answered
        if best < BINS and not any(self.rows[:best]):
            best = 0
        return best / BINS

    def threshold_for_cost(self, d: float) -> float:
        """The threshold of the lowest 0-d-1 risk, the higher one of equals."""
        best, lowest = BINS, 0.0
        gain = 0.0  # of answering all from bin k on, against refusing them
        for k in range(BINS - 1, -1, -1):
            gain += self.wrong[k] - d * self.rows[k]
            if gain < lowest:
                best, lowest = k, gain
        if best < BINS and not any(self.rows[:best]):
            best = 0
        return best / BINS
