"""Normal and normal-mixture problems with a known Bayes rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from scipy.special import logsumexp
from sklearn.utils import Bunch, check_random_state

from buttress.datasets._known import (
    Floats,
    check_size,
    known_bunch,
    posterior_of,
    simulated_bayes_error,
)

# K centres per class, p features, variance: the three examples of the leaky hockey stick
# paper. Example 3 with the corrections p = 30 and sigma^2 = 10 (as printed, its Bayes error
# would be zero).
_MIXTURES = {1: (3, 2, 1 / 10), 2: (10, 2, 1 / 50), 3: (3, 30, 10.0)}


def make_mixture(
    n_samples: int = 200,
    *,
    example: int = 1,
    centers: tuple[Any, Any] | None = None,
    random_state: Any = None,
) -> Bunch:
    """Two classes, each a mixture of K normal distributions, a third of them on the wrong side.

    Parameters
    ----------
    n_samples : int
    example : {1, 2, 3}
        The paper's three settings: (K, p, variance) = (3, 2, 1/10), (10, 2, 1/50),
        (3, 30, 10). The third is printed as p = 10, variance 1/10, which would make the
        Bayes error zero instead of the printed 13.5 %.
    centers : pair of arrays of shape (K, p), optional
        Centres of the positive and of the negative class. Drawn from ``random_state`` when
        not given: ``N(m, I)`` for the first ``floor(2 K / 3)``, ``N(-m, I)`` for the others,
        with ``m = (1, ..., 1, -1, ..., -1)`` for the positive class and ``-m`` for the other.
    random_state : int, RandomState or None

    Returns
    -------
    Bunch
        ``X``, ``y`` (-1, +1, equally likely), ``eta``, ``bayes_rule``, ``bayes_error`` (by
        simulation, standard error below 0.0005), ``centers``.

    References
    ----------
    .. [1] O. Kwon, H. Zou, "Leaky hockey stick loss: the first negatively divergent
       margin-based loss function for classification", JMLR 24, 2023, section 6.1.

    Examples
    --------
    >>> from buttress.datasets import make_mixture
    >>> sample = make_mixture(50, example=1, random_state=0)
    >>> sample.X.shape, sorted(set(sample.y.tolist()))
    ((50, 2), [-1, 1])
    """
    n = check_size(n_samples)
    if example not in _MIXTURES:
        raise ValueError(f"example must be one of {sorted(_MIXTURES)}, got {example!r}")
    count, width, variance = _MIXTURES[example]
    random = check_random_state(random_state)
    if centers is None:
        mean = np.where(np.arange(width) < width / 2, 1.0, -1.0)
        side = np.where(np.arange(1, count + 1) <= 2 * count / 3, 1.0, -1.0)[:, None]
        positive = side * mean + random.standard_normal((count, width))
        negative = -side * mean + random.standard_normal((count, width))
    else:
        positive, negative = (np.asarray(block, dtype=float) for block in centers)
        for block in (positive, negative):
            if block.ndim != 2 or block.shape[1] != width:
                raise ValueError(f"centers must be two arrays of shape (K, {width})")

    def log_density(points: Floats, block: Floats) -> Floats:
        # Squared distances to few centres: by differences, exact for close points too.
        squares = np.stack([((points - center) ** 2).sum(axis=1) for center in block], axis=1)
        return np.asarray(logsumexp(-squares / (2 * variance), axis=1) - np.log(len(block)))

    def eta(points: Floats) -> Floats:
        return posterior_of(log_density(points, positive), log_density(points, negative))

    def draw(generator: Any, size: int, labels: Any = None) -> Floats:
        if labels is None:
            labels = np.where(np.arange(size) % 2, 1, -1)
        unit = generator.uniform(size=size)
        centre = np.where(
            (labels == 1)[:, None],
            positive[(unit * len(positive)).astype(int)],
            negative[(unit * len(negative)).astype(int)],
        )
        noise = generator.standard_normal((size, width))
        return np.asarray(centre + np.sqrt(variance) * noise)

    y = np.where(random.uniform(size=n) < 0.5, 1, -1)
    return known_bunch(
        draw(random, n, y),
        y,
        eta,
        lambda: simulated_bayes_error(draw, eta),
        centers=(positive, negative),
    )


def make_skewed_gaussians(
    n_samples: int = 400, *, positive_rate: float = 0.5, random_state: Any = None
) -> Bunch:
    """Two normal classes in the plane, one of them stretched and turned by 60 degrees.

    Parameters
    ----------
    n_samples : int
    positive_rate : float in (0, 1)
        P(y = +1). The positives are N(0, I), the negatives have mean (1, 1) and covariance
        ``R' diag(0.25, 2.25) R`` with R the rotation by pi/3.
    random_state : int, RandomState or None

    Returns
    -------
    Bunch
        ``X``, ``y`` (-1, +1), ``eta``, ``bayes_rule``, ``bayes_error`` (by quadrature; 0.147
        at a rate of 0.2, 0.241 at 0.5).

    References
    ----------
    .. [1] T. Kanamori, A. Takeda, T. Suzuki, "Conjugate relation between loss functions and
       uncertainty sets in classification problems", JMLR 14, 2013, section 7.1.

    Examples
    --------
    >>> from buttress.datasets import make_skewed_gaussians
    >>> round(make_skewed_gaussians(10, positive_rate=0.2, random_state=0).bayes_error, 3)
    0.147
    """
    n = check_size(n_samples)
    if not 0 < positive_rate < 1:
        raise ValueError(f"positive_rate must be in (0, 1), got {positive_rate!r}")
    random = check_random_state(random_state)
    cosine, sine = np.cos(np.pi / 3), np.sin(np.pi / 3)
    rotation = np.array([[cosine, -sine], [sine, cosine]])
    scale = np.array([0.5, 1.5])
    mean = np.ones(2)

    def eta(points: Floats) -> Floats:
        whitened = (points - mean) @ rotation.T / scale
        log_negative = -(whitened**2).sum(axis=1) / 2 - np.log(scale.prod())
        return posterior_of(
            np.log(positive_rate) - (points**2).sum(axis=1) / 2,
            np.log1p(-positive_rate) + log_negative,
        )

    y = np.where(random.uniform(size=n) < positive_rate, 1, -1)
    normal = random.standard_normal((n, 2))
    X = np.where((y == 1)[:, None], normal, mean + normal * scale @ rotation)
    return known_bunch(X, y, eta, lambda: _planar_error(eta, positive_rate))


def _planar_error(eta: Any, positive_rate: float) -> float:
    """Integral of min(eta, 1 - eta) p(x), by a fine grid: p is N(0, I) weighted by its share."""
    step = 0.02
    axis = np.arange(-8, 8 + step, step)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    posterior = eta(grid)
    positive = positive_rate * np.exp(-(grid**2).sum(axis=1) / 2) / (2 * np.pi)
    # joint density of the less probable class, written with the positive one
    odds = np.divide(1 - posterior, posterior, out=np.zeros_like(posterior), where=posterior > 0)
    return float((positive * np.minimum(1.0, odds)).sum() * step**2)


def make_twonorm(n_samples: int = 400, *, n_features: int = 20, random_state: Any = None) -> Bunch:
    """Two unit normal classes with means a(1, ..., 1) and -a(1, ..., 1), a = 2 / sqrt(p).

    Parameters
    ----------
    n_samples : int
    n_features : int
    random_state : int, RandomState or None

    Returns
    -------
    Bunch
        ``X``, ``y`` (-1, +1, equally likely), ``eta``, ``bayes_rule``, ``bayes_error``
        (exact, 0.02275 for every number of features).

    References
    ----------
    .. [1] L. Breiman, "Bias, variance, and arcing classifiers", report 460, Statistics
       Department, University of California, Berkeley, 1996.

    Examples
    --------
    >>> from buttress.datasets import make_twonorm
    >>> round(make_twonorm(10, random_state=0).bayes_error, 5)
    0.02275
    """
    n, p = check_size(n_samples), check_size(n_features, "n_features")
    random = check_random_state(random_state)
    a = 2 / np.sqrt(p)
    y = np.where(random.uniform(size=n) < 0.5, 1, -1)
    X = y[:, None] * a + random.standard_normal((n, p))

    def eta(points: Floats) -> Floats:
        score = a * points.sum(axis=1)
        return posterior_of(score, -score)

    return known_bunch(X, y, eta, lambda: float(stats.norm.cdf(-2.0)))


def make_ringnorm(n_samples: int = 400, *, n_features: int = 20, random_state: Any = None) -> Bunch:
    """A wide normal class, N(0, 4 I), around a narrow one, N(a (1, ..., 1), I), a = 1 / sqrt(p).

    Parameters
    ----------
    n_samples : int
    n_features : int
    random_state : int, RandomState or None

    Returns
    -------
    Bunch
        ``X``, ``y`` (+1 wide, -1 narrow, equally likely), ``eta``, ``bayes_rule``,
        ``bayes_error`` (exact, from non-central chi-squared distributions).

    References
    ----------
    .. [1] L. Breiman, "Bias, variance, and arcing classifiers", report 460, Statistics
       Department, University of California, Berkeley, 1996.

    Examples
    --------
    >>> from buttress.datasets import make_ringnorm
    >>> make_ringnorm(10, random_state=0).X.shape
    (10, 20)
    """
    n, p = check_size(n_samples), check_size(n_features, "n_features")
    random = check_random_state(random_state)
    a = 1 / np.sqrt(p)
    y = np.where(random.uniform(size=n) < 0.5, 1, -1)
    normal = random.standard_normal((n, p))
    X = np.where((y == 1)[:, None], 2 * normal, a + normal)

    def eta(points: Floats) -> Floats:
        log_wide = -(points**2).sum(axis=1) / 8 - p * np.log(2)
        return posterior_of(log_wide, -((points - a) ** 2).sum(axis=1) / 2)

    # The narrow class wins inside the ball of radius r around 4a/3: the difference of the
    # two exponents is -(3/8) ||x - 4a/3||^2 + 1/6 + p log 2 (with ||a|| = 1).
    squared_radius = 8 / 3 * (1 / 6 + p * np.log(2))
    narrow_outside = stats.ncx2.sf(squared_radius, p, 1 / 9)
    wide_inside = stats.ncx2.cdf(squared_radius / 4, p, 4 / 9)
    return known_bunch(X, y, eta, lambda: 0.5 * (narrow_outside + wide_inside))
