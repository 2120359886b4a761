"""The forests among the default witnesses: two kinds of trees, three leaf sizes, out of bag."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from buttress._arrays import Array, IntArray
from buttress._frames import validate_data
from buttress.noise.core.copies import differ_like_records, distinct_rows
from buttress.noise.core.crossfit import Folds, moved_folds, score_spread

# Rows a leaf must hold: single rows where labels are clean, more where they are noisy. Chosen on
# the six development sets of benchmarks/noise.py.
_LEAVES = (1, 3, 8)
_AS_GOOD = 1.0
# Trees that cut a feature at a random value and trees that cut at the best one err on different
# rows: with as many trees in all, one percent less 0-d-1 risk than extra trees alone on the right
# labels of 37 sets, and the flips of benchmarks/noise.py in a better order.
# Rows in the bag of a tree: more make it slow, and hardly another; for the best cut every value is
# tried.
_MOST_PER_TREE = {ExtraTreesClassifier: 10_000, RandomForestClassifier: 2_000}


class ForestWitness(ClassifierMixin, BaseEstimator):
    """Average of extra-trees and random forests that are about equally good.

    Parameters
    ----------
    n_estimators : int, default=125
        Trees of every kind and leaf size.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None

    Attributes
    ----------
    classes_ : ndarray
    forests_ : list of ExtraTreesClassifier and RandomForestClassifier
        Those in the average.
    scales_ : ndarray
        Standard deviation of each one's held-out scores.
    n_features_in_ : int

    Notes
    -----
    Leaves of 1, 3 and 8 rows are tried with both kinds; the forests within one standard error of
    the best accuracy on rows that their trees have not seen are averaged. With folds given,
    forests are fitted for every fold instead.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> model = ForestWitness(n_estimators=30, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self, n_estimators: int = 125, *, random_state: Any = None, n_jobs: int | None = None
    ) -> None:
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ForestWitness:
        """Fit the forests.

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
        """Fit, and return scores of every row by trees that were not grown on it.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        folds : list of index pairs, optional
            Which rows are held out together; without, the rows out of every tree's bag.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"ForestWitness needs two classes, got one class: {self.classes_}.")
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        kept = distinct_rows(X, codes, weight, merge=folds is None)
        if len(np.unique(codes[kept.rows])) < 2:
            raise ValueError("ForestWitness needs rows of two classes, got one class.")
        rows, codes = X[kept.rows], codes[kept.rows]
        forests, held = [], []
        # rows as they are drawn into bags: records apart, or copies together
        drawn, weight, points = np.arange(len(codes)), kept.weight, kept.place
        if folds is None and differ_like_records(kept, codes):
            drawn = np.repeat(drawn, kept.weight.astype(int))
            weight, points = np.ones(len(drawn)), np.arange(len(drawn))
        for kind, leaf in product(_MOST_PER_TREE, _LEAVES):
            forest = self._forest(kind, leaf, len(drawn))
            forest.fit(rows[drawn], codes[drawn], sample_weight=weight)
            if folds is None:
                proba = self._out_of_bag(forest, rows[drawn], weight, codes[drawn], points)
                proba = _mean_by(drawn, proba)
            else:
                parts = moved_folds(folds, kept.source)
                proba = self._out_of_fold(kind, leaf, rows, codes, kept.weight, parts)
            forests.append(forest)
            held.append(_centred(proba))
        scores = self._average(forests, np.array(held), codes, kept.weight)[kept.source]
        absent = np.flatnonzero(kept.source < 0)
        if len(absent):
            scores[absent] = self.decision_function(X[absent]).reshape(len(absent), -1)
        return np.asarray(scores)

    def _average(self, forests: list[Any], tables: Array, codes: IntArray, weight: Array) -> Array:
        """Keep the good forests; their mean held-out scores."""
        favoured = tables.argmax(axis=2) if tables.shape[2] > 1 else (tables[:, :, 0] > 0)
        share = (favoured == codes) @ weight / weight.sum()
        best = float(share.max())
        error = np.sqrt(best * (1.0 - best) / weight.sum())
        used = np.flatnonzero(share >= best - _AS_GOOD * error - 1e-12)
        self.forests_ = [forests[i] for i in used.tolist()]
        self.scales_ = score_spread(tables[used], weight)
        return np.asarray((tables[used] / self.scales_[:, None, None]).mean(axis=0))

    def decision_function(self, X: Any) -> Array:
        """Centred shares of votes, one column per class when there are more than two.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        parts = [
            _centred(forest.predict_proba(X)) / scale
            for forest, scale in zip(self.forests_, self.scales_, strict=True)
        ]
        scores = np.mean(parts, axis=0)
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

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
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _forest(self, kind: Any, leaf: int, n_rows: int) -> Any:
        most = _MOST_PER_TREE[kind]
        return kind(
            max_samples=most if n_rows > most else None,
            n_estimators=self.n_estimators,
            min_samples_leaf=leaf,
            bootstrap=True,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    def _out_of_bag(
        self, forest: Any, X: Any, weight: Array, codes: IntArray, place: IntArray
    ) -> Array:
        """Mean votes of the trees that have no row with the same features in their bag."""
        n, k = X.shape[0], len(self.classes_)
        rows = X.astype(np.float32)
        votes, seen = np.zeros((n, k)), np.zeros(n)
        for tree, bag in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            apart = np.ones(n, dtype=bool)
            apart[place[bag]] = False
            out = apart[place]
            votes[out] += tree.predict_proba(rows[out], check_input=False)
            seen[out] += 1
        share = np.average(np.eye(k)[codes], axis=0, weights=weight)
        # a row in every bag (a handful of trees, or of rows) is judged by the shares of classes
        return np.asarray((votes + 1e-9 * share) / (seen + 1e-9)[:, None])

    def _out_of_fold(
        self, kind: Any, leaf: int, X: Any, codes: IntArray, weight: Array, folds: Folds
    ) -> Array:
        votes, seen = np.zeros((X.shape[0], len(self.classes_))), np.zeros(X.shape[0])
        for train, test in folds:
            forest = self._forest(kind, leaf, len(train)).fit(
                X[train], codes[train], sample_weight=weight[train]
            )
            votes[np.ix_(np.arange(len(seen))[test], forest.classes_)] += forest.predict_proba(
                X[test]
            )
            seen[test] += 1
        return np.asarray(votes / seen[:, None])


def _mean_by(rows: IntArray, values: Array) -> Array:
    """Mean of the values of every row, which may be there several times."""
    total = np.zeros((int(rows[-1]) + 1, values.shape[1]))
    np.add.at(total, rows, values)
    return np.asarray(total / np.bincount(rows)[:, None])


def _centred(proba: Array) -> Array:
    """One column for two classes: P(second) - 1/2."""
    return proba[:, 1:] - 0.5 if proba.shape[1] == 2 else proba
