"""Reads the plain part of skops' format without importing skops.

Importing skops takes longer than loading a model, because it imports all of scikit-learn to list
what it trusts. Models of this library are made of few kinds of parts: estimators, dictionaries,
lists, numbers, text and arrays. A file of these parts is read here; any other is left to skops.
The rules are the same: no class is touched whose name is not trusted, and its ``__init__`` is
never called.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

# The version of the format that is read here, and written by `_writer`.
PROTOCOL = 2
# Types that the keys of a dictionary may have.
KEYS: dict[str, Callable[[str], Any]] = {
    "builtins.str": str,
    "builtins.int": int,
    "builtins.float": float,
}


class NotPlain(Exception):
    """The file holds a part that is left to skops."""


def read_plain(data: bytes, trusted: Callable[[list[str]], frozenset[str]]) -> Any:
    """The object in an archive of plain parts.

    Parameters
    ----------
    data : bytes
        A whole file, within the bounds of `check_archive`.
    trusted : function of a list of names of types
        Returns those of them that may be made, and perhaps others.

    Raises
    ------
    NotPlain
        Before anything is made, when skops is needed: for the part, or for the refusal.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        schema = json.loads(archive.read("schema.json"))
        if schema.get("protocol") != PROTOCOL:
            raise NotPlain
        named = _types(schema)
        if not named <= trusted(sorted(named)):
            raise NotPlain
        return _Reader(archive).read(schema)


def _types(schema: Any) -> set[str]:
    """Names of the classes of all objects, after a look at every part."""
    named: set[str] = set()
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += node
        elif isinstance(node, dict):
            if "__loader__" in node:
                _check_part(node)
                if node["__loader__"] == "ObjectNode":
                    named.add(_name(node))
            stack += node.values()
    return named


_SCALARS = set(np.sctypeDict.values())
# Every kind of part, and the classes that it may have; any class for objects.
_PARTS = {
    "ObjectNode": None,
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "JsonNode": {"builtins.str"},
    "TypeNode": set(KEYS),
    "DTypeNode": {"numpy.dtype"},
    "NdArrayNode": {"numpy.ndarray", *(f"numpy.{kind.__name__}" for kind in _SCALARS)},
}


def _check_part(node: dict[str, Any]) -> None:
    accepted = _PARTS.get(str(node["__loader__"]), set())
    if accepted is not None and _name(node) not in accepted:
        raise NotPlain


def _name(node: dict[str, Any]) -> str:
    return f"{node['__module__']}.{node['__class__']}"


class _Reader:
    """Makes the parts, each once."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.made: dict[Any, Any] = {}

    def read(self, node: dict[str, Any]) -> Any:
        key = node.get("__id__")
        if key is not None and key in self.made:
            return self.made[key]
        value = getattr(self, f"_{node['__loader__']}")(node)
        if key is not None:
            self.made[key] = value
        return value

    def _JsonNode(self, node: dict[str, Any]) -> Any:
        return json.loads(node["content"])

    def _TypeNode(self, node: dict[str, Any]) -> Any:
        return KEYS[_name(node)]

    def _DTypeNode(self, node: dict[str, Any]) -> Any:
        # an empty array of that type stands for it
        return self.read(node["content"]).dtype

    def _ListNode(self, node: dict[str, Any]) -> list[Any]:
        return [self.read(each) for each in node["content"]]

    def _TupleNode(self, node: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self.read(each) for each in node["content"])

    def _DictNode(self, node: dict[str, Any]) -> dict[Any, Any]:
        kinds = self.read(node["key_types"])
        pairs = zip(kinds, node["content"].items(), strict=True)
        return {kind(key): self.read(value) for kind, (key, value) in pairs}

    def _NdArrayNode(self, node: dict[str, Any]) -> Any:
        if node["type"] == "numpy":
            array = np.load(io.BytesIO(self.archive.read(node["file"])), allow_pickle=False)
            return array if _name(node) == "numpy.ndarray" else array[()]
        items = [self.read(each) for each in node["content"]]
        shape = self.read(node["shape"])
        if len(shape) != 1:
            return np.array(items, dtype=object)
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array

    def _ObjectNode(self, node: dict[str, Any]) -> Any:
        cls = getattr(import_module(node["__module__"]), node["__class__"])
        made = cls.__new__(cls)
        state = None if node.get("content") is None else self.read(node["content"])
        if state is None:
            return made
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            made.__dict__.update(state)
        return made
