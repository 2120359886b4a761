"""The report of a fitted model: from what the search found to the sections."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from buttress._arrays import Array, IntArray
from buttress._threads import one_blas_thread
from buttress.classifiers import RampClassifier
from buttress.model_selection import Judged, Measure
from buttress.model_selection.candidates import Request, make_candidate
from buttress.model_selection.racing import Race
from buttress.model_selection.titles import TITLES
from buttress.noise import CleanScore
from buttress.report.card import Answered, card_sections
from buttress.report.comparing import comparison_section, path_section
from buttress.report.environment import versions
from buttress.report.health import data_health
from buttress.report.pictures import picture
from buttress.report.refused import refusals_section
from buttress.report.sections import ClassTable, Coverage, Report, Suspects
from buttress.report.suspected import suspects_section
from buttress.report.truth import silent_on_noise, true_labels_section
from buttress.tables import Table
from buttress.tables.automatic import Chosen

# Points of the picture; the file would grow, and a screen shows no more.
_MOST_POINTS = 5000


def fit_report(
    data: str,
    table: Table,
    labels: NDArray[Any],
    chosen: Chosen,
    *,
    measure: Measure,
    request: Request,
    folds: int,
    on_true_labels: CleanScore | None,
    numbers: IntArray | None = None,
) -> Report:
    """The report of ``buttress fit``; it reuses the searches of the race.

    Parameters
    ----------
    data : str
        Name of the file.
    table, labels
        What is in it.
    chosen : Chosen
        The model, and how it was chosen.
    measure : Measure
        What decided.
    request : Request
        What was asked of the candidates.
    folds : int
    on_true_labels : CleanScore or None
        What the held-out answers say of true labels, if they can.
    numbers : array of int, optional
        What the rows are called; 1, 2, ... when not given.
    """
    numbers = np.arange(1, len(labels) + 1) if numbers is None else numbers
    race, judged = chosen.race, chosen.judged
    rows = race.rows
    searched = table if len(rows) == len(labels) else table.take(rows)
    encoded = chosen.model.encode(searched)
    suspects, flagged = None, np.zeros(len(rows), dtype=bool)
    silent = silent_on_noise(labels[rows], None if on_true_labels else judged.scores)
    judged_labels = None
    if not silent:
        try:
            with one_blas_thread():  # threads take folds
                ramp = _ramp_of(race, encoded, labels[rows], request)
                judged_labels = ramp.suspects(encoded, labels[rows], cv=folds)
        except ValueError as error:  # of scores that are constant: no reason for no report
            silent = str(error).rstrip(".")
    if judged_labels is not None:
        suspects, flagged = suspects_section(
            judged_labels, labels[rows], numbers[rows] - 1, "ramp classifiers"
        )
    points = np.arange(len(rows))
    if len(points) > _MOST_POINTS:
        rng = np.random.default_rng(request.seed)
        points = np.sort(rng.choice(len(rows), _MOST_POINTS, replace=False))
    how = how_compared(race, folds, len(labels))
    return Report(
        title=f"{Path(data).name}: {TITLES[chosen.kind]}",
        summary=[
            *_summary(chosen, measure, len(labels)),
            _on_suspects(suspects, silent),
        ],
        health=data_health(table, labels, numbers),
        comparison=comparison_section(race.judged, measure, chosen.kind, how),
        classes=class_table(judged),
        truth=true_labels_section(judged, measure, on_true_labels),
        path=path_section(race.searches["leaky"]) if "leaky" in race.searches else None,
        coverage=Coverage.from_answers(
            judged.true,
            judged.answers,
            judged.confidence,
            measure.d,
            f"Answers and confidences of {judged.title} on rows it had not seen."
            f"{left_by_itself(judged)}",
        ),
        refusals=refusals_section(
            judged, table, chosen.model.encode(table.take(judged.rows)), measure, numbers
        ),
        suspects=suspects,
        picture=picture(
            chosen.model,
            searched.take(points),
            encoded[points],
            labels[rows][points],
            flagged[points],
        ),
        settings=_settings(data, len(labels), chosen, measure, request, folds),
        card=card_sections(
            chosen.model,
            answered=Answered(judged.true, judged.answers, judged.rejected),
            noise=judged_labels,
        ),
    )


def _on_suspects(suspects: Suspects | None, silent: str) -> str:
    if suspects is None:
        return f"The labels were not judged: {silent}."
    n_listed = len(suspects.rows)
    return (
        f"{n_listed or 'None'} of the {suspects.n_rows} labels looked at "
        f"{'stands' if n_listed < 2 else 'stand'} out as wrong."
    )


def _summary(chosen: Chosen, measure: Measure, n_rows: int) -> list[str]:
    loss = measure.estimate(chosen.judged)
    return [
        chosen.why[0].upper() + chosen.why[1:] + ".",
        f"On rows that it had not seen its {measure.title} is {100 * loss.value:.2f} % "
        f"(95 % interval {100 * loss.low:.1f} to {100 * loss.high:.1f} %).",
        _final_sentence(chosen, n_rows),
    ]


def _settings(
    data: str, n_rows: int, chosen: Chosen, measure: Measure, request: Request, folds: int
) -> dict[str, str]:
    return {
        "data": data,
        "rows": str(n_rows),
        "rows compared on": str(len(chosen.race.rows)),
        "model": TITLES[chosen.kind],
        "decided by": f"{measure.title} ({measure.meaning})",
        "cost of no answer d": f"{measure.d:g}",
        "class weights": _weights_text(request.class_weight),
        "missing values": str(chosen.model.missing),
        "folds": str(folds),
        "seed": str(request.seed),
        **versions(),
    }


def how_compared(race: Race, folds: int, n_rows: int) -> str:
    """On what rows the models were compared, and what the parameters had seen."""
    sample = "" if len(race.rows) == n_rows else f" of a random sample of {len(race.rows)}"
    tuned = (
        "The parameters were chosen anew in every fold."
        if race.tuned_in_folds
        else "The parameters were chosen once on all rows compared, which flatters the models that "
        "have some to choose a little (plain SVC has none)."
    )
    reasons = dict.fromkeys(each.dropped for each in race.judged if each.dropped)
    dropped = [
        f"{reason[0].upper()}{reason[1:]}, with intervals of the rows judged until then: "
        f"{', '.join(each.title for each in race.judged if each.dropped == reason)}."
        for reason in reasons
    ]
    return " ".join(
        [
            f"Each row{sample} was judged by a model that had not seen it ({folds} folds, the "
            "same for all models).",
            tuned,
            *dropped,
        ]
    )


def left_by_itself(judged: Judged) -> str:
    """How a model that abstains did so, beside what its confidences allow in hindsight."""
    if not judged.rejected.any():
        return ""
    return (
        f" The model itself, which chose its rows without these labels, left "
        f"{int(judged.rejected.sum())} of {len(judged.rejected)} unanswered."
    )


def class_table(judged: Judged) -> ClassTable:
    """What became of the held-out rows of every class.

    Parameters
    ----------
    judged : Judged
    """
    classes = np.unique(judged.true)
    right = (judged.true == judged.answers) & ~judged.rejected
    wrong = (judged.true != judged.answers) & ~judged.rejected
    of = [judged.true == label for label in classes]
    said = [(judged.answers == label) & ~judged.rejected for label in classes]
    return ClassTable(
        names=[str(label) for label in classes],
        rows=[int(each.sum()) for each in of],
        right=[int(right[each].sum()) for each in of],
        wrong=[int(wrong[each].sum()) for each in of],
        rejected=[int(judged.rejected[each].sum()) for each in of],
        precision=[
            float(right[answers].mean()) if answers.any() else float("nan") for answers in said
        ],
        model=judged.title,
    )


def _ramp_of(race: Race, encoded: Array, labels: NDArray[Any], request: Request) -> RampClassifier:
    """What the race chose for the ramp classifier, on however many rows; searched now if not."""
    search = race.searches.get("ramp")
    if search is None:
        plain = replace(request, class_weight=None, scoring=None)
        search = make_candidate("ramp", plain).fit(encoded, labels)
    chosen: RampClassifier = clone(search.best_estimator_)
    return chosen.set_params(n_jobs=request.jobs)


def _final_sentence(chosen: Chosen, n_rows: int) -> str:
    final = chosen.final
    rows = f"all {n_rows} rows" if final.rows == n_rows else f"{final.rows} of {n_rows} rows"
    kernel = (
        "the exact kernel"
        if final.components is None
        else f"an approximate kernel of {final.components} landmarks"
    )
    return f"The saved model was fitted to {rows} with {kernel}."


def _weights_text(weight: Any) -> str:
    if weight is None:
        return "none"
    if isinstance(weight, str):
        return weight
    return ", ".join(f"{label}: {value:g}" for label, value in weight.items())
