"""``buttress apply``: a table with its labels corrected."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed
from buttress.cli._corrected import told
from buttress.cli._inputs import existing_file, guard_files

app = typer.Typer(rich_markup_mode="markdown")


@app.command()
def apply(
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file with the labels.")],
    corrections: Annotated[
        Path, typer.Argument(help="CSV with key, old_label, new_label (who, when, note).")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The corrected table to write.")],
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column of the labels; found when not given."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="Column that identifies a row; what the corrections say."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Write a table with the corrections of a review applied.

    A correction is applied where its old label still stands. If any meets another label, each
    such conflict is one line on the standard error stream and nothing is written. All but the
    corrected labels stays exactly as written. --seed and --jobs are accepted as everywhere.

    **Example:** `buttress apply data.csv corrections.csv -o clean.csv`
    """
    guard_files([data, corrections], {"--out": out})
    from buttress.review import CorrectionError, apply_corrections, read_corrections
    from buttress.tables.table import AbsentColumn

    say = Output(json, quiet)
    listed = read_corrections(existing_file(corrections, "file of corrections"))
    try:
        n_changed = apply_corrections(existing_file(data), listed, out, target=target, key=key)
    except CorrectionError as error:
        raise told(error, f"{corrections} does not apply to {data}") from None
    except AbsentColumn as error:
        raise typer.BadParameter(str(error)) from None
    say.note(f"{len(listed)} corrections, {n_changed} labels changed; wrote {out}")
    say.result({"out": str(out), "corrections": len(listed), "changed": n_changed})
