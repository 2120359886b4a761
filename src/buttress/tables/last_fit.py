"""The last fit of a search: the kind that won, on as many rows as the time left allows."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from buttress._arrays import IntArray
from buttress._deadline import OutOfTime, finish_within
from buttress._memory import free_memory
from buttress.model_selection.candidates import make_candidate, settled
from buttress.model_selection.cost_model import approximates
from buttress.model_selection.judging import Judged, answers_of
from buttress.model_selection.planning import (
    MOST_EXACT_ROWS,
    MOST_TUNING_ROWS,
    PENALTIES,
    FinalFit,
    spoken,
)
from buttress.model_selection.racing import Race, RaceRules, sample_rows
from buttress.model_selection.titles import TITLES
from buttress.tables.classifier import TableClassifier
from buttress.tables.row_encoding import Encoding, assemble

# Of a large table this share, and no more rows than this, decide on the penalty and measure the
# error of the fitted model.
_HELD_OUT, _MOST_HELD_OUT = 0.2, 20_000
# Rows of a first fit on landmarks, which shows what such fits take on this machine.
_PROBE_ROWS = 4000
# A table larger than the sample by no more than this factor takes over its parameters.
_LIKE_THE_SAMPLE = 2
# Penalties tried on all rows of a table larger than the sample, as factors of the sample's. With
# n/m times as many rows the best alpha is smaller, and the best C lies between C m/n and a few C.
_ALPHA_FACTORS = (1.0, 0.3, 0.1, 0.03)
_RADIUS_FACTORS = (1.0, 2.0, 4.0)

# What a fit on landmarks may take where more is free. Features of all rows that need more than half
# of it are made again for every pass: twice the time for a fit of 200 000 rows to 300 landmarks,
# and an eighth of the memory.
_MEMORY = "1 GB"

Fitted = tuple[TableClassifier, FinalFit, Judged]


@dataclass(frozen=True, eq=False)
class LastFit:
    """The fit of the kind that won, to as many rows as the time that is left allows."""

    empty: TableClassifier
    encode: Encoding
    labels: NDArray[Any]
    race: Race
    kind: str
    rules: RaceRules

    @property
    def search(self) -> Any:
        """The search of the race whose choice is fitted."""
        return self.race.searches[self.kind]

    def run(self, approximation: str | None) -> Fitted:
        """Fit, and say how; when the time is over, the model of the comparison stands."""
        searched = self.race.searched_on[self.kind]
        plain = approximation is None and self.rules.request.target_coverage is None
        if plain and searched == len(self.labels):
            return self._compared()
        try:
            with finish_within(self.rules.planner.fitting_left()):
                if approximation is not None:
                    return self._asked_for(approximation)
                return self._planned(self.rules.planner.final(self.kind, searched))
        except OutOfTime:
            self.rules.say(
                f"the fit to more rows ran out of time: the model of {searched} rows is kept "
                "(more with a larger --time)"
            )
            return self._compared(approximation)

    def _asked_for(self, approximation: str) -> Fitted:
        """The whole search anew on a feature map, as the user wanted it."""
        estimator = make_candidate(self.kind, self.rules.request, approximation=approximation)
        model = self.empty.set_params(estimator=estimator).fit(self.encode.table, self.labels)
        mapped = getattr(model.estimator_, "approximation_", None) is not None
        components = min(int(estimator.n_components), len(self.labels)) if mapped else None
        final = FinalFit(len(self.labels), components, 0.0)
        return model, final, self.race.of(self.kind)

    def _planned(self, final: FinalFit) -> Fitted:
        race, labels, seed = self.race, self.labels, self.rules.request.seed
        judged = race.of(self.kind)
        if self.kind == "reject" and self.rules.request.target_coverage is not None:
            final = replace(final, rows=min(final.rows, MOST_EXACT_ROWS), components=None)
            rows = sample_rows(labels, final.rows, seed)
            coverage = self.rules.request.target_coverage
            estimator = settled(self.search).set_params(target_coverage=coverage)
            return self._assembled(estimator, rows), final, judged
        if final.components is None and final.rows <= _LIKE_THE_SAMPLE * len(race.rows):
            rows = sample_rows(labels, final.rows, seed)
            if self.kind == "online":
                rows = np.random.default_rng(seed).permutation(rows)
            return self._assembled(settled(self.search), rows), final, judged
        return self._to_more_rows(final)

    def _compared(self, approximation: str | None = None) -> Fitted:
        """The model that the comparison made, without a further fit where there is one."""
        n_rows = self.race.searched_on[self.kind]
        rows = sample_rows(self.labels, n_rows, self.rules.request.seed)
        final = FinalFit(n_rows, None, 0.0)
        judged = self.race.of(self.kind)
        coverage = self.rules.request.target_coverage
        if approximation is None and coverage is None:
            return self._of_sample(), final, judged
        estimator = settled(self.search)
        if coverage is not None:
            estimator.set_params(target_coverage=coverage)
        if approximation is not None:
            estimator.set_params(approximation=approximation)
            final = replace(final, components=min(int(estimator.n_components), n_rows))
        return self._assembled(estimator, rows), final, judged

    def _of_sample(self) -> TableClassifier:
        """The search itself as a model."""
        search = self.search
        rows = sample_rows(self.labels, self.race.searched_on[self.kind], self.rules.request.seed)
        # scikit-learn's search keeps functions, which a model file refuses; its model is enough.
        model = search.best_estimator_ if isinstance(search, GridSearchCV) else search
        return assemble(self.empty, self.encode.encoder(rows), model)

    def _assembled(self, estimator: Any, rows: IntArray) -> TableClassifier:
        X, _ = self.encode(rows, rows[:0])
        fitted = estimator.fit(X, self.labels[rows])
        return assemble(self.empty, self.encode.encoder(rows), fitted)

    def _to_more_rows(self, final: FinalFit) -> Fitted:
        """Fit to more rows than were searched: the penalty, and the error, from rows held out."""
        kind, planner, labels = self.kind, self.rules.planner, self.labels
        rows, held, train = self._divided(final.rows)
        estimator = settled(self.search)
        if final.components is not None:
            few = train[:_PROBE_ROWS]
            estimator.set_params(
                approximation="nystroem",
                n_components=final.components,
                memory_limit=_memory_limit(),
            )
            self._timed(clone(estimator), few, final.components)
            # Planned anew: what a fit takes here is known by now.
            final = planner.final(kind, self.race.searched_on[kind])
            estimator.set_params(n_components=final.components)
            rows, held, train = self._divided(final.rows)
        self.rules.say(_describe(final, len(labels), TITLES[kind]))
        model, values, judged = self._tuned(estimator, held, train, len(rows), final.components)
        n_rows = planner.affordable_rows(kind, len(rows), final.components, len(train))
        tuned = replace(final, rows=len(train))
        if n_rows > len(train) or not approximates(kind):
            rows = rows[:n_rows] if kind == "online" else np.sort(rows[:n_rows])
            last = clone(estimator).set_params(**values)
            try:
                return self._assembled(last, rows), replace(final, rows=len(rows)), judged
            except OutOfTime:
                self.rules.say(f"the last fit ran out of time: that to {len(train)} rows is kept")
        return assemble(self.empty, self.encode.encoder(train), model), tuned, judged

    def _divided(self, n_rows: int) -> tuple[IntArray, IntArray, IntArray]:
        """Rows to fit to, those held out of them, and those to tune with; the first shuffled."""
        rng = np.random.default_rng(self.rules.request.seed)
        shuffled = rng.permutation(sample_rows(self.labels, n_rows, self.rules.request.seed))
        n_held = min(int(_HELD_OUT * len(shuffled)), _MOST_HELD_OUT)
        train = shuffled[n_held : n_held + MOST_TUNING_ROWS]
        return shuffled, np.sort(shuffled[:n_held]), train

    def _timed(self, estimator: Any, rows: IntArray, components: int) -> None:
        """Fit once and tell the planner what it took."""
        X, _ = self.encode(rows, rows[:0])
        start = time.perf_counter()
        estimator.fit(X, self.labels[rows])
        seconds = time.perf_counter() - start
        self.rules.planner.observe_approximate(self.kind, len(rows), components, seconds)

    def _tuned(
        self,
        estimator: Any,
        held: IntArray,
        train: IntArray,
        n_rows: int,
        components: int | None,
    ) -> tuple[Any, dict[str, float], Judged]:
        """The penalty of least loss on the rows held out, its model and its answers to them."""
        labels, kind, measure = self.labels, self.kind, self.rules.measure
        X_train, X_held = self.encode(train, held)
        tried: list[tuple[float, Any, dict[str, float], Judged]] = []
        for values in larger_grid(estimator, len(self.race.rows) / n_rows):
            start = time.perf_counter()
            try:
                model = clone(estimator).set_params(**values).fit(X_train, labels[train])
            except OutOfTime:
                if not tried:
                    raise
                break
            if components is not None:
                seconds = time.perf_counter() - start
                self.rules.planner.observe_approximate(kind, len(train), components, seconds)
            answers = answers_of(model, X_held, labels[held], kind, TITLES[kind])
            tried.append((measure.value(answers), model, values, replace(answers, rows=held)))
            # Along the grid the loss falls and then rises: the first rise ends it.
            if len(tried) > 1 and tried[-1][0] > tried[-2][0]:
                break
        _, model, values, judged = min(tried, key=lambda each: each[0])
        return model, values, judged


def _memory_limit() -> str | None:
    """What a fit to all rows may take; None, a share of what is free, where that is less."""
    free = free_memory()
    return _MEMORY if free is None or free > 4 * 2**30 else None


def larger_grid(estimator: Any, share: float) -> list[dict[str, float]]:
    """Penalties to try when only a `share` of the rows was searched."""
    parameters = estimator.get_params(deep=False)
    if "alpha" in parameters:
        return [{"alpha": parameters["alpha"] * factor} for factor in _ALPHA_FACTORS]
    if "C" in parameters:
        factors = np.geomspace(share, 3.0, PENALTIES)
        return [{"C": float(parameters["C"] * factor)} for factor in factors]
    if "radius" in parameters:
        return [{"radius": parameters["radius"] * factor} for factor in _RADIUS_FACTORS]
    return [{}]


def _describe(final: FinalFit, n_rows: int, title: str) -> str:
    rows = f"all {n_rows} rows" if final.rows == n_rows else f"{final.rows} of {n_rows} rows"
    how = f"{final.components} landmarks" if final.components else "the exact kernel"
    return f"fitting {title} to {rows} with {how}: about {spoken(final.seconds)}"
