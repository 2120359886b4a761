"""What models cost: seconds of searches and fits by the size of the table, on this machine.

The constants are those of a reference machine; a probe of some milliseconds says how much slower
this one is. ``buttress cost`` prints what follows, and `planning` keeps a budget with it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

import numpy as np

from buttress._threads import one_blas_thread


@dataclass(frozen=True)
class Size:
    """What a table's cost depends on.

    Attributes
    ----------
    rows, features, classes : int
        Features as the models see them, categories counted one by one.
    """

    rows: int
    features: int
    classes: int = 2

    @property
    def problems(self) -> int:
        """Two-class problems that a kernel machine solves."""
        return 1 if self.classes <= 2 else self.classes


@dataclass(frozen=True)
class _Cost:
    """Seconds on one core of the reference machine, of a search (five folds) or of one fit.

    ``start + rows * (n / 1000) ** exponent * (features / 10) ** features_exponent`` for two
    classes, times the number of two-class problems to the power `problems`: those of one table
    share its Gram matrix, and the learner of one pass sees all classes in its one pass.
    """

    start: float
    rows: float
    exponent: float
    features_exponent: float
    problems: float


# From `benchmarks/cost.py --fit` with 250 to 3000 rows, 10 to 40 features and two to six classes.
# Solvers need fewer steps when there are more features, which here outweighs the distances.
_SEARCH = {
    "svc": _Cost(0.0, 0.03, 1.8, 0.0, 1.0),
    "leaky": _Cost(0.021, 0.232, 2.05, -0.56, 0.88),
    "ramp": _Cost(0.073, 0.355, 1.97, -0.29, 0.9),
    "reject": _Cost(0.085, 0.501, 2.07, -0.3, 0.96),
    "uncertainty": _Cost(0.172, 0.536, 2.9, -0.34, 0.98),
    "online": _Cost(0.055, 0.173, 2.08, 0.22, 0.03),
}
# About how many times longer than that a search takes on the least favourable of eight real sets of
# 900 rows, one run of each: columns of the leaky family that are hard to solve are few or many. It
# decides which search is begun first, and nothing else.
_SURPRISE = {"leaky": 6.0, "ramp": 1.4, "uncertainty": 1.5}
# With parameters that a search has chosen.
_FIT = {
    "svc": _Cost(0.0, 0.03, 1.8, 0.0, 1.0),
    "leaky": _Cost(0.0, 0.0603, 1.81, -0.36, 0.95),
    "ramp": _Cost(0.0, 0.0101, 1.3, 0.01, 0.66),
    "reject": _Cost(0.0, 0.018, 1.3, -0.08, 0.79),
    "uncertainty": _Cost(0.0, 0.0855, 2.06, -0.46, 0.87),
    "online": _Cost(0.0, 0.00196, 0.55, 0.2, 0.16),
}
# The dependence on features was measured in this range, and is taken to end with it.
_FEATURES = (5, 50)
# Seconds of one approximate fit per (1000 rows x 300 components), and its exponent in components.
_APPROXIMATE: dict[str, tuple[float, float]] = {
    "leaky": (0.15, 1.3),
    "ramp": (0.6, 1.3),
    "reject": (0.43, 1.3),
    "uncertainty": (0.06, 1.3),
}


def search_seconds(kind: str, rows: int, size: Size, folds: int = 5) -> float:
    """Seconds of a search on one core of the reference machine.

    Examples
    --------
    >>> small, large = (search_seconds("leaky", n, Size(n, 10)) for n in (1000, 2000))
    >>> 3 < large / small < 8
    True
    """
    return _seconds(_SEARCH[kind], rows, size) * folds / 5


def worst_seconds(kind: str, rows: int, size: Size) -> float:
    """Seconds that a search takes on rows that do not suit it, on the same core.

    Examples
    --------
    >>> size = Size(900, 40)
    >>> worst_seconds("leaky", 900, size) > worst_seconds("ramp", 900, size)
    True
    """
    return _SURPRISE.get(kind, 1.0) * search_seconds(kind, rows, size)


def fit_seconds(kind: str, rows: int, size: Size) -> float:
    """Seconds of one fit with known parameters on one core of the reference machine.

    Examples
    --------
    >>> small, large = (fit_seconds("leaky", n, Size(n, 10)) for n in (1000, 4000))
    >>> 8 < large / small < 16
    True
    """
    return _seconds(_FIT[kind], rows, size)


def approximates(kind: str) -> bool:
    """Whether a kind can be fitted on landmarks."""
    return kind in _APPROXIMATE


def approximate_seconds(kind: str, rows: int, components: int, size: Size) -> float:
    """Seconds of one fit on landmarks on one core of the reference machine."""
    base, exponent = _APPROXIMATE[kind]
    per_problem = base * rows / 1000 * float(components / 300) ** exponent
    return float(per_problem * size.problems)


def _seconds(cost: _Cost, rows: int, size: Size) -> float:
    features = float(np.clip(size.features, *_FEATURES) / 10) ** cost.features_exponent
    growth = cost.rows * float(rows / 1000) ** cost.exponent
    return float((cost.start + growth * features) * float(size.problems) ** cost.problems)


# Processor time of the probe below on the reference machine.
_REFERENCE_PROBE = 0.9e-3


def probed_speed() -> tuple[float, float]:
    """How much slower this machine is now than the reference one, and how busy it is.

    A matrix product and passes over its entries, as in kernel machines, in memory that is there
    already (new memory would take longer than the work), for some forty milliseconds: the middle
    processor time, and the share of wall time that was waiting. No exponentials: NumPy's take
    five times as long on processors without 512 bit registers, and ours do not.
    """
    rows = np.random.default_rng(0).standard_normal((600, 40))
    K = np.zeros((600, 600))
    walls, processor = [], []
    with one_blas_thread():
        for _ in range(21):
            wall, busy = time.perf_counter(), time.thread_time()
            np.matmul(rows, rows.T, out=K)
            np.multiply(K, K, out=K)
            np.sqrt(K, out=K)
            walls.append(time.perf_counter() - wall)
            processor.append(time.thread_time() - busy)
    slower = float(np.clip(np.median(processor) / _REFERENCE_PROBE, 0.2, 8.0))
    return slower, float(np.clip(sum(walls) / max(sum(processor), 1e-9), 1.0, 16.0))


_probe = cache(probed_speed)


def processor_factor() -> float:
    """Processor seconds on this machine over those on the reference one."""
    return _probe()[0]


def machine_factor() -> float:
    """Wall seconds on this machine, as busy as it is now, over those on the reference one."""
    slower, busy = _probe()
    return slower * busy
