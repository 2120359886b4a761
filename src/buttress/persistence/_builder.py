"""The operations that exported models are made of, and what a model says of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from buttress._arrays import Array
from buttress.kernels import Kernel
from buttress.persistence._trees import Trees


class Builder(Protocol):
    """Operations on values of shape (n, k), each named by a string."""

    def affine(self, value: str, weights: Array, offset: Array) -> str:
        """``value @ weights.T + offset``."""

    def scaled(self, value: str, centre: Array, scale: Array) -> str:
        """``(value - centre) / scale``, column by column."""

    def kernel(self, kernel: Kernel, rows: str, vectors: NDArray[Any]) -> str:
        """Similarities to fixed vectors."""

    def columns(self, value: str, index: NDArray[Any]) -> str:
        """Some columns of a value."""

    def joined(self, values: list[str]) -> str:
        """Columns of several values side by side."""

    def function(self, name: str, value: str) -> str:
        """One of cos, sigmoid, abs and log of every number."""

    def clipped(self, value: str, low: float, high: float) -> str:
        """Numbers kept between two bounds."""

    def times(self, first: str, second: str) -> str:
        """Product of numbers; a single column meets all columns."""

    def softmax(self, value: str, width: int) -> str:
        """Softmax of every `width` columns in a row."""

    def gap(self, value: str) -> str:
        """Half the distance of the two largest columns."""

    def largest(self, value: str) -> str:
        """The largest column."""

    def chosen(self, value: str) -> str:
        """1 in the first column that is largest, else 0."""

    def flushed(self, value: str, rounding: float) -> str:
        """Zero where the absolute value is at most `rounding`."""

    def trees(self, rows: str, trees: Trees) -> str:
        """Sum over trees of the values of a row's leaves."""

    def foreign(self, model: Any, rows: str, method: str) -> str:
        """Scores or probabilities of a model of another library."""


@dataclass(frozen=True, eq=False)
class Answers:
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
