"""The forests among the default witnesses: two kinds of trees, three leaf sizes, out of bag."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from buttress._arrays import Array, IntArray
from buttress.noise.core._witness import BaseWitness, equally_good, score_spread
from buttress.noise.core.copies import DistinctRows, differ_like_records
from buttress.noise.core.crossfit import Folds

# Rows a leaf must hold: single rows where labels are clean, more where they are noisy. Chosen on
# the six development sets of benchmarks/noise.py.
_LEAVES = (1, 3, 8)
# Trees that cut a feature at a random value and trees that cut at the best one err on different
# rows: with as many trees in all, one percent less 0-d-1 risk than extra trees alone on the right
# labels of 37 sets, and the flips of benchmarks/noise.py in a better order.
# Rows in the bag of a tree: more make it slow, and hardly another; for the best cut every value is
# tried.
_MOST_PER_TREE = {ExtraTreesClassifier: 10_000, RandomForestClassifier: 2_000}


class ForestWitness(BaseWitness):
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

    def _fit_distinct(
        self, rows: Any, codes: IntArray, kept: DistinctRows, folds: Folds | None
    ) -> Array:
        forests, tables = [], []
        # rows as they are drawn into bags: records apart, or copies together
        drawn, weight, points = np.arange(len(codes)), kept.weight, kept.point
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
                proba = self._out_of_fold(kind, leaf, rows, codes, kept.weight, folds)
            forests.append(forest)
            tables.append(_centred(proba))
        held = np.array(tables)
        used = equally_good(held, codes, kept.weight)
        self.forests_ = [forests[i] for i in used.tolist()]
        self.scales_ = score_spread(held[used], kept.weight)
        return np.asarray((held[used] / self.scales_[:, None, None]).mean(axis=0))

    def _scores(self, X: Any) -> Array:
        by_forest = [
            _centred(forest.predict_proba(X)) / scale
            for forest, scale in zip(self.forests_, self.scales_, strict=True)
        ]
        return np.asarray(np.mean(by_forest, axis=0))

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
        self, forest: Any, X: Any, weight: Array, codes: IntArray, points: IntArray
    ) -> Array:
        """Mean votes of the trees that have no row with the same features in their bag."""
        n, k = X.shape[0], len(self.classes_)
        rows = X.astype(np.float32)
        votes, seen = np.zeros((n, k)), np.zeros(n)
        for tree, bag in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            apart = np.ones(n, dtype=bool)
            apart[points[bag]] = False
            out = apart[points]
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
