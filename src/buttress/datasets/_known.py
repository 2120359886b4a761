"""What generators of known distributions share: the bunch they return, exact risks."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

Floats = NDArray[np.float64]


class KnownDistribution(Bunch):
    """A bunch that computes ``bayes_error`` when it is first asked for, and then keeps it."""

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if key == "bayes_error" and callable(value):
            value = self[key] = float(value())
        return value


def known_bunch(
    X: Floats,
    y: NDArray[Any],
    eta: Callable[[Floats], Floats],
    bayes_error: Callable[[], float],
    **more: Any,
) -> KnownDistribution:
    """A sample with its distribution: ``eta``, ``bayes_rule`` and ``bayes_error``."""
    width = X.shape[1]

    def posterior(points: ArrayLike) -> Floats:
        """P(y = +1 | x) of every row."""
        rows = np.asarray(points, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ValueError(f"X must have shape (n, {width}), got {rows.shape}")
        return eta(rows)

    def bayes_rule(points: ArrayLike) -> NDArray[Any]:
        """The most probable label, -1 or +1; a tie is -1."""
        return np.where(posterior(points) > 0.5, 1, -1)

    return KnownDistribution(
        X=X, y=y, eta=posterior, bayes_rule=bayes_rule, bayes_error=bayes_error, **more
    )


def check_size(n_samples: Any, name: str = "n_samples") -> int:
    """A positive integer."""
    if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
        raise ValueError(f"{name} must be a positive integer, got {n_samples!r}")
    return int(n_samples)


def posterior_of(log_positive: Floats, log_negative: Floats) -> Floats:
    """P(+1 | x) from the log joint densities of both classes, without overflow."""
    from scipy.special import expit

    return np.asarray(expit(log_positive - log_negative))


def simulated_bayes_error(
    draw: Callable[[np.random.Generator, int], Floats],
    eta: Callable[[Floats], Floats],
    points: int = 100_000,
) -> float:
    """E min(eta, 1 - eta) over a fixed sample from the distribution of x.

    The standard error is below ``0.5 / sqrt(points)`` times the spread of the integrand,
    about 0.0005 here; the seed is fixed, so the value is a function of the distribution.
    """
    posterior = eta(draw(np.random.default_rng(20_231), points))
    return float(np.minimum(posterior, 1 - posterior).mean())
