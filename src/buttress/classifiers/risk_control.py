"""`target_risk`: the band of a fitted classifier set so that an error rate can be promised."""

from __future__ import annotations

import functools
import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state, column_or_1d, indexable
from sklearn.utils.multiclass import check_classification_targets

from buttress._arrays import Array, IntArray
from buttress._frames import collected, rows_of
from buttress._user_warnings import warn_user
from buttress.blocks.sources import is_blocks
from buttress.classifiers.parameters import check_noise_rates, check_number, check_option
from buttress.classifiers.reject import HELD_OUT, coverage_threshold, held_out_rows
from buttress.metrics.scorer import half_gap
from buttress.noise.core.fitting import fit_label_noise
from buttress.noise.core.label_noise import LabelNoise
from buttress.theory.label_errors import LabelErrors
from buttress.theory.risk_control import (
    CalibrationRows,
    RiskCertificate,
    certify_risk,
    plan_blindly,
    plan_thresholds,
)

# Folds that say where the sequence of thresholds starts, and folds of `certify_on="folds"`.
START_FOLDS = 3
_CROSS_FOLDS = 5
# Rows that say where the sequence starts for a classifier that is not trained here: more of them
# place the start no better (coverage on 200 draws of 10 000 rows: .428, with 2500 of them .424).
START_ROWS = 500


class Refit(Protocol):
    """How an estimator is trained on some rows, and what it says of others."""

    def train(self, rows: IntArray) -> None:
        """Fit the estimator itself."""
        ...

    def scores(self, rows: IntArray) -> Array:
        """Scores of rows by the estimator itself."""
        ...

    def fold_scores(self, train: IntArray, test: IntArray) -> Array:
        """Scores of rows by a copy with the same settings, trained on other rows."""
        ...


