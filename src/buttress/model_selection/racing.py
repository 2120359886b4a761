"""Several kinds of models race on growing samples of the rows; the hopeless drop out early."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split

from buttress._arrays import IntArray
from buttress._deadline import OutOfTime, check_time, finish_within
from buttress._progress import progress
from buttress._threads import limited_threads
from buttress.model_selection.candidates import Request, make_candidate, settled
from buttress.model_selection.judging import (
    HOPELESS,
    LATE,
    Dropping,
    Encode,
    Judged,
    inner_folds,
    judge,
)
from buttress.model_selection.measures import Measure
from buttress.model_selection.planning import SMALLEST_SAMPLE, Planner
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
    ended : bool
        Whether the time for comparing was over before the last sample was.
    """

    judged: list[Judged]
    searches: dict[str, Any]
    rows: IntArray
    searched_on: dict[str, int]
    tuned_in_folds: bool
    notes: list[str] = field(default_factory=list)
    ended: bool = False

    def of(self, kind: str) -> Judged:
        """The judgement of one model."""
        return next(each for each in self.judged if each.kind == kind)

    def winner(self, measure: Measure) -> str:
        """The kind of the smallest loss among those that ran to the end."""
        finished = [
            each for each in self.judged if each.kind != YARDSTICK and not each.dropped
        ] or [each for each in self.judged if each.kind != YARDSTICK]
        return min(finished, key=measure.value).kind


@dataclass(frozen=True, eq=False)
class RaceRules:
    """What a race, and the fit of its winner, are asked for.

    Attributes
    ----------
    planner : Planner
        Decides how many rows the time allows, and learns from the searches done; its folds are
        those of the judgement.
    measure : Measure
        What decides.
    request : Request
        What is asked of every candidate.
    yardstick : bool
        Whether scikit-learn's `SVC` is judged too.
    jobs, verbose : int
    say : function of str
        Told what happens.
    """

    planner: Planner
    measure: Measure = field(default_factory=Measure)
    request: Request = field(default_factory=Request)
    yardstick: bool = True
    jobs: int = -1
    verbose: int = 0
    say: Callable[[str], None] = lambda text: None


def race(kinds: Sequence[str], encode: Encode, labels: NDArray[Any], rules: RaceRules) -> Race:
    """Search every kind on a few rows, then the promising ones on more, as time allows.

    Parameters
    ----------
    kinds : sequence of str
        Keys of `candidates.TITLES`.
    encode : function of (training rows, test rows)
        As in `judge`; with no test rows it encodes a sample to search on.
    labels : array
        The label of every row.
    rules : RaceRules

    Notes
    -----
    A search chooses its parameters on all rows of a sample, and its choice is then judged by
    cross-validation on the same rows. For choosing among classifiers this serves as well as
    tuning every fold anew, at a fraction of the cost (Wainer and Cawley, "Nested
    cross-validation when selecting classifiers is overzealous for most practical applications",
    Expert Systems with Applications 182, 2021). Where the time allows it, every fold is tuned.
    """
    course = _Course(encode, labels, rules)
    planner = rules.planner
    sizes = planner.samples(kinds)
    remaining, standing = list(kinds), None
    for position in range(len(sizes)):
        # Later samples are planned anew: the planner knows the searches by then.
        size = sizes[position] if position == 0 else planner.samples(remaining)[-1]
        last = position == len(sizes) - 1 or size >= len(labels)
        standing = course.stage(remaining, size, last, standing)
        running = {each.kind for each in standing.judged if not each.dropped}
        remaining = [kind for kind in remaining if kind in running]
        if last or standing.ended:
            break
    assert standing is not None
    order = {kind: position for position, kind in enumerate((*kinds, YARDSTICK))}
    return replace(standing, judged=sorted(standing.judged, key=lambda each: order[each.kind]))


