"""Who judges the labels: the default witnesses, and the cross-fit of those that are given."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

from buttress._arrays import Array
from buttress.classifiers.base import BaseKernelClassifier
from buttress.classifiers.callbacks import FitTasks
from buttress.noise.core.crossfit import (
    AroundFold,
    Folds,
    fit_weights,
    held_out_scores,
    is_pairwise,
    joined,
    make_folds,
    model_scores,
)
from buttress.noise.core.forest_witness import ForestWitness
from buttress.noise.core.kernel_witness import KernelWitness

# One Gram matrix serves all folds of a machine of this library up to so many rows (800 MB).
_ROWS_FOR_GRAM = 10_000


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Held-out scores of all witnesses, and the witnesses fitted to all rows.

    Attributes
    ----------
    scores : array of shape (n, n_witnesses, n_columns)
    models : list of fitted classifiers
        Empty when only the scores were asked for.
    """

    scores: Array
    models: list[Any]


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
    found = list(estimators) if several else [estimators]
    # pairs of name and estimator, as scikit-learn's ensembles take them
    found = [item[1] if isinstance(item, tuple) and len(item) == 2 else item for item in found]
    if not found:
        raise ValueError("estimators is empty: expected at least one classifier.")
    for estimator in found:
        if not hasattr(estimator, "fit") or not is_classifier(estimator):
            raise ValueError(
                f"estimators holds {estimator!r}, which is not a classifier: expected 'auto', a "
                "classifier or a list of classifiers."
            )
    return found


def cross_fit(
    estimators: list[Any],
    X: Any,
    y: NDArray[Any],
    *,
    cv: Any,
    n_repeats: Any,
    groups: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    refit: bool = False,
    tasks: FitTasks | None = None,
) -> CrossFit:
    """Held-out scores of every witness; with `refit` the witnesses on all rows too.

    The default witnesses hold rows out exactly (leave-one-out, out of bag) when `cv` is a number
    and there are no groups; everything else is fitted fold by fold. A callback of `tasks` that asks
    for an end leaves the witnesses that are done.
    """
    tasks = FitTasks(None, len(estimators)) if tasks is None else tasks
    plain = groups is None and isinstance(cv, (int, np.integer))
    exact = plain and all(hasattr(estimator, "fit_held_out") for estimator in estimators)
    folds = [] if exact else make_folds(cv, n_repeats, X, y, groups, random_state)
    tables, models = [], []
    for estimator in estimators:
        if tasks.stopped:
            break
        at_once = hasattr(estimator, "fit_held_out")
        name = f"witness {type(estimator).__name__}"
        with tasks.task(name, n_tasks=0 if at_once else len(folds)) as fits:
            if at_once:
                model = clone(estimator)
                held = None if plain else folds
                tables.append(model.fit_held_out(X, y, sample_weight=sample_weight, folds=held))
                models.append(model)
                continue
            tables.append(
                machine_scores(
                    estimator,
                    X,
                    y,
                    folds,
                    sample_weight=sample_weight,
                    n_jobs=n_jobs,
                    verbose=verbose,
                    around_fold=partial(fits.task, "fold"),
                )
            )
            if refit:
                weights = fit_weights(estimator, sample_weight)
                options = {} if weights is None else {"sample_weight": weights}
                models.append(clone(estimator).fit(X, y, **options))
    return CrossFit(joined(tables), models)


def machine_scores(
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
    """Held-out scores; folds of a machine of this library share one Gram matrix."""
    options: dict[str, Any] = {
        "sample_weight": sample_weight,
        "n_jobs": n_jobs,
        "verbose": verbose,
        "around_fold": around_fold,
    }
    if isinstance(estimator, BaseKernelClassifier) and not is_pairwise(estimator):
        gram = _gram(estimator, X, y)
        if gram is not None:
            machine = clone(estimator).set_params(kernel="precomputed")
            return held_out_scores(machine, gram, y, folds, **options)
    return held_out_scores(estimator, X, y, folds, **options)


def _gram(estimator: BaseKernelClassifier, X: Any, y: NDArray[Any]) -> Array | None:
    """All similarities with the width fixed from all rows; None where a matrix is no help."""
    approximate = getattr(estimator, "approximation", None) is not None
    if approximate or len(y) > _ROWS_FOR_GRAM or estimator.kernel == "linear":
        return None
    data = clone(estimator)._training_set(X, y)
    kernel = estimator._make_kernel(data)
    return np.asarray(kernel(data.X, data.X))


def stacked_scores(models: list[Any], X: Any, classes: NDArray[Any]) -> Array:
    """Scores of new rows by all fitted witnesses, shape (n, n_witnesses, n_columns)."""
    return joined([model_scores(model, X, classes) for model in models])
