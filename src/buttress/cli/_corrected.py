"""A file with the corrections of a review applied, for commands that learn from it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from buttress.cli._console import CommandError

if TYPE_CHECKING:
    from buttress.review import CorrectionError


@contextmanager
def corrected(data: Path, corrections: Path | None, target: str) -> Iterator[Path]:
    """The file itself, or a corrected copy of it that is removed at the end."""
    if corrections is None:
        yield data
        return
    from buttress.review import CorrectionError, apply_corrections, read_corrections

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / data.name
        try:
            apply_corrections(data, read_corrections(corrections), copy, target=target)
        except CorrectionError as error:
            raise told(error, f"{corrections} does not apply to {data}") from None
        yield copy


def told(error: CorrectionError, words: str) -> CommandError:
    """Every conflict as one line on the standard error stream, and the failure to raise."""
    for conflict in error.conflicts:
        typer.echo(f"buttress: {conflict}", err=True)
    return CommandError(f"{len(error.conflicts)} conflicts: {words}; nothing written")
