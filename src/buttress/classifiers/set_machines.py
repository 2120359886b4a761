"""What the uncertainty-set classifiers and their cross-validation share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from buttress._arrays import Array
from buttress._user_warnings import warn_user
from buttress.classifiers.kernel_source import gram_matrix
from buttress.classifiers.parameters import check_number, check_option
from buttress.classifiers.training import TrainingSet
from buttress.kernels import Kernel
from buttress.losses import (
    EllipsoidError,
    Exponential,
    HardMargin,
    Logistic,
    NuHinge,
    TruncatedQuadratic,
    require_rising,
)
from buttress.solvers.sets.bias import error_rate_bias
from buttress.solvers.sets.distance import DistanceResult
from buttress.solvers.sets.geometry import CentredGeometry

LOSSES = (
    "ellipsoid",
    "reduced_hull",
    "hull",
    "truncated_quadratic",
    "exponential",
    "logistic",
)
BIASES = ("error_rate", "bisect", "primal")
# Too few distinct rows are warned of below this share; the paper's two troublesome data sets have
# 11 % and 7 %. Not with fewer rows than 30, where two columns of yes and no would often set it off.
_FEW_DISTINCT = 0.2
_ENOUGH_ROWS = 30


def make_set_loss(loss: Any, h: float, omega: float, nu: float) -> Any:
    """The loss object behind the estimator's parameters.

    Raises
    ------
    ValueError
        When the name is unknown, a parameter is out of range, or the loss does not rise.
    """
    if not isinstance(loss, str):
        if hasattr(loss, "value") and hasattr(loss, "conjugate"):
            if hasattr(loss, "derivative"):
                require_rising(loss)
            return loss
        raise ValueError(
            f"loss={loss!r} is not accepted: expected one of {', '.join(map(repr, LOSSES))} or "
            "a set loss with value, derivative, curvature and conjugate."
        )
    check_option("loss", loss, LOSSES)
    # Also where this loss does not use them: a senseless value is a slip, not a wish.
    check_number("h", h, "[0, inf)")
    check_number("omega", omega, "(0, inf)")
    check_number("nu", nu, "(0, 1]")
    if loss == "ellipsoid":
        return EllipsoidError(h=float(h), omega=float(omega))
    if loss in ("reduced_hull", "logistic"):
        return NuHinge(float(nu)) if loss == "reduced_hull" else Logistic(slope=2.0 / float(nu))
    if loss == "hull":
        return HardMargin()
    return TruncatedQuadratic() if loss == "truncated_quadratic" else Exponential()


def make_geometry(kernel: Kernel, data: TrainingSet) -> CentredGeometry:
    """The training rows as points: features for a linear kernel with few of them, else a Gram
    matrix; in float64, because a norm decides."""
    X = data.X
    dense = not sparse.issparse(X)
    if kernel.name == "linear" and dense and X.shape[1] < X.shape[0]:
        return CentredGeometry(features=X)
    if kernel.name == "precomputed":
        return gram_geometry(kernel.gram(X))  # symmetric to the precision it comes in
    return gram_geometry(gram_matrix(kernel, X.astype(np.float64)))


def gram_geometry(K: Array) -> CentredGeometry:
    """Points given by their Gram matrix, refused where products of its entries overflow."""
    largest = float(np.abs(np.diagonal(K)).max())
    if not np.isfinite(largest * largest):
        raise ValueError(
            f"similarities of rows with themselves are as large as {largest:.3g}: their products "
            "are beyond the range of floating point numbers. Scale the features."
        )
    return CentredGeometry(K)


def choose_bias(result: DistanceResult, y: Array, w: Array, rule: str) -> float:
    """The bias of a solved problem by one of `BIASES`, on the rows it was solved for."""
    if rule == "primal":
        return result.intercept
    if rule == "bisect":
        return -0.5 * float(result.alpha @ result.values)
    return error_rate_bias(result.values, y, w, reference=result.intercept).bias


def warn_few_distinct_rows(name: str, X: Any) -> None:
    """Say that the sets describe the data poorly when most rows are copies of others."""
    n = X.shape[0]
    if n < _ENOUGH_ROWS:
        return
    rows = X.toarray() if sparse.issparse(X) else X
    distinct = len(np.unique(rows, axis=0))
    if distinct < _FEW_DISTINCT * n:
        warn_user(
            f"{name}: only {distinct} of {n} rows are distinct. The uncertainty sets then "
            "describe the distribution poorly; MinimaxProbabilityMachine with "
            "bias='error_rate' was better on such data.",
        )


def warn_touching(name: str) -> None:
    """Say that hulls that meet leave no direction."""
    warn_user(
        f"{name}: the two hulls meet, so no direction separates them and every row gets the same "
        "score. Use a smaller hull (larger nu with loss='reduced_hull') or loss='ellipsoid'.",
    )
