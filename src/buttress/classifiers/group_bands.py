"""Bands of their own for groups of rows, so that a promise holds in every group."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, column_or_1d, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import BoolArray, IntArray
from buttress._documented import DocumentedMixin
from buttress.classifiers.base import all_or_nothing
from buttress.classifiers.parameters import check_common, check_flag, check_number, check_option
from buttress.classifiers.reject import coverage_threshold, held_out_rows, labels_or_refusals
from buttress.metrics.scorer import confidence_scores
from buttress.theory.risk_control import (
    CalibrationRows,
    RiskCertificate,
    certify_risk,
    plan_thresholds,
)


class GroupwiseRejector(DocumentedMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
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
    n_features_in_ : int
        Number of features, when the classifier knows it.

    Notes
    -----
    With G groups each is tested at level ``(1 - confidence) / G``, so that all promises hold
    together with probability `confidence`. Confidence is half the distance of the two largest
    scores. A group that `fit` has not seen gets no answer. Equal coverage can only be had by
    refusing more rows of the groups that are easy. With `target_risk` an equalised band is
    stricter than the one that was certified; the promise carries over to it where the error
    does not grow with the confidence.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.normal(size=(3000, 1)), np.repeat(["easy", "hard"], 1500)
    >>> noise = np.where(groups == "hard", 1.0, 0.2)
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
        by: str = "group",
        equalised: bool = False,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.target_coverage = target_coverage
        self.target_risk = target_risk
        self.confidence = confidence
        self.by = by
        self.equalised = equalised
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, groups: Any = None) -> GroupwiseRejector:
        """Fit the classifier, and one band for every group on rows kept out.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            The group of every row; without, and with ``by="group"``, all rows are one group.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = indexable(X, column_or_1d(y, warn=True))
        check_classification_targets(y)
        codes = np.unique(y, return_inverse=True)[1]
        train, held = held_out_rows(codes, self.random_state, "a band by groups")
        # a third of the rows kept out says where the tests start
        start, test = held[::3], np.setdiff1d(held, held[::3])
        self.estimator_ = clone(self.estimator).fit(_safe_indexing(X, train), y[train])
        self.classes_ = self.estimator_.classes_
        if hasattr(self.estimator_, "n_features_in_"):
            self.n_features_in_ = self.estimator_.n_features_in_
        rows = {"start": start, "test": test, "all": held}
        known = {name: self._judged(X, y, groups, part) for name, part in rows.items()}
        self.groups_ = np.unique(known["all"][1])
        self.risk_certificates_: dict[Any, RiskCertificate] = {}
        widths = {}
        for group in self.groups_.tolist():
            parts = {name: _only(judged, group) for name, judged in known.items()}
            widths[group] = self._width(parts, group)
        self.cannot_tell_ = [group for group, width in widths.items() if math.isinf(width)]
        if self.equalised:
            widths = self._equal(widths, known["all"])
        self.band_widths_ = widths
        if self.cannot_tell_:
            warnings.warn(
                f"Groups {self.cannot_tell_} have too few held-out rows, or too many errors, for "
                "the target: cannot tell, and their rows get no answer.",
                stacklevel=3,
            )
        return self

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
        return np.asarray(self.estimator_.predict(X))

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        tags.classifier_tags.multi_class = get_tags(self.estimator).classifier_tags.multi_class
        return tags

    def _check_parameters(self) -> None:
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
        check_common(self)

    def _names(self, pred: NDArray[Any], groups: Any) -> NDArray[Any]:
        if self.by == "class":
            return pred
        if groups is None:
            return np.full(len(pred), "all")
        groups = column_or_1d(groups)
        if len(groups) != len(pred):
            raise ValueError(f"groups has {len(groups)} entries, expected {len(pred)}.")
        return np.asarray(groups)

    def _judged(
        self, X: Any, y: NDArray[Any], groups: Any, rows: IntArray
    ) -> tuple[CalibrationRows, NDArray[Any]]:
        part = _safe_indexing(X, rows)
        pred = np.asarray(self.estimator_.predict(part))
        names = self._names(pred, None if groups is None else column_or_1d(groups)[rows])
        sure = np.asarray(confidence_scores(self.estimator_, part))
        return CalibrationRows(sure, np.asarray(pred != y[rows])), names

    def _width(self, parts: dict[str, CalibrationRows], group: Any) -> float:
        if self.target_coverage is not None:
            sure = parts["all"].confidence
            # fewer rows cannot resolve the share of refusals
            if (1.0 - self.target_coverage) * (len(sure) + 1) < 1.0 and self.target_coverage < 1.0:
                return math.inf
            return coverage_threshold(sure, self.target_coverage)
        target, level = float(self.target_risk or 0.0), (1.0 - self.confidence) / len(self.groups_)
        if len(parts["test"].wrong) == 0 or len(parts["start"].wrong) == 0:
            return math.inf
        plan = plan_thresholds(parts["start"], target, level, len(parts["test"].wrong))
        certificate = certify_risk(parts["test"], plan, target, 1.0 - level)
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


def _only(judged: tuple[CalibrationRows, NDArray[Any]], group: Any) -> CalibrationRows:
    rows, names = judged
    inside = names == group
    return CalibrationRows(rows.confidence[inside], rows.wrong[inside])
