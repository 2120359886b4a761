"""One way to compile a loop with Numba.

Every compiled function of the package is made here, so that the options are the same
everywhere: cached on disk (a second process pays no compilation), free of the GIL, and dividing
by zero as NumPy does (a check before every division would keep loops from being vectorised).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

prange = numba.prange

# Fast arithmetic for loops of sums: terms may be regrouped, infinities and NaN stay what they are.
FAST = {"contract", "reassoc", "nsz"}


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile the decorated function with Numba in nopython mode.

    Parameters
    ----------
    **options
        Passed to ``numba.njit``; ``cache`` and ``nogil`` are on, and ``error_model`` is "numpy",
        unless given.
    """
    defaults = {"cache": True, "nogil": True, "error_model": "numpy"}
    return cast("Callable[[Function], Function]", numba.njit(**(defaults | options)))
