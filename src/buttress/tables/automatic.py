"""From a table to the best model that a budget of time allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from buttress.model_selection.candidates import make_candidate
from buttress.model_selection.judging import Judged
from buttress.model_selection.measures import Measure
from buttress.model_selection.planning import FinalFit
from buttress.model_selection.racing import Race, RaceRules, race
from buttress.model_selection.titles import TITLES
from buttress.tables.classifier import TableClassifier
from buttress.tables.last_fit import LastFit
from buttress.tables.row_encoding import Encoding
from buttress.tables.table import Table

# Standard errors of a paired difference from which a lead is called more than chance.
_DISTINCT = 1.96


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
    rules: RaceRules,
    *,
    target: str | None = None,
    missing: str = "error",
    approximation: str | None = None,
) -> Chosen:
    """Race the kinds of models, then fit the best one to as many rows as time allows.

    Parameters
    ----------
    table, labels
        The features and the label of every row.
    kinds : sequence of str
        Keys of `buttress.model_selection.candidates.TITLES`.
    rules : RaceRules
        Time, measure, and what is asked of every candidate.
    target, missing : str
        As in `TableClassifier`.
    approximation : str, optional
        Feature map to fit the model with, whatever its size.

    Examples
    --------
    >>> import numpy as np
    >>> from buttress.model_selection.cost_model import Size
    >>> from buttress.model_selection.planning import Planner
    >>> from buttress.model_selection.racing import RaceRules
    >>> from buttress.tables import as_table
    >>> x = np.linspace(-1, 1, 40)
    >>> rules = RaceRules(Planner(Size(40, 1), budget=60))
    >>> chosen = choose_model(as_table({"x": x}), (x > 0).astype(int), ["leaky"], rules)
    >>> chosen.model.predict({"x": [-0.5, 0.7]})
    array([0, 1])
    """
    measure = rules.measure
    encode = Encoding(table, missing)
    race_result = race(kinds, encode, labels, rules)
    kind = race_result.winner(measure)
    why = _reason(race_result, kind, measure) if len(kinds) > 1 else f"{TITLES[kind]} was asked for"
    empty = TableClassifier(make_candidate(kind, rules.request), target=target, missing=missing)
    job = LastFit(empty, encode, labels, race_result, kind, rules)
    fitted, final, judged = job.run(approximation)
    return Chosen(fitted, kind, why, race_result, final, judged)


def _reason(race_result: Race, chosen: str, measure: Measure) -> str:
    losses = {each.kind: measure.value(each) for each in race_result.judged}
    others = ", ".join(
        f"{each.title} {100 * losses[each.kind]:.2f} %"
        for each in race_result.judged
        if each.kind != chosen
    )
    best = race_result.of(chosen)
    rivals = [each for each in race_result.judged if each.kind != chosen and not each.dropped]
    near = [each.title for each in rivals if measure.worse(each, best) < _DISTINCT]
    chance = f"; its lead over {' and '.join(near)} may be chance" if near else ""
    return (
        f"chosen: {TITLES[chosen]}, for the smallest {measure.title}, "
        f"{100 * losses[chosen]:.2f} % ({others}){chance}"
    )
