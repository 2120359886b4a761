"""Who judges the labels: the default witnesses, and the cross-fit of those that are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

from buttress._arrays import Array, IntArray
from buttress._frames import rows_of
from buttress.classifiers.base import BaseKernelClassifier
from buttress.classifiers.callbacks import FitTasks
from buttress.noise.core.crossfit import (
    held_out_scores,
    joined,
    kept_folds,
    make_folds,
    model_scores,
    weight_params,
)
from buttress.noise.core.estimate import check_weight
from buttress.noise.core.forest_witness import ForestWitness
from buttress.noise.core.kernel_witness import KernelWitness
from buttress.noise.core.label_noise import LabelNoise
from buttress.noise.core.suspects import LabelSuspects, judge_labels

# One Gram matrix serves all folds of a machine of this library up to so many rows (800 MB).
_ROWS_FOR_GRAM = 10_000


@dataclass(frozen=True, eq=False)
class TakenRows:
    """The rows of a table that take part, those of positive weight.

    Attributes
    ----------
    X, labels, weight, groups
        Of these rows; `weight` is None when none was given, `groups` when there are none.
    used : array of int
        Where they stand in the table.
    table, given
        All rows and their labels.
    """

    X: Any
    labels: NDArray[Any]
    weight: Array | None
    groups: NDArray[Any] | None
    used: IntArray
    table: Any
    given: NDArray[Any]

    @classmethod
    def of(cls, X: Any, labels: NDArray[Any], sample_weight: Any, groups: Any) -> TakenRows:
        """Leave out the rows of weight zero.

        Raises
        ------
        ValueError
            When `sample_weight` or `groups` has not one entry a row.
        """
        groups = None if groups is None else np.asarray(groups)
        if groups is not None and groups.shape != labels.shape:
            raise ValueError(
                f"groups has shape {groups.shape}, expected {labels.shape}: a group per row."
            )
        if sample_weight is None:
            return cls(X, labels, None, groups, np.arange(len(labels)), X, labels)
        weight = check_weight(sample_weight, len(labels))
        used = np.flatnonzero(weight)
        some = X if len(used) == len(labels) else rows_of(X, used)
        groups = None if groups is None else groups[used]
        return cls(some, labels[used], weight[used], groups, used, X, labels)

    def folds(self, cv: Any) -> Any:
        """`cv` for these rows."""
        return kept_folds(cv, self.used, len(self.given))

    def suspects(self, scores: Array, noise: LabelNoise, fdr: float) -> LabelSuspects:
        """The labels of the table that are probably wrong, by scores of these rows."""
        suspects = judge_labels(scores, self.labels, noise, fdr=fdr, rows=self.X)
        if len(self.used) == len(self.given):
            return suspects
        return suspects.placed(self.used, self.table, self.given)


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Held-out scores of all witnesses, and the witnesses fitted to all rows.

    Attributes
    ----------
    scores : array of shape (n, n_witnesses, n_columns)
    models : list of fitted classifiers
        Without `refit` only those that hold rows out by themselves: they are fitted to all rows
        anyway.
    tasks : FitTasks
        Of the estimator that cross-fits; one is left for its noise model.
    """

    scores: Array
    models: list[Any]
    tasks: FitTasks


def checked_estimators(
    estimators: Any, random_state: Any, n_jobs: int | None, verbose: int
) -> list[Any]:
    """Unfitted witnesses as a list; "auto" is a kernel machine and a forest."""
    if isinstance(estimators, str):
        if estimators != "auto":
            raise ValueError(
                f"estimators={estimators!r} is not accepted: expected 'auto', a classifier or a "
                "list of classifiers."
            )
        seed = random_state
        if not isinstance(seed, (int, np.integer)):
            seed = int(check_random_state(random_state).randint(2**31 - 1))
        return [
            KernelWitness(random_state=seed, verbose=verbose),
            ForestWitness(random_state=seed, n_jobs=n_jobs),
        ]
    several = isinstance(estimators, Sequence) and not isinstance(estimators, (str, bytes))
    given = list(estimators) if several else [estimators]
    # pairs of name and estimator, as scikit-learn's ensembles take them
    given = [item[1] if isinstance(item, tuple) and len(item) == 2 else item for item in given]
    if not given:
        raise ValueError("estimators is empty: expected at least one classifier.")
    for estimator in given:
        if not hasattr(estimator, "fit") or not is_classifier(estimator):
            raise ValueError(
                f"estimators holds {estimator!r}, which is not a classifier: expected 'auto', a "
                "classifier or a list of classifiers."
            )
    return given


def cross_fit(model: Any, rows: TakenRows, cv: Any, *, refit: bool = False) -> CrossFit:
    """Held-out scores of every witness; with `refit` the witnesses on all rows too.

    The default witnesses hold rows out exactly (leave-one-out, out of bag) when `cv` is a number
    and there are no groups; everything else is fitted fold by fold. A callback of `model` that asks
    for an end leaves the witnesses that are done.

    Parameters
    ----------
    model : LabelAudit or NoiseAwareClassifier
        With `estimators`, `n_repeats`, `random_state`, `n_jobs` and `verbose`.
    rows : TakenRows
    cv : int, splitter or list of index pairs
    refit : bool
    """
    X, y, weight, verbose = rows.X, rows.labels, rows.weight, int(model.verbose)
    witnesses = checked_estimators(model.estimators, model.random_state, model.n_jobs, verbose)
    tasks = FitTasks(model, len(witnesses) + 1, X, y)
    plain = rows.groups is None and isinstance(cv, (int, np.integer))
    exact = plain and all(hasattr(witness, "fit_held_out") for witness in witnesses)
    folds = [] if exact else make_folds(cv, model.n_repeats, X, y, rows.groups, model.random_state)
    tables, models = [], []
    for witness in witnesses:
        if tasks.stopped:
            break
        at_once = hasattr(witness, "fit_held_out")
        name = f"witness {type(witness).__name__}"
        with tasks.task(name, n_tasks=0 if at_once else len(folds)) as fits:
            if at_once:
                fitted = clone(witness)
                held = None if plain else folds
                tables.append(fitted.fit_held_out(X, y, sample_weight=weight, folds=held))
                models.append(fitted)
                continue
            scores = held_out_scores(
                *_ready_for_folds(witness, X, y),
                y,
                folds,
                sample_weight=weight,
                n_jobs=model.n_jobs,
                verbose=verbose,
                around_fold=partial(fits.task, "fold"),
            )
            tables.append(scores)
            if refit:
                models.append(clone(witness).fit(X, y, **weight_params(witness, weight)))
    return CrossFit(joined(tables), models, tasks)


def _ready_for_folds(witness: Any, X: Any, y: NDArray[Any]) -> tuple[Any, Any]:
    """The witness and its rows; folds of a machine of this library share one Gram matrix."""
    ours = isinstance(witness, BaseKernelClassifier)
    if not ours or witness.kernel in ("linear", "precomputed") or len(y) > _ROWS_FOR_GRAM:
        return witness, X
    if getattr(witness, "approximation", None) is not None:
        return witness, X
    data = clone(witness)._training_set(X, y)
    # with the width fixed from all rows
    gram = np.asarray(witness._make_kernel(data)(data.X, data.X))
    return clone(witness).set_params(kernel="precomputed"), gram


def stacked_scores(models: list[Any], X: Any, classes: NDArray[Any]) -> Array:
    """Scores of new rows by all fitted witnesses, shape (n, n_witnesses, n_columns)."""
    return joined([model_scores(model, X, classes) for model in models])
