"""Problems defined by shapes: boxes, a noisy band, bananas, waves; Bayes rule known."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp
from sklearn.utils import Bunch, check_random_state

from buttress.datasets._known import (
    Floats,
    check_size,
    known_bunch,
    posterior_of,
    simulated_bayes_error,
)


def make_reject_synthetic(
    n_samples: int = 300, *, noise: float = 0.1, random_state: Any = None
) -> Bunch:
    """Boxes on both sides of the line x1 = 0, with a share of wrong labels.

    Parameters
    ----------
    n_samples : int
        Half of them (rounded down) on the negative side.
    noise : float in [0, 0.5]
        Exactly ``round(noise * n_samples)`` labels are wrong, anywhere.
    random_state : int, RandomState or None

    Returns
    -------
    Bunch
        ``X``, ``y`` (-1, +1), ``eta``, ``bayes_rule`` (the sign of x1), ``bayes_error``
        (= `noise`), ``y_clean``.

    Notes
    -----
    Each side is a mixture of three uniform distributions: on the negative side 0.45 on
    [-1, 0] x [-1, 1], 0.5 on [-4, -3] x [0, 1], 0.05 on [-10, 0] x [-5, 5]; on the positive
    side 0.45 on [0, 1] x [-1, 1], 0.5 on [9, 10] x [-1, 0], 0.05 on [0, 10] x [-5, 5]. The
    printed densities lost their minus signs; these are the only intervals that increase.

    References
    ----------
    .. [1] N. Manwani, K. Desai, S. Sasidharan, R. Sundararajan, "Double ramp loss based
       reject option classifier", PAKDD 2015, section 4.1.

    Examples
    --------
    >>> from buttress.datasets import make_reject_synthetic
    >>> sample = make_reject_synthetic(random_state=0)
    >>> int((sample.y != sample.y_clean).sum())
    30
    """
    n = check_size(n_samples)
    if not 0 <= noise <= 0.5:
        raise ValueError(f"noise must be in [0, 0.5], got {noise!r}")
    random = check_random_state(random_state)
    # low x1, low x2, width, height
    negative = np.array([[-1, -1, 1, 2], [-4, 0, 1, 1], [-10, -5, 10, 10]])
    positive = np.array([[0, -1, 1, 2], [9, -1, 1, 1], [0, -5, 10, 10]])
    y_clean = np.where(np.arange(n) < n // 2, -1, 1)
    box = random.choice(3, size=n, p=[0.45, 0.5, 0.05])
    chosen = np.where((y_clean == 1)[:, None], positive[box], negative[box])
    X = chosen[:, :2] + chosen[:, 2:] * random.uniform(size=(n, 2))
    y = y_clean.copy()
    wrong = random.choice(n, round(noise * n), replace=False)
    y[wrong] *= -1

    def eta(points: Floats) -> Floats:
        return np.where(points[:, 0] > 0, 1 - noise, noise)

    return known_bunch(X, y, eta, lambda: noise, y_clean=y_clean)


def make_noisy_band(
    n_samples: int = 400,
    *,
    width: float = 0.225,
    n_flips: int | None = None,
    random_state: Any = None,
) -> Bunch:
    """The unit square split by its diagonal, with wrong labels near the diagonal only.

    Parameters
    ----------
    n_samples : int
    width : float in (0, sqrt(2))
        Width of the band around the diagonal, measured across it.
    n_flips : int, optional
        Number of wrong labels, all inside the band; ``n_samples // 5`` by default (80 of
        400 in the paper). All labels of the band are wrong when it holds fewer points.
    random_state : int, RandomState or None

    Returns
    -------
    Bunch
        ``X``, ``y`` (+1 above the diagonal), ``eta``, ``bayes_rule``, ``bayes_error``,
        ``y_clean``.

    Notes
    -----
    With the default numbers the band holds about 117 of 400 points, so more than half of
    its labels are wrong and the Bayes rule changes sides inside it. ``eta`` uses the
    expected share of wrong labels in the band.

    References
    ----------
    .. [1] N. Manwani, K. Desai, S. Sasidharan, R. Sundararajan, "Double ramp loss based
       reject option classifier", PAKDD 2015, Figure 3.

    Examples
    --------
    >>> from buttress.datasets import make_noisy_band
    >>> sample = make_noisy_band(random_state=0)
    >>> int((sample.y != sample.y_clean).sum())
    80
    """
    n = check_size(n_samples)
    if not 0 < width < np.sqrt(2):
        raise ValueError(f"width must be in (0, sqrt(2)), got {width!r}")
    flips = n // 5 if n_flips is None else n_flips
    if not 0 <= flips <= n:
        raise ValueError(f"n_flips must be in [0, n_samples], got {n_flips!r}")
    random = check_random_state(random_state)
    X = random.uniform(size=(n, 2))
    half = width / 2

    def offset(points: Floats) -> Floats:
        return np.asarray((points[:, 1] - points[:, 0]) / np.sqrt(2))

    y_clean = np.where(offset(X) > 0, 1, -1)
    inside = np.flatnonzero(np.abs(offset(X)) <= half)
    y = y_clean.copy()
    y[random.choice(inside, min(flips, len(inside)), replace=False)] *= -1
    area = 1 - (1 - half * np.sqrt(2)) ** 2
    rate = min(1.0, flips / (n * area))

    def eta(points: Floats) -> Floats:
        distance = offset(points)
        wrong = np.where(np.abs(distance) <= half, rate, 0.0)
        return np.where(distance > 0, 1 - wrong, wrong)

    return known_bunch(X, y, eta, lambda: area * min(rate, 1 - rate), y_clean=y_clean)


def make_banana(
    n_samples: int = 400, *, radius: float = 5.0, scale: float = 1.0, random_state: Any = None
) -> Bunch:
    """Two banana-shaped classes: circular arcs with normal noise, each reaching into the other.

    Parameters
    ----------
    n_samples : int
    radius : float
        Radius of both arcs.
    scale : float
        Standard deviation of the noise.
    random_state : int, RandomState or None

    Returns
    -------
    Bunch
        ``X``, ``y`` (-1, +1, equally likely), ``eta`` (the integral over the arc by
        Gauss-Legendre quadrature), ``bayes_rule``, ``bayes_error`` (by simulation).

    Notes
    -----
    This is the construction of the PRTools toolbox. The ``banana_ida`` benchmark looks alike
    but its generator was never published.

    References
    ----------
    .. [1] R. P. W. Duin et al., "PRTools4, a Matlab toolbox for pattern recognition", Delft
       University of Technology, 2007 (gendatb).

    Examples
    --------
    >>> from buttress.datasets import make_banana
    >>> make_banana(60, random_state=0).X.shape
    (60, 2)
    """
    n = check_size(n_samples)
    for name, value in (("radius", radius), ("scale", scale)):
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value!r}")
    random = check_random_state(random_state)
    nodes, weights = np.polynomial.legendre.leggauss(96)
    turn = 1.25 * np.pi * (nodes + 1) / 2

    def arc(angle: Floats, label: Any) -> Floats:
        """Points of the arc of a class at a share of its sweep, given as an angle."""
        positive = np.stack([np.sin(np.pi / 8 + angle), np.cos(np.pi / 8 + angle)], axis=-1)
        negative = np.stack([np.sin(0.375 * np.pi - angle), np.cos(0.375 * np.pi - angle)], axis=-1)
        shape = np.where((np.asarray(label) == 1)[..., None], positive, negative - 0.75)
        return np.asarray(radius * shape)

    def log_density(points: Floats, label: int) -> Floats:
        curve = arc(turn, np.full(len(turn), label))
        squares = np.stack([((points - node) ** 2).sum(axis=1) for node in curve], axis=1)
        return np.asarray(logsumexp(-squares / (2 * scale**2), b=weights, axis=1))

    def eta(points: Floats) -> Floats:
        return posterior_of(log_density(points, 1), log_density(points, -1))

    def draw(generator: Any, size: int, labels: Any = None) -> Floats:
        if labels is None:
            labels = np.where(np.arange(size) % 2, 1, -1)
        angle = 1.25 * np.pi * generator.uniform(size=size)
        return np.asarray(arc(angle, labels) + scale * generator.standard_normal((size, 2)))

    y = np.where(random.uniform(size=n) < 0.5, 1, -1)
    return known_bunch(
        draw(random, n, y), y, eta, lambda: simulated_bayes_error(draw, eta, points=20_000)
    )


def make_waveform(n_samples: int = 400, *, random_state: Any = None) -> Bunch:
    """Random combinations of two out of three triangular waves, with unit normal noise.

    Parameters
    ----------
    n_samples : int
    random_state : int, RandomState or None

    Returns
    -------
    Bunch
        ``X`` (21 features), ``y`` (+1: first and third wave, a third of the rows; -1: the
        other two pairs), ``eta`` (closed form), ``bayes_rule``, ``bayes_error`` (by
        simulation).

    Notes
    -----
    ``x = u h_a + (1 - u) h_b + N(0, I)`` with u uniform; the positive class is the one of
    the IDA benchmark.

    References
    ----------
    .. [1] L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and Regression
       Trees", Wadsworth, 1984, section 2.6.2.

    Examples
    --------
    >>> from buttress.datasets import make_waveform
    >>> make_waveform(10, random_state=0).X.shape
    (10, 21)
    """
    n = check_size(n_samples)
    random = check_random_state(random_state)
    position = np.arange(1, 22)
    waves = np.stack([np.maximum(6 - np.abs(position - peak), 0.0) for peak in (11, 15, 7)])
    pairs = np.array([[0, 1], [0, 2], [1, 2]])

    def log_density(points: Floats, pair: Any) -> Floats:
        """The normal density integrated over u in [0, 1]: again normal in u."""
        direction = waves[pair[0]] - waves[pair[1]]
        offset = points - waves[pair[1]]
        squared = direction @ direction
        centre = offset @ direction / squared
        residual = (offset**2).sum(axis=1) - squared * centre**2
        size = np.sqrt(squared)
        # log(Phi(b) - Phi(a)) from the tail where both are small
        low, high = -size * centre, size * (1 - centre)
        swap = low > 0
        low, high = np.where(swap, -high, low), np.where(swap, -low, high)
        log_mass = log_ndtr(high) + np.log1p(-np.exp(log_ndtr(low) - log_ndtr(high)))
        return np.asarray(log_mass - residual / 2 - np.log(size))

    def eta(points: Floats) -> Floats:
        others = np.logaddexp(log_density(points, pairs[0]), log_density(points, pairs[2]))
        return posterior_of(log_density(points, pairs[1]), others)

    def draw(generator: Any, size: int, pair: Any = None) -> Floats:
        if pair is None:
            pair = np.arange(size) % 3
        u = generator.uniform(size=(size, 1))
        clean = u * waves[pairs[pair, 0]] + (1 - u) * waves[pairs[pair, 1]]
        return np.asarray(clean + generator.standard_normal((size, 21)))

    pair = random.randint(0, 3, size=n)
    y = np.where(pair == 1, 1, -1)
    return known_bunch(
        draw(random, n, pair), y, eta, lambda: simulated_bayes_error(draw, eta, points=50_000)
    )
