"""Public names that are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attach(
    package: str, home: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's ``__getattr__`` and ``__dir__``.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    home : mapping
        From a public name to the sub-module that defines it.

    Examples
    --------
    >>> get, names = attach("buttress", {"LeakyHockeyStick": "losses.leaky"})
    >>> get("LeakyHockeyStick").__name__
    'LeakyHockeyStick'
    >>> names()
    ['LeakyHockeyStick']
    """

    def get(name: str) -> Any:
        if name in home:
            return getattr(import_module(f"{package}.{home[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted(home)

    return get, names
