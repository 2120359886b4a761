"""How often the labels of each class are wrong, read off held-out decision values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray

# Shares of the most confident rows over which a rate is read off, and the fewest rows.
_CONFIDENT_SHARES = (0.2, 0.3, 0.4, 0.5)
_FEWEST_CONFIDENT = 10
# Rates this near (in points, and in standard errors of their difference) count as equal. Wrong
# weights can move the whole boundary, a wrong order of suspects costs little.
_SMALLEST_DIFFERENCE = 0.05
_ERRORS_FOR_ORDER = 2.0
_ERRORS_FOR_WEIGHTS = 3.0
# A slope of this many standard errors between the two most confident quarters is chance.
_CHANCE = 0.5


@dataclass(frozen=True, eq=False)
class NoiseRates:
    """Estimated shares of wrong labels among the rows that truly belong to each class.

    Attributes
    ----------
    rates, standard_errors : arrays of shape (n_classes,)
    overlap : float
        How much more often, beyond chance, labels differ in the second quarter of the rows, by
        confidence, than in the first. Classes that overlap give such a slope, noise that does
        not depend on the row gives none; where the slope goes on, that much of the rates may be
        overlap.
    """

    rates: Array
    standard_errors: Array
    overlap: float = 0.0

    @property
    def one_sided(self) -> bool:
        """Whether, with two classes, one has clearly more wrong labels than the other."""
        return self._differ_by(_ERRORS_FOR_ORDER)

    @property
    def factors(self) -> Array:
        """Weights of the two given labels under which the boundary is that of clean labels.

        With rates r_0 and r_1 the share of given labels 1 where both true labels are equally
        likely is ``(1 - r_1 + r_0) / 2``; weighting labels 1 by ``1 + r_1 - r_0`` and labels 0 by
        ``1 - r_1 + r_0`` brings that level to one half. Ones unless the rates differ by three
        standard errors.
        """
        if not self._differ_by(_ERRORS_FOR_WEIGHTS):
            return np.ones(len(self.rates))
        shift = float(self.rates[1] - self.rates[0])
        return np.array([1.0 - shift, 1.0 + shift])

    def _differ_by(self, errors: float) -> bool:
        if len(self.rates) != 2:
            return False
        difference = abs(float(self.rates[1] - self.rates[0]))
        error = float(np.hypot(*self.standard_errors))
        return difference > max(_SMALLEST_DIFFERENCE, errors * error)


def noise_rates(
    confidence: Array, predicted: IntArray, codes: IntArray, n_classes: int
) -> NoiseRates:
    """Rates from the rows whose held-out prediction is safest.

    Parameters
    ----------
    confidence : array of shape (n,)
        Distance of the held-out prediction to the next class.
    predicted, codes : arrays of shape (n,)
        Predicted and given class of every row.
    n_classes : int

    Examples
    --------
    >>> codes = np.r_[np.zeros(50, int), np.ones(50, int)]
    >>> given = codes.copy()
    >>> given[50:60] = 0
    >>> found = noise_rates(np.ones(100), codes, given, 2)
    >>> found.rates.round(2), found.one_sided
    (array([0. , 0.4]), True)
    """
    found = [
        _rate(confidence[predicted == c], codes[predicted == c] != c) for c in range(n_classes)
    ]
    rates = np.array([rate for rate, _ in found])
    first, second = _quarters(confidence, predicted, predicted != codes)
    typical = max(float(rates.mean()), 0.02)
    chance = np.sqrt(8.0 * typical * (1.0 - typical) / max(len(codes), 1))
    overlap = max(second - first - _CHANCE * float(chance), 0.0)
    return NoiseRates(rates, np.array([error for _, error in found]), overlap)


def _quarters(confidence: Array, predicted: IntArray, differs: BoolArray) -> tuple[float, float]:
    """Shares of differing labels in the two most confident quarters of every class."""
    rank = np.ones(len(confidence))
    for c in np.unique(predicted):
        mine = np.flatnonzero(predicted == c)
        rank[mine[np.argsort(-confidence[mine], kind="stable")]] = np.arange(len(mine)) / len(mine)
    first, second = differs[rank < 0.25], differs[(rank >= 0.25) & (rank < 0.5)]
    return (
        float(first.mean()) if len(first) else 0.0,
        float(second.mean()) if len(second) else 0.0,
    )


def _rate(confidence: Array, differs: BoolArray) -> tuple[float, float]:
    """The share of differing labels where the prediction is safest, and its standard error."""
    n = len(confidence)
    ranked = differs[np.argsort(-confidence, kind="stable")]
    best, size = 0.0, 0
    for share in _CONFIDENT_SHARES:
        count = int(np.ceil(share * n))
        if count >= min(_FEWEST_CONFIDENT, n) and count:
            rate = float(ranked[:count].mean())
            if size == 0 or rate < best:
                best, size = rate, count
    best = min(best, 0.49)
    smoothed = (best * size + 0.5) / (size + 1.0)
    return best, float(np.sqrt(smoothed * (1.0 - smoothed) / max(size, 1)))
