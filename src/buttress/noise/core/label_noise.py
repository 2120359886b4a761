"""What a noise model knows: rates with intervals, true classes, wrong labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, IntArray
from buttress.noise.core._curves import class_probabilities, true_class_posterior
from buttress.noise.core.estimate import Estimate, check_weight, encode

# Share of a row that every row counts for in the posterior. Scores are no fixed covariates: they
# share folds and neighbours, and the curve is never quite logistic. With it 90 % intervals cover
# in 9 of 10 cells of the development sets, with 1 in 7.
ROW_SHARE = 0.6
# Numbers per block when rows are judged under all draws (64 MB).
_BLOCK_ENTRIES = 8_000_000


class LabelNoiseWarning(UserWarning):
    """The noise model was fitted, but should be read with care."""


@dataclass(frozen=True, eq=False, repr=False)
class LabelNoise:
    """How often labels are wrong, and what follows for every row. Made by `fit_label_noise`.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The labels.
    kind : {"uniform", "per_class"}
        Whether one rate serves all classes or the labels show that they differ.
    transition_ : ndarray of shape (n_classes, n_classes)
        P(given = column | true = row), posterior mean.
    loglik : float
        Log-likelihood of the labels at the most probable point.
    log_bayes_factor : float
        Evidence for rates that differ against one rate (natural logarithm).
    p_value : float
        Chance of a worse fit of the curve to binned labels if the model were true.
    level : float
        Level of the intervals.
    n_rows : int
        Rows of positive weight.
    log_evidence : float
        Logarithm of the probability of the labels under noise, rates and curve integrated out, up
        to a constant that all models of the same rows share.
    """

    classes: NDArray[Any]
    kind: str
    transition_: Array
    loglik: float
    log_bayes_factor: float
    p_value: float
    level: float
    n_rows: int
    log_evidence: float
    rate_bounds: Array = field(repr=False)
    centre: Array = field(repr=False)
    scale: Array = field(repr=False)
    transition_draws: Array = field(repr=False)
    coefficient_draws: Array = field(repr=False)
    # P(true class = column | class of the curve = row) of every draw; None: they are the same
    overlap_draws: Array | None = field(default=None, repr=False)

    @property
    def rates_(self) -> dict[Any, Estimate]:
        """Share of wrong labels among the rows that truly belong to each class."""
        means = 1.0 - np.diag(self.transition_)
        return {
            label: Estimate(mean, min(low, mean), max(high, mean), self.level)
            for label, mean, (low, high) in zip(
                self.classes.tolist(), means.tolist(), self.rate_bounds.tolist(), strict=True
            )
        }

    def __repr__(self) -> str:
        rates = ", ".join(f"{label!r}: {rate!r}" for label, rate in self.rates_.items())
        return f"LabelNoise({self.kind}, rates {{{rates}}}, {self.n_rows} rows)"

    def clean_proba(self, scores: Any) -> Array:
        """P(true class) of rows from their scores alone.

        Parameters
        ----------
        scores : array
            As in `fit_label_noise`, of any rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._averaged(scores, None)

    def true_proba(self, scores: Any, y: Any) -> Array:
        """`clean_proba` of rows whose given labels are known too."""
        return self._averaged(scores, encode(y, self.classes))

    def clean_proba_draws(self, scores: Any) -> Iterator[Array]:
        """P(true class) of rows under one draw from the posterior after the other."""
        features = self._design_rows(scores)
        for draw in range(len(self.coefficient_draws)):
            yield self._clean(features, slice(draw, draw + 1))[0]

    def wrong_proba(self, scores: Any, y: Any) -> Array:
        """P(the given label is wrong) of every row, from scores and given labels."""
        codes = encode(y, self.classes)
        return against_labels(self._averaged(scores, codes), codes)

    def suggested(self, scores: Any, y: Any) -> NDArray[Any]:
        """The most probable true label of every row, from scores and given labels."""
        return np.asarray(self.classes[self.true_proba(scores, y).argmax(axis=1)])

    def wrong_counts(self, scores: Any, y: Any, sample_weight: Any = None) -> Array:
        """Expected number of wrong labels under every draw, with the scatter of labels added.

        Their spread is what is not known about the number. Labels scatter like those of
        `ROW_SHARE` times as many rows, as in the posterior.
        """
        codes = encode(y, self.classes)
        weight = check_weight(sample_weight, len(codes))
        features = self._design_rows(scores)
        mean, variance = np.zeros((2, len(self.coefficient_draws)))
        for rows, posterior in self._blocks(features, codes):
            wrong = 1.0 - posterior[:, np.arange(rows.stop - rows.start), codes[rows]]
            mean += wrong @ weight[rows]
            variance += (wrong * (1.0 - wrong)) @ weight[rows] ** 2
        noise = np.random.default_rng(0).standard_normal(len(mean))
        return np.clip(mean + np.sqrt(variance / ROW_SHARE) * noise, 0.0, weight.sum())

    def false_shares(self, scores: Any, y: Any) -> tuple[Array, Array]:
        """Share of correct labels among the first k of these rows, for every k.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Over the draws from the posterior.
        deviation : ndarray of shape (n_samples,)
            The same.
        """
        codes = encode(y, self.classes)
        n, m = len(codes), len(self.coefficient_draws)
        right = np.empty((m, n))
        for rows, posterior in self._blocks(self._design_rows(scores), codes):
            right[:, rows] = posterior[:, np.arange(rows.stop - rows.start), codes[rows]]
        share = np.cumsum(right, axis=1) / np.arange(1, n + 1)
        return np.asarray(share.mean(axis=0)), np.asarray(share.std(axis=0))

    def _averaged(self, scores: Any, codes: IntArray | None) -> Array:
        features = self._design_rows(scores)
        if codes is not None and len(codes) != len(features):
            raise ValueError(f"y has {len(codes)} labels for {len(features)} rows of scores.")
        proba = np.empty((len(features), len(self.classes)))
        for rows, posterior in self._blocks(features, codes):
            proba[rows] = posterior.mean(axis=0)
        return proba

    def _blocks(self, features: Array, codes: IntArray | None) -> Iterator[tuple[slice, Array]]:
        m = len(self.coefficient_draws)
        step = max(1, _BLOCK_ENTRIES // (m * len(self.classes)))
        for start in range(0, len(features), step):
            rows = slice(start, min(start + step, len(features)))
            proba = self._clean(features[rows], slice(None))
            if codes is not None:
                proba, _ = true_class_posterior(proba, codes[rows], self.transition_draws)
            yield rows, proba

    def _clean(self, features: Array, draws: slice) -> Array:
        """P(true class) of rows under some of the draws, shape (n_draws, n, n_classes)."""
        proba = class_probabilities(features, self.coefficient_draws[draws])
        return proba if self.overlap_draws is None else proba @ self.overlap_draws[draws]

    def _design_rows(self, scores: Any) -> Array:
        table = score_table(scores, len(self.classes))
        if table.shape[1] != len(self.centre):
            raise ValueError(
                f"scores have {table.shape[1]} witnesses, the model was fitted to "
                f"{len(self.centre)}."
            )
        return score_features((table - self.centre[:, None]) / self.scale[:, None])


def against_labels(proba: Array, codes: IntArray) -> Array:
    """The probability of all classes but the given one."""
    others = proba.copy()
    others[np.arange(len(codes)), codes] = 0.0
    return np.asarray(np.minimum(others.sum(axis=1), 1.0))


def score_table(scores: Any, n_classes: int) -> Array:
    """Scores as an array of shape (n, n_witnesses, columns): one column for two classes."""
    table = np.asarray(scores, dtype=np.float64)
    if n_classes == 2:
        table = table[:, None] if table.ndim == 1 else table
        table = table[:, :, None] if table.ndim == 2 else table
        if table.ndim == 3 and table.shape[2] == 2:
            table = table[:, :, 1:] - table[:, :, :1]
        columns = 1
    else:
        table = table[:, None, :] if table.ndim == 2 else table
        columns = n_classes
    if table.ndim != 3 or table.shape[2] != columns or table.shape[1] == 0:
        raise ValueError(
            f"scores have shape {np.shape(scores)}, which does not fit {n_classes} classes: "
            "expected one column per model (two classes) or one per class (more classes)."
        )
    if not np.isfinite(table).all():
        raise ValueError("scores hold NaN or infinite values; every row needs a held-out score.")
    return np.asarray(table)


def score_features(table: Array) -> Array:
    """Slopes of the witnesses and intercepts of the classes, against the first class."""
    n, _, columns = table.shape
    if columns == 1:
        return np.concatenate([np.swapaxes(table, 1, 2), np.ones((n, 1, 1))], axis=2)
    against = np.swapaxes(table[:, :, 1:] - table[:, :, :1], 1, 2)
    intercepts = np.broadcast_to(np.eye(columns - 1), (n, columns - 1, columns - 1))
    return np.concatenate([against, intercepts], axis=2)
