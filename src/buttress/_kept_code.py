"""Compiled code on disk that is used again only while all of its sources are what they were.

Numba looks at the file of the function that is called. What other files contribute (loops that it
calls, a loss, the fields of a tuple) may change without being noticed, and old code runs; and an
index that names a class which is gone stops a program. Here an index counts for the contents of
all modules of the package that the function's module sees, and one that cannot be read is empty.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
import re
import sys
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile

# What reading an index or code of another version may raise.
_UNREADABLE = (
    pickle.UnpicklingError,
    AttributeError,
    ImportError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
)
# Losses are found by the types of arguments, so no module that compiles loops need name them.
_ALWAYS = "losses"
# An import, with its list of names; read as text, because what a module has seen by the time that
# it is asked depends on the program.
_IMPORT = re.compile(r"^\s*from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n#]*)", re.MULTILINE)


def _file_of(root: Path, name: str) -> Path | None:
    """The file of a module of the package whose folder is `root`."""
    module_path = root.joinpath(*name.split(".")[1:])
    for file in (module_path.with_suffix(".py"), module_path / "__init__.py"):
        if file.is_file():
            return file
    return None


@functools.cache
def _facts(file: Path) -> tuple[str, tuple[str, ...]]:
    """A digest of a file, and the modules that it may import."""
    text = file.read_text(encoding="utf-8")
    imported: list[str] = []
    for module, names in _IMPORT.findall(text):
        imported += [module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))]
    return hashlib.sha256(text.encode()).hexdigest(), tuple(imported)


@functools.cache
def sources_stamp(name: str) -> str:
    """A digest of the sources that compiled code of the module `name` may come from.

    They are its own and those of all modules of the same package that it imports, directly or not.
    """
    package = name.partition(".")[0]
    root = Path(str(sys.modules[package].__file__)).parent
    waiting = [name, *(f"{package}.{_ALWAYS}.{one.stem}" for one in (root / _ALWAYS).glob("*.py"))]
    digests: dict[Path, str] = {}
    while waiting:
        one = waiting.pop()
        file = _file_of(root, one) if one.startswith(package + ".") else None
        if file is not None and file not in digests:
            digests[file], imported = _facts(file)
            waiting.extend(imported)
    whole = "\n".join(f"{file.relative_to(root)} {digests[file]}" for file in sorted(digests))
    return hashlib.sha256(whole.encode()).hexdigest()


class KeptCode(IndexDataCacheFile):
    """Numba's index of one function's compiled code, stamped with all of its sources."""

    def __init__(self, plain: IndexDataCacheFile, module: str) -> None:
        self.__dict__.update(plain.__dict__)
        self._module = module

    def _stamped(self) -> None:
        # Not when the function is made: many are that are never called.
        self._source_stamp = sources_stamp(self._module)

    def _load_index(self) -> Any:
        self._stamped()
        try:
            return super()._load_index()
        except _UNREADABLE:
            return {}

    def _save_index(self, overloads: Any) -> None:
        self._stamped()
        super()._save_index(overloads)

    def load(self, key: Any) -> Any:
        """The code for some types of arguments; None where there is none that can be read."""
        try:
            return super().load(key)
        except _UNREADABLE:
            return None
