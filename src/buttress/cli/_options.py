"""Options that several commands have, and commands whose options are the fields of a record."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed
from buttress.cli._inputs import Data, DecimalMark, Missing, read_data

DataFile = Annotated[Path, typer.Argument(help="CSV, JSON lines (also .gz) or Parquet file.")]
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


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The options that every command has, behind its own."""

    json: Json = False
    quiet: Quiet = False
    seed: Seed = 0
    jobs: Jobs = -1

    def output(self) -> Output:
        """Where the command prints."""
        return Output(self.json, self.quiet)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(CommonOptions):
    """How a file to learn from is read."""

    missing: MissingValues = "error"
    categorical: Categorical = None
    ignore: Annotated[str | None, typer.Option(help="Columns to leave out: id,name.")] = None
    decimal: DecimalMark = "."

    def read(self, path: Path, target: str, folds: int) -> Data:
        """Read a file, for models that are compared on so many folds."""
        return read_data(
            path,
            target,
            missing=self.missing,
            categorical=self.categorical,
            ignore=self.ignore,
            folds=folds,
            decimal=self.decimal,
        )


Options = TypeVar("Options")


def command(
    app: typer.Typer, options: type[Options]
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Make a function of a record the command whose options are the record's fields."""
    hints = get_type_hints(options, include_extras=True)
    signature = inspect.signature(options)
    common = inspect.signature(CommonOptions).parameters
    fields = sorted(signature.parameters.values(), key=lambda field: field.name in common)
    fields = [field.replace(annotation=hints[field.name]) for field in fields]

    def register(run: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(run)
        def one_by_one(**given: Any) -> None:
            run(options(**given))

        vars(one_by_one)["__signature__"] = signature.replace(parameters=fields)
        return app.command()(one_by_one)

    return register
