"""Bands of their own for groups of rows, so that a promise holds in every group."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import (
    check_consistent_length,
    check_random_state,
    column_or_1d,
    indexable,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import BoolArray, IntArray
from buttress._documented import DocumentedMixin
from buttress._frames import collected
from buttress.classifiers.base import all_or_nothing
from buttress.classifiers.parameters import (
    check_common,
    check_flag,
    check_number,
    check_option,
)
from buttress.classifiers.reject import coverage_threshold, held_out_rows, labels_or_refusals
from buttress.classifiers.risk_control import START_FOLDS, START_ROWS, label_errors
from buttress.classifiers.wrapping import WrapperMixin
from buttress.metrics.scorer import confidence_scores
from buttress.noise.core.crossfit import PartFits
from buttress.theory.label_errors import LabelErrors
from buttress.theory.risk_control import (
    CalibrationRows,
    RiskCertificate,
    certify_risk,
    plan_thresholds,
)

# The name of the only group where none are given.
_ALL = "all"


class GroupwiseRejector(DocumentedMixin, WrapperMixin, ClassifierMixin, BaseEstimator):
    """Set the band of refusals for every group, or for every class answered, by itself.

    Parameters
    ----------
    estimator : classifier
        Anything with ``predict_proba`` or ``decision_function``; cloned and fitted.
    target_coverage : float in (0, 1], optional
        Share of answers in every group.
    target_risk : float in (0, 1), optional
        Error among the answers, promised in every group. One of the two targets is given.
    confidence : float in (0, 1), default=0.9
        Probability with which the promises of `target_risk` are kept, all of them together.
    noise_rates : pair, LabelNoise or array-like of shape (n_classes, 2), optional
        Limits of the share of wrong labels, as in `ChowRejector`: `target_risk` is then promised
        for the true labels.
    by : {"group", "class"}, default="group"
        "group": by the `groups` of `fit` and of `reject`. "class": by the label that is
        answered, so that the error among the answers "k" is bounded for every k.
    equalised : bool, default=False
        Whether all groups are to be refused alike: every group gets the smallest coverage that
        any of them reached, by a band of its own.
    random_state : int, RandomState or None, default=None
        For the quarter of the rows that is kept out of training for the bands.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    groups_ : ndarray of shape (n_groups,)
        Names of the groups (or the labels).
    band_widths_ : dict from group to float
        Answers are given above this confidence; infinite where nothing is answered.
    risk_certificates_ : dict from group to RiskCertificate
        With `target_risk`.
    cannot_tell_ : list
        Groups with too few held-out rows for their target; their rows get no answer.
    n_features_in_, feature_names_in_
        As in scikit-learn, when the classifier knows them.

    Notes
    -----
    `groups` name the rows whose bands are set apart; in a search they are the splitter's, which is
    why the bands of all estimators are asked for here, around them, and not in their own `fit`.
    A classifier in a ``FrozenEstimator`` is not trained, and most rows serve the bands.

    With G groups each is tested at level ``(1 - confidence) / G``, so that all promises hold
    together with probability `confidence`. Where the tests start is read off folds of the training
    rows. Confidence is half the distance of the two largest scores. A group that `fit` has not
    seen gets no answer. Equal coverage can only be had by refusing more rows of the groups that
    are easy. With `target_risk` an equalised band is stricter than the one that was certified; the
    promise carries over to it where the error does not grow with the confidence.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.normal(size=(3000, 1)), np.repeat(["easy", "hard"], 1500)
    >>> noise = np.where(groups == "hard", 0.5, 0.2)
    >>> y = (X[:, 0] + noise * rng.normal(size=3000) > 0).astype(int)
    >>> model = GroupwiseRejector(LogisticRegression(), target_risk=0.1, random_state=0)
    >>> model = model.fit(X, y, groups=groups)
    >>> model.band_widths_["hard"] > model.band_widths_["easy"]
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        target_coverage: float | None = None,
        target_risk: float | None = None,
        confidence: float = 0.9,
        noise_rates: Any = None,
        by: str = "group",
        equalised: bool = False,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.target_coverage = target_coverage
        self.target_risk = target_risk
        self.confidence = confidence
        self.noise_rates = noise_rates
        self.by = by
        self.equalised = equalised
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, groups: Any = None, **fit_params: Any) -> GroupwiseRejector:
        """Fit the classifier, and one band for every group on rows kept out.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            The group of every row; without, and with ``by="group"``, all rows are one group.
        **fit_params : dict
            Passed to the classifier's `fit`, as ``sample_weight``.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = indexable(collected(X), column_or_1d(y, warn=True))
        check_classification_targets(y)
        if groups is not None:
            groups = column_or_1d(groups)
            check_consistent_length(y, groups)
        labels, codes = np.unique(y, return_inverse=True)
        noise = label_errors(self.noise_rates, len(labels))
        frozen = isinstance(self.estimator, FrozenEstimator)
        wanted_by, most = "a band by groups", START_ROWS if frozen else None
        kept, out = held_out_rows(codes, self.random_state, wanted_by, most)
        train, held = (out, kept) if frozen else (kept, out)
        rows = _Rows(self.estimator, X, y, self._routed(fit_params), groups)
        self.estimator_ = rows.fitted(train)
        self.classes_ = self.estimator_.classes_
        self._take_features()
        judged = [self._judged(rows, self.estimator_, train, held, noise)]
        if self.target_risk is not None:
            judged.append(self._judged_in_folds(rows, train, codes[train], noise))
        self._set_bands(judged)
        return self

    def _set_bands(self, judged: list[tuple[CalibrationRows, NDArray[Any]]]) -> None:
        """One band for every group of the first, held-out rows."""
        self.groups_ = np.unique(judged[0][1])
        self.risk_certificates_: dict[Any, RiskCertificate] = {}
        widths = {
            group: self._width([_only(rows_and_groups, group) for rows_and_groups in judged], group)
            for group in self.groups_.tolist()
        }
        self.cannot_tell_ = [group for group, width in widths.items() if math.isinf(width)]
        if self.equalised:
            widths = self._equal(widths, judged[0])
        self.band_widths_ = widths
        if self.cannot_tell_:
            lacking = "; ".join(self._what_lacks(group) for group in self.cannot_tell_)
            warnings.warn(
                f"Groups {self.cannot_tell_} have too few held-out rows, or too many errors, for "
                f"the target: cannot tell, and their rows get no answer ({lacking}).",
                stacklevel=4,
            )

    def _what_lacks(self, group: Any) -> str:
        if self.target_coverage is not None:
            fewest = math.ceil(1.0 / (1.0 - self.target_coverage) - 1e-9) - 1
            return f"{group!r}: {fewest} held-out rows needed"
        certificate = self.risk_certificates_.get(group)
        if certificate is None:
            return f"{group!r}: too few rows to say how many are needed"
        more = certificate.rows_missing
        if more is None:
            return f"{group!r}: more rows would not help at the errors seen"
        return f"{group!r}: about {more} more held-out rows needed"

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of every row, also of those that `reject` names.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(collected(X)))

    def reject(self, X: Any, groups: Any = None) -> BoolArray:
        """Which rows get no answer.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,), optional
            As in `fit`; needed when that had groups.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
        """
        check_is_fitted(self)
        if self.by == "group" and groups is None and self.groups_.tolist() != [_ALL]:
            raise ValueError(
                f"groups are needed: fit has set the bands of the groups {self.groups_.tolist()}."
            )
        X = collected(X)
        sure = confidence_scores(self.estimator_, X)
        names = self._names(self.predict(X), groups)
        width = np.array([self.band_widths_.get(name, math.inf) for name in names.tolist()])
        return np.asarray((sure <= width) & (width > 0))

    def predict_or_reject(
        self, X: Any, groups: Any = None, reject_label: Any = None
    ) -> NDArray[Any]:
        """The label of every row, or no answer.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,), optional
        reject_label : object, optional
            Stands for "no answer"; a masked array is returned without it.

        Returns
        -------
        masked array of shape (n_samples,), or ndarray
        """
        return labels_or_refusals(
            self.predict(X), self.reject(X, groups), reject_label, self.classes_
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "band_widths_")

    def _check_parameters(self) -> None:
        self._check_estimator()
        if (self.target_coverage is None) == (self.target_risk is None):
            raise ValueError(
                f"target_coverage={self.target_coverage!r}, target_risk={self.target_risk!r}: "
                "expected exactly one of the two."
            )
        if self.target_coverage is not None:
            check_number("target_coverage", self.target_coverage, "(0, 1]")
        else:
            check_number("target_risk", self.target_risk, "(0, 1)")
        check_number("confidence", self.confidence, "(0, 1)")
        check_option("by", self.by, ["group", "class"])
        check_flag("equalised", self.equalised)
        if isinstance(self.noise_rates, str):
            raise ValueError(
                f"noise_rates={self.noise_rates!r} is not accepted here: pass limits, or the "
                "LabelNoise that buttress.noise.fit_label_noise makes of held-out scores."
            )
        check_common(self)

    def _names(self, pred: NDArray[Any], groups: Any) -> NDArray[Any]:
        if self.by == "class":
            return pred
        if groups is None:
            return np.full(len(pred), _ALL)
        groups = column_or_1d(groups)
        if len(groups) != len(pred):
            raise ValueError(f"groups has {len(groups)} entries, expected {len(pred)}.")
        return np.asarray(groups)

    def _judged(
        self, rows: _Rows, model: Any, train: IntArray, test: IntArray, noise: LabelErrors | None
    ) -> tuple[CalibrationRows, NDArray[Any]]:
        """What a model of some rows says of others, and their groups."""
        held_out = rows.taken(test, train)
        pred = np.asarray(model.predict(held_out))
        names = self._names(pred, None if rows.groups is None else rows.groups[test])
        sure = np.asarray(confidence_scores(model, held_out))
        index = np.searchsorted(self.classes_, pred)
        return CalibrationRows(sure, np.asarray(pred != rows.y[test]), index, noise), names

    def _judged_in_folds(
        self, rows: _Rows, train: IntArray, codes: IntArray, noise: LabelErrors | None
    ) -> tuple[CalibrationRows, NDArray[Any]]:
        """Training rows as models of the other folds see them: they say where the tests start."""
        if isinstance(self.estimator, FrozenEstimator):
            return self._judged(rows, self.estimator_, train, train, noise)
        n_folds = max(2, min(START_FOLDS, int(np.bincount(codes).min())))
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        by_fold = [
            self._judged(rows, rows.fitted(train[inside]), train[inside], train[outside], noise)
            for inside, outside in splitter.split(np.zeros(len(train)), codes)
        ]
        seen = [judged for judged, _ in by_fold]
        pooled = CalibrationRows(
            np.concatenate([judged.confidence for judged in seen]),
            np.concatenate([judged.wrong for judged in seen]),
            np.concatenate([np.asarray(judged.answer) for judged in seen]),
            noise,
        )
        return pooled, np.concatenate([names for _, names in by_fold])

    def _width(self, judged: list[CalibrationRows], group: Any) -> float:
        held = judged[0]
        if self.target_coverage is not None:
            sure = held.confidence
            # fewer rows cannot resolve the share of refusals
            if (1.0 - self.target_coverage) * (len(sure) + 1) < 1.0 and self.target_coverage < 1.0:
                return math.inf
            return coverage_threshold(sure, self.target_coverage)
        target, level = float(self.target_risk or 0.0), (1.0 - self.confidence) / len(self.groups_)
        start = judged[1]
        if len(held.wrong) == 0 or len(start.wrong) == 0:
            return math.inf
        plan = plan_thresholds(start, target, level, len(held.wrong))
        certificate = certify_risk(held, plan, target, 1.0 - level)
        self.risk_certificates_[group] = certificate
        return certificate.threshold

    def _equal(
        self, widths: dict[Any, float], judged: tuple[CalibrationRows, NDArray[Any]]
    ) -> dict[Any, float]:
        """Bands with which every group that can be told has the smallest coverage of them."""
        rows, names = judged
        sure = {g: rows.confidence[names == g] for g, w in widths.items() if not math.isinf(w)}
        if not sure:
            return widths
        share = min(
            float(np.mean(c > widths[g])) if widths[g] > 0 else 1.0 for g, c in sure.items()
        )
        equal = {
            g: max(widths[g], coverage_threshold(c, max(share, 1e-9))) for g, c in sure.items()
        }
        return widths | equal


@dataclass(frozen=True, eq=False)
class _Rows(PartFits):
    """The rows given to `fit`, with their groups."""

    groups: NDArray[Any] | None


def _only(judged: tuple[CalibrationRows, NDArray[Any]], group: Any) -> CalibrationRows:
    rows, names = judged
    inside = names == group
    return CalibrationRows(
        rows.confidence[inside], rows.wrong[inside], np.asarray(rows.answer)[inside], rows.noise
    )
