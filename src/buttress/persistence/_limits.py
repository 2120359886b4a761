"""What a model file may unpack to: looked at before anything of it is unpacked."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from buttress._npy import array_size

# A file may unpack to this many times its size, or to this many bytes if that is more. `save`
# stores without compression what would compress better than that.
_TIMES = 20
_AT_LEAST = 256_000_000
# A forest of a thousand trees has some ten thousand arrays and a hundred thousand nodes.
_MOST_MEMBERS = 200_000
_MOST_NODES = 2_000_000
# skops nests one level per attribute or list; a search over a pipeline has about thirty.
_DEEPEST = 300
_SCHEMA = "schema.json"


class TooLarge(ValueError):
    """The archive would unpack to more than its size allows."""


def check_archive(data: bytes) -> None:
    """Raise unless an archive is one that skops can unpack within bounds.

    Parameters
    ----------
    data : bytes
        The whole file.

    Raises
    ------
    TooLarge
        When sizes, counts or depth exceed what a model needs.
    ValueError, KeyError, zipfile.BadZipFile
        When it is malformed.
    """
    budget = max(_AT_LEAST, _TIMES * len(data))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sizes = _sizes(archive, budget)
        if _SCHEMA not in sizes:
            raise ValueError("it has no schema")
        schema = archive.read(_SCHEMA)
        # Every value stands behind one of these. Parsed, one takes up to a hundred times its text.
        if sum(schema.count(mark) for mark in (b",", b"[", b"{")) > _MOST_NODES:
            raise TooLarge("its schema has too many nodes")
        referred = _walk(json.loads(schema))
        # Every reference to a member unpacks it once more.
        total = sum(sizes[name] * times for name, times in referred.items())
        if total > budget:
            raise TooLarge(f"it would unpack to {total} bytes")
        for name in referred:
            _check_member(archive, name, sizes[name], budget)


def _sizes(archive: zipfile.ZipFile, budget: int) -> dict[str, int]:
    members = archive.infolist()
    if len(members) > _MOST_MEMBERS:
        raise TooLarge(f"it has {len(members)} members")
    sizes = {member.filename: member.file_size for member in members}
    if len(sizes) < len(members):
        raise ValueError("two of its members have one name")
    if sum(sizes.values()) > budget:
        raise TooLarge(f"it would unpack to {sum(sizes.values())} bytes")
    return sizes


def _walk(schema: Any) -> dict[str, int]:
    """How often every member is referred to, without recursion."""
    referred: dict[str, int] = {}
    stack = [(schema, 0)]
    n_nodes = 0
    while stack:
        node, depth = stack.pop()
        n_nodes += 1
        if n_nodes > _MOST_NODES:
            raise TooLarge("its schema has too many nodes")
        if depth > _DEEPEST:
            raise TooLarge("its schema is too deep")
        if isinstance(node, dict):
            file = node.get("file")
            if isinstance(file, str) and "__class__" in node:
                referred[file] = referred.get(file, 0) + 1
            stack += [(child, depth + 1) for child in node.values()]
        elif isinstance(node, list):
            stack += [(child, depth + 1) for child in node]
    return referred


def _check_member(archive: zipfile.ZipFile, name: str, size: int, budget: int) -> None:
    """An array must be as large as it says, and a matrix in an archive of its own too."""
    if name.endswith(".npy"):
        with archive.open(name) as file:
            claimed = array_size(io.BytesIO(file.read(min(size, 20_000))))
        if claimed > size:
            raise TooLarge(f"{name} claims {claimed} bytes and has {size}")
    elif name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(archive.read(name))) as inner:
            for member, length in _sizes(inner, budget).items():
                if not member.endswith(".npy"):
                    raise ValueError(f"{name} holds {member!r}")
                _check_member(inner, member, length, budget)
