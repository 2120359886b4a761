"""The command line: thin over the library, and quick to answer.

Every command lives in a module of its own, ``buttress.cli.<command>``, which holds a
`typer.Typer` named ``app`` (one function for a command, several for a group of them). A module
is imported only when its command runs, so heavy imports may stand anywhere in it; the group
itself imports Typer and nothing else.

A command reports a wrong option, file or column by raising `typer.BadParameter` (exit code 2)
and a failure by raising `buttress.cli._console.CommandError`, `OSError` or `ValueError` (exit
code 1). `main` turns each into one line on the standard error stream.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``buttress``; the process's own when not given.

    Returns
    -------
    int
        0 done, 1 a failure, 2 wrong use.

    Examples
    --------
    >>> main(["--version"])
    buttress 0.1.0
    0
    """
    from buttress.cli._app import run

    if arguments is not None:
        return run(list(arguments))
    from buttress.cli._interrupt import ending_soon, leave

    with ending_soon() as pressed:
        code = run(sys.argv[1:])
    if pressed.is_set():
        leave("", code)
    return code
