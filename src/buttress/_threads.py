"""BLAS threads: small dense systems are several times faster with one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

# Below this many rows a second BLAS thread gains nothing, and spins for a while afterwards.
_SMALL = 1000

# The BLAS limit is a setting of the whole process: one caller at a time may change it for its
# own threads.
_dividing = threading.Lock()


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


def in_parallel(work: Callable[[Any], None], tasks: Sequence[Any]) -> None:
    """Do all `tasks` in as many threads as BLAS may use, each with BLAS on its own thread.

    Inside `one_blas_thread`, and while another caller's threads are at work, in this thread.

    Examples
    --------
    >>> found = []
    >>> in_parallel(found.append, range(3))
    >>> sorted(found)
    [0, 1, 2]
    """
    libraries = _controller().select(user_api="blas").lib_controllers
    workers = min(len(tasks), max((library.num_threads for library in libraries), default=1))
    if workers < 2 or not _dividing.acquire(blocking=False):
        for task in tasks:
            work(task)
        return
    try:
        with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, tasks))
    finally:
        _dividing.release()
