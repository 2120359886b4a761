"""How long an unbounded model can go on growing."""

from __future__ import annotations

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")


def free_memory() -> int | None:
    """Bytes the system could give to this process now; None where that is unknown."""
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def forecast(n_seen: int, n_vectors: int, bytes_per_vector: float, free: int) -> str | None:
    """A warning when a stream twice as long would take more than half of the free memory.

    The growth so far is continued; storage that grows by doubling may hold twice as much as
    it uses.

    Examples
    --------
    >>> forecast(1000, 100, 1000.0, free=10**9) is None
    True
    >>> print(forecast(1000, 500, 1e6, free=10**9))
    At the growth seen so far (500 support vectors per 1000 rows) ... after about 0 more rows. ...
    """
    if n_vectors == 0 or n_seen == 0:
        return None
    per_row = 2.0 * bytes_per_vector * n_vectors / n_seen
    room = 0.5 * free
    if per_row * n_seen <= room:
        return None
    rows = max(0, int(room / per_row - n_seen))
    return (
        f"At the growth seen so far ({1000 * n_vectors / n_seen:.0f} support vectors per 1000 "
        f"rows) the model passes half of the free memory ({free / 1e9:.1f} GB) after about "
        f"{rows} more rows. Set a budget to bound it."
    )
