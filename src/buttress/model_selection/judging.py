"""Models judged on the same folds: every row by a model that has not seen it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone

from buttress._arrays import Array, BoolArray, IntArray
from buttress._deadline import OutOfTime, check_time
from buttress._progress import progress
from buttress._threads import limited_threads
from buttress.metrics import Estimate, accepted_accuracy, reject_risk
from buttress.metrics.scorer import half_gap
from buttress.model_selection.measures import Measure
from buttress.model_selection.titles import TITLES

Folds = Sequence[tuple[IntArray, IntArray]]
Encode = Callable[[IntArray, IntArray], tuple[Any, Any]]

# A candidate is dropped when it is worse than the best one by this many standard errors of the
# paired difference: about one wrong decision in 2000 looks.
HOPELESS = 3.3
# The first words of the reason when a candidate was stopped by a limit of time.
LATE = "out of time"


@dataclass(frozen=True, eq=False)
class Judged:
    """Answers of one model to rows it has not seen.

    Attributes
    ----------
    kind : str
        The model's short name.
    title : str
        The model's name for people.
    rows : array of int
        The rows judged, once for every repetition.
    true, answers : array
        Labels and answers.
    rejected : array of bool
    scores : array of shape (rows,) or (rows, classes)
        Decision values.
    fold : array of int
        The fold of each answer.
    seconds : float
        Fitting and answering, summed over folds.
    dropped : str
        Why not all folds were judged; empty when they were.
    """

    kind: str
    title: str
    rows: IntArray
    true: NDArray[Any]
    answers: NDArray[Any]
    rejected: BoolArray
    scores: Array
    fold: IntArray
    seconds: float
    dropped: str = ""

    @property
    def confidence(self) -> Array:
        """How sure the model is of each answer; larger is surer."""
        return half_gap(self.scores)

    def risk(self, d: float) -> Estimate:
        """0-d-1 risk with a 95 % interval; rows judged once count as independent."""
        estimate = reject_risk(self.true, self.answers, self.rejected, d, confidence=0.95)
        assert isinstance(estimate, Estimate)
        return estimate

    def error(self) -> Estimate:
        """Share of wrong answers when every row is answered, with a 95 % interval."""
        never = np.zeros(len(self.true), dtype=bool)
        return replace(self, rejected=never).risk(0.5)

    def risk_over_folds(self, measure: Measure, test_share: float) -> Estimate:
        """The loss with the corrected resampled t interval of Nadeau and Bengio (2003).

        Parameters
        ----------
        measure : Measure
        test_share : float
            Test rows over training rows of one fold; the correction for overlapping
            training sets.
        """
        totals = np.array(
            [measure.value(self.take(self.fold == number)) for number in np.unique(self.fold)]
        )
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

    def recalls(self) -> dict[str, float]:
        """For every class the share of all its rows that were answered, and rightly."""
        right = (self.true == self.answers) & ~self.rejected
        return {str(k): float(right[self.true == k].mean()) for k in np.unique(self.true)}

    def take(self, which: NDArray[Any]) -> Judged:
        """Some of the answers."""
        return replace(self, **{name: getattr(self, name)[which] for name in _ROW_FIELDS})


_ROW_FIELDS = ("rows", "true", "answers", "rejected", "scores", "fold")


@dataclass(frozen=True)
class Dropping:
    """Who leaves a comparison before its end: those that can no longer win.

    Attributes
    ----------
    measure : Measure
        What decides.
    protected : tuple of str
        Candidates that run to the end whatever they lose.
    """

    measure: Measure
    protected: tuple[str, ...] = ()


def judge(
    candidates: Mapping[str, Any],
    encode: Encode,
    labels: NDArray[Any],
    folds: Folds,
    *,
    flip: Callable[[NDArray[Any], int], NDArray[Any]] | None = None,
    dropping: Dropping | None = None,
    seed: int = 0,
    jobs: int = -1,
    verbose: int = 0,
) -> list[Judged]:
    """Fit every model on every fold and collect the answers.

    Parameters
    ----------
    candidates : mapping of str to estimator
        Cloned for every fold. Those of the package have names for people (`titles.TITLES`).
    encode : function of (training rows, test rows)
        Returns both as the models take them; called once per fold, whatever the number of
        models. See `plain_rows` for an array.
    labels : array
        The label of every row.
    folds : sequence of (training rows, test rows)
        Shared by all models.
    flip : function of (training labels, fold number), optional
        Returns the labels to train with; test labels stay as they are.
    dropping : Dropping, optional
        When given, the models race: after each fold those that can no longer win are dropped.
    seed : int
        The training rows of each fold are shuffled with it: learners of one pass depend on the
        order, and a file may be sorted.
    jobs, verbose : int

    Returns
    -------
    list of Judged
        In the order of the candidates. One whose fit ran into `buttress._deadline.finish_within`
        says so in `dropped`, and is left out if it has no answer at all.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.model_selection import StratifiedKFold
    >>> from sklearn.svm import SVC, LinearSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> folds = list(StratifiedKFold(5).split(X, y))
    >>> curved, straight = judge(
    ...     {"curved": SVC(), "straight": LinearSVC()}, plain_rows(X), y, folds, jobs=1
    ... )
    >>> curved.accuracy > straight.accuracy
    True
    """
    fits = _Fits(candidates, encode, labels, folds, flip, seed)
    results: dict[str, list[Judged]] = {kind: [] for kind in candidates}
    dropped: dict[str, str] = {}
    # In a race a candidate that is late once is out; otherwise it may be in time on another fold.
    stopped = dropped if dropping is not None else {}
    steps = progress("comparing", len(candidates) * len(folds), verbose)
    with steps as advance, limited_threads(1):
        for n_done, (kind, result) in enumerate(fits.run(jobs, stopped), start=1):
            advance(1)
            if kind not in stopped:
                if result is None:
                    done = f"{len(results[kind])} of {len(folds)} folds"
                    dropped[kind] = f"{LATE} after {done}"
                else:
                    results[kind].append(result)
            if dropping is not None and n_done % len(candidates) == 0:
                dropped |= _hopeless(results, dropped, dropping, len(folds))
    judged = {kind: together(each) for kind, each in results.items() if each}
    return [replace(each, dropped=dropped.get(kind, "")) for kind, each in judged.items()]


class _Fits:
    """Fits of the candidates to folds, each fold encoded once."""

    def __init__(
        self,
        candidates: Mapping[str, Any],
        encode: Encode,
        labels: NDArray[Any],
        folds: Folds,
        flip: Callable[[NDArray[Any], int], NDArray[Any]] | None,
        seed: int,
    ) -> None:
        self.candidates, self.labels, self.folds = candidates, labels, folds
        self.flip, self.encode, self.seed = flip, encode, seed
        self._encoded: dict[int, tuple[Any, Any, IntArray]] = {}
        self._encoding = threading.Lock()

    def run(self, jobs: int, stopped: Container[str]) -> Iterator[tuple[str, Judged | None]]:
        """The answers of every kind, fold by fold; None where the time was over.

        Nobody waits for a fold to end before the next begins: a kind that turns out to be
        hopeless may have begun one more by then, whose answers are to be ignored. What is in
        `stopped` when its turn comes is not fitted.
        """
        tasks = [(kind, number) for number in range(len(self.folds)) for kind in self.candidates]
        results: Iterator[tuple[str, Judged | None]]
        if jobs == 1 or len(tasks) == 1:
            results = (self._judge_fold(*task, stopped) for task in tasks)
        else:
            results = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")(
                delayed(self._judge_fold)(*task, stopped) for task in tasks
            )
        for (_, number), result in zip(tasks, results, strict=True):
            self._encoded.pop(number - 1, None)  # all that needed it are done
            yield result

    def _judge_fold(
        self, kind: str, number: int, stopped: Container[str]
    ) -> tuple[str, Judged | None]:
        if kind in stopped:
            return kind, None
        train, test = self.folds[number]
        X_train, X_test, order = self._rows_of(number)
        start = time.perf_counter()
        targets = self.labels[train]
        if self.flip is not None:
            targets = self.flip(targets, number)
        try:
            check_time()
            model = clone(self.candidates[kind]).fit(X_train, targets[order])
        except OutOfTime:
            return kind, None
        title = TITLES.get(kind, kind)
        judged = answers_of(model, X_test, self.labels[test], kind, title)
        seconds = time.perf_counter() - start
        fold = np.full(len(test), number)
        return kind, replace(judged, rows=np.asarray(test), fold=fold, seconds=seconds)

    def _rows_of(self, number: int) -> tuple[Any, Any, IntArray]:
        """The rows of a fold as the models take them, and the order of those to train with."""
        with self._encoding:
            if number not in self._encoded:
                train, test = self.folds[number]
                order = np.random.default_rng([self.seed, number]).permutation(len(train))
                self._encoded[number] = (*self.encode(train[order], test), order)
            return self._encoded[number]


def plain_rows(X: Any) -> Encode:
    """The `encode` of `judge` for rows that need no encoding."""
    return lambda train, test: (X[train], X[test])


def answers_of(model: Any, X: Any, labels: NDArray[Any], kind: str, title: str = "") -> Judged:
    """What a fitted model says to rows that it has not seen, in one fold."""
    rejected = (
        np.asarray(model.reject(X)) if hasattr(model, "reject") else np.zeros(len(labels), bool)
    )
    return Judged(
        kind,
        title or kind,
        np.arange(len(labels)),
        labels,
        np.asarray(model.predict(X)),
        rejected,
        _scores(model, X),
        np.zeros(len(labels), dtype=int),
        0.0,
    )


def _scores(model: Any, X: Any) -> Array:
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    probabilities = np.asarray(model.predict_proba(X))
    return (
        probabilities[:, 1] - probabilities[:, 0]
        if probabilities.shape[1] == 2
        else (probabilities)
    )


def _hopeless(
    results: Mapping[str, list[Judged]],
    dropped: Mapping[str, str],
    dropping: Dropping,
    n_folds: int,
) -> dict[str, str]:
    """Candidates that can no longer win, with the sentence that says so."""
    measure, protected = dropping.measure, dropping.protected
    running = {k: together(each) for k, each in results.items() if each and k not in dropped}
    if not running:
        return {}
    # The best of those that may be chosen: nobody is dropped for losing to a yardstick.
    rivals = {k: j for k, j in running.items() if k not in protected} or running
    best = min(rivals.values(), key=measure.value)
    done = len(results[best.kind])
    if done == n_folds:
        return {}
    return {
        kind: f"dropped after {done} of {n_folds} folds"
        for kind, each in running.items()
        if kind not in protected and measure.worse(each, best) > HOPELESS
    }


def inner_folds(labels: NDArray[Any], most: int = 5) -> int:
    """Folds for a model's own cross-validation: five, or fewer when a class is small."""
    _, counts = np.unique(labels, return_counts=True)
    return int(max(2, min(most, counts.min())))


def together(by_fold: Sequence[Judged]) -> Judged:
    """The answers of several folds as one."""
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(each, name) for each in by_fold]) for name in _ROW_FIELDS
    }
    return replace(by_fold[0], seconds=sum(each.seconds for each in by_fold), **joined)