@dataclass(frozen=True, eq=False)
class _Course:
    """What all samples of a race share; the parameters are those of `race`."""

    encode: Encode
    labels: NDArray[Any]
    rules: RaceRules

    def stage(self, kinds: Sequence[str], size: int, last: bool, before: Race | None) -> Race:
        """Search and judge the kinds on a sample, within the time for comparisons.

        A search that runs out of time leaves the parameters of the sample before. Where nobody is
        done in time the race ends with the sample before, or is run on the smallest sample, which
        has no limit: some model must come of it.
        """
        limit = math.inf if size <= SMALLEST_SAMPLE else self.rules.planner.comparing_left()
        with finish_within(limit):
            standing = self._on_sample(kinds, size, last, before)
        if standing is not None:
            return standing
        if before is not None:
            told = f"no comparison on {size} rows was done in time: that on fewer rows stands"
            self.rules.say(told)
            return replace(before, notes=[*before.notes, told], ended=True)
        return replace(self.stage(kinds, SMALLEST_SAMPLE, True, None), ended=True)

    def _on_sample(
        self, kinds: Sequence[str], size: int, last: bool, before: Race | None
    ) -> Race | None:
        """The race after one more sample; None if nobody was done in time."""
        rows = sample_rows(self.labels, size, self.rules.request.seed)
        asked = replace(
            self.rules.request, folds=inner_folds(self.labels[rows], self.rules.request.folds)
        )
        known = Race([], {}, rows, {}, False) if before is None else before
        new = self._search(kinds, rows, asked)
        searches = known.searches | new
        searched_on = known.searched_on | dict.fromkeys(new, len(rows))
        able = {kind: searches[kind] for kind in kinds if kind in searches}
        if not able:
            return None
        # A fold is not tuned anew where there was no time to tune once; how long that takes is
        # known now.
        nested = last and len(new) == len(able) and self.rules.planner.tunes_in_folds(kinds, size)
        judged = self._judge(able, rows, nested, asked)
        finished = [each for each in judged if each.kind != YARDSTICK and not each.dropped]
        if not finished:
            return None
        best = min(finished, key=self.rules.measure.value)
        seen = {each.kind: self._marked(each, best, len(rows), last) for each in judged}
        late = {
            each.kind: replace(each, dropped=f"{LATE} on {len(rows)} rows")
            for each in known.judged
            if each.kind in kinds and each.kind not in seen
        }
        told = [
            f"the search of {TITLES[kind]} on {len(rows)} rows ran out of time: parameters of "
            f"{searched_on[kind]} rows"
            for kind in able
            if kind not in new
        ]
        told += [
            self._note(each, best)
            for kind, each in (late | seen).items()
            if kind != YARDSTICK and each.dropped and (not last or each.dropped.startswith(LATE))
        ]
        for text in told:
            self.rules.say(text)
        every = {each.kind: each for each in known.judged} | late | seen
        notes = [*known.notes, *told]
        return Race(list(every.values()), searches, rows, searched_on, nested, notes)

    def _marked(self, each: Judged, best: Judged, n_rows: int, last: bool) -> Judged:
        """The judgement, marked as dropped where the candidate is not worth another sample."""
        if last or each is best or each.kind == YARDSTICK or each.dropped.startswith(LATE):
            return each
        hopeless = each.dropped or self.rules.measure.worse(each, best) > HOPELESS
        return replace(each, dropped=f"dropped after {n_rows} rows") if hopeless else each

    def _note(self, each: Judged, best: Judged) -> str:
        """The sentence on a candidate that is out of the race."""
        losses = [100 * self.rules.measure.value(judged) for judged in (each, best)]
        return (
            f"{TITLES[each.kind]} {each.dropped}: {self.rules.measure.title} {losses[0]:.1f} % "
            f"against {losses[1]:.1f} % of {best.title}"
        )

    def _search(self, kinds: Sequence[str], rows: IntArray, request: Request) -> dict[str, Any]:
        """Fit the search of every kind to the rows, the longest first; those done in time."""
        X, _ = self.encode(rows, rows[:0])
        y = self.labels[rows]
        planner = self.rules.planner
        # A learner of one pass must not see a sorted file in its order.
        order = np.random.default_rng(request.seed).permutation(len(rows))

        def run(kind: str) -> tuple[str, Any, float]:
            start = time.perf_counter()
            candidate = make_candidate(kind, request)
            try:
                check_time()
                once = (X[order], y[order]) if kind == "online" else (X, y)
                fitted = candidate.fit(*once)
            except OutOfTime:
                return kind, None, time.perf_counter() - start
            if "n_jobs" in fitted.get_params(deep=False):
                fitted.set_params(n_jobs=None)  # of the search, not of the model that is saved
            return kind, fitted, time.perf_counter() - start

        searches = {}
        with progress(f"searching, {len(rows)} rows", len(kinds), self.rules.verbose) as advance:
            for kind, fitted, seconds in _in_threads(
                run, planner.longest_first(kinds, len(rows)), self.rules.jobs
            ):
                if fitted is not None:
                    searches[kind] = fitted
                    planner.observe(kind, len(rows), seconds)
                advance(1)
        return {kind: searches[kind] for kind in kinds if kind in searches}

    def _judge(
        self, searches: Mapping[str, Any], rows: IntArray, nested: bool, request: Request
    ) -> list[Judged]:
        """Judge the searches' choices on folds of the rows, each fold tuned anew when `nested`."""
        labels = self.labels
        splitter = StratifiedKFold(
            self.rules.planner.folds, shuffle=True, random_state=request.seed
        )
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
        protected = tuple(searches) if len(searches) == 1 else ()
        if self.rules.yardstick:
            candidates[YARDSTICK] = make_candidate(YARDSTICK, request)
            protected = (YARDSTICK, *protected)
        return judge(
            candidates,
            self.encode,
            labels,
            pairs,
            dropping=Dropping(self.rules.measure, protected),
            seed=request.seed,
            jobs=self.rules.jobs,
            verbose=self.rules.verbose,
        )


def sample_rows(labels: NDArray[Any], size: int, seed: int) -> IntArray:
    """All rows in their order, or a random stratified sample of `size` of them."""
    rows = np.arange(len(labels))
    if size >= len(rows):
        return rows
    chosen, _ = train_test_split(rows, train_size=size, stratify=labels, random_state=seed)
    return np.asarray(np.sort(chosen))


def _in_threads(run: Any, tasks: Sequence[Any], jobs: int) -> Any:
    with limited_threads(1):
        if jobs == 1 or len(tasks) == 1:
            yield from (run(task) for task in tasks)
            return
        yield from Parallel(n_jobs=jobs, prefer="threads", return_as="generator_unordered")(
            delayed(run)(task) for task in tasks
        )
