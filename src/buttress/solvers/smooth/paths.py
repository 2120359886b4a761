"""Solutions of many problems at many penalties, and threads to find them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._threads import in_threads as in_threads
from buttress.solvers.smooth.geometry import Eigenbasis


@dataclass(frozen=True, eq=False)
class Paths:
    """Solutions of q problems at L penalties.

    Attributes
    ----------
    intercept : array of shape (q, L)
    interval : array of shape (q, L, 2)
        Where the intercept may lie; both ends equal when it is unique.
    given_scores : array of shape (q, L, n) or None
        f at all rows, held-out ones included, without the intercept.
    weights : array of shape (q, L, m)
        Coefficients of f: in the geometry's coordinates, or in those of `basis`.
    basis : Eigenbasis or None
    iterations : array of shape (q, L)
        Zero on the scaling tail.
    converged : array of shape (q, L)
    method : str
        "newton" or "batched".
    features : array of shape (n, m) or None
        The rows to which `weights` belong, from which scores that are not given follow.
    refine : callable or None
        From a problem, the index of a penalty and a tolerance to that solution in double
        precision, or to None where it was not reached.
    """

    intercept: Array
    interval: Array
    given_scores: Array | None
    weights: Array
    basis: Eigenbasis | None
    iterations: IntArray
    converged: BoolArray
    method: str
    features: Array | None = None
    refine: Callable[[int, int, float], Paths | None] | None = None

    @property
    def scores(self) -> Array:
        """f at all rows, shape (q, L, n)."""
        return np.stack([self.scores_at(q) for q in range(len(self.intercept))])

    def scores_at(self, q: int, rows: Any = slice(None), part: slice = slice(None)) -> Array:
        """f of problem `q` at some of the rows, without the intercept, shape (L, rows).

        `part` are the penalties that are wanted.
        """
        if self.given_scores is not None:
            return np.asarray(self.given_scores[q][part, rows])
        assert self.features is not None
        return np.asarray(self.weights[q][part] @ self.features[rows].T)

    def coefficients(self, q: int, part: slice = slice(None)) -> Array:
        """Coefficients of problem `q` in the geometry's coordinates, shape (L, m), float64."""
        weights = np.asarray(self.weights[q][part], dtype=np.float64)
        return weights if self.basis is None else self.basis.coefficients(weights)

    def last(self, first: int) -> Paths:
        """The problems from `first` on."""
        problems, refine = slice(first, None), self.refine
        return Paths(
            self.intercept[problems],
            self.interval[problems],
            None if self.given_scores is None else self.given_scores[problems],
            self.weights[problems],
            self.basis,
            self.iterations[problems],
            self.converged[problems],
            self.method,
            self.features,
            None if refine is None else lambda q, index, tol: refine(first + q, index, tol),
        )


def in_pool(pool: ThreadPoolExecutor, function: Callable[[int], Any], count: int) -> list[Any]:
    """``[function(k) for k in range(count)]``, the first in this thread, the others in `pool`.

    Starting a thread takes longer than many a wave of columns.
    """
    others = [pool.submit(function, k) for k in range(1, count)]
    return [function(0), *(other.result() for other in others)]
