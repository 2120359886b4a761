"""Checkpoints of online learners: one file, written atomically, checked when read, no pickle.

Layout: a magic line, the length of a JSON header (8 bytes, little-endian), the header, the
arrays named in it in NumPy's own format, and the SHA-256 of everything before it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._files import replacing
from buttress._npy import read_bounded
from buttress._version import __version__

# Raised by one whenever the code of one format could not read the other's files.
FORMAT = 2
_FAMILY = b"buttress stream checkpoint "
_MAGIC = _FAMILY + b"%d\n" % FORMAT
_DIGEST = 32


class CheckpointError(ValueError):
    """The file is no checkpoint, or not a whole one."""


def write_checkpoint(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write a nested dictionary of numbers, strings, lists and arrays.

    Parameters
    ----------
    path : path-like
        Replaced when everything is on disk; a crash leaves the old file or the new one.
    content : dict
        Keys are strings; arrays must not hold Python objects.
    """
    arrays: list[NDArray[Any]] = []
    header = json.dumps(_without_arrays(content, arrays, "")).encode()
    buffer = io.BytesIO()
    buffer.write(_MAGIC)
    buffer.write(len(header).to_bytes(8, "little"))
    buffer.write(header)
    for array in arrays:
        np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    data = buffer.getbuffer()
    with replacing(path) as file:
        file.write(data)
        file.write(hashlib.sha256(data).digest())


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `write_checkpoint` wrote.

    Raises
    ------
    CheckpointError
        When the file is something else, cut short, changed, or of another format.
    """
    name = os.fspath(path)
    data = Path(path).read_bytes()
    if not data.startswith(_MAGIC):
        if data.startswith(_FAMILY):
            raise CheckpointError(
                f"{name} was written by another version: this one reads checkpoints of format "
                f"{FORMAT} only. Start the stream again."
            )
        raise CheckpointError(f"{name} is not a checkpoint of an online learner.")
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        raise CheckpointError(f"{name} is damaged: its checksum does not match.")
    try:
        content = _parse(body)
    except (ValueError, KeyError, IndexError, TypeError, RecursionError, EOFError) as error:
        raise CheckpointError(f"{name} is malformed: {error}") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{name} is malformed: it holds no dictionary.")
    return content


def _parse(body: bytes) -> Any:
    buffer = io.BytesIO(body)
    buffer.seek(len(_MAGIC))
    length = int.from_bytes(buffer.read(8), "little")
    if length > len(body):
        raise ValueError("the header is longer than the file")
    header = buffer.read(length)
    arrays = []
    while buffer.tell() < len(body):
        arrays.append(read_bounded(buffer, len(body) - buffer.tell()))
    return json.loads(header, object_hook=partial(_with_arrays, arrays))


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Whether a file says of itself that it is a checkpoint, of this format or another."""
    with open(path, "rb") as file:
        return file.read(len(_FAMILY)) == _FAMILY


def describe_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a checkpoint says of itself: format, time, size and checksum."""
    data = Path(path).read_bytes()
    written = datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
    return {
        "format": FORMAT,
        "buttress": __version__,
        "saved": written.isoformat(timespec="seconds"),
        "bytes": len(data),
        "sha256": data[-_DIGEST:].hex(),
    }


def _without_arrays(value: Any, arrays: list[NDArray[Any]], where: str) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_arrays(item, arrays, f"{where}.{key}" if where else str(key))
            for key, item in value.items()
        }
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        arrays.append(value)
        return {"__array__": len(arrays) - 1}
    if isinstance(value, np.ndarray):
        return {"__objects__": [_plain(item, where) for item in value.tolist()]}
    if isinstance(value, (list, tuple)):
        return [_without_arrays(item, arrays, where) for item in value]
    return _plain(value, where)


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(
        f"{where}={value!r} cannot be put into a checkpoint: only numbers, text and arrays of "
        "them can, so that loading never runs code."
    )


def _with_arrays(arrays: list[NDArray[Any]], value: dict[str, Any]) -> Any:
    if "__array__" in value:
        return arrays[value["__array__"]]
    if "__objects__" in value:
        return np.array(value["__objects__"], dtype=object)
    return value
