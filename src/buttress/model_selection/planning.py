"""A plan that keeps within a budget of time: samples to compare models on, and the last fit."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from buttress.model_selection.cost_model import (
    Size,
    approximate_seconds,
    approximates,
    fit_seconds,
    machine_factor,
    search_seconds,
    worst_seconds,
)

# Rows up to which an exact search may be tried at all: its Gram matrix and the copies made for
# the folds take about 30 bytes per pair of rows, hence 750 MB.
MOST_EXACT_ROWS = 5000
# A sample this small says which kinds of model are hopeless. It is used where it takes no more than
# this share of the larger one's time, because it drops about one kind of four.
SMALLEST_SAMPLE = 400
_FIRST_LOOK = 0.25
# With more rows than this a comparison no longer changes which kind is best.
_LAST_SAMPLE = 2000
# Every fold is tuned anew when that takes no longer than this, unless a budget was given.
_QUICK = 6.0
# Shares of the time that is left which the comparison and then the fit may take; the report
# needs the rest. A budget that nobody asked for is a limit, not a wish: 20,000 rows should take
# a minute of its two; larger tables take what there is.
_COMPARING, _COMPARING_UNASKED = 0.5, 0.25
_FITTING, _FITTING_UNASKED = 0.7, 0.25
# Shares of the whole budget after which a comparison, and a fit, are stopped where they stand:
# estimates may be wrong by half, and the report still has to be written.
_COMPARING_ENDS, _FITTING_ENDS = 0.65, 0.95
# Penalties tried on a table larger than the sample, on no more rows than this.
PENALTIES, MOST_TUNING_ROWS = 4, 50_000
COMPONENTS = (1000, 700, 500, 300, 200, 100)


@dataclass(frozen=True)
class FinalFit:
    """How the chosen model is fitted.

    Attributes
    ----------
    rows : int
        Rows that it learns from.
    components : int or None
        Landmarks of the approximate kernel; None for the exact one.
    seconds : float
        What it should take.
    """

    rows: int
    components: int | None
    seconds: float


class Planner:
    """Keeps a comparison and a fit within a budget of time.

    Parameters
    ----------
    size : Size
        The whole table.
    budget : float
        Seconds for everything.
    generous : bool
        Whether the budget was asked for: then half of it may go into tuning every fold.
    threads : int
        Searches that run at the same time.
    folds : int
        Of every search and of the judgement.
    speed : float, optional
        Seconds on this machine over seconds on the reference one; measured when not given.
    clock : function
        For tests.

    Examples
    --------
    >>> planner = Planner(Size(100_000, 20), budget=120, threads=2, speed=1.0)
    >>> planner.samples(["leaky", "ramp"])
    [400, 2000]
    >>> planner.final("leaky", searched_rows=2000).rows
    100000
    """

    def __init__(
        self,
        size: Size,
        budget: float,
        *,
        generous: bool = False,
        threads: int = 1,
        folds: int = 5,
        speed: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.size = size
        self.budget = budget
        self.generous = generous
        self.threads = max(1, threads)
        self.folds = folds
        self.speed = machine_factor() if speed is None else speed
        self._clock = clock
        self._start = clock()
        self._seen: dict[str, float] = {}
        self._seen_approximate: dict[str, float] = {}

    def remaining(self) -> float:
        """Seconds left of the budget."""
        return self.budget - (self._clock() - self._start)

    def comparing_left(self) -> float:
        """Seconds after which a comparison that still runs is stopped."""
        return self.remaining() - (1.0 - _COMPARING_ENDS) * self.budget

    def fitting_left(self) -> float:
        """Seconds after which a fit that still runs is stopped."""
        return self.remaining() - (1.0 - _FITTING_ENDS) * self.budget

    # -- what things cost ------------------------------------------------------------------

    def search_seconds(self, kind: str, rows: int) -> float:
        """Wall time of one search on one core."""
        factor = self._seen.get(kind, self.speed)
        return factor * search_seconds(kind, rows, self.size, self.folds)

    def longest_first(self, kinds: Sequence[str], rows: int) -> list[str]:
        """The order in which searches that run side by side are begun.

        Nobody waits for a search that was begun early, so that what may take long is: the worst
        case counts, or what is known from an earlier search.
        """

        def seconds(kind: str) -> float:
            if kind in self._seen:
                return self.search_seconds(kind, rows)
            return self.speed * worst_seconds(kind, rows, self.size)

        return sorted(kinds, key=seconds, reverse=True)

    def fit_seconds(self, kind: str, rows: int) -> float:
        """Wall time of one fit with known parameters on one core."""
        factor = self._seen.get(kind, self.speed)
        return factor * fit_seconds(kind, rows, self.size)

    def approximate_seconds(self, kind: str, rows: int, components: int) -> float:
        """Wall time of one fit with an approximate kernel on one core."""
        factor = self._seen_approximate.get(kind, self.speed)
        return factor * approximate_seconds(kind, rows, components, self.size)

    def observe(self, kind: str, rows: int, seconds: float) -> None:
        """Learn from a search that was done: later ones are estimated from it."""
        expected = search_seconds(kind, rows, self.size, self.folds)
        self._seen[kind] = max(seconds, 1e-3) / expected

    def observe_approximate(self, kind: str, rows: int, components: int, seconds: float) -> None:
        """Learn from a fit on landmarks that was done."""
        expected = approximate_seconds(kind, rows, components, self.size)
        self._seen_approximate[kind] = max(seconds, 1e-3) / expected

    def together(self, kinds: Sequence[str], rows: int) -> float:
        """Wall time of the searches of all kinds, and of the judgement of their choices."""
        searches = [self.search_seconds(kind, rows) for kind in kinds]
        fits = self.folds * sum(self.fit_seconds(kind, rows) for kind in kinds)
        return max(max(searches), sum(searches) / self.threads) + fits / self.threads

    # -- what to do ------------------------------------------------------------------------

    def samples(self, kinds: Sequence[str]) -> list[int]:
        """Rows of the samples to compare the kinds on, growing."""
        most = min(self.size.rows, MOST_EXACT_ROWS)
        time_left = (_COMPARING if self.generous else _COMPARING_UNASKED) * self.remaining()
        affordable = most
        while affordable > SMALLEST_SAMPLE and self.together(kinds, affordable) > time_left:
            affordable = int(affordable * 0.9)
        if affordable < self.size.rows:
            affordable = max(min(affordable, _LAST_SAMPLE), min(SMALLEST_SAMPLE, most))
        worthwhile = len(kinds) > 1 and (
            self.together(kinds, SMALLEST_SAMPLE) <= _FIRST_LOOK * self.together(kinds, affordable)
        )
        return [SMALLEST_SAMPLE, affordable] if worthwhile else [affordable]

    def tunes_in_folds(self, kinds: Sequence[str], rows: int) -> bool:
        """Whether there is time to tune every fold of the judgement anew."""
        searches = [self.search_seconds(kind, rows) for kind in kinds]
        cost = self.folds * max(max(searches), sum(searches) / self.threads)
        return cost <= (0.5 * self.remaining() if self.generous else _QUICK)

    def final(self, kind: str, searched_rows: int) -> FinalFit:
        """How to fit the chosen kind: exactly, on landmarks, or on some of the rows.

        Parameters
        ----------
        kind : str
        searched_rows : int
            Rows that it has been searched on; a search on all rows is the fitted model.
        """
        n = self.size.rows
        if searched_rows == n:
            return FinalFit(n, None, 0.0)
        unhurried = self.generous or n > MOST_TUNING_ROWS
        share = _FITTING if unhurried else _FITTING_UNASKED
        left = max(share * self.remaining(), 0.1 * self.budget)
        exact = self.fit_seconds(kind, n)
        if (n <= MOST_EXACT_ROWS or not approximates(kind)) and exact <= left:
            return FinalFit(n, None, exact)
        if not approximates(kind):
            rows = _shrunk(n, searched_rows, lambda m: self.fit_seconds(kind, m) <= left)
            return FinalFit(rows, None, self.fit_seconds(kind, rows))
        for components in COMPONENTS:
            seconds = self._with_tuning(kind, n, components)
            if seconds <= left:
                return FinalFit(n, min(components, n), seconds)
        few = COMPONENTS[-1]
        rows = _shrunk(n, searched_rows, lambda m: self._with_tuning(kind, m, few) <= left)
        return FinalFit(rows, few, self._with_tuning(kind, rows, few))

    def affordable_rows(self, kind: str, rows: int, components: int | None, least: int) -> int:
        """Rows that one last fit can have in the time that is left for it."""
        left = self.fitting_left()

        def in_time(m: int) -> bool:
            if components is None:
                return self.fit_seconds(kind, m) <= left
            return self.approximate_seconds(kind, m, components) <= left

        return _shrunk(rows, least, in_time)

    def _with_tuning(self, kind: str, rows: int, components: int) -> float:
        """Seconds of a fit on landmarks, with those that choose its penalty."""
        tuning = min(rows, MOST_TUNING_ROWS)
        return self.approximate_seconds(kind, rows, components) + PENALTIES * (
            self.approximate_seconds(kind, tuning, components)
        )

    def estimate(self, kinds: Sequence[str], report: bool = False) -> float:
        """Seconds that everything should take: comparison, fit and report."""
        sizes = self.samples(kinds)
        total = sum(self.together(kinds, size) for size in sizes)
        if self.tunes_in_folds(kinds, sizes[-1]):
            total += (self.folds - 1) * self.together(kinds, sizes[-1])
        if sizes[-1] < self.size.rows:
            total += max(self.final(kind, sizes[-1]).seconds for kind in kinds)
        if report and "ramp" not in kinds:
            total += self.search_seconds("ramp", min(sizes[-1], _LAST_SAMPLE))
        return total

    def sentence(self, kinds: Sequence[str], report: bool = False) -> str:
        """The plan for people, before the work begins."""
        rows = self.samples(kinds)[-1]
        on = "all rows" if rows == self.size.rows else f"a random {rows} of the rows"
        what = f"comparing {len(kinds)} kinds of models" if len(kinds) > 1 else "tuning the model"
        later = ""
        if rows < self.size.rows:
            later = ", then fitting to " + (
                "all rows" if self.final(kinds[0], rows).rows == self.size.rows else "more rows"
            )
        return (
            f"{what} on {on}{later}: about {spoken(self.estimate(kinds, report))} "
            f"(at most {spoken(self.budget)}; change it with --time)"
        )


def _shrunk(rows: int, least: int, affordable: Callable[[int], bool]) -> int:
    """As many rows as can be afforded, but not fewer than `least`."""
    while rows > least and not affordable(rows):
        rows = max(least, int(rows * 0.9))
    return rows


def spoken(seconds: float) -> str:
    """A length of time for people.

    Examples
    --------
    >>> spoken(0.4), spoken(47.2), spoken(200)
    ('1 s', '47 s', '3 min')
    """
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def available_threads(jobs: int) -> int:
    """Threads that ``jobs`` means: -1 for all that this process may use."""
    if jobs > 0:
        return jobs
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
