"""Gaussian similarities of dense rows, tile by tile.

A tile of products of rows becomes a tile of similarities while it is in the cache: the matrix
passes through memory once. Of a Gram matrix one half is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress._compile import FAST, compiled
from buttress._threads import in_parallel, one_blas_thread
from buttress.kernels.exponential import exp32, exp64

# Rows and columns of a tile of a Gram matrix, and entries of a tile of any other.
_TILE = 256
_TILE_ENTRIES = 1 << 17
# Entries of a tile that is only summed: half a megabyte, so that it stays in the cache.
_SUMMED_ENTRIES = 1 << 16
# From this many entries on, several threads share the tiles.
_SHARED_ENTRIES = 1 << 20


def rbf_gram(X: Array, gamma: float) -> Array:
    """``exp(-gamma ||x_i - x_j||^2)`` for all pairs of rows; exactly symmetric, diagonal 1.

    Parameters
    ----------
    X : array of shape (n, p), float64 or float32
        Centred rows: a common offset would cost digits.
    gamma : float

    Examples
    --------
    >>> rbf_gram(np.array([[0.0], [1.0]]), 0.0).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    n = len(X)
    norms = _squared_norms(X)
    K = np.empty((n, n), dtype=X.dtype)
    similarities = _similarities(X.dtype)
    scale = X.dtype.type(gamma)

    def work(tile: tuple[int, int]) -> None:
        a, c = tile
        left, right = slice(a, a + _TILE), slice(c, c + _TILE)
        T = X[left] @ X[right].T
        similarities(T, norms[left], norms[right], scale)
        if a == c:
            np.fill_diagonal(T, 1.0)
        _place(T, K, a, c)

    tiles = [(a, c) for a in range(0, n, _TILE) for c in range(0, a + 1, _TILE)]
    _run(work, tiles, K.size)
    return K


def rbf_matrix(X: Array, Z: Array, gamma: float) -> Array:
    """``exp(-gamma ||x_i - z_j||^2)`` for the rows of `X` and those of `Z`, of one dtype.

    Examples
    --------
    >>> rbf_matrix(np.zeros((1, 1)), np.ones((2, 1)), 0.0).tolist()
    [[1.0, 1.0]]
    """
    K = np.empty((len(X), len(Z)), dtype=X.dtype)
    norms = _squared_norms(X)
    others = _squared_norms(Z)
    similarities = _similarities(X.dtype)
    scale = X.dtype.type(gamma)
    step = max(1, _TILE_ENTRIES // max(1, len(Z)))

    def work(start: int) -> None:
        rows = slice(start, start + step)
        np.matmul(X[rows], Z.T, out=K[rows])
        similarities(K[rows], norms[rows], others, scale)

    _run(work, range(0, len(X), step), K.size)
    return K


def rbf_sums(X: Array, Z: Array, coefs: Array, gamma: float) -> Array:
    """``rbf_matrix(X, Z, gamma) @ coefs.T`` without the matrix: a tile is summed in the cache.

    Parameters
    ----------
    X, Z : arrays of shapes (n, p) and (m, p), of one dtype
    coefs : array of shape (k, m)
    gamma : float

    Examples
    --------
    >>> rbf_sums(np.zeros((1, 1)), np.ones((2, 1)), np.array([[1.0, 2.0]]), 0.0).tolist()
    [[3.0]]
    """
    out = np.empty((len(X), len(coefs)), dtype=np.result_type(X, coefs))
    norms, others = _squared_norms(X), _squared_norms(Z)
    similarities = _similarities(X.dtype)
    scale = X.dtype.type(gamma)
    step = max(1, _SUMMED_ENTRIES // max(1, len(Z)))

    def work(start: int) -> None:
        rows = slice(start, start + step)
        T = X[rows] @ Z.T
        similarities(T, norms[rows], others, scale)
        np.matmul(T, coefs.T, out=out[rows])

    _run(work, range(0, len(X), step), len(X) * len(Z))
    return out


def _run(work: Callable[[Any], None], tasks: Sequence[Any], entries: int) -> None:
    if entries >= _SHARED_ENTRIES:
        in_parallel(work, tasks)
        return
    with one_blas_thread():
        for task in tasks:
            work(task)


def _squared_norms(X: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", X, X))


def _similarities(dtype: Any) -> Any:
    return _similarities_64 if dtype == np.float64 else _similarities_32


@compiled(fastmath=FAST)
def _similarities_64(T: Array, left: Array, right: Array, gamma: float) -> None:
    """Replace products of rows by similarities, given the rows' squared norms."""
    for i in range(T.shape[0]):
        norm = left[i]
        for j in range(T.shape[1]):
            distance = norm + right[j] - 2.0 * T[i, j]
            T[i, j] = exp64(-gamma * (0.0 if distance < 0.0 else distance))


@compiled(fastmath=FAST)
def _similarities_32(T: Array, left: Array, right: Array, gamma: Any) -> None:
    """The float32 version of `_similarities_64`."""
    nothing = np.float32(0.0)
    for i in range(T.shape[0]):
        norm = left[i]
        for j in range(T.shape[1]):
            distance = norm + right[j] - np.float32(2.0) * T[i, j]
            T[i, j] = exp32(-gamma * (nothing if distance < nothing else distance))


@compiled()
def _place(T: Array, K: Array, a: int, c: int) -> None:
    """Write a tile and its mirror image, the latter eight rows of the matrix at a time."""
    m, k = T.shape
    for i in range(m):
        for j in range(k):
            K[a + i, c + j] = T[i, j]
    for j0 in range(0, k, 8):
        for i0 in range(0, m, 8):
            last_j = j0 + 8 if j0 + 8 < k else k
            last_i = i0 + 8 if i0 + 8 < m else m
            for j in range(j0, last_j):
                for i in range(i0, last_i):
                    K[c + j, a + i] = T[i, j]
