"""Threads and BLAS limits: small dense systems are several times faster with one BLAS thread.

BLAS's own threads would spend more time meeting than working on small products, and leave the
element-wise work between two products on one core. Work that can be divided is divided here
instead, among threads each of which has BLAS for itself.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController, threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")

# Below this many rows a second BLAS thread gains nothing, and spins for a while afterwards.
_SMALL = 1000

# The BLAS limit is a setting of the whole process: one caller at a time may change it for its
# own threads.
_dividing = threading.Lock()
_local = threading.local()
_pools: dict[int, ThreadPoolExecutor] = {}


@cache
def _controller() -> Any:
    # Finding the loaded libraries takes milliseconds, longer than many a fit: do it once.
    import scipy.linalg  # noqa: F401  its BLAS must be there to be found

    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses the calling thread only.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    return _controller().limit(limits=1)  # type: ignore[no-any-return]


def limited_threads(count: int | None) -> AbstractContextManager[Any]:
    """A context in which BLAS and OpenMP use `count` threads at most; None leaves them as they are.

    For work that others do: fits of any estimator, in processes or one after another.

    Examples
    --------
    >>> with limited_threads(1):
    ...     pass
    """
    return threadpool_limits(limits=count)  # type: ignore[no-any-return]


def blas_threads_for(n_rows: int) -> AbstractContextManager[Any]:
    """A context for dense work on `n_rows` rows: one BLAS thread when they are few.

    Examples
    --------
    >>> with blas_threads_for(100):
    ...     pass
    """
    return one_blas_thread() if n_rows <= _SMALL else nullcontext()


@contextmanager
def own_threads() -> Iterator[None]:
    """A context in which `share` uses as many threads as BLAS might, and BLAS one.

    Inside `one_blas_thread`, and while another caller's threads are at work, `share` stays in
    this thread.
    """
    libraries = _controller().lib_controllers
    count = max((library.num_threads for library in libraries), default=1)
    if count < 2 or not _dividing.acquire(blocking=False):
        yield
        return
    try:
        with one_blas_thread():
            _local.workers = count
            yield
    finally:
        _local.workers = 1
        _dividing.release()


def workers() -> int:
    """How many threads `share` would use now."""
    return int(getattr(_local, "workers", 1))


def share(work: Callable[[Item], Any], tasks: Sequence[Item]) -> None:
    """Do all `tasks` in the threads that `own_threads` allows, this one among them."""
    in_threads(work, tasks, workers())


def in_parallel(work: Callable[[Item], Any], tasks: Sequence[Item]) -> None:
    """`share` in a context of its own.

    Examples
    --------
    >>> found = []
    >>> in_parallel(found.append, range(3))
    >>> sorted(found)
    [0, 1, 2]
    """
    with own_threads():
        share(work, tasks)


def in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], n_threads: int
) -> list[Result]:
    """``[function(item) for item in items]``, divided among threads, this one among them.

    Whoever is free takes the next item. The other threads live as long as the process: starting
    one takes longer than many a task.

    Examples
    --------
    >>> in_threads(abs, [-1, 2, -3], 2)
    [1, 2, 3]
    """
    helpers = min(n_threads, len(items)) - 1
    if helpers < 1:
        return [function(item) for item in items]
    waiting = deque(enumerate(items))
    results: list[Any] = [None] * len(items)

    def work() -> None:
        try:
            while waiting:
                try:
                    position, item = waiting.popleft()
                except IndexError:  # another thread was faster
                    return
                results[position] = function(item)
        except BaseException:
            waiting.clear()  # nobody begins what nobody will read
            raise

    pool = _pool(helpers)
    others = [pool.submit(work) for _ in range(helpers)]
    try:
        work()
    finally:
        # A helper that has not begun has nothing left to do, and may never begin where all of
        # the pool's threads wait in a place like this one.
        begun = [helper for helper in others if not helper.cancel()]
        failures = [helper.exception() for helper in begun]
    for failure in failures:
        if failure is not None:
            raise failure
    return results


def results_in_order(
    calls: Sequence[Callable[[], Result]], n_threads: int | None = None
) -> Iterator[Result]:
    """Results of `calls` in order, a few calls ahead in threads with one BLAS thread each.

    Examples
    --------
    >>> list(results_in_order([lambda: 1, lambda: 2], n_threads=2))
    [1, 2]
    """
    count = min(n_threads or os.cpu_count() or 1, len(calls))
    if count <= 1:
        for call in calls:
            yield call()
        return
    with one_blas_thread(), thread_pool(count) as pool:
        remaining = iter(calls)
        # Few results wait at a time, whatever the number of calls.
        ahead = deque(pool.submit(call) for call in islice(remaining, 2 * count))
        while ahead:
            result = ahead.popleft().result()
            ahead.extend(pool.submit(call) for call in islice(remaining, 1))
            yield result


def thread_pool(count: int, name: str = "buttress") -> ThreadPoolExecutor:
    """Threads that the caller keeps, and ends: all pools of the package are made here.

    Examples
    --------
    >>> with thread_pool(2) as pool:
    ...     pool.submit(abs, -1).result()
    1
    """
    return ThreadPoolExecutor(count, thread_name_prefix=name)


def _pool(count: int) -> ThreadPoolExecutor:
    # Threads do not survive a fork: every process makes its own pool.
    process = os.getpid()
    pool = _pools.get(process)
    if pool is None:
        _pools.clear()
        pool = thread_pool(max(count, os.cpu_count() or 1))
        _pools[process] = pool
    return pool
