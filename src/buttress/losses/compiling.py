"""A user's functions made ready for compiled loops, and what is said where that fails.

Helpers that they call are compiled with them. Where a function cannot be compiled the loss runs
interpreted, and one warning, which points at the function, says so and why.
"""

from __future__ import annotations

import itertools
import re
import threading
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

from numba import njit, types
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target
from numba.extending import is_jitted

from buttress._user_warnings import warn_user

_numbers = itertools.count()
_numbered: set[type] = set()
# What was said already, with the place that it was said of.
_said: set[tuple[str, str, int]] = set()
_saying = threading.Lock()
# Numba's words around what is wrong.
_FRAME = ("Failed in ", "During:", "File ")
_HELP = "compiled code calls plain functions and those that numba.njit has compiled"


def with_helpers(function: Any) -> Any:
    """A function whose helpers, plain functions that it calls by name, are compiled by Numba.

    Parameters
    ----------
    function : callable
        What is no plain function, or calls none, is returned as it is.

    Examples
    --------
    >>> def beyond(u): return max(0.0, 1.0 - u)
    >>> def value(u): return beyond(u) ** 2
    >>> njit(with_helpers(value))(0.5)
    0.25
    """
    return _with_helpers(function, {})


def _with_helpers(function: Any, compiled: dict[Any, Any]) -> Any:
    if not isinstance(function, FunctionType):
        return function
    code = function.__code__
    named = {name: function.__globals__.get(name) for name in code.co_names}
    enclosed = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    named_helpers = _compiled_helpers(named, compiled)
    enclosed_helpers = _compiled_helpers(
        {name: _contents(cell) for name, cell in enclosed.items()}, compiled
    )
    if not named_helpers and not enclosed_helpers:
        return function
    cells = (
        CellType(enclosed_helpers[name]) if name in enclosed_helpers else cell
        for name, cell in enclosed.items()
    )
    ready = FunctionType(
        code,
        function.__globals__ | named_helpers,
        function.__name__,
        function.__defaults__,
        tuple(cells),
    )
    ready.__kwdefaults__, ready.__qualname__ = function.__kwdefaults__, function.__qualname__
    return ready


def _compiled_helpers(values: Mapping[str, Any], compiled: dict[Any, Any]) -> dict[str, Any]:
    """Those of the values that are plain functions which Numba does not know, compiled."""
    helpers = {}
    for name, value in values.items():
        if isinstance(value, FunctionType) and not _is_known(value):
            if value not in compiled:
                compiled[value] = value  # of functions that call each other Numba says what it can
                compiled[value] = njit(error_model="numpy")(_with_helpers(value, compiled))
            helpers[name] = compiled[value]
    return helpers


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _is_known(function: FunctionType) -> bool:
    """Whether Numba has an implementation of its own."""
    context = cpu_target.typing_context
    context.refresh()
    try:
        context.resolve_value_type(function)
    except (ValueError, NumbaError):
        return False
    return True


def why_not(dispatcher: Any, arguments: tuple[Any, ...], count: int) -> str | None:
    """Why a function cannot be compiled for some types to return `count` numbers; None if it can.

    Parameters
    ----------
    dispatcher : function that Numba compiles
    arguments : tuple of Numba types
    count : int
        A pair for 2; 0 for a function that returns nothing.
    """
    try:
        dispatcher.compile(arguments)
        returned = dispatcher.overloads[arguments].signature.return_type
    except Exception as error:  # whatever the compiler makes of code that is not meant for it
        return reason(error)
    if count == 0:
        return None
    members = tuple(returned) if isinstance(returned, types.BaseTuple) else (returned,)
    numbers = all(isinstance(one, (types.Float, types.Integer, types.Boolean)) for one in members)
    if numbers and len(members) == count:
        return None
    return f"it returns {returned}, expected {'a number' if count == 1 else f'{count} numbers'}"