class RiskControlMixin:
    """Parameters and checks of `target_risk`, and the band it sets.

    A class that uses it has the reject interface. Batch machines list it before the mixin whose
    training it keeps the promise for, and after `ProbabilityMixin`, whose probabilities come from
    all rows; the `fit` of others calls `_fit_with_band`.
    """

    classes_: NDArray[Any]
    thresholds_: Array
    target_coverage: float | None
    target_risk: float | None = None
    confidence: float
    certify_on: str
    noise_rates: Any
    random_state: Any

    def _check_risk(self) -> None:
        check_number("target_risk", self.target_risk, "(0, 1)")
        check_number("confidence", self.confidence, "(0, 1)")
        check_option("certify_on", self.certify_on, ["held_out", "folds"])
        if self.target_coverage is not None:
            raise ValueError(
                f"target_coverage={self.target_coverage!r} and target_risk={self.target_risk!r} "
                "cannot both set the band: leave one of them None."
            )

    def _train(self, X: Any, y: Any, sample_weight: Any, **params: Any) -> Any:
        """What the shared `fit` calls: train, and set the band for `target_risk` where it is given.

        Rows kept out of training get the weight zero, which every batch estimator here removes
        first: fitted attributes then speak of the user's rows, whatever the kernel.
        """
        plain = functools.partial(super()._train, **params)  # type: ignore[misc]
        self.__dict__.pop("risk_certificate_", None)
        if self.target_risk is None:
            return plain(X, y, sample_weight)
        self._check_risk()
        if is_blocks(X):
            raise ValueError(
                f"target_risk={self.target_risk!r} needs rows in memory: pass an array or a data "
                "frame, or put ChowRejector around the fitted model in a FrozenEstimator."
            )
        X, y = indexable(collected(X), column_or_1d(y, warn=True))
        check_classification_targets(y)
        weight = np.ones(len(y))
        if sample_weight is not None:
            weight = weight * np.asarray(sample_weight, dtype=np.float64)
        refit = _ByWeights(self, plain, X, y, weight)
        self._fit_with_promise(refit, y, np.flatnonzero(weight > 0))
        if hasattr(self, "rejection_rate_"):
            used = refit.trained
            rejected = self._rejected(refit.scores(used))  # type: ignore[attr-defined]
            self.rejection_rate_ = float(np.average(rejected, weights=weight[used]))
        if hasattr(self, "best_estimator_"):
            self.best_estimator_.target_risk = self.target_risk
            self.best_estimator_.thresholds_ = self.thresholds_
        return self

    def _sets_band_on_others(self) -> bool:
        """Whether the band is set on rows that the classifier was not trained on."""
        return self.target_coverage is not None or self.target_risk is not None

    def _fit_with_band(self, refit: Refit, y: NDArray[Any], frozen: bool = False) -> None:
        """Train, and set `thresholds_` for `target_risk` or for `target_coverage`."""
        if self.target_risk is not None:
            self._check_risk()
            self._fit_with_promise(refit, y, np.arange(len(y)), frozen)
            return
        train, held = held_out_rows(np.unique(y, return_inverse=True)[1], self.random_state)
        refit.train(train)
        width = coverage_threshold(half_gap(refit.scores(held)), float(self.target_coverage or 0.0))
        self.thresholds_ = np.array([-width, width])

    def _fit_with_promise(
        self, refit: Refit, y: NDArray[Any], rows: IntArray, frozen: bool = False
    ) -> None:
        """Train, set `thresholds_` and store `risk_certificate_`.

        Parameters
        ----------
        refit : Refit
        y : array of shape (n,)
            Given labels of all rows.
        rows : integer array
            The rows that count.
        frozen : bool
            Whether training changes nothing, so that most rows serve the test.
        """
        classes, codes = np.unique(y[rows], return_inverse=True)
        label_errors(self.noise_rates, len(classes))  # an error before any training
        cross = self.certify_on == "folds"
        if cross:
            train = held = rows
        else:
            most = START_ROWS if frozen else None
            kept, out = held_out_rows(codes, self.random_state, "target_risk", most)
            train, held = (rows[out], rows[kept]) if frozen else (rows[kept], rows[out])
        refit.train(train)
        n_folds = _CROSS_FOLDS if cross else START_FOLDS
        folded = self._out_of_fold(refit, train, np.searchsorted(classes, y[train]), n_folds)
        # where the sequence starts needs a rate, not which class has it: a fifth of the time
        noise = self._believed_noise(folded, y[train], "auto" if cross else "uniform")
        confidence = float(self.confidence)
        target, level = float(self.target_risk or 0.0), 1.0 - confidence
        others = self._calibration_rows(folded, y[train], noise)
        if cross:
            seen, plan = others, plan_blindly(others.confidence, target, level)
        else:
            plan = plan_thresholds(others, target, level, len(held))
            scores = refit.scores(held)
            if isinstance(self.noise_rates, str):
                # rates from the rows of the test too, where chance moves them and the errors the
                # same way; only the plan must not know these labels
                pooled = np.concatenate([folded, scores]), np.concatenate([y[train], y[held]])
                noise = self._believed_noise(*pooled)
            seen = self._calibration_rows(scores, y[held], noise)
        certificate = certify_risk(seen, plan, target, confidence, self.certify_on)
        self._set_promised_band(certificate)

    def _out_of_fold(self, refit: Refit, rows: IntArray, codes: IntArray, n_folds: int) -> Array:
        """What models trained on the other folds say of every row."""
        n_folds = max(2, min(n_folds, int(np.bincount(codes).min())))
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        folds = list(splitter.split(np.zeros(len(rows)), codes))
        by_fold = [refit.fold_scores(rows[train], rows[test]) for train, test in folds]
        scores = np.empty((len(rows), *by_fold[0].shape[1:]))
        for (_, test), fold_scores in zip(folds, by_fold, strict=True):
            scores[test] = fold_scores
        return scores

    def _believed_noise(
        self, scores: Array, y: NDArray[Any], kind: str = "auto"
    ) -> LabelErrors | None:
        """What is known of the noise rates: limits, or draws of an estimate's posterior."""
        if isinstance(self.noise_rates, str):
            fitted = fit_label_noise(self._noise_scores(scores), y, rates=kind)
            diagonal = np.diagonal(fitted.transition_draws, axis1=1, axis2=2)
            rates = np.clip(1.0 - diagonal, 0.0, 0.49)
            return LabelErrors.drawn(rates)
        return label_errors(self.noise_rates, len(self.classes_))

    def _noise_scores(self, scores: Array) -> Array:
        """Scores on the scale on which the noise model's curve is logistic."""
        return scores

    def _calibration_rows(
        self, scores: Array, y: NDArray[Any], noise: LabelErrors | None
    ) -> CalibrationRows:
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return CalibrationRows(
            half_gap(scores), np.asarray(self.classes_[index] != y), index, noise
        )

    def _set_promised_band(self, certificate: RiskCertificate) -> None:
        self.risk_certificate_ = certificate
        width = certificate.threshold
        self.thresholds_ = np.array([-width, width])
        if not certificate.certified:
            warn_user(_why_no_answer(certificate))


