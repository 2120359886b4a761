"""What a command prints: words and tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer

from buttress._files import naming

if TYPE_CHECKING:
    from buttress.model_selection.preparing import Job

# How errors call it.
STDOUT = "standard output"

# The four options that every command has.
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything that is random.")]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", min=-1, help="Processor cores to use; -1 for all.")
]


class CommandError(Exception):
    """A failure with a one-line reason.

    Parameters
    ----------
    message : str
        The reason, with the name of the file, column or option at fault.
    code : int
        The exit code: 1 for a failure, 2 for wrong use.
    """

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class Output:
    """Prints for people or for programs, or not at all.

    Parameters
    ----------
    json : bool
        Only `result` prints, as JSON.
    quiet : bool
        Nothing is printed, except JSON when it was asked for.
    """

    def __init__(self, json: bool = False, quiet: bool = False) -> None:
        self.json = json
        self.talks = not json and not quiet
        # Progress bars read this as their verbosity.
        self.verbose = int(self.talks)

    def say(self, text: str = "") -> None:
        """Print a line of text."""
        if self.talks:
            _print(text)

    def note(self, text: str) -> None:
        """Print a line on the standard error stream, where it cannot mix with data."""
        if self.talks:
            typer.echo(text, err=True)

    def compile(self, jobs: Sequence[Job]) -> None:
        """Compile what a command will call, and say so; silent when it is there already."""
        from buttress.model_selection import preparing

        preparing.prepare(jobs, self.note, None if self.talks else False)

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        title: str | None = None,
        justify: Literal["left", "right"] = "right",
    ) -> None:
        """Print a table; all columns but the first are aligned as `justify` says."""
        if not self.talks:
            return
        from rich import box
        from rich.console import Console
        from rich.table import Table

        table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for index, column in enumerate(columns):
            table.add_column(column, justify=justify if index else "left", overflow="fold")
        for row in rows:
            table.add_row(*(str(cell) for cell in row))
        # A pipe or a log has no width; eighty columns would cut the numbers.
        width = None if sys.stdout.isatty() else 120
        with naming(STDOUT):
            Console(width=width, markup=False, highlight=False).print(table)

    def result(self, value: Mapping[str, Any]) -> None:
        """Print the JSON object of a command that was asked for JSON."""
        if self.json:
            _print(json.dumps(plain(value), indent=2, allow_nan=False))


def _print(text: str) -> None:
    """Print a line; where it cannot be written is named."""
    with naming(STDOUT):
        typer.echo(text)


def plain(value: Any) -> Any:
    """The value as JSON has it: no NumPy types, and null for what is not a number.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"risk": np.float64(0.5), "rows": np.arange(2), "unknown": float("nan")})
    {'risk': 0.5, 'rows': [0, 1], 'unknown': None}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


_seen: set[str] = set()
# Said to whoever may have trained on the rows that are judged; commands always hold them out.
_NOT_FOR_COMMANDS = "The scores agree with every label"
# Of an encoder; a command that has looked through the columns says it itself, and what to do.
_IDENTIFIER = re.compile(r"column (.+) holds another text in every row")


def warn_in_one_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning once, as one line on the standard error stream."""
    text = " ".join(str(message).split())
    if text in _seen or issubclass(category, (DeprecationWarning, FutureWarning)):
        return
    if text.startswith(_NOT_FOR_COMMANDS):
        return
    column = _IDENTIFIER.match(text)
    if column is not None and any(f"the column {column[1]} is text with" in said for said in _seen):
        return
    _seen.add(text)
    typer.echo(f"buttress: warning: {text}", err=True)


def limit_threads(jobs: int) -> Any:
    """Context in which BLAS and OpenMP use at most `jobs` threads; -1 leaves them alone."""
    from buttress._threads import limited_threads

    if jobs == 0:
        raise typer.BadParameter("--jobs 0 is not accepted: a positive number, or -1 for all cores")
    return limited_threads(None if jobs < 0 else jobs)
