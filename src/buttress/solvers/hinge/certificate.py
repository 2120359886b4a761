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
from buttress.solvers.hinge.hinges import HingePoint, HingeTerms

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
class Certificate:
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
        """Judge the function with row values `g` and this norm at the thresholds.

        The gap is the sum of the complementarity of margins and dual variables and
        ``1/2 ||f - sum_i c_i k(x_i, .)||^2``, whose three parts are known.
        """
        terms = self.terms
        t = terms.margins(g, threshold)
        beta = np.where(self.pattern, terms.weight, 0.0)
        above, below = self.a + beta, terms.weight - beta - self.a
        short = terms.margin - t
        slack = np.where(short > 0, short * below, -short * above)
        apart = 0.5 * (squared_norm + self.square) - float(self.c @ g)
        room = np.where(short > 0, below, above)
        loose = room > _AT_BOUND * terms.weight
        objective = 0.5 * squared_norm + terms.loss(g, threshold)
        return Worth(
            objective,
            max(float(slack.sum()) + apart, 0.0),
            float(np.abs(short[loose]).max(initial=0.0)),
        )


def certificate_of(terms: HingeTerms, pattern: BoolArray, point: HingePoint) -> Certificate:
    """The certificate of the convex step that `point` solves."""
    step = point.step
    assert step is not None
    return Certificate(terms, pattern, step.a, step.c, step.square)
