"""Threads of the online learners: as many as BLAS may use, each with BLAS on one thread.

The products of a block are small. BLAS's own threads would spend more time meeting than
working, and the exponentials between two products would run on one core.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from buttress._arrays import Array

_local = threading.local()
# The BLAS limit is a setting of the whole process: one model at a time may change it.
_limiting = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}


@contextmanager
def own_threads() -> Iterator[None]:
    """A context in which `share` uses several threads and BLAS one."""
    controller = _controller()
    workers = max((library.num_threads for library in controller.lib_controllers), default=1)
    if workers < 2 or not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with controller.limit(limits=1):
            _local.workers = workers
            yield
    finally:
        _local.workers = 1
        _limiting.release()


def workers() -> int:
    """How many threads `share` would use now."""
    return int(getattr(_local, "workers", 1))


def share(work: Callable[[Any], None], tasks: Sequence[Any]) -> None:
    """Do all `tasks`, this thread among others."""
    count = min(workers(), len(tasks))
    if count < 2:
        _several(work, tasks)
        return
    pool = _pool(count)
    others = [pool.submit(_several, work, tasks[i::count]) for i in range(1, count)]
    _several(work, tasks[::count])
    for other in others:
        other.result()


def scratch(size: int, dtype: Any, purpose: str = "tile") -> Array:
    """An array of at least that size that every thread reuses from call to call."""
    buffers = _local.__dict__.setdefault("buffers", {})
    flat = buffers.get((dtype, purpose))
    if flat is None or len(flat) < size:
        # more than asked for, so that a growing model asks rarely
        flat = buffers[dtype, purpose] = np.empty(size + size // 2, dtype=dtype)
    return np.asarray(flat)


def _several(work: Callable[[Any], None], tasks: Sequence[Any]) -> None:
    for task in tasks:
        work(task)


def _pool(count: int) -> ThreadPoolExecutor:
    # Threads do not survive a fork: every process makes its own pool.
    process = os.getpid()
    pool = _pools.get(process)
    if pool is None:
        _pools.clear()
        pool = ThreadPoolExecutor(max(count, os.cpu_count() or 1), "buttress-stream")
        _pools[process] = pool
    return pool


def _controller() -> ThreadpoolController:
    if not hasattr(_local, "controller"):
        _local.controller = ThreadpoolController().select(user_api="blas")
    return _local.controller
