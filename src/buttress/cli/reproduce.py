"""``buttress reproduce``: run a table or figure of a paper again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from buttress._words import did_you_mean
from buttress.cli._console import CommandError, Jobs, Json, Output, Quiet, Seed

app = typer.Typer(rich_markup_mode="markdown")

_HOLDS = {True: "holds", False: "DOES NOT HOLD", None: "cannot tell"}


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="An experiment such as lhs-table2; 'list' shows all, 'pages' makes the "
            "manual's pages from the JSON files in --out."
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Seconds: does it work at all?")] = False,
    only: Annotated[
        str | None, typer.Option(help="Data sets to run, separated by commas; all if not given.")
    ] = None,
    cell: Annotated[
        str | None,
        typer.Option(help="One cell, by words of its labels: 'sonar, Gaussian, LHS error'."),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Runs per cell instead of the experiment's own.")
    ] = None,
    jobs: Jobs = 1,
    out: Annotated[Path, typer.Option(help="Folder for JSON, page and figure.")] = Path(
        "buttress-results"
    ),
    finished: Annotated[
        bool, typer.Option("--finished", help="Compute nothing, report on what is there.")
    ] = False,
    into: Annotated[
        Path | None,
        typer.Option(help="Folder with an older report of the experiment: only replace its cells."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment and compare it with the printed numbers.

    Finished parts are kept in the output folder: an interrupted run goes on where it stopped. A
    part of an experiment (--only, --cell) says nothing about the paper's statements on the whole.
    Data sets are looked for in the folder named by BUTTRESS_DATA; 'buttress datasets fetch' fills
    one.

    **Example:** `buttress reproduce lhs-table2 --only sonar,bupa --repeats 20 --jobs 2`
    """
    from buttress.experiments import Plan, experiment_names, write_pages
    from buttress.experiments import reproduce as run

    output = Output(json, quiet)
    if name == "list":
        _list(output)
        return
    if name == "pages":
        written = write_pages(out)
        output.say(f"wrote {len(written)} pages in {out}")
        output.result({"files": [str(path) for path in written]})
        return
    if name not in experiment_names():
        raise typer.BadParameter(
            f"there is no experiment {name!r}; 'buttress reproduce list' shows all"
            + did_you_mean(name, experiment_names())
        )
    cells = _matching(name, cell) if cell else ()
    plan = Plan(
        quick=quick,
        only=tuple(word.strip() for word in only.split(",")) if only else (),
        cells=cells,
        words=cell or "",
        repeats=repeats,
        jobs=jobs,
        out=out,
        seed=seed,
        finished=finished,
        into=into,
        verbose=output.verbose,
    )
    report = run(name, plan)
    _show(report, output)
    output.result(report)
    _refuse_failures(report)


def _refuse_failures(report: dict[str, Any]) -> None:
    if not report["failures"]:
        return
    first = report["failures"][0]
    failed, done = len(report["failures"]), report["tasks"]
    raise CommandError(
        f"{failed} of {done + failed} tasks failed; the first is {first['task']}: {first['reason']}"
    )


def _matching(name: str, words: str) -> tuple[str, ...]:
    """The ids of the cells whose labels have all the words."""
    from buttress.experiments import get_experiment

    wanted = words.replace(",", " ").lower().split()
    matching = [
        cell
        for cell in get_experiment(name).cells
        if all(word in _words_of(cell) for word in wanted)
    ]
    if not matching:
        example = ", ".join(get_experiment(name).cells[0].labels.values())
        raise typer.BadParameter(
            f"no cell of {name} has the words {words!r}; one that is there: {example!r}",
            param_hint="--cell",
        )
    return tuple(cell.id for cell in matching)


def _words_of(cell: Any) -> set[str]:
    text = " ".join([cell.group, cell.id.replace("/", " "), *cell.labels.values()])
    return set(text.lower().replace("(", " ").replace(")", " ").split())


def _list(output: Output) -> None:
    from buttress.experiments import experiment_names, get_experiment

    rows = []
    for name in experiment_names():
        experiment = get_experiment(name)
        rows.append(
            {
                "name": name,
                "title": experiment.title,
                "cells": len(experiment.cells),
                "groups": experiment.groups,
            }
        )
    output.table(
        ["name", "what", "cells"], [[row["name"], row["title"], row["cells"]] for row in rows]
    )
    output.result({"experiments": rows})


def _show(report: dict[str, Any], output: Output) -> None:
    from buttress.experiments.pages import cell_rows

    if report["cells"]:
        header, rows = cell_rows([cell for cell in report["cells"] if cell["runs"]])
        output.table(header, rows, title=report["title"])
    for check in report["checks"]:
        output.say(f"{_HOLDS[check['holds']]}: {check['statement']} ({check['measured']})")
    verdicts = {verdict: count for verdict, count in report["verdicts"].items() if count}
    if verdicts:
        counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        output.say(f"{counted}; {report['expected_by_chance']:.1f} would disagree by chance")
    output.say("written: " + ", ".join(report["files"]))
