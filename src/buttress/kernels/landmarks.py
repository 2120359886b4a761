"""Which rows stand for all of them: landmarks of a Nyström map.

Every choice is made from row numbers and a seed. Blocks, chunks and files play no part, so
the same data give the same landmarks wherever they are stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from buttress._arrays import Array, IntArray
from buttress.kernels.gram import Kernel

LANDMARK_RULES = ("uniform", "kmeans++", "leverage")

# Candidates looked at by the rules that compare rows: this many per landmark, within limits.
_CANDIDATES_PER_LANDMARK = 10
_FEWEST_CANDIDATES = 2_000
_MOST_CANDIDATES = 20_000


def candidate_rows(rule: str, n_rows: int, n_landmarks: int, seed: int) -> IntArray:
    """Numbers of the rows that `choose_landmarks` will look at, in increasing order.

    Parameters
    ----------
    rule : {"uniform", "kmeans++", "leverage"}
    n_rows : int
        Rows in all.
    n_landmarks : int
        Landmarks wanted.
    seed : int

    Examples
    --------
    >>> candidate_rows("uniform", 5, 10, seed=0).tolist()
    [0, 1, 2, 3, 4]
    """
    wanted = n_landmarks
    if rule != "uniform":
        per_landmark = _CANDIDATES_PER_LANDMARK * n_landmarks
        wanted = max(n_landmarks, min(max(per_landmark, _FEWEST_CANDIDATES), _MOST_CANDIDATES))
    if wanted >= n_rows:
        return np.arange(n_rows)
    # Floyd's method inside `choice`: memory for the numbers drawn, not for all rows.
    drawn = np.random.default_rng(seed).choice(n_rows, size=wanted, replace=False, shuffle=False)
    return np.sort(drawn)


def choose_landmarks(
    rule: str,
    kernel: Kernel,
    X: Any,
    n_landmarks: int,
    seed: int,
    weight: Array | None = None,
) -> IntArray:
    """Choose landmarks among candidate rows.

    Parameters
    ----------
    rule : {"uniform", "kmeans++", "leverage"}
        "uniform" takes the candidates as they come. "kmeans++" draws one after the other,
        with probability proportional to the squared distance, in the kernel's feature space,
        to the nearest landmark so far. "leverage" draws by approximate ridge leverage scores.
    kernel : Kernel
    X : array or sparse matrix of shape (n_candidates, p)
        The rows of `candidate_rows`.
    n_landmarks : int
    seed : int
    weight : array of shape (n_candidates,), optional
        Row weights, used by the last two rules.

    Returns
    -------
    array of int
        Positions in `X`, increasing; fewer than `n_landmarks` when the rows are fewer, or
        when "kmeans++" finds that all others coincide with a landmark.

    Notes
    -----
    With c candidates and m landmarks, "kmeans++" needs m kernel columns (c m p operations)
    and "leverage" one Nyström map of m/2 uniform landmarks (c m p + c m² operations).

    References
    ----------
    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.
    C. Musco and C. Musco, "Recursive sampling for the Nyström method", NeurIPS 2017.
    """
    n = X.shape[0]
    if n_landmarks >= n:
        return np.arange(n)
    rng = np.random.default_rng((seed, 1))
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    if rule == "uniform":
        return np.sort(rng.choice(n, size=n_landmarks, replace=False))
    if rule == "kmeans++":
        return _kmeans_plus_plus(kernel, X, n_landmarks, rng, w)
    if rule == "leverage":
        return _by_leverage(kernel, X, n_landmarks, rng, w)
    raise ValueError(
        f"landmarks={rule!r} is not accepted: expected one of "
        f"{', '.join(repr(name) for name in LANDMARK_RULES)}."
    )


def _kmeans_plus_plus(
    kernel: Kernel, X: Any, n_landmarks: int, rng: np.random.Generator, w: Array
) -> IntArray:
    diagonal = np.asarray(kernel.diagonal(X), dtype=np.float64)
    chosen = [int(rng.choice(len(w), p=w / w.sum()))]
    nearest = np.full(len(w), np.inf)
    while len(chosen) < n_landmarks:
        last = chosen[-1]
        similarity = np.asarray(kernel(X, X[last : last + 1]), dtype=np.float64).ravel()
        distance = np.maximum(diagonal + diagonal[last] - 2.0 * similarity, 0.0)
        # Below this a distance is rounding: the row is a copy of a landmark.
        distance[distance <= 1e-12 * diagonal[last]] = 0.0
        np.minimum(nearest, distance, out=nearest)
        nearest[last] = 0.0
        reached = np.cumsum(w * nearest)
        if reached[-1] <= 0:
            break
        chosen.append(int(np.searchsorted(reached, rng.random() * reached[-1], side="right")))
    return np.sort(np.array(chosen))


def _by_leverage(
    kernel: Kernel, X: Any, n_landmarks: int, rng: np.random.Generator, w: Array
) -> IntArray:
    scores = ridge_leverage_scores(kernel, X, max(1, n_landmarks // 2), rng)
    clocks = rng.exponential(size=len(w))
    share = w * scores
    drawn = share > 0
    clocks[drawn] /= share[drawn]
    clocks[~drawn] = np.inf
    # The earliest exponential clocks are a sample without replacement, by these weights.
    earliest = np.argpartition(clocks, n_landmarks - 1)[:n_landmarks]
    return np.sort(earliest[drawn[earliest]])


def ridge_leverage_scores(kernel: Kernel, X: Any, n_pilot: int, rng: np.random.Generator) -> Array:
    """Approximate ``diag(K (K + lam I)^-1)`` from a pilot Nyström map.

    The ridge `lam` is the mean part of ``k(x, x)`` that the pilot leaves unexplained, so the
    scores single out the rows that uniform landmarks describe badly.

    Examples
    --------
    >>> from buttress.kernels import make_kernel
    >>> X = np.array([[0.0], [0.0], [0.0], [9.0]])
    >>> scores = ridge_leverage_scores(make_kernel("rbf", gamma=1.0), X, 4,
    ...                                np.random.default_rng(0))
    >>> bool(scores[3] > scores[0])
    True
    """
    from buttress.kernels.approximate import inverse_root

    n = X.shape[0]
    pilot = np.sort(rng.choice(n, size=min(n_pilot, n), replace=False))
    landmarks = X[pilot]
    root = inverse_root(kernel(landmarks).astype(np.float64))
    features = np.asarray(kernel(X, landmarks), dtype=np.float64) @ root
    diagonal = np.asarray(kernel.diagonal(X), dtype=np.float64)
    unexplained = np.maximum(diagonal - np.einsum("ij,ij->i", features, features), 0.0)
    # A floor, so that a pilot that explains everything still gives finite scores.
    ridge = max(float(unexplained.mean()), 1e-6 * float(diagonal.mean()))
    covariance = features.T @ features
    covariance[np.diag_indices_from(covariance)] += ridge
    factor = linalg.cholesky(covariance, lower=True)
    whitened = linalg.solve_triangular(factor, features.T, lower=True)
    scores = np.einsum("ij,ij->j", whitened, whitened) + unexplained / ridge
    return np.asarray(np.minimum(scores, 1.0))