def reason(error: Exception) -> str:
    """The line of a compiler's error that says what is wrong, and where.

    Examples
    --------
    >>> reason(ValueError("no such thing"))
    'ValueError: no such thing'
    >>> reason(NumbaError("Failed in nopython mode pipeline (step: x)\\nUntyped global name 'f'"))
    "Untyped global name 'f' (compiled code calls plain functions and those that numba.njit has ..."
    """
    text = str(error)
    lines = [line.strip() for line in text.splitlines()]
    telling = [line for line in lines if line and not line.startswith(_FRAME)]
    said = telling[0] if telling else "no reason given"
    if said.endswith(":") and len(telling) > 1:
        said = f"{said} {telling[1].removeprefix('>>> ')}"
    if not isinstance(error, NumbaError):
        said = f"{type(error).__name__}: {said}"
    if said.startswith("Untyped global name"):
        said = f"{said} ({_HELP})"
    position = re.search(r'^File "(.+)", line (\d+):', text, re.MULTILINE)
    return said if position is None else f"{said}, at {Path(position[1]).name}:{position[2]}"


def say_interpreted(message: str, owner: Any) -> None:
    """Warn once, pointing at the user's function (or the methods of an object) that runs slowly.

    Parameters
    ----------
    message : str
    owner : callable or object
    """
    code = _code(owner)
    position = ("", 0) if code is None else (code.co_filename, code.co_firstlineno)
    with _saying:
        if (message, *position) in _said:
            return
        _said.add((message, *position))
    if code is None:
        warn_user(message)
    else:  # not where it is called: a thread of the solver's may be the first to find out
        warnings.warn_explicit(message, UserWarning, *position)


def _code(owner: Any) -> CodeType | None:
    """The code of a user's function, of what a partial calls, or of an object's methods."""
    for one in (
        owner,
        getattr(owner, "func", None),
        getattr(owner, "py_func", None),
        *(getattr(type(owner), method, None) for method in ("derivative", "__call__")),
    ):
        code = getattr(one, "__code__", None)
        if isinstance(code, CodeType) and not (one.__module__ or "").startswith("buttress."):
            return code
    return None


class _Same:
    """A value in a key: that very object, or an equal number or text."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __eq__(self, key: object) -> bool:
        first, second = self.value, getattr(key, "value", None)
        plain = type(first) is type(second) and isinstance(first, (bool, int, float, str))
        return first is second or (plain and bool(first == second))


def references(function: Any) -> tuple[Any, ...]:
    """What a plain function means by its names, helpers included: a key for what is compiled.

    A helper that is written again, or a constant of another value, makes another key.

    Examples
    --------
    >>> def value(u): return scale * u
    >>> scale = 1.0
    >>> before = references(value)
    >>> scale = 2.0
    >>> before == references(value)
    False
    """
    told: list[Any] = []
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, FunctionType) or id(one) in seen:
            continue
        seen.add(id(one))
        named = [(name, one.__globals__[name]) for name in _names(one.__code__, one.__globals__)]
        cells = zip(one.__code__.co_freevars, one.__closure__ or (), strict=True)
        for name, value in (*named, *((name, _contents(cell)) for name, cell in cells)):
            told.append((name, _Same(value)))
            waiting.append(value)
        told.extend(_Same(value) for value in one.__defaults__ or ())
    return tuple(told)


def _names(code: CodeType, known: Mapping[str, Any]) -> list[str]:
    """The known names in a code, and in the functions within it."""
    names = {name: None for name in code.co_names if name in known}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names.update(dict.fromkeys(_names(inner, known)))
    return list(names)


@cache
def numbered(kind: Any, meant: Any = ()) -> Any:
    """A named tuple's type under a name that no other has, nor the same with `references` changed.

    Numba tells named tuples apart by their names: two losses of one name would share code.
    """
    if kind in _numbered:
        return kind
    alone = type(f"{kind.__name__}{next(_numbers)}", (kind,), {"__slots__": ()})
    alone.__module__, alone.__qualname__ = kind.__module__, kind.__qualname__
    _numbered.add(alone)
    return alone


def compiled_function(function: Any) -> tuple[Any, str | None]:
    """A function compiled for one float64; None, and why, where it cannot be."""
    if isinstance(function, FunctionType) or is_jitted(function):
        return _compiled_function(function, references(function))
    kind = type(function)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return None, f"Numba compiles functions made by def or lambda, not {name}"


@cache
def _compiled_function(function: Any, meant: Any) -> tuple[Any, str | None]:
    if isinstance(function, FunctionType):
        by_all = njit(error_model="numpy")(with_helpers(function))
        # solvers give one number: others are defaults
        several = function.__code__.co_argcount > 1
        function = njit(error_model="numpy")(lambda u: by_all(u)) if several else by_all
    why = why_not(function, (types.float64,), 1)
    return (function, None) if why is None else (None, why)
