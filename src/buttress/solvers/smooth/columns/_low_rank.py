"""The leading part of a Gram matrix, for models of many columns (`_curved_model`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from buttress._arrays import Array, IntArray

# Share of what the leading eigenvectors leave of the diagonal that enters the model. All of it
# would be right if the rest of the Gram matrix were diagonal.
_REST = 0.3
# Ranks of the models: as small as the penalty allows.
_RANKS = (16, 32, 48, 64, 96, 128, 192)
# Rank up to which products of pairs are kept; larger models are made one by one.
_PAIRED = 96
# Of the subspace iteration: passes, and the share of vectors beyond the rank.
_PASSES = 2
_BEYOND = 0.125


class LowRank(NamedTuple):
    """``K ~ B B' + diag(rest)``, from approximate leading eigenvectors; float32.

    Attributes
    ----------
    factor : array of shape (n, m)
        B, by falling eigenvalue.
    pairs : array of shape (t (t + 1) / 2, n)
        Products ``B_ij B_ik``, k <= j < t, row by row of a triangle.
    ranks, next_value : arrays of shape (levels,)
        How many columns of B a model of each level takes, and the first eigenvalue it leaves.
    rest : array of shape (levels, n)
        Share of the diagonal that B leaves.
    norm : float
        Largest norm of a row, the root of the largest diagonal entry of K.
    """

    factor: Array
    pairs: Array
    ranks: IntArray
    next_value: Array
    remainder: Array
    norm: float


def leading_part(matrix: Array, rank: int) -> LowRank:
    """Leading eigenvectors of a Gram matrix by subspace iteration from fixed random vectors.

    Parameters
    ----------
    matrix : array of shape (n, n), float32
        The Gram matrix.
    """
    n = len(matrix)
    diagonal = np.diagonal(matrix).astype(np.float64)
    size = min(n, rank + int(_BEYOND * rank))
    random = np.random.default_rng(0).standard_normal((size, n), dtype=np.float32)
    basis: Array = random @ matrix
    for _ in range(_PASSES - 1):
        basis = _spread(basis) @ matrix
    basis = _orthonormal(basis)
    values, rotation = np.linalg.eigh((basis @ (basis @ matrix).T).astype(np.float64))
    values, rotation = values[: -rank - 1 : -1], rotation[:, : -rank - 1 : -1]
    keep = values > 1e-6 * values[0]
    turn = (rotation[:, keep] * np.sqrt(values[keep])).astype(np.float32)
    factor = np.ascontiguousarray(basis.T @ turn)
    m = factor.shape[1]
    ranks = np.array([*(r for r in _RANKS if r < m), m])
    paired = min(m, _PAIRED)
    columns = factor[:, :paired].T.copy()
    pairs = np.empty((paired * (paired + 1) // 2, n), dtype=np.float32)
    for j in range(paired):
        at = j * (j + 1) // 2
        np.multiply(columns[: j + 1], columns[j], out=pairs[at : at + j + 1])
    squares = np.cumsum(factor.astype(np.float64) ** 2, axis=1)
    left = diagonal - squares[:, ranks - 1].T
    return LowRank(
        factor,
        pairs,
        ranks,
        np.array([*values[ranks[:-1]], values[m - 1]]),
        (_REST * np.maximum(left, 0.0)).astype(np.float32),
        float(np.sqrt(np.max(diagonal))),
    )


def _spread(rows: Array) -> Array:
    """The same span by rows that are far from dependent: nearly orthonormal, at small cost."""
    rows = rows.astype(np.float64)
    products = rows @ rows.T
    products[np.diag_indices(len(rows))] += 1e-12 * np.trace(products)
    factor = np.linalg.cholesky(products)
    spread = solve_triangular(factor, rows, lower=True, check_finite=False)
    return np.asarray(spread, dtype=np.float32)


def _orthonormal(rows: Array) -> Array:
    """An orthonormal basis of the span of `rows`, as far as float32 tells them apart."""
    rows = rows.astype(np.float64)
    values, rotation = np.linalg.eigh(rows @ rows.T)
    keep = values > 1e-12 * values[-1]
    orthonormal = (rotation[:, keep] / np.sqrt(values[keep])).T @ rows
    return np.asarray(orthonormal, dtype=np.float32)
