"""What a sum of hinges is worth at a given model: objective, duality gap, optimality violation.

A fitted model is what its stored numbers say, perhaps rounded to single precision. A solution
keeps the dual point of its last convex step, so that any model can be judged against it: the
dual value is a lower bound of the step, whoever computed the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray
from buttress.solvers.hinge._terms import HingeTerms
from buttress.solvers.hinge.smo import BoxSolution

# How near its bound, relative to its box, a dual variable is on it.
_AT_BOUND = 1e-10


class Worth(NamedTuple):
    """The values of a model.

    Attributes
    ----------
    objective : float
        The true objective, clipped terms included.
    gap : float
        The convex step's objective above the dual value: what it can still lose.
    violation : float
        The largest violation of the step's optimality conditions, in units of the scores.
    """

    objective: float
    gap: float
    violation: float


@dataclass(frozen=True, eq=False)
class StepCertificate:
    """A dual point of a convex step, ready to judge models of the same rows.

    Attributes
    ----------
    terms : HingeTerms
    pattern : array of bool
        Terms replaced by their tangent on the flat part.
    a : array of shape (m,)
        Dual variables.
    c : array of shape (n,)
        Their sums per row.
    square : float
        ``c'Kc``.
    """

    terms: HingeTerms
    pattern: BoolArray
    a: Array
    c: Array
    square: float

    def at(self, g: Array, threshold: Array, squared_norm: float) -> Worth:
        """Judge the function with row values `g` and this norm at the thresholds."""
        short, room = self._short(g, threshold)
        loose = room > _AT_BOUND * self.terms.weight
        return Worth(
            0.5 * squared_norm + self.terms.loss(g, threshold),
            self._gap(short, room, g, squared_norm),
            float(np.abs(short[loose]).max(initial=0.0)),
        )

    def gap(self, g: Array, threshold: Array, squared_norm: float) -> float:
        """The gap of `at` alone."""
        return self._gap(*self._short(g, threshold), g, squared_norm)

    def _short(self, g: Array, threshold: Array) -> tuple[Array, Array]:
        """What every term's score is short of its margin, and its dual variable of the bound that
        belongs to that."""
        terms = self.terms
        short = terms.margin - terms.margins(g, threshold)
        above = self.a + np.where(self.pattern, terms.weight, 0.0)
        return short, np.where(short > 0, terms.weight - above, above)

    def _gap(self, short: Array, room: Array, g: Array, squared_norm: float) -> float:
        """The sum of the complementarity of margins and dual variables and
        ``1/2 ||f - sum_i c_i k(x_i, .)||^2``, whose three parts are known."""
        apart = 0.5 * (squared_norm + self.square) - float(self.c @ g)
        return max(float(np.abs(short) @ room) + apart, 0.0)


def certificate_of(terms: HingeTerms, pattern: BoolArray, step: BoxSolution) -> StepCertificate:
    """The certificate of a convex step with tangents at `pattern`."""
    return StepCertificate(terms, pattern, step.a, step.c, step.square)
