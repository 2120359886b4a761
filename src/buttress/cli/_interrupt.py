"""Ctrl-C ends the program within two seconds, whatever it is doing, and says what it leaves."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from buttress._files import published, remove_unfinished

# Seconds that the program has to end by itself; a compiled loop that runs longer is not waited for.
_PATIENCE = 1.2
# Seconds after which it is told again what C code could not pass on to its caller.
_AGAIN = 0.01
# New objects after which the youngest are looked through for garbage; Python's own is 700.
_BETWEEN_COLLECTIONS = 50_000
# Slots of a frame, of eight bytes each: just over half of a megabyte, for which CPython maps a
# whole one, so that the frames of a thousand calls fit behind it. See `_with_room`.
_ROOM = (1 << 16) + 1

_pressed = threading.Event()


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


def was_pressed() -> bool:
    """Whether Ctrl-C was pressed: what fails after that fails for it, whatever it says."""
    return _pressed.is_set()


def run_process(arguments: list[str]) -> int:
    """Run the command line that this process was started for; its exit code.

    However early or late Ctrl-C is pressed, the process ends with a code of this program. Until
    Python has imported this package, and after it has given up its signals, is not ours to say.
    """
    _replace_closed_streams()
    code = 1
    # Modules are most of what there is, and are no garbage: it is looked for more seldom, and not
    # at the end, where that would take half a second.
    gc.set_threshold(_BETWEEN_COLLECTIONS)
    try:
        with _ending_soon():
            code = int(_with_room(_run, arguments))
    except BaseException:  # outside the command itself
        if was_pressed():
            leave(what_is_left(), 1)
        raise
    if was_pressed():
        leave("", code)  # threads may still be at work
    gc.freeze()
    return code


def _run(arguments: list[str]) -> int:
    from buttress.cli._app import run

    return run(arguments)


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


# Calls a function from a frame that takes, and therefore brings, much memory for frames. CPython
# maps that memory by 16 kilobytes and gives it back when the last frame in it returns: a loop that
# happens to call across such a border maps and unmaps with every call. Importing SciPy did so
# 34,000 times in half of all processes and 8,000 times in the others, which takes up to a sixth of
# the second that `predict` needs (counted by `strace -e trace=munmap`, Python 3.11).
_with_room = types.FunctionType(_call.__code__.replace(co_stacksize=_ROOM), globals())


def _replace_closed_streams() -> None:
    """What the shell has closed (``>&-``) leads nowhere.

    Else the next file that is opened would get the number of the standard output, and with it
    whatever a library prints there.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


@contextmanager
def _ending_soon() -> Iterator[None]:
    """A block, the whole program, that ends soon after Ctrl-C even inside a compiled loop.

    Python looks at signals between two steps of its own, which a compiled loop does not take.
    The system's part of the signal writes a byte to a pipe at once; a thread waits for it. After
    the block the signal is ignored: all is done, and said.
    """
    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    finished = threading.Event()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def watch() -> None:
        while byte := os.read(reading, 1):
            if byte[0] == signal.SIGINT:
                _pressed.set()
                if not finished.wait(_PATIENCE):
                    leave(what_is_left(), 1)

    threading.Thread(target=watch, daemon=True, name="buttress-interrupt").start()
    signal.signal(signal.SIGINT, _press)
    report = sys.unraisablehook
    sys.unraisablehook = partial(_press_again, report)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        finished.set()
        sys.unraisablehook = report
        signal.set_wakeup_fd(before)
        with suppress(OSError):
            os.close(writing)


def _press(number: int, frame: Any) -> None:
    _pressed.set()
    raise KeyboardInterrupt


def _press_again(report: Callable[[Any], Any], lost: Any) -> None:
    """Called with an exception that ended in C code: in a finaliser, or a compiler's callback.

    Ctrl-C there would be printed as an error of that code, and forgotten.
    """
    if issubclass(lost.exc_type, KeyboardInterrupt):
        threading.Timer(_AGAIN, signal.raise_signal, [signal.SIGINT]).start()
    else:
        report(lost)


def leave(message: str, code: int) -> None:
    """End the process now: its threads, its temporary files, and nothing else."""
    remove_unfinished()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    if message:
        os.write(2, f"buttress: {message}\n".encode())
    os._exit(code)
