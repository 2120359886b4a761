"""A builder of programs in JSON: a list of steps that any language can follow row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.kernels import Kernel
from buttress.persistence._builder import Builder, dense
from buttress.persistence._trees import Trees

# The numbers in the formula of every kernel.
_CONSTANTS: dict[str, tuple[str, ...]] = {
    "linear": (),
    "rbf": ("gamma",),
    "laplacian": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
    "poly": ("gamma", "coef0", "degree"),
}


class Program(Builder):
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

    def kernel(self, kernel: Kernel, rows: str, vectors: NDArray[Any]) -> str:
        """Similarities to fixed vectors, with the numbers that the kernel's formula has."""
        name = "poly" if kernel.name == "polynomial" else kernel.name
        if name not in _CONSTANTS:
            raise ValueError(
                f"kernel={kernel.name!r} cannot be exported: expected one of 'linear', 'rbf', "
                "'poly', 'sigmoid', 'laplacian', 'precomputed'."
            )
        constants = {key: float(kernel.params[key]) for key in _CONSTANTS[name]}
        return self.step("kernel", rows, kernel=name, **constants, vectors=vectors)

    def lone(self, value: str) -> str:
        """Positive where exactly one entry is: the smaller of the first and minus the second."""
        return self.step("lone", value)

    def trees(self, rows: str, trees: Trees) -> str:
        """Sum of the leaves that a row falls into."""
        nested = [_nested(trees, k) for k in range(trees.n_trees)]
        return self.step("trees", rows, single=trees.single, trees=nested)

    def foreign(self, model: Any, rows: str, method: str) -> str:
        """Nothing: a program knows the operations of `Builder` only."""
        raise ValueError(
            f"{type(model).__name__} cannot be exported as JSON: ONNX can hold it (format 'onnx')."
        )

    def matrix_input(self, name: str, width: int | None) -> str:
        """The row, which holds numbers only."""
        return "0"

    def column_input(self, position: int, name: str, text: bool) -> str:
        """One column of the input."""
        return self.columns("0", np.array([position]))


def _nested(trees: Trees, k: int) -> list[Any]:
    """One tree as five lists: feature (-1 in leaves), threshold, left, right or a leaf's values,
    and whether a missing number goes left.
    """
    nodes = np.flatnonzero(trees.tree == k)
    leaf = trees.left[nodes] < 0
    feature = np.where(leaf, -1, trees.feature[nodes]).tolist()
    right = [
        value if is_leaf else child
        for value, is_leaf, child in zip(
            trees.values[nodes].tolist(), leaf.tolist(), trees.right[nodes].tolist(), strict=True
        )
    ]
    threshold, left = trees.threshold[nodes].tolist(), trees.left[nodes].tolist()
    return [feature, threshold, left, right, trees.missing_left[nodes].astype(int).tolist()]


def _plain(value: Any) -> Any:
    """Arrays as lists, sparse ones too."""
    if hasattr(value, "toarray"):
        value = dense(value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
