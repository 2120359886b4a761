"""What the default witnesses share: averages of good candidates, and rows that are held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import Array, IntArray
from buttress._frames import validate_data
from buttress.noise.core.copies import DistinctRows, distinct_rows
from buttress.noise.core.crossfit import Folds, moved_folds
from buttress.noise.core.estimate import check_weight

# Candidates within so many standard errors of the best accuracy are averaged.
_AS_GOOD = 1.0


class BaseWitness(ClassifierMixin, BaseEstimator):
    """A classifier that also scores every training row as if it had not seen it.

    A subclass fits its candidates to distinct rows in `_fit_distinct`, which returns their mean
    held-out scores, and scores new rows in `_scores`.
    """

    _fit_distinct: Callable[[Any, IntArray, DistinctRows, Folds | None], Array]
    _scores: Callable[[Any], Array]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose and fit the candidates.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self.fit_held_out(X, y, sample_weight=sample_weight)
        return self

    def fit_held_out(
        self, X: Any, y: Any, *, sample_weight: Any = None, folds: Folds | None = None
    ) -> Array:
        """Fit, and return scores of every row by candidates that were not trained on it.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        folds : list of index pairs, optional
            Which rows are held out together; without, every row alone, or by bag.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            One column for two classes, else one per class.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        name = type(self).__name__
        if len(self.classes_) < 2:
            raise ValueError(f"{name} needs two classes, got one class: {self.classes_}.")
        weight = check_weight(sample_weight, X.shape[0])
        kept = distinct_rows(X, codes, weight, merge=folds is None)
        codes = codes[kept.rows]
        if len(np.unique(codes)) < 2:
            raise ValueError(f"{name} needs rows of two classes, got one class.")
        if folds is not None:
            folds = moved_folds(folds, kept.source)
        scores = self._fit_distinct(X[kept.rows], codes, kept, folds)[kept.source]
        absent = np.flatnonzero(kept.source < 0)
        if len(absent):
            scores[absent] = self._scores(X[absent])
        return np.asarray(scores)

    def decision_function(self, X: Any) -> Array:
        """Signed scores, one column per class when there are more than two.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of every row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        return np.asarray(self.classes_[favoured(scores.reshape(len(scores), -1))])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def favoured(scores: Array) -> IntArray:
    """The class that every score on the last axis speaks for; of one column, zero for the first.

    Examples
    --------
    >>> favoured(np.array([[0.5], [0.0]])), favoured(np.array([[1.0, 3.0, 2.0]]))
    (array([1, 0]), array([1]))
    """
    if scores.shape[-1] == 1:
        return (scores[..., 0] > 0).astype(np.intp)
    return np.asarray(scores.argmax(axis=-1))


def equally_good(held: Array, codes: IntArray, weight: Array) -> IntArray:
    """Candidates whose held-out scores are about as accurate as the best ones.

    Parameters
    ----------
    held : array of shape (candidates, rows, columns)
    codes, weight : arrays of shape (rows,)
    """
    share = (favoured(held) == codes) @ weight / weight.sum()
    best = float(share.max())
    error = np.sqrt(best * (1.0 - best) / weight.sum())
    return np.flatnonzero(share >= best - _AS_GOOD * error - 1e-12)


def score_spread(held: Array, weight: Array) -> Array:
    """Weighted standard deviation of every candidate's scores, axes (candidate, row, column)."""
    share = weight / (weight.sum() * held.shape[2])
    mean = np.einsum("cnk,n->c", held, share)
    square = np.einsum("cnk,n->c", (held - mean[:, None, None]) ** 2, share)
    return np.asarray(np.maximum(np.sqrt(square), 1e-12))
