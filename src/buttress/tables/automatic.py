"""From a table to the best model that a budget of time allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from buttress._arrays import IntArray
from buttress.model_selection.candidates import Request, make_candidate, settled
from buttress.model_selection.judging import Judged, answers_of
from buttress.model_selection.measures import Measure
from buttress.model_selection.planning import (
    MOST_EXACT_ROWS,
    MOST_TUNING_ROWS,
    PENALTIES,
    FinalFit,
    Planner,
    spoken,
)
from buttress.model_selection.racing import YARDSTICK, Race, race, sample_rows
from buttress.model_selection.titles import TITLES
from buttress.tables.classifier import TableClassifier
from buttress.tables.encoder import TableEncoder
from buttress.tables.table import Table, is_number

# Of a large table this share, and no more rows than this, decide on the penalty and measure the
# error of the fitted model.
_HELD_OUT, _MOST_HELD_OUT = 0.2, 20_000
# Standard errors of a paired difference from which a lead is called more than chance.
_DISTINCT = 1.96
# A table larger than the sample by no more than this factor takes over its parameters.
_LIKE_THE_SAMPLE = 2
# Penalties tried on all rows of a table larger than the sample, as factors of the sample's. With
# n/m times as many rows the best alpha is smaller, and the best C lies between C m/n and a few C.
_ALPHA_FACTORS = (1.0, 0.3, 0.1, 0.03)
_RADIUS_FACTORS = (1.0, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class Chosen:
    """A fitted model of a table, and how it was chosen.

    Attributes
    ----------
    model : TableClassifier
    kind : str
        Which of the candidates it is.
    why : str
        The sentence that says so.
    race : Race
        How the candidates did.
    final : FinalFit
        How the model was fitted.
    judged : Judged
        Answers of such a model to rows that it had not seen: of the race, or, when the model
        learned from more rows than the race had, from rows held out.
    """

    model: TableClassifier
    kind: str
    why: str
    race: Race
    final: FinalFit
    judged: Judged


def choose_model(
    table: Table,
    labels: NDArray[Any],
    kinds: Sequence[str],
    *,
    planner: Planner,
    measure: Measure | None = None,
    request: Request | None = None,
    target: str | None = None,
    missing: str = "error",
    approximation: str | None = None,
    yardstick: bool = True,
    jobs: int = -1,
    verbose: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> Chosen:
    """Race the kinds of models, then fit the best one to as many rows as time allows.

    Parameters
    ----------
    table, labels
        The features and the label of every row.
    kinds : sequence of str
        Keys of `buttress.model_selection.candidates.TITLES`.
    planner : Planner
    measure : Measure, optional
        What decides; the error rate when not given.
    request : Request, optional
        What is asked of every candidate.
    target, missing : str
        As in `TableClassifier`.
    approximation : str, optional
        Feature map to fit the model with, whatever its size.
    yardstick : bool
        Whether scikit-learn's `SVC` is judged too.
    jobs, verbose : int
    say : function of str
        Told what is happening.

    Examples
    --------
    >>> from buttress.model_selection.planning import Size
    >>> from buttress.tables import as_table
    >>> x = np.linspace(-1, 1, 40)
    >>> planner = Planner(Size(40, 1), budget=60)
    >>> found = choose_model(as_table({"x": x}), (x > 0).astype(int), ["leaky"], planner=planner)
    >>> found.model.predict({"x": [-0.5, 0.7]})
    array([0, 1])
    """
    measure, request = measure or Measure(), request or Request()
    encode = Encoding(table, missing)
    found = race(
        kinds,
        encode,
        labels,
        request=request,
        measure=measure,
        planner=planner,
        folds=planner.folds,
        yardstick=yardstick,
        jobs=jobs,
        verbose=verbose,
        say=say,
    )
    kind = found.winner(measure)
    why = _reason(found, kind, measure) if len(kinds) > 1 else f"{TITLES[kind]} was asked for"
    final = planner.final(kind, len(found.rows))
    judged = found.of(kind)
    empty = TableClassifier(make_candidate(kind, request), target=target, missing=missing)
    if approximation is not None:
        empty.set_params(estimator=make_candidate(kind, request, approximation=approximation))
        return Chosen(empty.fit(table, labels), kind, why, found, final, judged)
    search = found.searches[kind]
    if kind == "reject" and request.target_coverage is not None:
        final = replace(final, rows=min(final.rows, MOST_EXACT_ROWS), components=None)
        rows = sample_rows(labels, final.rows, request.seed)
        estimator = settled(search).set_params(target_coverage=request.target_coverage)
        fitted = _assembled(empty, estimator, encode, rows, labels)
    elif len(found.rows) == len(labels):
        # scikit-learn's search keeps functions, which a model file refuses; its model is enough.
        model = search.best_estimator_ if isinstance(search, GridSearchCV) else search
        fitted = assemble(empty, encode.encoder(found.rows), model)
    elif final.components is None and final.rows <= _LIKE_THE_SAMPLE * len(found.rows):
        rows = sample_rows(labels, final.rows, request.seed)
        if kind == "online":
            rows = np.random.default_rng(request.seed).permutation(rows)
        fitted = _assembled(empty, settled(search), encode, rows, labels)
    else:
        say(_describe(final, len(labels), TITLES[kind]))
        fitted, judged = _fit_larger(empty, search, encode, labels, found, final, request, measure)
    return Chosen(fitted, kind, why, found, final, judged)


def assemble(empty: TableClassifier, encoder: TableEncoder, estimator: Any) -> TableClassifier:
    """Make `empty` the model that its `fit` would, from a fitted encoder and estimator."""
    empty.encoder_, empty.estimator_, empty.classes_ = encoder, estimator, estimator.classes_
    empty.n_features_in_ = encoder.n_features_in_
    empty.feature_names_in_ = encoder.feature_names_in_
    empty.rows_ = np.arange(0)
    return empty


def encoded_width(table: Table) -> int:
    """Features that the encoder makes of a table: one per number, one per category.

    Examples
    --------
    >>> from buttress.tables import as_table
    >>> encoded_width(as_table({"age": [20, 40, 60], "city": ["a", "b", "a"]}))
    3
    """
    return sum(
        1 if is_number(values) else len(set(values) - {None}) for values in table.columns.values()
    )


class Encoding:
    """Encodes folds of a table, each with what its training part shows.

    Parameters
    ----------
    table : Table
    missing : str
        As in `TableEncoder`.

    Examples
    --------
    >>> from buttress.tables import as_table
    >>> encode = Encoding(as_table({"x": [0.0, 2.0, 5.0]}))
    >>> encode(np.array([0, 1]), np.array([2]))[1]
    array([[4.]])
    """

    def __init__(self, table: Table, missing: str = "error") -> None:
        self.table, self.missing = table, missing

    def encoder(self, rows: IntArray) -> TableEncoder:
        """The encoder of a model that learns from `rows`."""
        return TableEncoder(self.missing).fit(self._take(rows))

    def __call__(self, train: IntArray, test: IntArray) -> tuple[Any, Any]:
        encoder = TableEncoder(self.missing, "ignore")
        first = encoder.fit_transform(self._take(train))
        return first, encoder.transform(self._take(test)) if len(test) else first[:0]

    def _take(self, rows: IntArray) -> Table:
        whole = len(rows) == len(self.table) and bool((rows == np.arange(len(rows))).all())
        return self.table if whole else self.table.take(rows)


def _reason(found: Race, chosen: str, measure: Measure) -> str:
    losses = {each.kind: measure.value(each) for each in found.judged}
    others = ", ".join(
        f"{each.title} {100 * losses[each.kind]:.2f} %"
        for each in found.judged
        if each.kind != chosen
    )
    best = found.of(chosen)
    rivals = [each for each in found.judged if each.kind != chosen and not each.dropped]
    near = [each.title for each in rivals if measure.worse(each, best) < _DISTINCT]
    chance = f"; its lead over {' and '.join(near)} may be chance" if near else ""
    return (
        f"chosen: {TITLES[chosen]}, for the smallest {measure.title}, "
        f"{100 * losses[chosen]:.2f} % ({others}){chance}"
    )


def _describe(final: FinalFit, n_rows: int, title: str) -> str:
    rows = f"all {n_rows} rows" if final.rows == n_rows else f"{final.rows} of {n_rows} rows"
    how = f"{final.components} landmarks" if final.components else "the exact kernel"
    return f"fitting {title} to {rows} with {how}: about {spoken(final.seconds)}"


def _assembled(
    empty: TableClassifier, estimator: Any, encode: Encoding, rows: IntArray, labels: NDArray[Any]
) -> TableClassifier:
    X, _ = encode(rows, rows[:0])
    return assemble(empty, encode.encoder(rows), estimator.fit(X, labels[rows]))


def _fit_larger(
    empty: TableClassifier,
    search: Any,
    encode: Encoding,
    labels: NDArray[Any],
    found: Race,
    final: FinalFit,
    request: Request,
    measure: Measure,
) -> tuple[TableClassifier, Judged]:
    """Fit to more rows than were searched: the penalty, and the error, from rows held out."""
    kind = found.winner(measure)
    rows = sample_rows(labels, final.rows, request.seed)
    estimator = settled(search)
    if final.components is not None:
        estimator.set_params(approximation="nystroem", n_components=final.components)
    rng = np.random.default_rng(request.seed)
    shuffled = rng.permutation(rows)
    n_held = min(int(_HELD_OUT * len(rows)), _MOST_HELD_OUT)
    held, train = np.sort(shuffled[:n_held]), shuffled[n_held : n_held + MOST_TUNING_ROWS]
    X_train, X_held = encode(train, held)
    tried: list[tuple[float, Any, Judged]] = []
    for values in _larger_grid(estimator, len(found.rows) / len(rows)):
        model = clone(estimator).set_params(**values).fit(X_train, labels[train])
        answers = answers_of(model, X_held, labels[held], kind, TITLES[kind])
        tried.append((measure.value(answers), values, replace(answers, rows=held)))
        # Along the grid the loss falls and then rises: the first rise ends it.
        if len(tried) > 1 and tried[-1][0] > tried[-2][0]:
            break
    _, values, judged = min(tried, key=lambda each: each[0])
    del X_train, X_held
    if kind == "online":
        rows = shuffled
    return _assembled(empty, clone(estimator).set_params(**values), encode, rows, labels), judged


def _larger_grid(estimator: Any, share: float) -> list[dict[str, float]]:
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


__all__ = ["YARDSTICK", "Chosen", "Encoding", "assemble", "choose_model", "encoded_width"]
