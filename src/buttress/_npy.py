"""NumPy arrays read from files whose headers are not believed."""

from __future__ import annotations

import math
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

# NumPy's own limit on the text that describes an array.
_LONGEST_HEADER = 10_000


def _header(file: IO[bytes]) -> Any:
    version = npy.read_magic(file)
    if version == (1, 0):
        return npy.read_array_header_1_0(file, _LONGEST_HEADER)
    if version == (2, 0):
        return npy.read_array_header_2_0(file, _LONGEST_HEADER)
    raise ValueError(f"arrays of format {version} are not read")


def array_size(file: IO[bytes]) -> int:
    """Bytes that the header of an array claims, from the start of its magic; the file moves on.

    Raises
    ------
    ValueError
        When it is no header, or one of an array of Python objects.
    """
    start = file.tell()
    try:
        header = _header(file)
    except ValueError:
        raise
    except Exception as error:  # NumPy hands the text to Python's parser
        raise ValueError(f"no header of an array: {error}") from None
    shape, _, dtype = header
    if dtype.hasobject:
        raise ValueError("an array of Python objects")
    if any(length < 0 for length in shape):
        raise ValueError("an array of negative length")
    return int(file.tell() - start + math.prod(shape) * dtype.itemsize)


def read_bounded(file: IO[bytes], limit: int) -> NDArray[Any]:
    """Read one array that must not be larger than `limit` bytes, header included.

    Raises
    ------
    ValueError
        When it claims more: nothing of that size is ever allocated.
    """
    start = file.tell()
    if array_size(file) > limit:
        raise ValueError("an array larger than its file")
    file.seek(start)
    array = npy.read_array(file, allow_pickle=False, max_header_size=_LONGEST_HEADER)
    return np.asarray(array)
