"""The file around a model: what wrote it, and a checksum over every byte.

A model file is the zip archive that skops writes, with a comment at its end:

    buttress-model {"format": 2, ...} sha256:<64 hexadecimal digits>

so that skops reads it too. The digest covers all bytes before it. It finds damage and careless
edits; it is no signature, because whoever rewrites a file can rewrite its digest. What keeps a
malicious file harmless is the list of trusted types.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from datetime import UTC, datetime
from typing import Any

from buttress._version import __version__

# Raised by one whenever the code of one format could not read the other's files: a file holds
# the names of classes and their modules, so moving one is such a change.
FORMAT = 2

_MARK = b"buttress-model "
_DIGEST = b" sha256:"
_DIGEST_LENGTH = 64
_END_OF_ARCHIVE = b"PK\x05\x06"


class ModelFileError(ValueError):
    """A file that is no model, was changed, or holds a type that is not trusted."""


def seal(archive: bytes) -> bytes:
    """Add the description and the checksum to a zip archive without a comment."""
    import numpy
    import sklearn

    description = {
        "format": FORMAT,
        "buttress": __version__,
        "scikit-learn": sklearn.__version__,
        "numpy": numpy.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    text = _MARK + json.dumps(description).encode() + _DIGEST
    length = struct.pack("<H", len(text) + _DIGEST_LENGTH)
    # The last two bytes of an archive without a comment are the length of the comment.
    body = archive[:-2] + length + text
    return body + hashlib.sha256(body).hexdigest().encode()


def unseal(data: bytes, name: str) -> dict[str, Any]:
    """Check the checksum and the format of a file, and return its description.

    Parameters
    ----------
    data : bytes
        The whole file.
    name : str
        For the messages.
    """
    body, digest = data[:-_DIGEST_LENGTH], data[-_DIGEST_LENGTH:]
    start = body.rfind(_MARK)
    if data[:4] != b"PK\x03\x04" or start < 0 or not body.endswith(_DIGEST):
        if data[:4] == b"PK\x03\x04" and _END_OF_ARCHIVE in data[-65_557:]:
            raise ModelFileError(f"{name}: not a model saved by buttress, or a damaged one")
        raise ModelFileError(f"{name}: not a model saved by buttress")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ModelFileError(f"{name}: the file was changed after it was saved (checksum differs)")
    try:
        description: dict[str, Any] = json.loads(body[start + len(_MARK) : -len(_DIGEST)])
        written, version = int(description["format"]), str(description["buttress"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelFileError(f"{name}: the file does not say which format it has") from None
    if written != FORMAT:
        remedy = "install a newer one" if written > FORMAT else "fit the model again"
        raise ModelFileError(
            f"{name}: saved in format {written} by buttress {version}; this is {__version__}, "
            f"which reads format {FORMAT} only: {remedy}"
        )
    return description
