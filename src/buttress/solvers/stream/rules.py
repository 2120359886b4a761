"""Update rules of online learning, and what a call to learn reports.

A learner of one's own brings its rule along, in its own file: see `UpdateRule`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers.stream._decisions import encoded

# A loss below this is rounding left over from an update at the same point.
_GHOST = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-4}


class UpdateRule:
    """When a row becomes a support vector, and with which coefficient.

    A rule is a frozen dataclass of numbers with one function, `decide`. Nothing else of the
    engine knows the rules by name.

    Attributes
    ----------
    averaging : float
        0, or the a for which the model after t labelled rows is the sum of all coefficients
        given so far divided by ``a t``.
    shrinks : bool
        Whether every labelled row multiplies the older coefficients by `decay` and drops those
        that are then smaller than `smallest`.
    first_of_class : bool
        Whether `decide` is told of the first row on each side; else its `first` is False.

    Examples
    --------
    A rule that corrects mistakes by a step of fixed length:

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class FixedStep(UpdateRule):
    ...     length: float = 0.5
    ...
    ...     @staticmethod
    ...     def decide(z, y, kxx, tolerance, first, numbers):
    ...         return numbers[0] * y if z <= 0.0 else 0.0
    >>> FixedStep(0.25).numbers
    array([0.25])
    """

    averaging: float = 0.0
    shrinks: ClassVar[bool] = False
    decay: float = 1.0
    smallest: float = 0.0
    first_of_class: bool = False

    @staticmethod
    def decide(
        z: float, y: float, kxx: float, tolerance: float, first: bool, numbers: Any
    ) -> float:
        """The coefficient of a row in one problem; compiled by Numba.

        Parameters
        ----------
        z : float
            The margin ``y f(x)`` under the model before the row.
        y : float
            1 or -1.
        kxx : float
            The kernel of the row with itself.
        tolerance : float
            A loss up to this is rounding left over from an update at the same point.
        first : bool
            Whether the row is the first on its side.
        numbers : array
            The rule's `numbers`.

        Returns
        -------
        float
            0 leaves the model as it is; NaN does too, and counts the row as refused.
        """
        raise AssertionError("a rule defines decide")

    @property
    def numbers(self) -> Array:
        """What `decide` reads: the rule's fields in their order."""
        return np.array([float(getattr(self, field.name)) for field in fields(cast("Any", self))])


@dataclass(frozen=True)
class PARampRule(UpdateRule):
    """Passive-aggressive with the ramp loss: rows with ``z <= s`` are refused.

    `first_of_class` accepts the first row of each side with the untruncated step.
    """

    s: float = -1.0
    first_of_class: bool = False

    @staticmethod
    def decide(
        z: float, y: float, kxx: float, tolerance: float, first: bool, numbers: Any
    ) -> float:
        loss = 1.0 - z
        if not (kxx > 0.0 and loss > tolerance):
            return 0.0
        if not (z > numbers[0] or first):
            return math.nan
        a = y * loss / kxx
        # k(x, x) so small that the step overflows: as good as a zero vector
        return a if math.isfinite(a) else 0.0


@dataclass(frozen=True)
class PerceptronRule(UpdateRule):
    """The kernel Perceptron."""

    @staticmethod
    def decide(
        z: float, y: float, kxx: float, tolerance: float, first: bool, numbers: Any
    ) -> float:
        return y if z <= 0.0 else 0.0


@dataclass(frozen=True)
class PegasosRule(UpdateRule):
    """Stochastic subgradient steps on ``alpha/2 |f|² + mean hinge``, no projection."""

    alpha: float = 1e-2

    @staticmethod
    def decide(
        z: float, y: float, kxx: float, tolerance: float, first: bool, numbers: Any
    ) -> float:
        return y if z < 1.0 else 0.0

    @property
    def averaging(self) -> float:  # type: ignore[override]
        return self.alpha


@dataclass(frozen=True)
class NormaRule(UpdateRule):
    """Steps of constant length `eta`; coefficients below `tau` are dropped."""

    eta: float = 0.1
    alpha: float = 1e-2
    tau: float = 1e-4
    shrinks: ClassVar[bool] = True

    @staticmethod
    def decide(
        z: float, y: float, kxx: float, tolerance: float, first: bool, numbers: Any
    ) -> float:
        return numbers[0] * y if z < 1.0 else 0.0

    @property
    def decay(self) -> float:  # type: ignore[override]
        return 1.0 - self.eta * self.alpha

    @property
    def smallest(self) -> float:  # type: ignore[override]
        return self.tau


class StreamOutcome(NamedTuple):
    """What happened to the rows of one call; compiled loops fill its arrays.

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
    def empty(cls, n: int, n_problems: int) -> StreamOutcome:
        """Nothing happened yet."""
        flags = np.zeros((2, n), dtype=np.bool_)
        return cls(np.zeros((n, n_problems)), flags[0], flags[1], np.zeros(n, dtype=np.int64))

    @property
    def arrays(self) -> tuple[Array, BoolArray, BoolArray, IntArray]:
        """All as a plain tuple, which a compiled loop takes sooner than a named one."""
        return self.scores, self.updated, self.refused, self.vectors

    def rows(self, rows: slice) -> StreamOutcome:
        """The same arrays, seen from some of the rows."""
        return StreamOutcome(
            self.scores[rows], self.updated[rows], self.refused[rows], self.vectors[rows]
        )

    def copy_from(self, source: StreamOutcome) -> None:
        """Overwrite the arrays with those of `source`."""
        for array, values in zip(self, source, strict=True):
            array[:] = values


@lru_cache(maxsize=64)
def compiled_rule(rule: UpdateRule, dtype: Any) -> Array:
    """A rule as the compiled loops read it; they say in which order."""
    common = (
        _GHOST[np.dtype(dtype)],
        float(np.finfo(dtype).eps),
        rule.averaging,
        rule.decay,
        rule.smallest,
        float(rule.first_of_class),
        float(rule.shrinks),
    )
    return encoded(type(rule).decide, common, rule.numbers)
