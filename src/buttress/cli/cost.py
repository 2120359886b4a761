"""``buttress cost``: how long searches and fits of a table would take here."""

from __future__ import annotations

from typing import Annotated

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed
from buttress.cli._models import seconds_of
from buttress.model_selection.titles import TITLES

app = typer.Typer(rich_markup_mode="markdown")

_LANDMARKS = 500


@app.command()
def cost(
    rows: Annotated[int, typer.Option(min=20, help="Rows of the table.")],
    features: Annotated[
        int, typer.Option(min=1, help="Features: numbers, and categories one by one.")
    ],
    classes: Annotated[int, typer.Option(min=2, help="Classes.")] = 2,
    folds: Annotated[int, typer.Option(min=2, max=20, help="Folds of a search.")] = 5,
    time: Annotated[str, typer.Option(help="Time that fit would be given: 60s, 10m.")] = "2m",
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Say how long the models would take on a table of a given size, and what fit would do.

    Processor seconds on this machine: of a whole search on all rows with the exact kernel, of
    one fit with known parameters, and of one fit on landmarks. They follow from measurements on
    another machine and from a probe of this one; your data may be easier or harder. --seed is
    accepted as everywhere; there is nothing random here.

    **Example:** `buttress cost --rows 5000 --features 30`
    """
    say = Output(json, quiet)
    budget = seconds_of(time)
    from buttress.model_selection.cost_model import Size, approximates, processor_factor
    from buttress.model_selection.planning import MOST_EXACT_ROWS, Planner, available_threads

    size = Size(rows, features, classes)
    known = Planner(size, budget, folds=folds, speed=processor_factor(), clock=lambda: 0.0)
    costs = [
        {
            "model": kind,
            "title": TITLES[kind],
            "search": known.search_seconds(kind, rows),
            "fit": known.fit_seconds(kind, rows),
            "on_landmarks": (
                known.approximate_seconds(kind, rows, _LANDMARKS) if approximates(kind) else None
            ),
        }
        for kind in TITLES
        if kind != "svc"
    ]
    gram = 8 * rows**2 / 1e6
    plan = Planner(size, budget, threads=available_threads(jobs), folds=folds, clock=lambda: 0.0)
    kinds = [str(each["model"]) for each in costs if each["model"] != "reject"]
    sentence = plan.sentence(kinds)
    say.table(
        ["model", "search, s", "one fit, s", f"one fit on {_LANDMARKS} landmarks, s"],
        [
            (each["title"], *(_spoken(each[key]) for key in ("search", "fit", "on_landmarks")))
            for each in costs
        ],
        title=f"processor seconds for {rows} rows, {features} features, {classes} classes",
    )
    say.say(
        f"a Gram matrix of {rows} rows takes {gram:.0f} MB"
        + ("; fit searches exactly up to 5000 rows only" if rows > MOST_EXACT_ROWS else "")
    )
    say.say(f"buttress fit: {sentence}")
    say.result(
        {
            "rows": rows,
            "features": features,
            "classes": classes,
            "processor_seconds": costs,
            "gram_megabytes": gram,
            "plan": sentence,
            "seconds": plan.estimate(kinds),
        }
    )


def _spoken(seconds: object) -> str:
    return "" if seconds is None else f"{seconds:.3g}"
