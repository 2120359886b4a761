"""The command line: thin over the library, and quick to answer.

Every command lives in a module of its own, ``buttress.cli.<command>``, which holds a
`typer.Typer` named ``app`` (one function for a command, several for a group of them). A module
is imported only when its command runs, so heavy imports may stand anywhere in it; the group
itself imports Typer and nothing else.

A newcomer adds a command as one file, with no line elsewhere. Others import nothing but `main`.

A command reports a wrong option, file or column by raising `typer.BadParameter` (exit code 2)
and a failure by raising `buttress.cli._console.CommandError`, `OSError` or `ValueError` (exit
code 1). `main` turns each into one line on the standard error stream.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any


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
    if arguments is not None:
        from buttress.cli._app import run

        return run(list(arguments))
    # Not where the signal is ignored, as for what a shell runs in the background.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave_before_the_beginning)
    from buttress.cli._interrupt import run_process

    return run_process(sys.argv[1:])


def _leave_before_the_beginning(number: int, frame: Any) -> None:
    """Ctrl-C while the first modules are imported: they could not even say it."""
    os.write(2, b"buttress: interrupted; no output file was changed\n")
    os._exit(1)
