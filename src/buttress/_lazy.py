"""Public names that are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

# Where the classes of a package that model files may hold are defined, by package.
_in_files: dict[str, dict[str, str]] = {}


def attach(
    package: str, home: Mapping[str, str], *, saved: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's ``__getattr__`` and ``__dir__``.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    home : mapping
        From a public name to the sub-module that defines it.
    saved : mapping, optional
        The same for classes that are not public and stand in model files beside those that are.

    Examples
    --------
    >>> get, names = attach("buttress", {"LeakyHockeyStick": "losses.leaky"})
    >>> get("LeakyHockeyStick").__name__
    'LeakyHockeyStick'
    >>> names()
    ['LeakyHockeyStick']
    """

    classes = {name: module for name, module in home.items() if name[0].isupper()}
    _in_files[package] = classes | dict(saved or {})

    def get(name: str) -> Any:
        if name in home:
            return getattr(import_module(f"{package}.{home[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted(home)

    return get, names


def classes_in_files(package: str) -> dict[str, str]:
    """The classes of a package that model files may hold, and the modules that define them.

    Nothing but the package's own ``__init__`` is imported.

    Examples
    --------
    >>> classes_in_files("buttress.classifiers.online")["Norma"]
    'buttress.classifiers.online.norma'
    """
    import_module(package)
    return {name: f"{package}.{home}" for name, home in _in_files[package].items()}
