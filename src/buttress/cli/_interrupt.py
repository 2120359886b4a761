"""Long work that Ctrl-C ends at once, with the truth about what was written."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from buttress.cli._console import CommandError

Result = TypeVar("Result")

# How often the waiting thread looks for a signal; also on platforms whose waits ignore them.
_LOOK = 0.2


class Interrupted(CommandError):
    """The user pressed Ctrl-C; threads that cannot be stopped may still be at work.

    Attributes
    ----------
    happened : bool
        Of the class: whether it was ever raised, so that the program ends without waiting.
    """

    happened = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        Interrupted.happened = True


class Progress:
    """What a command has written so far, for the sentence after Ctrl-C."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def sentence(self) -> str:
        """What holds now."""
        if not self.written:
            return "interrupted; no output file was changed"
        return f"interrupted; written before that: {', '.join(self.written)}"


def interruptible(work: Callable[[], Result], progress: Progress) -> Result:
    """Do the work in a thread of its own, while this one waits for its end or for Ctrl-C.

    Compiled solvers look at no signal, and a pool of threads is waited for when it is closed;
    a thread that only waits hears Ctrl-C at once.

    Parameters
    ----------
    work : callable
    progress : Progress
        What the message says was written.

    Raises
    ------
    Interrupted
        After Ctrl-C. `leave_at_once` then ends the process without waiting for the work.
    """
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = work()
        except BaseException as error:
            outcome["error"] = error

    if threading.current_thread() is not threading.main_thread():
        return work()
    thread = threading.Thread(target=run, name="buttress work", daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK)
    except KeyboardInterrupt:
        raise Interrupted(progress.sentence()) from None
    if "error" in outcome:
        raise outcome["error"]
    result: Result = outcome["result"]
    return result


def leave_at_once(code: int) -> None:
    """End the process now: no half-written file stays, and no thread is waited for."""
    from buttress._files import remove_unfinished

    remove_unfinished()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
