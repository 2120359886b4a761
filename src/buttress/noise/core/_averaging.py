"""One posterior of two kinds of noise, weighted by what the labels say for each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.noise.core._posterior import LARGEST_RATE, N_DRAWS, Posterior

# A kind with less than this share of the posterior is left out.
_NEGLIGIBLE_SHARE = 0.02
# Points of the common axis of rates.
_POINTS = 491


def averaged(shared: Posterior, find: Callable[[], Posterior], share: float) -> Posterior:
    """Draws of both kinds of noise, each in proportion to its posterior probability.

    Parameters
    ----------
    shared : Posterior
        One rate for all classes.
    find : callable
        Gives the posterior of rates that differ, where it is needed.
    share : float
        Posterior probability of rates that differ.

    Examples
    --------
    >>> draws = np.zeros((200, 2, 2))
    >>> axis, mass = np.array([[0.0, 0.2, 0.4]] * 2), np.array([[0.0, 1.0, 0.0]] * 2)
    >>> low = Posterior(draws, draws[:, 0], 0.0, draws[0], draws[0, 0], axis, mass)
    >>> high = Posterior(draws + 1.0, draws[:, 0], 0.0, draws[0], draws[0, 0], axis, mass)
    >>> float(averaged(low, lambda: high, 0.25).transition.mean())
    0.25
    """
    if share < _NEGLIGIBLE_SHARE:
        return shared
    apart = find()
    if share > 1.0 - _NEGLIGIBLE_SHARE:
        return apart
    n_apart = round(N_DRAWS * share)
    first = _spread(len(apart.transition), n_apart)
    second = _spread(len(shared.transition), N_DRAWS - n_apart)
    likely = apart if share > 0.5 else shared
    axis = np.linspace(0.0, LARGEST_RATE, _POINTS)
    below = share * _cumulated(apart, axis) + (1.0 - share) * _cumulated(shared, axis)
    return Posterior(
        transition=np.concatenate([apart.transition[first], shared.transition[second]]),
        coefficients=np.concatenate([apart.coefficients[first], shared.coefficients[second]]),
        log_evidence=likely.log_evidence,
        mode_transition=likely.mode_transition,
        mode_coefficients=likely.mode_coefficients,
        rate_axis=np.repeat(axis[None], len(below), axis=0),
        rate_mass=np.diff(below, axis=1, prepend=0.0),
    )


def _spread(n: int, count: int) -> IntArray:
    """`count` positions of `n`, evenly spread."""
    return np.asarray((np.arange(count) + 0.5) * n / max(count, 1), dtype=np.intp)


def _cumulated(posterior: Posterior, axis: Array) -> Array:
    """Share of the posterior of every rate up to the points of another axis."""
    rows = []
    for points, mass in zip(posterior.rate_axis, posterior.rate_mass, strict=True):
        edges = np.concatenate([points[:1], 0.5 * (points[1:] + points[:-1]), points[-1:]])
        below = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
        # mass on the very first point is there, not spread below it
        rows.append(np.interp(axis, edges, below, left=0.0, right=1.0))
    return np.array(rows)
