"""Weights of given labels under which the boundary is that of true ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.noise.core.fitting import estimate_label_noise
from buttress.noise.core.label_noise import LabelNoiseWarning

# Log Bayes factor from which a boundary is moved: wrong weights cost more than a wrong order of
# suspects, which needs log 3.
_EVIDENCE_FOR_WEIGHTS = 3.0


@dataclass(frozen=True, eq=False)
class ClassNoise:
    """Noise rates of the classes, and what they mean for training.

    Attributes
    ----------
    rates : array of shape (n_classes,)
    log_bayes_factor : float
        Evidence that the rates differ.
    """

    rates: Array
    log_bayes_factor: float

    @property
    def factors(self) -> Array:
        """Weights of the two given labels; ones unless the labels show that the rates differ.

        With rates r_0 and r_1 the share of given labels 1 where both true labels are equally
        likely is ``(1 - r_1 + r_0) / 2``; weighting labels 1 by ``1 + r_1 - r_0`` and labels 0 by
        ``1 - r_1 + r_0`` brings that level to one half.
        """
        if len(self.rates) != 2 or self.log_bayes_factor < _EVIDENCE_FOR_WEIGHTS:
            return np.ones(len(self.rates))
        shift = float(self.rates[1] - self.rates[0])
        return np.array([1.0 - shift, 1.0 + shift])


def class_noise(scores: Array, codes: IntArray, weight: Array | None = None) -> ClassNoise:
    """Noise rates from held-out decision values, in silence; zeros where scores say nothing.

    Parameters
    ----------
    scores : array of shape (n, n_columns)
    codes : array of shape (n,)
    weight : array of shape (n,), optional

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 400)
    >>> scores = np.where(truth == 1, 2.0, -2.0) + rng.standard_normal(400)
    >>> given = np.where((truth == 1) & (rng.random(400) < 0.3), 0, truth)
    >>> found = class_noise(scores[:, None], given)
    >>> bool(found.factors[1] > 1.2 > 0.8 > found.factors[0])
    True
    """
    n_classes = max(int(codes.max()) + 1, 2)
    # squares of differences below 1e-150 vanish
    if np.ptp(scores) <= max(1e-12 * float(np.abs(scores).max()), 1e-150):
        return ClassNoise(np.zeros(n_classes), 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelNoiseWarning)
        noise = estimate_label_noise(
            scores[:, None],
            codes,
            sample_weight=weight,
            # weights of labels exist for two classes only
            rates="auto" if n_classes == 2 else "uniform",
            fewest_rows=1,
        )
    rates = 1.0 - np.diag(noise.transition_)
    return ClassNoise(np.asarray(rates), noise.log_bayes_factor)
