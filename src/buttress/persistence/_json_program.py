"""A builder of programs in JSON: a list of steps that any language can follow row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array
from buttress.kernels import Kernel
from buttress.persistence._trees import Trees

_KERNELS = {"linear", "rbf", "poly", "polynomial", "sigmoid", "laplacian"}


class Program:
    """Steps, added one by one; every value is a list of numbers of one row.

    Value 0 is the row itself, value k the result of the k-th step.
    """

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    def step(self, op: str, *of: str, **constants: Any) -> str:
        """Add a step and return its name."""
        arrays = {name: _plain(value) for name, value in constants.items()}
        self.steps.append({"op": op, "of": [int(name) for name in of]} | arrays)
        return str(len(self.steps))

    # -- the operations of `Builder` -------------------------------------------------------

    def affine(self, value: str, weights: Array, offset: Array) -> str:
        """``weights @ value + offset``."""
        return self.step("affine", value, weights=weights, offset=offset)

    def scaled(self, value: str, centre: Array, scale: Array) -> str:
        """``(value - centre) / scale``."""
        return self.step("scaled", value, centre=centre, scale=scale)

    def kernel(self, kernel: Kernel, rows: str, vectors: NDArray[Any]) -> str:
        """Similarities to fixed vectors."""
        if kernel.name not in _KERNELS:
            raise ValueError(
                f"kernel={kernel.name!r} cannot be exported: expected one of 'linear', 'rbf', "
                "'poly', 'sigmoid', 'laplacian', 'precomputed'."
            )
        name = "poly" if kernel.name == "polynomial" else kernel.name
        constants = {key: float(kernel.params[key]) for key in _used(name)}
        return self.step("kernel", rows, kernel=name, **constants, vectors=vectors)

    def columns(self, value: str, index: NDArray[Any]) -> str:
        """Some entries of a value."""
        return self.step("columns", value, index=index)

    def joined(self, values: list[str]) -> str:
        """Entries of several values, one after the other."""
        return self.step("joined", *values) if len(values) > 1 else values[0]

    def function(self, name: str, value: str) -> str:
        """A function of every entry."""
        return self.step(name, value)

    def clipped(self, value: str, low: float, high: float) -> str:
        """Entries kept between two bounds."""
        return self.step("clipped", value, low=low, high=high)

    def times(self, first: str, second: str) -> str:
        """Every entry times the one of the second value."""
        return self.step("times", first, second)

    def softmax(self, value: str, width: int) -> str:
        """Softmax of every `width` entries."""
        return self.step("softmax", value, width=width)

    def gap(self, value: str) -> str:
        """Half the distance of the two largest entries."""
        return self.step("gap", value)

    def lone(self, value: str) -> str:
        """Positive where exactly one entry is: the smaller of the first and minus the second."""
        return self.step("lone", value)

    def largest(self, value: str) -> str:
        """The largest entry."""
        return self.step("largest", value)

    def chosen(self, value: str) -> str:
        """1 for the first of the largest entries, else 0."""
        return self.step("chosen", value)

    def flushed(self, value: str, rounding: float) -> str:
        """Entries that are rounding become zero."""
        return self.step("flushed", value, rounding=rounding)

    def trees(self, rows: str, trees: Trees) -> str:
        """Sum of the leaves that a row falls into."""
        parts = [_nested(trees, k) for k in range(trees.n_trees)]
        return self.step("trees", rows, single=trees.single, trees=parts)

    def foreign(self, model: Any, rows: str, method: str) -> str:
        """Nothing: a program knows the operations above only."""
        raise ValueError(
            f"{type(model).__name__} cannot be exported as JSON: ONNX can hold it (format 'onnx')."
        )

    # -- inputs ----------------------------------------------------------------------------

    def matrix_input(self, name: str, width: int | None) -> str:
        """The row, which holds numbers only."""
        return "0"

    def column_input(self, position: int, name: str, text: bool) -> str:
        """One column of the input."""
        return self.columns("0", np.array([position]))

    def imputed(self, value: str, fill: list[float]) -> str:
        """Missing numbers replaced."""
        return self.step("imputed", value, fill=fill)

    def one_hot(self, value: str, categories: list[str]) -> str:
        """1 for the category, 0 for the others; zeros for one that is not known."""
        return self.step("one_hot", value, categories=list(categories))


def _used(kernel: str) -> tuple[str, ...]:
    return {
        "linear": (),
        "rbf": ("gamma",),
        "laplacian": ("gamma",),
        "sigmoid": ("gamma", "coef0"),
        "poly": ("gamma", "coef0", "degree"),
    }[kernel]


def _nested(trees: Trees, k: int) -> list[Any]:
    """One tree as five lists: feature (-1 in leaves), threshold, left, right or a leaf's values,
    and whether a missing number goes left.
    """
    nodes = np.flatnonzero(trees.tree == k)
    leaf = trees.left[nodes] < 0
    feature = np.where(leaf, -1, trees.feature[nodes]).tolist()
    right = [
        value if is_leaf else other
        for value, is_leaf, other in zip(
            trees.values[nodes].tolist(), leaf.tolist(), trees.right[nodes].tolist(), strict=True
        )
    ]
    threshold, left = trees.threshold[nodes].tolist(), trees.left[nodes].tolist()
    return [feature, threshold, left, right, trees.missing_left[nodes].astype(int).tolist()]


def _plain(value: Any) -> Any:
    """Arrays as lists, sparse ones too."""
    if hasattr(value, "toarray"):
        value = value.toarray()
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
