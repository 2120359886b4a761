"""Held-out scores of any classifier: every row judged by models that were not trained on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    check_cv,
)
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import has_fit_parameter

from buttress._arrays import Array, IntArray
from buttress._frames import rows_of
from buttress._progress import progress

Folds: TypeAlias = list[tuple[Any, Any]]
# Entered while the scores of one fold are waited for.
AroundFold: TypeAlias = Callable[[], AbstractContextManager[Any]]

# Cross-fits are repeated and averaged while that is cheap: so many rows are fitted in all.
_ROWS_FOR_REPEATS, _MOST_REPEATS = 5000, 10
# More would hold their folds in memory and end on no day of anybody's; ten leave little to gain.
_ENDLESS_REPEATS = 1000
# Probabilities are read as log-odds between these ends: a forest's zero is not a certainty.
SMALLEST_PROBABILITY = 0.01


def make_folds(
    cv: Any, n_repeats: Any, X: Any, y: NDArray[Any], groups: Any, random_state: Any
) -> Folds:
    """Training and held-out positions of every fit of a cross-fit.

    Parameters
    ----------
    cv : int, splitter or iterable of index pairs
    n_repeats : int or "auto"
        Repeats of an integer `cv`; "auto" is ten for up to 500 rows, one beyond 5000.
    X, y, groups
        What splitters ask for. With `groups` and an integer `cv` no group is on both sides.
    random_state : int, RandomState or None
    """
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        check_class_sizes(y, int(cv))
        repeats = n_repeats
        if repeats == "auto":
            repeats = int(np.clip(_ROWS_FOR_REPEATS // len(y), 1, _MOST_REPEATS))
        random = check_random_state(random_state)
        if groups is None:
            splitter = RepeatedStratifiedKFold(
                n_splits=int(cv), n_repeats=repeats, random_state=random
            )
            return list(splitter.split(np.zeros(len(y)), y))
        seeds = random.randint(2**31 - 1, size=repeats)
        return [
            fold
            for seed in seeds
            for fold in StratifiedGroupKFold(int(cv), shuffle=True, random_state=seed).split(
                np.zeros(len(y)), y, groups
            )
        ]
    splitter = check_cv(cv, y, classifier=True)
    try:
        return list(splitter.split(X, y, groups))
    except TypeError:
        if cv is None or hasattr(cv, "split"):
            raise
        raise ValueError(f"cv={cv!r} is not accepted: expected pairs of index arrays.") from None


def check_repeats(n_repeats: Any) -> None:
    """Raise unless `n_repeats` is "auto" or a whole number that can be come to the end of."""
    whole = isinstance(n_repeats, (int, np.integer)) and not isinstance(n_repeats, bool)
    automatic = isinstance(n_repeats, str) and n_repeats == "auto"
    if not automatic and not (whole and 1 <= n_repeats <= _ENDLESS_REPEATS):
        raise ValueError(
            f"n_repeats={n_repeats!r} is not accepted: expected 'auto' or a whole number in "
            f"[1, {_ENDLESS_REPEATS}]."
        )


@dataclass(frozen=True, eq=False)
class PartFits:
    """Rows of which copies of a classifier are fitted to some and asked about others.

    Attributes
    ----------
    estimator : classifier
    X, y : array-like
        All rows; a Gram matrix is cut on both axes.
    params : mapping
        Further arguments of `fit`; what has an entry per row is cut as the rows are.
    """

    estimator: Any
    X: Any
    y: NDArray[Any]
    params: Mapping[str, Any]

    def taken(self, rows: Any, train: Any = None) -> Any:
        """Some of the rows, as a model fitted to the rows `train` takes them."""
        if not get_tags(self.estimator).input_tags.pairwise:
            return rows_of(self.X, rows)
        if not hasattr(self.X, "shape"):
            raise ValueError(
                "Precomputed kernels or affinity matrices have to be passed as arrays or sparse "
                "matrices."
            )
        if self.X.shape[0] != self.X.shape[1]:
            raise ValueError("X should be a square kernel matrix")
        return self.X[np.ix_(rows, rows if train is None else train)]

    def given(self, rows: Any) -> tuple[Any, NDArray[Any], dict[str, Any]]:
        """What `fit` is given for some of the rows."""
        params = {
            name: rows_of(value, rows) if np.shape(value)[:1] == (len(self.y),) else value
            for name, value in self.params.items()
        }
        return self.taken(rows), self.y[rows], params

    def fitted(self, rows: Any) -> Any:
        """A copy of the classifier that has seen these rows alone."""
        X, y, params = self.given(rows)
        return clone(self.estimator).fit(X, y, **params)


def held_out_scores(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    folds: Folds,
    *,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    around_fold: AroundFold = nullcontext,
) -> Array:
    """Mean held-out scores of clones, one column (two classes) or one per class.

    Raises
    ------
    ValueError
        When a row is never held out, or when the estimator has no scores.
    """
    classes = np.unique(y)
    rows = PartFits(estimator, X, y, weight_params(estimator, sample_weight))

    def one(train: Any, test: Any) -> Array:
        return model_scores(rows.fitted(train), rows.taken(test, train), classes)

    columns = 1 if len(classes) == 2 else len(classes)
    total, seen = np.zeros((len(y), columns)), np.zeros(len(y))
    name = type(estimator).__name__
    with progress(f"held-out scores of {name}", len(folds), verbose) as advance:
        fits = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(one)(train, test) for train, test in folds
        )
        for _, test in folds:
            with around_fold():
                total[test] += next(fits)
            seen[np.arange(len(y))[test]] += 1
            advance(1)
    if (seen == 0).any():
        raise ValueError(
            f"cv leaves {int((seen == 0).sum())} rows without a held-out score: every row must be "
            "in the test part of at least one fold."
        )
    return np.asarray(total / seen[:, None])


def model_scores(model: Any, X: Any, classes: NDArray[Any]) -> Array:
    """Decision values, or log-odds of probabilities, in the order of `classes`."""
    known = np.asarray(model.classes_)
    if len(known) != len(classes):
        raise ValueError(
            f"A fold's training part has only the labels {known.tolist()} of "
            f"{classes.tolist()}: use fewer folds or stratified ones."
        )
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        if len(classes) == 2 or (scores.ndim == 2 and scores.shape[1] == len(classes)):
            return scores.reshape(len(scores), -1)
    if hasattr(model, "predict_proba"):
        low = SMALLEST_PROBABILITY
        proba = np.clip(np.asarray(model.predict_proba(X), dtype=np.float64), low, 1.0 - low)
        if len(classes) == 2:
            return np.log(proba[:, 1:] / proba[:, :1])
        return np.log(proba)
    raise ValueError(
        f"{type(model).__name__} has neither decision_function nor predict_proba: a witness "
        "must say how sure it is."
    )


def weight_params(estimator: Any, sample_weight: Any) -> dict[str, Array]:
    """The weights as an argument of `fit`; an error when the estimator cannot use them."""
    if sample_weight is None:
        return {}
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if last is not estimator:
        raise ValueError(
            "sample_weight was given, but a pipeline takes weights by metadata routing only: "
            "give a classifier that takes sample_weight in fit."
        )
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"sample_weight was given, but {type(estimator).__name__} takes no weights."
        )
    return {"sample_weight": np.asarray(sample_weight, dtype=np.float64)}


def check_class_sizes(y: NDArray[Any], n_folds: int) -> None:
    """Raise unless there are two classes, each with a row for every fold."""
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) < 2:
        raise ValueError(
            f"The labels hold only one class ({labels.tolist()}): noise shows itself only where at "
            "least two classes are given."
        )
    small = int(counts.argmin())
    if counts[small] < n_folds:
        raise ValueError(
            f"Class {labels.tolist()[small]!r} has {counts[small]} rows, fewer than the {n_folds} "
            "folds: use fewer folds (cv) or leave the class out."
        )


def moved_folds(folds: Folds, source: IntArray) -> Folds:
    """Folds of all rows as folds of those that are left; `source` is where every row went."""
    moved = []
    for train, test in folds:
        moved.append(tuple(rows[rows >= 0] for rows in (source[train], source[test])))
    return [(train, test) for train, test in moved if len(test)]


def kept_folds(cv: Any, used: IntArray, n_rows: int) -> Any:
    """`cv` for the rows `used` of `n_rows`: index pairs given ready count all rows."""
    if len(used) == n_rows or isinstance(cv, (int, np.integer)) or hasattr(cv, "split"):
        return cv
    source = np.full(n_rows, -1)
    source[used] = np.arange(len(used))
    return moved_folds(list(cv), source)


def joined(tables: Sequence[Array]) -> Array:
    """Scores of several witnesses as one array of shape (n, n_witnesses, columns)."""
    return np.stack(list(tables), axis=1)