class _ByWeights:
    """Training on some rows by weights of zero for the others."""

    def __init__(self, model: Any, fit: Any, X: Any, y: NDArray[Any], weight: Array) -> None:
        self.model, self.fit, self.X, self.y, self.weight = model, fit, X, y, weight
        self.trained = np.empty(0, dtype=int)

    def train(self, rows: IntArray) -> None:
        model, target = self.model, self.model.target_risk
        # a plain fit first: its band is replaced afterwards
        model.target_risk = None
        self.fit(self.X, self.y, self._only(rows))
        model.target_risk = target
        self.trained = rows

    def scores(self, rows: IntArray) -> Array:
        return np.asarray(self.model.decision_function(rows_of(self.X, rows)))

    def fold_scores(self, train: IntArray, test: IntArray) -> Array:
        # a search has chosen its parameters on the rows it was trained on: the folds keep them
        settings = getattr(self.model, "best_estimator_", self.model)
        # neither a band nor probabilities are asked of the folds
        plain = {"target_risk": None, "probability": False}
        known = settings.get_params(deep=False)
        model = clone(settings).set_params(**{name: plain[name] for name in plain if name in known})
        model.fit(self.X, self.y, sample_weight=self._only(train))
        return np.asarray(model.decision_function(rows_of(self.X, test)))

    def _only(self, rows: IntArray) -> Array:
        weight = np.zeros(len(self.y))
        weight[rows] = self.weight[rows]
        return weight


def label_errors(noise_rates: Any, n_classes: int) -> LabelErrors | None:
    """`noise_rates` as intervals per class.

    Parameters
    ----------
    noise_rates : None, "estimate", pair, LabelNoise or array-like of shape (n_classes, 2)
    n_classes : int

    Examples
    --------
    >>> label_errors([(0.0, 0.1), (0.2, 0.3)], 2).high
    array([0.1, 0.3])
    """
    check_noise_rates(noise_rates)
    if noise_rates is None or isinstance(noise_rates, str):
        return None
    if isinstance(noise_rates, LabelNoise):
        bounds = np.clip(noise_rates.rate_bounds, 0.0, 0.49)
        if noise_rates.kind == "uniform":
            return LabelErrors.symmetric(bounds[0, 0], bounds[0, 1], n_classes)
        noise_rates = bounds
    given = np.asarray(noise_rates, dtype=np.float64)
    if given.shape == (2,):
        return LabelErrors.symmetric(given[0], given[1], n_classes)
    if given.shape != (n_classes, 2):
        raise ValueError(
            f"noise_rates has shape {given.shape}: expected a pair (lower, upper), or one such "
            f"pair for each of the {n_classes} classes."
        )
    return LabelErrors(given[:, 0].copy(), given[:, 1].copy())


def _why_no_answer(certificate: RiskCertificate) -> str:
    held = "" if certificate.method == "folds" else "held-out "
    text = (
        f"No row gets an answer: an error of at most {certificate.target:g} cannot be promised "
        f"with confidence {certificate.confidence:g} from {certificate.n_rows} {held}rows "
        f"({certificate.errors} errors among the {certificate.n} surest, where the test started, "
        f"upper bound {certificate.bound:.3g}). "
    )
    more = certificate.rows_missing
    if more is None:
        return text + (
            "No error seen among the surest is below the target, so that more rows would not "
            "help: raise target_risk or improve the model."
        )
    if certificate.method == "held_out":
        return text + (
            f"At the errors seen about {more} more held-out rows would be needed, "
            f"{math.ceil(more / HELD_OUT)} more rows in all."
        )
    return text + f"At the errors seen about {more} more rows would be needed."
