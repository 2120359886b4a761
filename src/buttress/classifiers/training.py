"""Validated training data: rows, labels as codes, weights, and the ±1 targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

from buttress._arrays import Array, IntArray
from buttress._frames import validate_data


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What a fit works on, after validation.

    Attributes
    ----------
    X : array or CSR matrix of shape (n, p)
        Rows of positive weight, in float64 or float32; with a precomputed kernel the square
        Gram matrix of those rows.
    codes : array of shape (n,)
        Index of each row's label in `classes`.
    classes : array
        The labels, sorted.
    weight : array of shape (n,) in float64, or None
        Sample weight times class weight; None when all are one.
    rows : array of shape (n,)
        Where these rows stand in the user's data.
    n_rows : int
        How many rows the user gave, rows of weight zero included.
    """

    X: Any
    codes: IntArray
    classes: NDArray[Any]
    weight: Array | None
    rows: IntArray
    n_rows: int

    def subset(self, rows: IntArray, *, precomputed: bool) -> TrainingSet:
        """The training set of some of its rows."""
        return replace(
            self,
            X=self.X[np.ix_(rows, rows)] if precomputed else self.X[rows],
            codes=self.codes[rows],
            weight=None if self.weight is None else self.weight[rows],
            rows=self.rows[rows],
        )

    @property
    def n_problems(self) -> int:
        """Number of binary problems: one for two classes, else one per class."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def targets(self) -> Array:
        """±1 labels of the binary problems as columns, shape (n, n_problems), float64."""
        if len(self.classes) == 2:
            return np.where(self.codes == 1, 1.0, -1.0)[:, None]
        return np.where(self.codes[:, None] == np.arange(len(self.classes)), 1.0, -1.0)

    @property
    def weights(self) -> Array:
        """The weights as an array, ones included."""
        return np.ones(len(self.codes)) if self.weight is None else self.weight


def validate_training_set(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    class_weight: Any = None,
    precomputed: bool = False,
) -> TrainingSet:
    """Check `X`, `y` and the weights of a batch `fit`; set the estimator's input attributes.

    Raises
    ------
    ValueError
        In scikit-learn's wording where it has one.
    """
    X, y = validate_data(
        estimator,
        X,
        y,
        accept_sparse=False if precomputed else "csr",
        dtype=[np.float64, np.float32],
    )
    check_classification_targets(y)
    if precomputed and X.shape[0] != X.shape[1]:
        raise ValueError(
            "Precomputed matrix must be a square matrix. "
            f"Input is a {X.shape[0]}x{X.shape[1]} matrix."
        )
    n_rows = X.shape[0]
    weight = _checked_sample_weight(sample_weight, n_rows)
    rows = np.arange(n_rows)
    if weight is not None and (weight == 0).any():
        rows = np.flatnonzero(weight)
        X = X[np.ix_(rows, rows)] if precomputed else X[rows]
        y, weight = y[rows], weight[rows]
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes in the data, but "
            f"the data contains only one class: {classes.tolist()}."
        )
    weight = with_class_weight(weight, class_weight, classes, codes)
    return TrainingSet(X, codes, classes, weight, rows, n_rows)


def _checked_sample_weight(sample_weight: Any, n_rows: int) -> Array | None:
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, sample_weight)
    try:
        weight = check_array(
            sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight", copy=True
        )
    except (ValueError, TypeError) as error:
        if "sample_weight" in str(error):
            raise
        raise ValueError(f"sample_weight is not accepted, numbers are: {error}") from None
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weight.ndim}D array.")
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}: one weight per row."
        )
    if (weight < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if not (weight > 0).any():
        raise ValueError("All values of `sample_weight` are zero: at least two classes need rows.")
    return np.asarray(weight)


def with_class_weight(
    weight: Array | None, class_weight: Any, classes: NDArray[Any], codes: IntArray
) -> Array | None:
    """Multiply the sample weights by the class weights; "balanced" counts weighted rows."""
    if class_weight is None:
        return weight
    base = np.ones(len(codes)) if weight is None else weight
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(
                f"class_weight={class_weight!r} is not accepted: expected None, 'balanced' or a "
                "dict from label to weight."
            )
        totals = np.bincount(codes, weights=base, minlength=len(classes))
        factors = base.sum() / (len(classes) * totals)
    elif isinstance(class_weight, dict):
        unknown = [label for label in class_weight if label not in classes.tolist()]
        if unknown:
            raise ValueError(
                f"class_weight names labels that are not in y: {unknown}; "
                f"the labels are {classes.tolist()}."
            )
        given = [class_weight.get(label, 1.0) for label in classes.tolist()]
        if not all(isinstance(factor, Real) and 0.0 < float(factor) < np.inf for factor in given):
            raise ValueError(
                f"class_weight={class_weight!r}: every weight must be positive and finite."
            )
        factors = np.array(given, dtype=np.float64)
    else:
        raise ValueError(
            f"class_weight={class_weight!r} is not accepted: expected None, 'balanced' or a "
            "dict from label to weight."
        )
    return np.asarray(base * factors[codes])
