"""Images below one folder, and nothing else of the disk."""

from __future__ import annotations

import os
from pathlib import Path

# No SVG: it can carry scripts.
TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}


def is_image(value: str) -> bool:
    """Whether a cell reads as the name of an image.

    Examples
    --------
    >>> is_image("scans/17.PNG"), is_image("Oslo"), is_image("x.svg")
    (True, False, False)
    """
    return len(value) < 1024 and os.path.splitext(value)[1].lower() in TYPES


def image_below(folder: Path, name: str) -> Path | None:
    """The file of this name, when it is an image and truly lies below the folder.

    Links are followed before the check, so that none leads out of the folder.
    """
    if not is_image(name) or "\0" in name or "\\" in name:
        return None
    try:
        root = folder.resolve(strict=True)
        path = (root / name).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    # A link may also change the kind of the file.
    inside = path.is_relative_to(root) and path.is_file() and is_image(path.name)
    return path if inside else None
