"""Labels of a stream: some rows have none, and the classes are announced in advance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from buttress._arrays import Array, BoolArray, IntArray


def split_labels(y: Any, n_rows: int, *, first: bool = True) -> tuple[NDArray[Any], BoolArray]:
    """The labels as an array, and which rows have one (not None, not NaN).

    Only the `first` call looks whether they are classes: later labels are compared with the
    classes announced, and a single row should not wait for more.

    Raises
    ------
    ValueError
        For the wrong length, infinite numbers or targets that are no classes.
    """
    if first or not (isinstance(y, np.ndarray) and y.ndim == 1):
        y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"{[n_rows, len(y)]} (rows of X and labels)."
        )
    if y.dtype.kind == "f":
        if np.isinf(y).any():
            raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
        known = ~np.isnan(y)
    elif y.dtype.kind == "O":
        known = np.array([not _is_missing(label) for label in y], dtype=np.bool_)
        if not known.all() and known.any():
            filler = y[known][0]
            # the natural type of the labels, which None has hidden
            y = np.array([label if has else filler for label, has in zip(y, known, strict=True)])
    else:
        known = np.ones(len(y), dtype=np.bool_)
    if first and known.any():
        check_classification_targets(y[known])
    return y, known


def _is_missing(label: Any) -> bool:
    return label is None or label != label or type(label).__name__ == "NAType"


def encode(y: NDArray[Any], known: BoolArray, classes: NDArray[Any]) -> IntArray:
    """Index of every label in the sorted `classes`; -1 in rows without one.

    Raises
    ------
    ValueError
        Naming the labels that were not announced.
    """
    codes = np.full(len(y), -1, dtype=np.int64)
    if not known.any():
        return codes
    labels, inverse = np.unique(y[known], return_inverse=True)
    positions = {label: code for code, label in enumerate(classes.tolist())}
    strangers = [label for label in labels.tolist() if label not in positions]
    if strangers:
        raise ValueError(
            f"y contains {strangers}, which `classes` did not announce on the first call: "
            f"the classes are {classes.tolist()}."
        )
    table = np.array([positions[label] for label in labels.tolist()])
    codes[known] = table[inverse]
    return codes


def targets(codes: IntArray, n_classes: int) -> Array:
    """±1 for every binary problem, and 0 in rows without a label."""
    if n_classes == 2:
        signs = np.where(codes == 1, 1.0, -1.0)[:, None]
    else:
        signs = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
    signs[codes < 0] = 0.0
    return signs


def answers(scores: Array) -> IntArray:
    """The class codes that scores stand for; a score of zero is class 0."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.int64)
    return np.asarray(scores.argmax(axis=1))
