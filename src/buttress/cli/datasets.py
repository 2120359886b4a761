"""``buttress datasets``: list the benchmark sets, fetch one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from buttress._words import did_you_mean
from buttress.cli._console import Json, Output, Quiet

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="List or fetch the benchmark data sets.",
)


@app.command("list")
def list_command(
    group: Annotated[
        str | None,
        typer.Option(help="Only the sets of one paper: ida, lhs15, online5, reject2, large."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show every data set: size, positives, and whether it is on this computer.

    **Example:** `buttress datasets list --group reject2`
    """
    from buttress.datasets import list_datasets
    from buttress.datasets.loading import find_file, find_record

    try:
        names = list_datasets(group)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--group") from error
    output = Output(json, quiet)
    rows: list[dict[str, Any]] = []
    for name in names:
        record = find_record(name)
        rows.append(
            {
                "name": name,
                "rows": record.rows,
                "features": record.features,
                "positives": record.positives,
                "groups": list(record.groups),
                "here": find_file(record) is not None,
            }
        )
    output.table(
        ["name", "rows", "features", "positives", "used by", "here"],
        [
            [
                *(row[name] for name in ("name", "rows", "features", "positives")),
                ", ".join(row["groups"]),
                "yes" if row["here"] else "no",
            ]
            for row in rows
        ],
    )
    output.result({"datasets": rows})


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(help="Data sets, or a group such as ida.")],
    force: Annotated[bool, typer.Option("--force", help="Download again.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Download data sets into the cache; those already here are only checked.

    **Example:** `buttress datasets fetch sonar banana_ida`
    """
    from buttress.datasets import fetch_dataset, list_datasets
    from buttress.datasets.loading import find_record

    wanted: list[str] = []
    for name in names:
        try:
            wanted += list_datasets(name)
        except ValueError:
            try:
                find_record(name)
            except ValueError as error:
                hint = did_you_mean(name, list_datasets())
                raise typer.BadParameter(str(error).rstrip(".") + hint) from error
            wanted.append(name)
    output = Output(json, quiet)
    files = {}
    for name in dict.fromkeys(wanted):
        files[name] = str(fetch_dataset(name, force=force))
        output.say(f"{name}: {files[name]}")
    output.result({"files": files})
