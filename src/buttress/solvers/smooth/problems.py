"""All problems of a fit, as the solvers of the smooth path are given them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers.smooth.geometry import ScaledGeometry

NEWTON_ITERATIONS = 100


@dataclass(frozen=True, eq=False)
class Problems:
    """Binary problems on the same rows, each at the same penalties.

    Attributes
    ----------
    geometry : ScaledGeometry
        The rows.
    Y, omega : arrays of shape (problems, n)
        Labels ±1, and weights that sum to one in every problem; a weight of zero holds the row
        out of the problem, and it is predicted all the same.
    lambdas : array of shape (L,)
        Penalties on the geometry's scale, decreasing.
    loss : LeakyHockeyStick or any smooth loss
        One that cannot be compiled is left to Newton's method in NumPy.
    answers : array of shape (problems,)
        Problems of which only the answer at the rows without weight is needed have a number: of
        its own where a sign answers, one for all those of which the largest score does. The
        others have -1. Columns in kernel form stop when answers are settled, Newton's method
        when signs are.
    weight : array of shape (n,), optional
        Row weights of which every row of `omega` is a multiple or zero.
    fit_intercept : bool
    tol : float
        Newton: on the largest error of a row's slope against its coefficient.
    max_iter : int
        Newton's steps a penalty.
    start : tuple of arrays of shapes (problems, n) and (problems,), optional
        Coefficients and intercepts near the solutions, where there is one penalty.
    """

    geometry: ScaledGeometry
    Y: Array
    omega: Array
    lambdas: Array
    loss: Any
    answers: IntArray
    weight: Array | None = None
    fit_intercept: bool = True
    tol: float = 1e-8
    max_iter: int = NEWTON_ITERATIONS
    start: tuple[Array, Array] | None = None

    @classmethod
    def at(
        cls,
        geometry: ScaledGeometry,
        Y: Array,
        omega: Array,
        penalties: Array,
        loss: Any,
        *,
        answers: IntArray | None = None,
        **rules: Any,
    ) -> Problems:
        """Problems at `penalties` on the original scale; `rules` are attributes with defaults."""
        lambdas = np.asarray(penalties, dtype=np.float64) / geometry.scale
        if answers is None:
            answers = np.full(len(Y), -1)
        return cls(geometry, Y, omega, lambdas, loss, answers, **rules)

    @cached_property
    def _companions(self) -> IntArray:
        """How many problems answer together with each."""
        _, position, size = np.unique(self.answers, return_inverse=True, return_counts=True)
        return np.asarray(size[position])

    @property
    def signs_only(self) -> BoolArray:
        """Problems of which only the signs of held-out scores are needed."""
        return np.asarray((self.answers >= 0) & (self._companions == 1))

    @property
    def rivals(self) -> list[IntArray]:
        """Sets of problems of which it is needed which has the largest held-out score."""
        together = (self.answers >= 0) & (self._companions > 1)
        return [np.flatnonzero(self.answers == each) for each in np.unique(self.answers[together])]
