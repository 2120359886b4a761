"""liquidSVM as a peer: its own cross-validated search over penalties at one width.

Its Python package is older than the interpreter: the name of the ending of compiled modules has
changed since, and ``pkg_resources``, which it imports and never uses, is gone. liquidSVM has no
intercept and ends its steps at a looser tolerance than LIBSVM, so its times are for orientation.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import types
from typing import Any

import numpy as np


def _library() -> Any:
    sysconfig.get_config_vars()["SO"] = sysconfig.get_config_var("EXT_SUFFIX")
    sys.modules.setdefault("pkg_resources", types.ModuleType("pkg_resources"))
    import liquidSVM

    return liquidSVM


def available() -> bool:
    """Whether liquidSVM can be imported (``pip install liquidSVM`` compiles it)."""
    try:
        _library()
    except (ImportError, NameError, OSError):
        return False
    return True


def search(X: Any, y: Any, gamma: float, penalties: int, folds: int = 5) -> Any:
    """Train on all folds at `penalties` values from 1 to 1e-7, and select; two threads."""
    numbers = np.unique(y, return_inverse=True)[1] + 1.0
    # the smallest penalty is divided by the rows of a fold
    smallest = 1e-7 * len(y) * (1 - 1 / folds)
    machine = _library().SVM(
        np.ascontiguousarray(X, dtype=float),
        numbers,
        scenario="MC AvA_hinge",
        threads=2,
        folds=folds,
        gammas=f"{gamma**-0.5:.12g}",
        lambda_steps=penalties,
        min_lambda=f"{smallest:.12f}",
        max_lambda="1.0",
    )
    cores = os.sched_getaffinity(0)
    try:
        machine.train()
        return machine.select()
    finally:
        # It binds the calling thread to one core, and with it all threads that are started later.
        os.sched_setaffinity(0, cores)
