"""Answers of several labels: sets that hold the true one with a chosen probability."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import Array, BoolArray, IntArray
from buttress.classifiers.base import all_or_nothing
from buttress.classifiers.parameters import check_flag, check_number


class LabelSetMixin:
    """`calibrate_sets` and `predict_set` of a classifier with probabilities."""

    classes_: NDArray[Any]

    @all_or_nothing
    def calibrate_sets(
        self, X: Any, y: Any, coverage: float = 0.9, *, by_class: bool = False
    ) -> Any:
        """Set how probable a label must be to enter the sets of `predict_set`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows that the classifier was not trained on.
        y : array-like of shape (n_samples,)
            Their labels.
        coverage : float in (0, 1), default=0.9
            Probability that the set of a new row holds its true label.
        by_class : bool, default=False
            Whether that must hold for the rows of every class (and not only for all rows
            together): a rare class that is often missed gets larger sets.

        Returns
        -------
        self

        Notes
        -----
        With n calibration rows (of the class, where `by_class`) the threshold is the
        ``ceil((n + 1) coverage)``-th largest probability of a true label. Ranks of exchangeable
        rows are equally likely, so a new row's true label is in its set with probability at least
        `coverage`, whatever the distribution and however wrong the probabilities; without ties
        at most ``1 / (n + 1)`` more. With too few rows for that every label enters. Sets of
        labels whose probability is above one threshold are the smallest on average when the
        probabilities are right. Labels must be right: with wrong ones the sets hold the *given*
        label.

        References
        ----------
        M. Sadinle, J. Lei and L. Wasserman, "Least ambiguous set-valued classifiers with bounded
        error levels", Journal of the American Statistical Association 114, 2019.
        """
        check_is_fitted(self)
        check_number("coverage", coverage, "(0, 1)")
        check_flag("by_class", by_class)
        y = column_or_1d(y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y holds labels {unknown.tolist()} that the classifier does not know."
            )
        codes = np.searchsorted(self.classes_, y)
        p = self.predict_proba(X)[np.arange(len(y)), codes]  # type: ignore[attr-defined]
        k = len(self.classes_)
        if by_class:
            thresholds = [_set_threshold(p[codes == j], coverage) for j in range(k)]
            self.set_thresholds_ = np.array(thresholds)
        else:
            self.set_thresholds_ = np.full(k, _set_threshold(p, coverage))
        self.set_coverage_ = float(coverage)
        return self

    def predict_set(self, X: Any, max_labels: int | None = None) -> BoolArray:
        """The labels that cannot be ruled out.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        max_labels : int, optional
            A row whose set is larger gets no answer, an empty set. The true label is then in
            the set of a row, or the row is refused, with the calibrated probability.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
            Column k tells whether ``classes_[k]`` is in the set. A row for which no label is
            probable enough has its most probable one, so that empty means refused.
        """
        check_is_fitted(self)
        if not hasattr(self, "set_thresholds_"):
            raise NotFittedError(
                f"{type(self).__name__}.predict_set needs held-out rows first: call "
                "calibrate_sets(X_held, y_held, coverage)."
            )
        p = np.asarray(self.predict_proba(X))  # type: ignore[attr-defined]
        inside = p >= self.set_thresholds_
        lonely = ~inside.any(axis=1)
        top: IntArray = p.argmax(axis=1)
        inside[lonely, top[lonely]] = True
        if max_labels is not None:
            check_number("max_labels", max_labels, "[1, inf)", integer=True)
            inside[inside.sum(axis=1) > max_labels] = False
        return np.asarray(inside)


def _set_threshold(p: Array, coverage: float) -> float:
    """The smallest probability with which a label enters a set; 0 with too few rows."""
    rank = int(np.ceil((len(p) + 1) * coverage - 1e-9))
    return float(np.sort(p)[::-1][rank - 1]) if rank <= len(p) else 0.0
