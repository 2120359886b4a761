"""One way to compile a loop with Numba.

Every compiled function of the package is made here, so that the options are the same
everywhere: cached on disk (a second process pays no compilation), free of the GIL, and dividing
by zero as NumPy does (a check before every division would keep loops from being vectorised).

The cache is beside the sources; where they cannot be written, in the user's cache directory;
where that cannot be written either, code is compiled anew by every process. What is not beside
the sources is said once.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding
import numba
from numba.core import config, event
from numba.core.registry import CPUDispatcher

from buttress._compilation import watches
from buttress._compiler import Inner, Outer
from buttress._kept_code import KeptCode

Function = TypeVar("Function", bound=Callable[..., Any])

prange = numba.prange

# Fast arithmetic for loops of sums: terms may be regrouped, infinities and NaN stay what they are.
FAST = {"contract", "reassoc", "nsz"}

# No entrance from C: nobody calls it.
_ALWAYS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# Options of functions that only compiled functions call; see `inner`.
WITHIN = _ALWAYS | {
    "cache": False,
    "no_cpython_wrapper": True,
    "pipeline_class": Inner,
    "_nrt": False,
}

_told = False


def compiled(*, allocates: bool = False, **options: Any) -> Callable[[Function], Function]:
    """Compile the decorated function with Numba in nopython mode.

    Parameters
    ----------
    allocates : bool
        Whether the function makes arrays, or is returned some that another one made. All others
        count no references, which take a third of the code of functions of many arrays.
    **options
        Passed to ``numba.njit``; ``cache`` and ``nogil`` are on, and ``error_model`` is "numpy",
        unless given.
    """
    chosen = _ALWAYS | {"cache": True, "pipeline_class": Outer, "_nrt": allocates} | options

    def compile_it(function: Function) -> Function:
        try:
            dispatcher = numba.njit(**chosen)(function)
        except RuntimeError as error:
            # Numba's word for "neither the sources' folder nor the user's cache can be written"
            if "no locator available" not in str(error):
                raise
            _tell_once(None)
            return cast("Function", numba.njit(**(chosen | {"cache": False}))(function))
        if chosen["cache"]:
            _tell_once(dispatcher.stats.cache_path)
            cache: Any = dispatcher._cache
            cache._cache_file = KeptCode(cache._cache_file, function.__module__)
        return cast("Function", dispatcher)

    return compile_it


def inner(*, allocates: bool = False, **options: Any) -> Callable[[Function], Function]:
    """Compile a function that only compiled functions call.

    Its code becomes part of theirs: nothing is kept on disk for it, no door from Python is made,
    which takes as long as many a loop, and it is optimised and made machine code with its caller
    only. Numba would do both for every function alone as well, with all that it calls in turn:
    nearly half of the time to compile a solver. Python runs the function as it is written.
    """
    compile_it = compiled(**(WITHIN | {"_nrt": allocates} | options))

    def compile_within(function: Function) -> Function:
        dispatcher: Any = compile_it(function)
        dispatcher.__class__ = _Within
        return cast("Function", dispatcher)

    return compile_within


class _Within(CPUDispatcher):
    """What has no door from Python, which would end the process at a call."""

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


def _tell_once(cache: str | None) -> None:
    """Say where compiled code goes if it is not beside the sources, nor where the user said.

    One message a process; for a cache directory that lasts, one message for good.
    """
    global _told
    if _told or config.CACHE_DIR or (cache is not None and Path(cache).name == "__pycache__"):
        return
    _told = True
    if cache is None:
        warnings.warn(
            "compiled code cannot be kept: neither the installation nor the user's cache directory "
            "can be written, so every process compiles anew. Set NUMBA_CACHE_DIR to a folder that "
            "can be written, or run 'buttress warm-up' when the image is built",
            stacklevel=3,
        )
        return
    note = Path(cache).parent / "buttress-compiled-code.txt"
    if not note.exists():
        message = f"the installation cannot be written, so compiled code is kept in {note.parent}"
        note.write_text(f"Buttress: {message}\n", encoding="utf-8")
        warnings.warn(message, stacklevel=3)


@functools.cache
def cache_folder() -> Path | None:
    """Where compiled code of this installation is kept; None where it cannot be."""

    def anything() -> None:
        """Never called: Numba finds the place for the file that a function stands in."""

    dispatcher: Any = compiled()(anything)
    kept = getattr(dispatcher.stats, "cache_path", None)
    return None if kept is None else Path(kept)


@functools.cache
def _stamp() -> str:
    """What compiled code depends on: the compiler, the processor and the sources."""
    package = Path(__file__).parent
    facts = [numba.__version__, sys.version, llvmlite.binding.get_host_cpu_name()]
    for source in sorted(package.rglob("*.py")):
        contents = hashlib.sha256(source.read_bytes()).hexdigest()
        facts.append(f"{source.relative_to(package)} {contents}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def is_remembered(job: str) -> bool:
    """Whether all that a job calls was compiled before, by `remember`'s word."""
    folder = cache_folder()
    note = None if folder is None else folder / f"buttress-ready-{job}.txt"
    try:
        return note is not None and note.read_text(encoding="utf-8") == _stamp()
    except OSError:
        return False


def remember(job: str) -> None:
    """Note beside the compiled code that a job needs no compiler any more."""
    folder = cache_folder()
    if folder is not None:
        with contextlib.suppress(OSError):  # then it is looked at again the next time
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"buttress-ready-{job}.txt").write_text(_stamp(), encoding="utf-8")


class _Teller(event.Listener):
    """Passes Numba's events on to those who wait."""

    def on_start(self, event: Any) -> None:
        for watch in watches():
            watch.begin(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: Any) -> None:
        for watch in watches():
            watch.end()


class _Uncollected(event.Listener):
    """No garbage collection while a function of this package is compiled.

    The compiler makes hundreds of thousands of objects that live until it is done; looking through
    them again and again takes a tenth of its time, and finds next to nothing.
    """

    def __init__(self) -> None:
        self._within = 0

    def on_start(self, event: Any) -> None:
        ours = event.data["dispatcher"].py_func.__module__.startswith("buttress.")
        # Numba compiles in one thread at a time, and what a function calls within its own time.
        if self._within or (ours and gc.isenabled()):
            self._within += 1
            gc.disable()

    def on_end(self, event: Any) -> None:
        if self._within:
            self._within -= 1
            if self._within == 0:
                gc.enable()


event.register("numba:compile", _Teller())
event.register("numba:compile", _Uncollected())
