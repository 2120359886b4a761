"""A progress bar on a terminal, silence everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(description: str, total: int, verbose: int = 1) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a bar on the standard error stream.

    Nothing is shown, and rich is not imported, when `verbose` is 0 or the stream is not a
    terminal.

    Parameters
    ----------
    description : str
        What is being done.
    total : int
        Number of steps in all.
    verbose : int
        The estimator's ``verbose`` parameter.

    Examples
    --------
    >>> with progress("solving", total=2, verbose=0) as advance:
    ...     advance(1)
    ...     advance(1)
    """
    if verbose <= 0 or not sys.stderr.isatty():
        yield lambda steps: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps: bar.advance(task, steps)
