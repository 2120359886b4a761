"""How much memory an approximate fit may take."""

from __future__ import annotations

import re
from typing import Any

from buttress._memory import free_memory
from buttress.classifiers.parameters import check_number

# Taken for free where the system does not say.
_UNKNOWN = 4 * 2**30
_UNITS = {"": 1.0, "KB": 2.0**-10, "MB": 1.0, "GB": 2.0**10, "TB": 2.0**20}


def memory_limit_bytes(limit: Any) -> float:
    """Bytes that ``memory_limit`` allows: megabytes, text such as "2 GB", or None.

    None is half of the memory that is free now.

    Examples
    --------
    >>> memory_limit_bytes(1), memory_limit_bytes("2 GB")
    (1048576.0, 2147483648.0)
    """
    if limit is None:
        return (free_memory() or _UNKNOWN) / 2.0
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?B?)\s*", limit.upper())
        unit = None if match is None else match[2] + "B" * (match[2] in ("K", "M", "G", "T"))
        if match is None or unit not in _UNITS:
            raise ValueError(
                f"memory_limit={limit!r} is not accepted: expected megabytes, or text such as "
                "'500 MB' or '2 GB'."
            )
        return float(match[1]) * _UNITS[unit] * 2.0**20
    return check_number("memory_limit", limit, "(0, inf)") * 2.0**20
