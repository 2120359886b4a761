"""A file with the corrections of a review applied, for commands that learn from it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from buttress.cli._console import CommandError


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
            for conflict in error.conflicts:
                typer.echo(f"buttress: {conflict}", err=True)
            raise CommandError(
                f"{len(error.conflicts)} corrections of {corrections} do not apply to {data}"
            ) from None
        yield copy
