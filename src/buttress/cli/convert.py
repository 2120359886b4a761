"""``buttress convert``: a table as CSV, or as numbers for LIBSVM."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed
from buttress.cli._inputs import (
    DecimalMark,
    Missing,
    existing_file,
    guard_files,
    read_data,
    refuse_absent,
)
from buttress.cli._options import MissingValues

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
    missing: MissingValues = "error",
    decimal: DecimalMark = ".",
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Write a table as a LIBSVM file or as CSV.

    For LIBSVM every column becomes numbers, as 'buttress fit' makes them: categories one-hot,
    dates and free text as their parts. CSV keeps the cells as they are written
    (true and false of JSON as True and False).
    --seed and --jobs are accepted as everywhere.

    **Examples:**

    - `buttress convert patients.csv patients.svm --target diagnosis`

    - `buttress convert a9a.svm a9a.csv`
    """
    existing_file(source)
    guard_files([source], {"OUT": out})
    from buttress.tables import column_names
    from buttress.tables.libsvm import LABEL, is_libsvm

    say = Output(json, quiet)
    label = LABEL if target is None and is_libsvm(source) else target
    present = column_names(source, decimal=decimal)
    if label is not None:
        refuse_absent(source, label, present, "--target")
    if is_libsvm(out):
        if label is None:
            raise typer.BadParameter("a LIBSVM file needs labels: name their column with --target")
        rows, names = _to_libsvm(source, out, label, decimal, missing, scale)
    elif out.suffix.lower() == ".csv":
        if scale or missing != "error":
            raise typer.BadParameter("--scale and --missing go with a LIBSVM file: CSV keeps cells")
        names = [name for name in present if name != label]
        rows = _to_csv(source, out, [*([] if label is None else [label]), *names], decimal)
    else:
        raise typer.BadParameter(f"{out}: expected a name that ends in .svm, .libsvm or .csv")
    say.say(f"wrote {out}: {rows} rows, {len(names)} columns")
    say.result({"out": str(out), "rows": rows, "columns": names})


def _to_libsvm(
    source: Path, out: Path, label: str, decimal: str, missing: Missing, scale: bool
) -> tuple[int, list[str]]:
    """Write a table as numbers; its rows, and the names of the numbers."""
    from buttress.tables import TableEncoder
    from buttress.tables.libsvm import write_libsvm

    read = read_data(source, label, missing=missing, decimal=decimal, checked=False)
    words = {str(each): str(each).replace(" ", "_") for each in set(read.labels.tolist())}
    if len(set(words.values())) < len(words):
        raise typer.BadParameter(
            f"{source}: two labels of {label!r} differ in blanks only, which LIBSVM cannot hold"
        )
    encoder = TableEncoder(standardize=scale, missing=missing)
    X = encoder.fit_transform(read.table)
    write_libsvm(out, X, [words[str(each)] for each in read.labels.tolist()])
    return len(read.labels), [str(name) for name in encoder.get_feature_names_out()]


def _to_csv(source: Path, out: Path, names: list[str], decimal: str) -> int:
    """Write the cells as they stand in the file, numbers with a point; the number of rows."""
    import csv

    from buttress._files import replacing
    from buttress.tables.reading import iter_table

    rows = 0
    with replacing(out, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for block in iter_table(source, keep=names, skip=names, decimal=decimal):
            cells = (block.written[name] for name in names)
            for row in zip(*cells, strict=True):
                writer.writerow([_cell(value, decimal) for value in row])
                rows += 1
    return rows


def _cell(value: Any, decimal: str) -> Any:
    from buttress.tables.grammar import has_decimal_comma

    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if decimal == "," and isinstance(value, str) and has_decimal_comma(value):
        return value.strip().replace(",", ".")
    return value
