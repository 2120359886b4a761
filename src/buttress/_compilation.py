"""What is being compiled, told to whoever waits for it.

Knows nothing of Numba, so that a command line may ask for the telling before anything heavy is
imported; `buttress._compile` feeds it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Compilation:
    """How many functions were compiled, and how long that took.

    Examples
    --------
    >>> watch = Compilation()
    >>> watch.begin("loop"); watch.end()
    >>> watch.functions
    1
    """

    functions: int = 0
    seconds: float = 0.0
    live: bool = False
    _depth: int = field(default=0, repr=False)
    _began: float = field(default=0.0, repr=False)

    def begin(self, name: str) -> None:
        """A function's compilation begins, perhaps inside another's."""
        self.functions += 1
        if self._depth == 0:
            self._began = time.perf_counter()
            if self.live:
                self._show(f"compiling {name} (first use; kept for later) {self.seconds:.0f} s")
        self._depth += 1

    def end(self) -> None:
        """The function that began last is compiled."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began

    def clear(self) -> None:
        """Take the line off the terminal."""
        if self.live and self.functions:
            self._show("")

    def summary(self) -> str:
        """One line for people, empty where the wait was not worth a word."""
        if self.seconds < 1.0:
            return ""
        return (
            f"{self.functions} functions were compiled in {self.seconds:.0f} s; later runs start "
            "at once ('buttress warm-up' compiles beforehand)"
        )

    def _show(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()


_watches: list[Compilation] = []


def watches() -> list[Compilation]:
    """Those who are told now."""
    return _watches


@contextmanager
def watching(live: bool | None = None) -> Iterator[Compilation]:
    """Count what is compiled inside, and show it on a terminal while it goes on.

    Parameters
    ----------
    live : bool, optional
        Show a line; when not given, if the standard error stream is a terminal.

    Examples
    --------
    >>> with watching(live=False) as watch:
    ...     pass
    >>> watch.functions, watch.summary()
    (0, '')
    """
    watch = Compilation(live=sys.stderr.isatty() if live is None else live)
    _watches.append(watch)
    try:
        yield watch
    finally:
        _watches.remove(watch)
        watch.clear()
