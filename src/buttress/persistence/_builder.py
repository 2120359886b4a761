"""The operations that exported models are made of, and what a model says of a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array
from buttress.kernels import Kernel
from buttress.persistence._trees import Trees


def dense(matrix: Any) -> NDArray[Any]:
    """A matrix with its zeros, whatever it was."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


class Builder(ABC):
    """Operations on values of shape (n, k), each named by a string.

    An operation is a step of its own name, unless a form of export has another way to say it.
    """

    @abstractmethod
    def step(self, op: str, *of: str, **constants: Any) -> str:
        """Add the operation `op` of some values and return the name of its result."""

    def affine(self, value: str, weights: Array, offset: Array) -> str:
        """``value @ weights.T + offset``."""
        return self.step("affine", value, weights=weights, offset=offset)

    def scaled(self, value: str, centre: Array, scale: Array) -> str:
        """``(value - centre) / scale``, column by column."""
        return self.step("scaled", value, centre=centre, scale=scale)

    @abstractmethod
    def kernel(self, kernel: Kernel, rows: str, vectors: NDArray[Any]) -> str:
        """Similarities to fixed vectors."""

    def columns(self, value: str, index: NDArray[Any]) -> str:
        """Some columns of a value."""
        return self.step("columns", value, index=index)

    def joined(self, values: list[str]) -> str:
        """Columns of several values side by side."""
        return self.step("joined", *values) if len(values) > 1 else values[0]

    def function(self, name: str, value: str) -> str:
        """One of cos, sigmoid, abs and log of every number."""
        return self.step(name, value)

    def clipped(self, value: str, low: float, high: float) -> str:
        """Numbers kept between two bounds."""
        return self.step("clipped", value, low=low, high=high)

    def times(self, first: str, second: str) -> str:
        """Product of numbers; a single column meets all columns."""
        return self.step("times", first, second)

    def softmax(self, value: str, width: int) -> str:
        """Softmax of every `width` columns in a row."""
        return self.step("softmax", value, width=width)

    def gap(self, value: str) -> str:
        """Half the distance of the two largest columns."""
        return self.step("gap", value)

    def largest(self, value: str) -> str:
        """The largest column."""
        return self.step("largest", value)

    def chosen(self, value: str) -> str:
        """1 in the first column that is largest, else 0."""
        return self.step("chosen", value)

    def flushed(self, value: str, rounding: float) -> str:
        """Zero where the absolute value is at most `rounding`."""
        return self.step("flushed", value, rounding=rounding)

    @abstractmethod
    def trees(self, rows: str, trees: Trees) -> str:
        """Sum over trees of the values of a row's leaves."""

    @abstractmethod
    def foreign(self, model: Any, rows: str, method: str) -> str:
        """Scores, probabilities or the transform of a model of another library."""

    # -- what a table needs ----------------------------------------------------------------

    @abstractmethod
    def matrix_input(self, name: str, width: int | None) -> str:
        """A matrix of numbers."""

    @abstractmethod
    def column_input(self, position: int, name: str, text: bool) -> str:
        """One column of a table, numbers or text."""

    def imputed(self, value: str, fill: list[float]) -> str:
        """Missing numbers replaced."""
        return self.step("imputed", value, fill=fill)

    def one_hot(self, value: str, categories: list[str]) -> str:
        """A column of text as one column per category; zeros for one that is not known."""
        return self.step("one_hot", value, categories=list(categories))


@dataclass(frozen=True, eq=False)
class AnswerNames:
    """What a model says of every row, as names of values.

    Attributes
    ----------
    classes : array
    decision : str
        One column for two classes, else one per class.
    ranked : str
        The class of the largest column is the label (of the first, when equal).
    probabilities : str or None
    confidence : str or None
        Rows are refused where it is at most `width`; None when nothing is ever refused.
    width : float or array
        One number, or one per class answered.
    band : pair of floats or None
        For two classes: decisions in this closed band are refused, in place of `confidence`.
    accepted : array or None
        For more classes: refused unless exactly one column of the decision is above its entry.
    strict : bool
        Refuse below `width` only.
    may_refuse : bool
        Whether the model has a `reject` method.
    """

    classes: NDArray[Any]
    decision: str
    ranked: str
    probabilities: str | None = None
    confidence: str | None = None
    width: Any = 0.0
    band: tuple[float, float] | None = None
    accepted: Array | None = None
    strict: bool = False
    may_refuse: bool = False
