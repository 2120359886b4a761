"""Ctrl-C ends the program within two seconds, whatever it is doing, and says what it leaves."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from buttress._files import published, remove_unfinished

# Seconds that the program has to end by itself; a compiled loop that runs longer is not waited for.
_PATIENCE = 1.2


class Interrupted(Exception):
    """Ctrl-C, with the sentence that says what was written."""


def what_is_left(error: BaseException | None = None) -> str:
    """What an interrupted command has written; an error that knows better says it itself."""
    if error is not None and str(error):
        return str(error)
    files = published()
    if not files:
        return "interrupted; no output file was changed"
    shown = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    return f"interrupted; written before that: {shown}"


@contextmanager
def ending_soon() -> Iterator[threading.Event]:
    """A block, the whole program, that ends soon after Ctrl-C even inside a compiled loop.

    Python looks at signals between two steps of its own, which a compiled loop does not take.
    The system's part of the signal writes a byte to a pipe at once; a thread waits for it.

    Yields
    ------
    Event
        Set once Ctrl-C was pressed: then threads may still be at work, and `leave` is the end.
    """
    pressed, finished = threading.Event(), threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def watch() -> None:
        while byte := os.read(reading, 1):
            if byte[0] == signal.SIGINT:
                pressed.set()
                if not finished.wait(_PATIENCE):
                    leave(what_is_left(), 1)

    threading.Thread(target=watch, daemon=True, name="buttress-interrupt").start()
    try:
        yield pressed
    finally:
        finished.set()
        signal.set_wakeup_fd(before)
        with suppress(OSError):
            os.close(writing)


def leave(message: str, code: int) -> None:
    """End the process now: its threads, its temporary files, and nothing else."""
    remove_unfinished()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    if message:
        os.write(2, f"buttress: {message}\n".encode())
    os._exit(code)
