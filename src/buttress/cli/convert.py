"""``buttress convert``: a table from one kind of file to another, as numbers for LIBSVM."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from buttress._words import did_you_mean
from buttress.cli._console import Jobs, Json, Output, Quiet, Seed
from buttress.cli._inputs import Decimal, DecimalMark, existing_file, guard_files

app = typer.Typer(rich_markup_mode="markdown")


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="CSV, JSON lines, Parquet or LIBSVM file.")],
    out: Annotated[Path, typer.Argument(help="File to write: .svm (LIBSVM) or .csv.")],
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column of the labels; LIBSVM needs one.")
    ] = None,
    scale: Annotated[
        bool, typer.Option("--scale", help="Bring numeric columns to mean 0 and variance 1.")
    ] = False,
    decimal: DecimalMark = Decimal.point,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Write a table as a LIBSVM file or as CSV.

    For LIBSVM every column becomes numbers, as 'buttress fit' makes them: categories one-hot,
    dates and free text as their parts. --seed and --jobs are accepted as everywhere.

    **Examples:**

    - `buttress convert patients.csv patients.svm --target diagnosis`

    - `buttress convert a9a.svm a9a.csv`
    """
    existing_file(source)
    guard_files([source], {"OUT": out})
    from buttress.tables import TableEncoder, read_table
    from buttress.tables.libsvm import LABEL, is_libsvm, write_libsvm

    say = Output(json, quiet)
    label = target or (LABEL if is_libsvm(source) else None)
    table = read_table(source, target=label, decimal=str(decimal))
    if label is not None and label not in table.columns:
        hint = did_you_mean(label, table.names)
        raise typer.BadParameter(f"{source}: there is no column {label!r} (--target){hint}")
    names = [name for name in table.names if name != label]
    if is_libsvm(out):
        if label is None:
            raise typer.BadParameter("a LIBSVM file needs labels: name their column with --target")
        encoder = TableEncoder(standardize=scale)
        X = encoder.fit_transform(table.without(label))
        names = [str(name) for name in encoder.get_feature_names_out()]
        write_libsvm(out, X, [str(value).replace(" ", "_") for value in table[label]])
    elif out.suffix.lower() == ".csv":
        _write_csv(out, table, [*([label] if label else []), *names])
    else:
        raise typer.BadParameter(f"{out}: expected a name that ends in .svm, .libsvm or .csv")
    say.say(f"wrote {out}: {len(table)} rows, {len(names)} columns")
    say.result({"out": str(out), "rows": len(table), "columns": names})


def _write_csv(out: Path, table: object, names: list[str]) -> None:
    import csv

    from buttress._files import replacing
    from buttress.tables.table import Table, as_text

    assert isinstance(table, Table)
    columns = [as_text(table[name]) for name in names]
    with replacing(out, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(
            ["" if value is None else value for value in row] for row in zip(*columns, strict=True)
        )
