"""A small world in which every expectation is a finite sum: the theorems' risks are exact.

X is uniform on the points of a grid of [0, 1] and P(Y = +1 | x) is known, so a sample of any size
is a table of counts, and a weighted fit on it is the fit to the sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

_WORLD_POINTS = 120


@dataclass(frozen=True)
class World:
    """Points, P(+1 | x) and the kernel matrix over the points."""

    points: NDArray[Any]
    eta: NDArray[Any]
    K: NDArray[Any]

    @property
    def bayes_error(self) -> float:
        """The least misclassification rate."""
        return float(np.minimum(self.eta, 1 - self.eta).mean())

    def sample(self, n: int, random: np.random.Generator) -> SampledRows:
        """n independent rows, equal ones counted."""
        counts = random.multinomial(n, np.full(len(self.points), 1 / len(self.points)))
        positive = random.binomial(counts, self.eta)
        return self._rows(positive, counts - positive)

    def population(self) -> SampledRows:
        """Every point with both labels, weighted by their probabilities."""
        return self._rows(self.eta / len(self.eta), (1 - self.eta) / len(self.eta))

    def _rows(self, positive: NDArray[Any], negative: NDArray[Any]) -> SampledRows:
        weight = np.concatenate([positive, negative]).astype(float)
        point = np.tile(np.arange(len(self.points)), 2)
        label = np.repeat([1, -1], len(self.points))
        kept = weight > 0
        return SampledRows(point[kept], label[kept], weight[kept])

    def error(self, f: NDArray[Any]) -> float:
        """Misclassification rate of the sign of f, its values at the points; zero is class -1."""
        return float(np.where(f > 0, 1 - self.eta, self.eta).mean())

    def risk(self, loss: Any, f: NDArray[Any]) -> float:
        """Expected loss of f."""
        value = loss.value
        return float((self.eta * value(f) + (1 - self.eta) * value(-f)).mean())

    def fitted(self, model: Any, rows: SampledRows) -> tuple[Any, NDArray[Any]]:
        """A model with a precomputed kernel, fitted to rows, and its values at the points."""
        model.fit(self.K[np.ix_(rows.point, rows.point)], rows.label, sample_weight=rows.weight)
        return model, np.asarray(model.decision_function(self.K[:, rows.point]), dtype=float)

    def fitted_linear(self, model: Any, rows: SampledRows) -> tuple[Any, NDArray[Any]]:
        """A linear model on the kernel's features, which is the same machine."""
        values, vectors = np.linalg.eigh(self.K)
        kept = values > 1e-12 * values[-1]
        features = vectors[:, kept] * np.sqrt(values[kept])
        model.fit(features[rows.point], rows.label, sample_weight=rows.weight)
        return model, np.asarray(model.decision_function(features), dtype=float)


@dataclass(frozen=True)
class SampledRows:
    """Points by their number, labels and how often each was seen."""

    point: NDArray[Any]
    label: NDArray[Any]
    weight: NDArray[Any]


def world(gamma: float = 20.0, swing: float = 0.4) -> World:
    """P(+1 | x) = 1/2 + swing sin(2 pi x), kernel exp(-gamma (x - z)^2)."""
    x = (np.arange(_WORLD_POINTS) + 0.5) / _WORLD_POINTS
    eta = 0.5 + swing * np.sin(2 * np.pi * x)
    return World(x, eta, np.exp(-gamma * (x[:, None] - x[None]) ** 2))


WORLD_SENTENCE = (
    "X uniform on 120 points of [0, 1], P(+1 | x) = 1/2 + a sin(2 pi x), Gaussian kernel with "
    "gamma = 20: every risk is a finite sum and computed exactly, and a sample is a table of "
    "counts."
)


def slope(sizes: Any, values: Any) -> tuple[float, float]:
    """Exponent of a power law through the values, and its standard error.

    Examples
    --------
    >>> rate, error = slope([1, 10, 100], [1.0, 0.1, 0.01])
    >>> round(rate, 6)
    -1.0
    """
    line = stats.linregress(np.log(sizes), np.log(values))
    return float(line.slope), float(line.stderr)
