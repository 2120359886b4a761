"""Options that several commands have: how a labelled file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from buttress.cli._inputs import Missing

DataFile = Annotated[Path, typer.Argument(help="CSV (also .csv.gz) or Parquet file.")]
Target = Annotated[str, typer.Option("--target", "-t", help="Column of the labels.")]
ClassWeight = Annotated[
    str | None, typer.Option(help="Weights of the classes: balanced, or label=2,other=1.")
]
MissingValues = Annotated[
    Missing, typer.Option(help="What a missing value does: stop, be filled in, drop its row.")
]
Categorical = Annotated[
    str | None, typer.Option(help="Columns that are categories though they hold numbers: a,b.")
]
Ignore = Annotated[str | None, typer.Option(help="Columns to leave out: id,name.")]
