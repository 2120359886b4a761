"""Models judged on the same folds: every row by a model that has not seen it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

from buttress._arrays import Array, BoolArray, IntArray
from buttress._progress import progress
from buttress.cli._models import TITLES, make_estimator
from buttress.metrics import Estimate, accepted_accuracy, reject_risk
from buttress.metrics.scorer import half_gap
from buttress.tables import Table, TableClassifier

Folds = Sequence[tuple[IntArray, IntArray]]


@dataclass(frozen=True, eq=False)
class Judged:
    """Answers of one model to rows it has not seen.

    Attributes
    ----------
    kind : str
        The model's short name.
    rows : array of int
        The rows judged, once for every repetition.
    true, answers : array
        Labels and answers.
    rejected : array of bool
    confidence : array
        How sure the model is; larger is surer.
    fold : array of int
        The fold of each answer.
    seconds : float
        Fitting and answering, summed over folds.
    """

    kind: str
    rows: IntArray
    true: NDArray[Any]
    answers: NDArray[Any]
    rejected: BoolArray
    confidence: Array
    fold: IntArray
    seconds: float

    @property
    def title(self) -> str:
        """The model's name for people."""
        return TITLES[self.kind]

    def risk(self, d: float) -> Estimate:
        """0-d-1 risk with a 95 % interval; rows judged once count as independent."""
        estimate = reject_risk(self.true, self.answers, self.rejected, d, confidence=0.95)
        assert isinstance(estimate, Estimate)
        return estimate

    def risk_over_folds(self, d: float, test_share: float) -> Estimate:
        """0-d-1 risk with the corrected resampled t interval of Nadeau and Bengio (2003).

        Parameters
        ----------
        d : float
        test_share : float
            Test rows over training rows of one fold; the correction for overlapping
            training sets.
        """
        wrong = (self.true != self.answers) & ~self.rejected
        cost = wrong + d * self.rejected
        totals = np.bincount(self.fold, weights=cost) / np.bincount(self.fold)
        mean = float(totals.mean())
        if len(totals) < 2:
            return Estimate(mean, float("nan"), float("nan"))
        spread = float(np.sqrt((1 / len(totals) + test_share) * totals.var(ddof=1)))
        half = float(stats.t.ppf(0.975, len(totals) - 1)) * spread
        return Estimate(mean, max(0.0, mean - half), min(1.0, mean + half))

    @property
    def coverage(self) -> float:
        """Share of rows answered."""
        return float(1 - self.rejected.mean())

    @property
    def accuracy(self) -> float:
        """Share of right answers among the rows answered; NaN when there are none."""
        if self.rejected.all():
            return float("nan")
        return float(np.asarray(accepted_accuracy(self.true, self.answers, self.rejected)))


def judge(
    kinds: Sequence[str],
    table: Table,
    labels: NDArray[Any],
    folds: Folds,
    *,
    flip: Callable[[NDArray[Any], int], NDArray[Any]] | None = None,
    missing: str = "error",
    d: float = 0.2,
    seed: int = 0,
    jobs: int = -1,
    verbose: int = 0,
) -> list[Judged]:
    """Fit every model on every fold and collect the answers.

    Parameters
    ----------
    kinds : sequence of str
        Short names of the models.
    table, labels
        The features and the label of every row.
    folds : sequence of (training rows, test rows)
        Shared by all models.
    flip : function of (training labels, fold number), optional
        Returns the labels to train with; test labels stay as they are.
    missing : str
        As in `TableClassifier`.
    d : float
        Cost of rejection.
    seed, jobs, verbose : int
    """
    tasks = [(kind, number) for kind in kinds for number in range(len(folds))]

    def run(kind: str, number: int) -> Judged:
        train, test = folds[number]
        start = time.perf_counter()
        targets = labels[train]
        if flip is not None:
            targets = flip(targets, number)
        inner = inner_folds(targets)
        model = TableClassifier(
            make_estimator(kind, d=d, seed=seed, folds=inner),
            missing=missing,
            new_categories="ignore",
        )
        model.fit(table.take(train), targets)
        encoded = model.encode(table.take(test))
        answers = np.asarray(model.estimator_.predict(encoded))
        last = model.estimator_
        rejected = (
            np.asarray(last.reject(encoded))
            if hasattr(last, "reject")
            else np.zeros(len(test), dtype=bool)
        )
        confidence = half_gap(np.asarray(last.decision_function(encoded)))
        seconds = time.perf_counter() - start
        fold = np.full(len(test), number)
        return Judged(kind, test, labels[test], answers, rejected, confidence, fold, seconds)

    results: list[Judged] = []
    with progress("comparing", len(tasks), verbose) as advance, threadpool_limits(limits=1):
        runs = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")(
            delayed(run)(*task) for task in tasks
        )
        for result in runs:
            results.append(result)
            advance(1)
    return [_together([r for r in results if r.kind == kind]) for kind in kinds]


def inner_folds(labels: NDArray[Any], most: int = 5) -> int:
    """Folds for a model's own cross-validation: five, or fewer when a class is small."""
    _, counts = np.unique(labels, return_counts=True)
    return int(max(2, min(most, counts.min())))


def _together(parts: Sequence[Judged]) -> Judged:
    return Judged(
        parts[0].kind,
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.true for part in parts]),
        np.concatenate([part.answers for part in parts]),
        np.concatenate([part.rejected for part in parts]),
        np.concatenate([part.confidence for part in parts]),
        np.concatenate([part.fold for part in parts]),
        sum(part.seconds for part in parts),
    )
