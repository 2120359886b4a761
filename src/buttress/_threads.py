"""BLAS threads: small dense systems are several times faster with one."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

# Below this many rows a second BLAS thread gains nothing, and spins for a while afterwards.
_SMALL = 1000


@cache
def _controller() -> Any:
    # Finding the loaded libraries takes milliseconds, longer than many a fit: do it once.
    import scipy.linalg  # noqa: F401  its BLAS must be there to be found

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses the calling thread only.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    return _controller().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


def blas_threads_for(n_rows: int) -> AbstractContextManager[Any]:
    """A context for dense work on `n_rows` rows: one BLAS thread when they are few.

    Examples
    --------
    >>> with blas_threads_for(100):
    ...     pass
    """
    return one_blas_thread() if n_rows <= _SMALL else nullcontext()
