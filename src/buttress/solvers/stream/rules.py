"""The four update rules of online learning, and what a call to learn reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers.stream import _loops as loops

# A loss below this is rounding left over from an update at the same point.
_GHOST = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-4}


@dataclass(frozen=True)
class PARampRule:
    """Passive-aggressive with the ramp loss: rows with ``z <= s`` are refused.

    `first_of_class` accepts the first row of each side with the untruncated step.
    """

    s: float = -1.0
    first_of_class: bool = False
    code: ClassVar[int] = loops.PA_RAMP


@dataclass(frozen=True)
class PerceptronRule:
    """The kernel Perceptron."""

    code: ClassVar[int] = loops.PERCEPTRON


@dataclass(frozen=True)
class PegasosRule:
    """Stochastic subgradient steps on ``alpha/2 |f|² + mean hinge``, no projection."""

    alpha: float = 1e-2
    code: ClassVar[int] = loops.PEGASOS


@dataclass(frozen=True)
class NormaRule:
    """Steps of constant length `eta`; coefficients below `tau` are dropped."""

    eta: float = 0.1
    alpha: float = 1e-2
    tau: float = 1e-4
    code: ClassVar[int] = loops.NORMA


Rule = PARampRule | PerceptronRule | PegasosRule | NormaRule


@dataclass(frozen=True, eq=False)
class Outcome:
    """What happened to the rows of one call.

    Attributes
    ----------
    scores : array of shape (n, n_problems)
        ``f(x)`` before the row was learned.
    updated : array of shape (n,)
        Whether the row changed the model as a new support vector.
    refused : array of shape (n,)
        Whether the ramp refused the row in some problem (``z <= s``).
    vectors : array of shape (n,)
        The number of support vectors after the row.
    """

    scores: Array
    updated: BoolArray
    refused: BoolArray
    vectors: IntArray

    @classmethod
    def empty(cls, n: int, n_problems: int) -> Outcome:
        """Nothing happened yet."""
        flags = np.zeros((2, n), dtype=np.bool_)
        return cls(np.zeros((n, n_problems)), flags[0], flags[1], np.zeros(n, dtype=np.int64))

    def rows(self, part: slice) -> Outcome:
        """The same arrays, seen from some of the rows."""
        return Outcome(
            self.scores[part], self.updated[part], self.refused[part], self.vectors[part]
        )

    def copy_from(self, other: Outcome) -> None:
        """Overwrite the arrays with those of `other`."""
        for name in ("scores", "updated", "refused", "vectors"):
            getattr(self, name)[:] = getattr(other, name)


def rule_numbers(rule: Rule, dtype: Any) -> Array:
    """The rule's parameters in the order the compiled loops read them."""
    s = rule.s if isinstance(rule, PARampRule) else -np.inf
    eta = rule.eta if isinstance(rule, NormaRule) else 0.0
    alpha = 0.0 if isinstance(rule, (PARampRule, PerceptronRule)) else rule.alpha
    tau = rule.tau if isinstance(rule, NormaRule) else 0.0
    epsilon = float(np.finfo(dtype).eps)
    return np.array([s, eta, _GHOST[np.dtype(dtype)], epsilon, alpha, 1.0 - eta * alpha, tau])
