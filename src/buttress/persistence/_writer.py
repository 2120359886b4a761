"""Writes the plain part of skops' format without importing skops; `_reader` reads it.

What skops writes of estimators, dictionaries, lists, numbers, text and arrays is written here as
skops would, but for the numbers that tell objects apart: they count, so that a model saved twice
has the same schema. A model with any other part is left to skops.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from buttress.persistence._reader import KEYS, PROTOCOL, NotPlain

# The bit of a class that was made by a `class` statement of Python's, or a call that is like one.
_MADE_BY_PYTHON = 1 << 9
_SCALARS = (type(None), bool, int, float, str)


def write_plain(
    model: Any, trusted: Callable[[list[str]], frozenset[str]], compression: int
) -> bytes:
    """An archive of a model of plain parts.

    Parameters
    ----------
    model : object
    trusted : function of a list of names of types
        Returns those of them that may be in a file, and perhaps others.
    compression : int
        Of `zipfile`.

    Raises
    ------
    NotPlain
        When skops is needed: for a part, or for the refusal.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=compression) as archive:
        writer = _Writer(archive)
        schema = writer.state(model)
        if not writer.named <= trusted(sorted(writer.named)):
            raise NotPlain
        archive.writestr("schema.json", json.dumps(schema | {"protocol": PROTOCOL}, indent=2))
    return buffer.getvalue()


class _Writer:
    """Describes parts, and puts arrays into the archive."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.named: set[str] = set()
        # Objects by their addresses, with the numbers they get. Kept until the end: the address
        # of one that is gone may be that of the next.
        self._seen: dict[int, tuple[int, Any]] = {}
        self._written: set[int] = set()

    def state(self, value: Any) -> dict[str, Any]:
        number = self._number(value)
        return self._described(value, number) | {"__id__": number}

    def _described(self, value: Any, number: int) -> dict[str, Any]:
        kind = type(value)
        if kind in _SCALARS:
            return _part(str, "JsonNode", content=json.dumps(value), is_json=True)
        if kind is dict:
            return self._of_dict(value)
        if kind in (list, tuple):
            loader = "ListNode" if kind is list else "TupleNode"
            return _part(kind, loader, content=[self.state(each) for each in value])
        if kind is np.ndarray or isinstance(value, np.generic):
            return self._of_array(value, number)
        if isinstance(value, np.dtype):
            # an empty array of that type stands for it
            empty = self.state(np.empty(0, dtype=value))
            return _part(np.dtype, "DTypeNode", content=empty)
        return self._of_object(value)

    def _of_dict(self, value: dict[Any, Any]) -> dict[str, Any]:
        kinds = [type(key) for key in value]
        if not set(kinds) <= set(KEYS.values()) or any(
            isinstance(item, property) for item in value.values()
        ):
            raise NotPlain
        names = [_part(kind, "TypeNode") | {"__id__": self._number(kind)} for kind in kinds]
        key_types = _part(list, "ListNode", content=names) | {"__id__": self._number(names)}
        content = {key: self.state(item) for key, item in value.items()}
        return _part(dict, "DictNode", content=content, key_types=key_types)

    def _of_array(self, value: Any, number: int) -> dict[str, Any]:
        objects = value.dtype == object
        if value.dtype.kind == "V" or (objects and value.ndim == 0):
            raise NotPlain
        if objects:
            content = self.state(value.tolist())["content"]
            shape = self.state(value.shape)
            return _part(type(value), "NdArrayNode", content=content, type="json", shape=shape)
        file = f"{number}.npy"
        if number not in self._written:
            self._written.add(number)
            array = io.BytesIO()
            np.save(array, value, allow_pickle=False)
            self.archive.writestr(file, array.getvalue())
        return _part(type(value), "NdArrayNode", type="numpy", file=file)

    def _of_object(self, value: Any) -> dict[str, Any]:
        kind: Any = type(value)
        by_python = all(base.__flags__ & _MADE_BY_PYTHON for base in kind.__mro__[:-1])
        # One that tells pickle how to make it anew is made anew by skops, too.
        ordinary = kind.__reduce__ is object.__reduce__ and (
            kind.__reduce_ex__ is object.__reduce_ex__
        )
        if isinstance(value, type) or not by_python or not ordinary:
            raise NotPlain
        self.named.add(f"{kind.__module__}.{kind.__name__}")
        return _part(kind, "ObjectNode", content=self.state(value.__getstate__()))

    def _number(self, value: Any) -> int:
        return self._seen.setdefault(id(value), (len(self._seen), value))[0]


def _part(kind: type[Any], loader: str, **more: Any) -> dict[str, Any]:
    named = {"__class__": kind.__name__, "__module__": kind.__module__, "__loader__": loader}
    return named | more
