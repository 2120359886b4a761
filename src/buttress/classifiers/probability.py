"""Probabilities of true labels for margin machines: cross-fitted, and aware of label noise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import Array
from buttress._frames import collected
from buttress.blocks.sources import is_blocks
from buttress.classifiers.parameters import check_flag
from buttress.noise.core.crossfit import held_out_scores, make_folds
from buttress.noise.core.fitting import estimate_label_noise
from buttress.noise.core.label_noise import LabelNoise, LabelNoiseWarning

# Folds of the cross-fit, and the repeats whose scores are averaged.
_FOLDS, _REPEATS = 5, 1


def _wants_probability(estimator: Any) -> bool:
    if not getattr(estimator, "probability", False):
        raise AttributeError(
            "predict_proba is not available when probability=False: set probability=True and fit."
        )
    return True


class ProbabilityMixin:
    """`predict_proba` from a noise model of held-out scores; for every batch machine."""

    probability: bool
    noise_: LabelNoise

    def _train(self, X: Any, y: Any, sample_weight: Any, **params: Any) -> Any:
        """What the shared `fit` calls: the machine and, where wanted, its probabilities."""
        check_flag("probability", self.probability)
        self.__dict__.pop("noise_", None)
        if self.probability:
            X = collected(X)
            if is_blocks(X):
                raise ValueError(
                    "probability=True needs rows in memory: it refits the machine on parts of them."
                )
        super()._train(X, y, sample_weight, **params)  # type: ignore[misc]
        if self.probability:
            self.noise_ = _calibrated(self, X, y, sample_weight)
        return self

    @available_if(_wants_probability)
    def predict_proba(self, X: Any) -> Array:
        """P(true class) of every row (needs ``probability=True``).

        Decision values of five cross-fitted machines carry the noise model of
        `buttress.noise.fit_label_noise`, so labels that are wrong do not pull the probabilities
        towards one half. The class of the largest probability can differ from `predict` where
        the labels of one class are wrong more often than those of the other.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        scores = np.asarray(self.decision_function(X))  # type: ignore[attr-defined]
        return self.noise_.clean_proba(scores.reshape(len(scores), 1, -1))


def _calibrated(machine: Any, X: Any, y: Any, sample_weight: Any) -> LabelNoise:
    """The noise model of scores by clones that were not trained on the row."""
    # the band is not needed, and the rows it would be set on are
    without = {name: None for name in ("target_coverage", "target_risk") if hasattr(machine, name)}
    plain = clone(machine).set_params(probability=False, **without)
    data = clone(plain)._training_set(X, y, sample_weight)
    labels = data.classes[data.codes]
    smallest = int(np.bincount(data.codes).min())
    if smallest < 2:
        raise ValueError(
            "probability=True holds rows out and needs two rows of every class; a class has "
            f"{smallest}."
        )
    folds = make_folds(
        min(_FOLDS, smallest), _REPEATS, data.X, labels, None, machine.random_state or 0
    )
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)[data.rows]
    ready, rows = plain._ready_for_folds(data)
    scores = held_out_scores(ready, rows, labels, folds, sample_weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelNoiseWarning)
        return estimate_label_noise(scores[:, None], labels, sample_weight=weights, fewest_rows=1)
