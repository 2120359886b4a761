"""Solutions of many problems at many penalties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray

# Of paths, those that have all problems in one array.
_ARRAYS = ("intercept", "interval", "iterations", "converged")


@dataclass(frozen=True, eq=False)
class Paths:
    """Solutions of several problems at L penalties.

    Attributes
    ----------
    intercept : array of shape (problems, L)
    interval : array of shape (problems, L, 2)
        Where the intercept may lie; both ends equal when it is unique.
    coefs : list of arrays of shape (L, m)
        Coefficients of f in the geometry's coordinates, single precision where that is enough.
    iterations : array of shape (problems, L)
        Zero on the scaling tail.
    converged : array of shape (problems, L)
    method : str
        "newton", "batched" or "mm".
    matrix : array of shape (n, m)
        The geometry's: scores are its products with the coefficients.
    given_scores : array of shape (problems, L, n) or None
        f at all rows, held-out ones included, without the intercept, where it is known.
    refine, solve_near : callable or None
        See `Refine` and `SolveNear`.
    """

    intercept: Array
    interval: Array
    coefs: list[Array]
    iterations: IntArray
    converged: BoolArray
    method: str
    matrix: Array
    given_scores: Array | None = None
    refine: Refine | None = None
    solve_near: SolveNear | None = None

    @property
    def scores(self) -> Array:
        """f at all rows, shape (problems, L, n)."""
        return np.stack([self.scores_at(problem) for problem in range(len(self.intercept))])

    def scores_at(
        self, problem: int, rows: Any = slice(None), penalties: slice = slice(None)
    ) -> Array:
        """f of one problem at some of the rows, without the intercept, shape (L, rows)."""
        if self.given_scores is not None:
            return np.asarray(self.given_scores[problem][penalties, rows])
        return np.asarray(self.coefs[problem][penalties] @ self.matrix[rows].T)

    def coefficients(self, problem: int, penalties: slice = slice(None)) -> Array:
        """Coefficients of one problem, shape (L, m), float64."""
        return np.asarray(self.coefs[problem][penalties], dtype=np.float64)

    @classmethod
    def joined(cls, pieces: Sequence[Paths]) -> Paths:
        """All problems of several paths of one method in the same geometry."""
        whole: dict[str, Any] = {
            name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in _ARRAYS
        }
        whole["coefs"] = [coef for piece in pieces for coef in piece.coefs]
        scores = [piece.given_scores for piece in pieces if piece.given_scores is not None]
        given = np.concatenate(scores) if scores else None
        method, matrix = pieces[0].method, pieces[0].matrix
        return cls(**whole, method=method, matrix=matrix, given_scores=given)

    @classmethod
    def chained(cls, pieces: Sequence[Paths]) -> Paths:
        """All penalties of several paths of the same problems, without scores."""
        if len(pieces) == 1:
            return pieces[0]
        whole: dict[str, Any] = {
            name: np.concatenate([getattr(piece, name) for piece in pieces], axis=1)
            for name in _ARRAYS
        }
        of_problems = zip(*(piece.coefs for piece in pieces), strict=True)
        coefs = [np.concatenate(coefs) for coefs in of_problems]
        return cls(**whole, coefs=coefs, method=pieces[0].method, matrix=pieces[0].matrix)

    def at(self, penalties: IntArray) -> Paths:
        """The solutions at some of the penalties, without scores and refinement."""
        some: dict[str, Any] = {name: getattr(self, name)[:, penalties] for name in _ARRAYS}
        some["coefs"] = [coef[penalties] for coef in self.coefs]
        return Paths(**some, method=self.method, matrix=self.matrix)

    def without_scores(self) -> Paths:
        """The same without scores of rows, and what would refine them."""
        return replace(self, given_scores=None, refine=None)


# From problems, the index of a penalty and a tolerance to these solutions in double precision;
# None for those where it was not reached.
Refine = Callable[[IntArray, int, float], "list[Paths | None]"]
# From labels and weights of other problems on the same rows, the index of a penalty, and
# coefficients and intercepts near their solutions, to paths of that penalty.
SolveNear = Callable[[Array, Array, int, "tuple[Array, Array]"], "Paths"]
