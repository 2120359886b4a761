"""Several kinds of models race on growing samples of the rows; the hopeless drop out early."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split
from threadpoolctl import threadpool_limits

from buttress._arrays import IntArray
from buttress._progress import progress
from buttress.model_selection.candidates import Request, make_candidate, settled
from buttress.model_selection.judging import HOPELESS, Encode, Judged, inner_folds, judge
from buttress.model_selection.measures import Measure
from buttress.model_selection.planning import Planner
from buttress.model_selection.titles import TITLES

# scikit-learn's own SVC takes part as a yardstick: it is never chosen and never dropped.
YARDSTICK = "svc"


@dataclass(frozen=True, eq=False)
class Race:
    """What became of the candidates.

    Attributes
    ----------
    judged : list of Judged
        The last judgement of each, the yardstick's at the end.
    searches : dict of str to fitted estimator
        The last search of each.
    rows : array of int
        The rows that the last searches and judgements are of, in their order.
    searched_on : dict of str to int
        Number of rows of each search.
    tuned_in_folds : bool
        Whether every fold was tuned on its own training part; else the parameters were chosen
        once, on all rows compared.
    notes : list of str
        Sentences on who was dropped, and when.
    """

    judged: list[Judged]
    searches: dict[str, Any]
    rows: IntArray
    searched_on: dict[str, int]
    tuned_in_folds: bool
    notes: list[str] = field(default_factory=list)

    def of(self, kind: str) -> Judged:
        """The judgement of one model."""
        return next(each for each in self.judged if each.kind == kind)

    def winner(self, measure: Measure) -> str:
        """The kind of the smallest loss among those that ran to the end."""
        finished = [
            each for each in self.judged if each.kind != YARDSTICK and not each.dropped
        ] or [each for each in self.judged if each.kind != YARDSTICK]
        return min(finished, key=measure.value).kind


def race(
    kinds: Sequence[str],
    encode: Encode,
    labels: NDArray[Any],
    *,
    request: Request,
    measure: Measure,
    planner: Planner,
    folds: int = 5,
    yardstick: bool = True,
    jobs: int = -1,
    verbose: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> Race:
    """Search every kind on a few rows, then the promising ones on more, as time allows.

    Parameters
    ----------
    kinds : sequence of str
        Keys of `candidates.TITLES`.
    encode : function of (training rows, test rows)
        As in `judge`; with no test rows it encodes a sample to search on.
    labels : array
        The label of every row.
    request : Request
        What is asked of every candidate.
    measure : Measure
        What decides.
    planner : Planner
        Decides how many rows the time allows, and learns from the searches done.
    folds : int
        Of the judgement.
    yardstick : bool
        Whether scikit-learn's `SVC` is judged too.
    jobs, verbose : int
    say : function of str
        Told who was dropped.

    Notes
    -----
    A search chooses its parameters on all rows of a sample, and its choice is then judged by
    cross-validation on the same rows. For choosing among classifiers this serves as well as
    tuning every fold anew, at a fraction of the cost (Wainer and Cawley, "Nested
    cross-validation when selecting classifiers is overzealous for most practical applications",
    Expert Systems with Applications 182, 2021). Where the time allows it, every fold is tuned.
    """
    remaining = list(kinds)
    done: dict[str, Judged] = {}
    searches: dict[str, Any] = {}
    searched_on: dict[str, int] = {}
    notes: list[str] = []
    rows: IntArray = np.arange(len(labels))
    nested = False
    sizes = planner.samples(remaining)
    for position in range(len(sizes)):
        # Later samples are planned anew: the planner knows the searches by then.
        size = sizes[position] if position == 0 else planner.samples(remaining)[-1]
        last = position == len(sizes) - 1
        rows = sample_rows(labels, size, request.seed)
        nested = last and planner.tunes_in_folds(remaining, size)
        asked = replace(request, folds=inner_folds(labels[rows], request.folds))
        found = _search(remaining, encode, rows, labels, asked, planner, jobs, verbose)
        searches |= found
        searched_on |= dict.fromkeys(found, len(rows))
        judged = _judge(
            found, encode, labels, rows, nested, asked, measure, folds, yardstick, jobs, verbose
        )
        done |= {each.kind: each for each in judged}
        runners = [each for each in judged if each.kind != YARDSTICK]
        best = min(runners, key=measure.value)
        for each in runners:
            if last or len(remaining) == 1 or each is best:
                continue
            if each.dropped or measure.worse(each, best) > HOPELESS:
                remaining.remove(each.kind)
                reason = f"dropped after {len(rows)} rows"
                done[each.kind] = replace(each, dropped=reason)
                notes.append(
                    f"{TITLES[each.kind]} {reason}: {measure.title} "
                    f"{100 * measure.value(each):.1f} % against {100 * measure.value(best):.1f} % "
                    f"of {best.title}"
                )
                say(notes[-1])
        if last or (len(rows) == len(labels)):
            break
    order = [kind for kind in (*kinds, YARDSTICK) if kind in done]
    return Race([done[k] for k in order], searches, rows, searched_on, nested, notes)


def sample_rows(labels: NDArray[Any], size: int, seed: int) -> IntArray:
    """All rows in their order, or a random stratified sample of `size` of them."""
    rows = np.arange(len(labels))
    if size >= len(rows):
        return rows
    chosen, _ = train_test_split(rows, train_size=size, stratify=labels, random_state=seed)
    return np.asarray(np.sort(chosen))


def _search(
    kinds: Sequence[str],
    encode: Encode,
    rows: IntArray,
    labels: NDArray[Any],
    request: Request,
    planner: Planner,
    jobs: int,
    verbose: int,
) -> dict[str, Any]:
    """Fit the search of every kind to the rows, the longest first."""
    X, _ = encode(rows, rows[:0])
    y = labels[rows]
    # A learner of one pass must not see a sorted file in its order.
    order = np.random.default_rng(request.seed).permutation(len(rows))

    def run(kind: str) -> tuple[str, Any, float]:
        start = time.perf_counter()
        candidate = make_candidate(kind, request)
        fitted = candidate.fit(X[order], y[order]) if kind == "online" else candidate.fit(X, y)
        if "n_jobs" in fitted.get_params(deep=False):
            fitted.set_params(n_jobs=None)  # of the search, not of the model that is saved
        return kind, fitted, time.perf_counter() - start

    by_cost = sorted(kinds, key=lambda kind: -planner.search_seconds(kind, len(rows)))
    found = {}
    with progress(f"searching, {len(rows)} rows", len(kinds), verbose) as advance:
        for kind, fitted, seconds in _in_threads(run, by_cost, jobs):
            found[kind] = fitted
            planner.observe(kind, len(rows), seconds)
            advance(1)
    return {kind: found[kind] for kind in kinds}


def _in_threads(run: Any, tasks: Sequence[Any], jobs: int) -> Any:
    with threadpool_limits(limits=1):
        if jobs == 1 or len(tasks) == 1:
            yield from (run(task) for task in tasks)
            return
        yield from Parallel(n_jobs=jobs, prefer="threads", return_as="generator_unordered")(
            delayed(run)(task) for task in tasks
        )


def _judge(
    searches: Mapping[str, Any],
    encode: Encode,
    labels: NDArray[Any],
    rows: IntArray,
    nested: bool,
    request: Request,
    measure: Measure,
    folds: int,
    yardstick: bool,
    jobs: int,
    verbose: int,
) -> list[Judged]:
    """Judge the searches' choices on folds of the rows, each fold tuned anew when `nested`."""
    splitter = StratifiedKFold(folds, shuffle=True, random_state=request.seed)
    pairs = [
        (rows[train], rows[test]) for train, test in splitter.split(rows[:, None], labels[rows])
    ]
    smallest = min((labels[train] for train, _ in pairs), key=inner_folds)
    inner = replace(request, folds=inner_folds(smallest, request.folds))
    candidates = {
        kind: make_candidate(kind, inner) if nested else settled(search)
        for kind, search in searches.items()
    }
    if "reject" in candidates and request.target_coverage is not None:
        chosen = settled(searches["reject"])
        candidates["reject"] = chosen.set_params(target_coverage=request.target_coverage)
    protected = []
    if yardstick:
        candidates[YARDSTICK] = make_candidate(YARDSTICK, request)
        protected = [YARDSTICK]
    if len(searches) == 1:
        protected += list(searches)
    return judge(
        candidates,
        encode,
        labels,
        pairs,
        titles=TITLES,
        measure=measure,
        protected=protected,
        seed=request.seed,
        jobs=jobs,
        verbose=verbose,
    )
