"""Random problems over the whole range of what users bring: sizes, scales, copies, noise.

Used by ``worst_case.py`` (how long the slowest takes) and by the tests (whether any fails
without a warning).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class RandomProblem:
    """Rows, labels ±1 and the parameters of a kernel machine."""

    X: Any
    y: Any
    kernel: dict[str, Any]
    C: float
    d: float
    mu: float
    s: float
    radius: float
    h: float
    omega: float
    nu: float
    fit_intercept: bool


def random_problem(seed: int, n_rows: tuple[int, int], *, extreme: bool = False) -> RandomProblem:
    """One problem; `extreme` widens the scales of features and penalties beyond good practice.

    Parameters
    ----------
    seed : int
    n_rows : (int, int)
        Range of the number of rows, drawn on a logarithmic scale.
    extreme : bool
    """
    rng = np.random.default_rng(seed)
    n = int(np.exp(rng.uniform(np.log(n_rows[0]), np.log(n_rows[1] + 1))))
    p = int(rng.integers(1, 11))
    X = rng.normal(size=(n, p))
    if rng.random() < 0.3:  # counts: many ties
        X = np.round(X * rng.integers(1, 4))
    direction = rng.normal(size=p)
    y = np.where(X @ direction + rng.choice([0.0, 0.3, 1.0]) * rng.normal(size=n) > 0, 1.0, -1.0)
    if rng.random() < 0.3:  # a curved boundary
        y = np.where((X**2).sum(axis=1) > p, 1.0, -1.0)
    y = np.where(rng.random(n) < rng.choice([0.0, 0.1, 0.3]), -y, y)
    if rng.random() < 0.3:  # copies, some of them with the other label
        copied = rng.integers(0, n, size=n // 2)
        X[: n // 2] = X[copied]
        y[: n // 2] = np.where(rng.random(n // 2) < 0.1, -y[copied], y[copied])
    y[:4] = 1.0, -1.0, 1.0, -1.0
    if rng.random() < 0.5:
        X = X * 10.0 ** rng.uniform(-1.5, 1.5, size=p)
    if extreme:
        X = X * 10.0 ** rng.uniform(-4, 5) + rng.choice([0.0, 0.0, 10.0]) * X.std()
    kernel: dict[str, Any] = {"kernel": "linear"}
    if rng.random() < 0.6:
        spread = max(float(X.var(axis=0).sum()), 1e-300)
        kernel = {"kernel": "rbf", "gamma": 10.0 ** rng.uniform(-2, 2) / spread}
    return RandomProblem(
        X=X,
        y=y,
        kernel=kernel,
        C=10.0 ** rng.uniform(-4, 5) if extreme else 10.0 ** rng.uniform(-3, 4),
        d=rng.choice([0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.5]),
        mu=float(rng.choice([0.2, 0.5, 1.0])),
        s=float(rng.choice([-np.inf, -2.0, -1.0, -0.3, 0.0])),
        radius=10.0 ** rng.uniform(-2, 4),
        h=float(rng.choice([0.0, 0.5, 2.0])),
        omega=10.0 ** rng.uniform(-1, 1),
        nu=rng.uniform(0.05, 1.0),
        fit_intercept=bool(rng.random() < 0.85),
    )
