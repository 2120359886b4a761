"""Memory that a thread uses again."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

_local = threading.local()


def workspace(name: str, shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
    """A matrix of this thread's own that is used again, so that no memory is mapped anew.

    Whoever asks under the same name gets the same memory.

    Examples
    --------
    >>> workspace("an example", (2, 3), float).shape
    (2, 3)
    """
    spaces = _local.__dict__.setdefault("spaces", {})
    size = shape[0] * shape[1]
    space = spaces.get((name, np.dtype(dtype)))
    if space is None or space.size < size:
        # more than asked for, so that what grows asks rarely; untouched memory costs nothing
        space = spaces[name, np.dtype(dtype)] = np.empty(size + size // 2, dtype=dtype)
    return np.asarray(space[:size].reshape(shape))
