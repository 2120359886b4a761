"""Columns that are solved together, their models, and room for the work on them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress.solvers.numerics.cholesky import row_length
from buttress.solvers.smooth.columns._low_rank import LowRank


class CurvedModels(NamedTuple):
    """Models of many columns, kept and renewed when curvatures change.

    Every column has a slot. A column may begin with the model of another one near it, until its
    own is made.

    Attributes
    ----------
    source : array of shape (slots,)
        The slot whose model a column uses.
    level : array of shape (slots,)
        Which of the ranks; -1 for a model not yet made.
    weight : array of shape (slots, n)
        W: of every row ``c / (1 + rest c)``, c its curvature over twice the penalty.
    packed, mean : arrays of shapes (slots, m (m + 1) / 2) and (slots, m)
        The triangle of ``B'WB``, and ``B'W 1``.
    inner, lift : arrays of shapes (slots, m, row_length) and (slots, m)
        The factor of ``I + B'WB``, and its solution for `mean`.
    """

    source: IntArray
    level: IntArray
    weight: Array
    packed: Array
    mean: Array
    inner: Array
    lift: Array


def empty_models(low_rank: LowRank, slots: int) -> CurvedModels:
    """Room for models; none is made."""
    n, m = low_rank.factor.shape
    triangle = m * (m + 1) // 2
    return CurvedModels(
        np.arange(slots),
        np.full(slots, -1),
        np.empty((slots, n), dtype=np.float32),
        np.empty((slots, triangle), dtype=np.float32),
        np.empty((slots, m), dtype=np.float32),
        np.empty((slots, m, row_length(m, 4)), dtype=np.float32),
        np.empty((slots, m), dtype=np.float32),
    )


class SolvedColumns(NamedTuple):
    """Solutions of all problems at all penalties, one after the other, as far as they are known.

    Attributes
    ----------
    coef : array of shape (columns, size), float32
    intercept : array of shape (columns,)
    scores : array of shape (columns, n), float32
        With the intercepts.
    iterations : array of shape (columns,)
    converged : array of shape (columns,)
    doubtful : array of shape (columns,)
        Whether the sign of a held-out score may be rounding.
    drift : array of shape (columns,)
        What scores were added up from, by size.
    error : array of shape (columns,)
        How far held-out scores may be from the solution's.
    """

    coef: Array
    intercept: Array
    scores: Array
    iterations: IntArray
    converged: BoolArray
    doubtful: BoolArray
    drift: Array
    error: Array


def no_columns(columns: int, size: int, n: int) -> SolvedColumns:
    """Room for so many; all are zero."""
    return SolvedColumns(
        np.zeros((columns, size), dtype=np.float32),
        np.zeros(columns),
        np.zeros((columns, n), dtype=np.float32),
        np.zeros(columns, dtype=np.int64),
        *np.zeros((2, columns), dtype=bool),
        *np.zeros((2, columns)),
    )


class KernelSystem(NamedTuple):
    """What all columns of a fit share.

    Attributes
    ----------
    loss : scalars of a loss
    matrix : array of shape (n, n), float32
        The Gram matrix.
    low_rank : LowRank
        Its leading part.
    models : CurvedModels
        Of columns.
    y, omega : arrays of shape (problems, n), float32
        Labels and normalised weights of the problems (classes and folds).
    fit_intercept : bool
    """

    loss: Any
    matrix: Array
    low_rank: LowRank
    models: CurvedModels
    y: Array
    omega: Array
    fit_intercept: bool


class Shared(NamedTuple):
    """What one set of problems may take over from another with the same Gram matrix.

    Attributes
    ----------
    matrix : array of shape (n, n), float32
    low_rank : LowRank or None
        None where it is to be found again, for columns of another number.
    """

    matrix: Array
    low_rank: LowRank | None


class Batch(NamedTuple):
    """All columns of a fit, or some.

    Attributes
    ----------
    problem, lam : arrays of shape (columns,)
        Which problem and penalty a column is.
    slot : array of shape (columns,)
        Where a column's model is; negative for one that has a model only while it is solved.
    lender : array of shape (columns,)
        The slot of the model that a column begins with; negative where it makes its own.
    slack : array of shape (columns,)
        Factor by which the curvature of a row may differ from its model's.
    stuck : array of shape (columns,)
        Whether the next step is along the gradient: see `_model_steps`.
    f, a : arrays of shape (columns, n), float32
        Scores, with the intercepts, and coefficients.
    a0 : array of shape (columns,)
        Intercepts.
    """

    problem: IntArray
    lam: Array
    slot: IntArray
    lender: IntArray
    slack: Array
    stuck: BoolArray
    f: Array
    a: Array
    a0: Array


class ModelRoom(NamedTuple):
    """What the models say of the columns at hand, in their order, and room for finding out.

    Attributes
    ----------
    residuals : array of shape (columns, n)
        The residuals ``2 lam a - omega y t``.
    damped : array of shape (columns, n)
        `residuals` over ``1 + rest c``, c a row's curvature over twice the penalty.
    sums : array of shape (6, columns)
        Over the rows: of ``-omega y t``, `a`, the weights omega of curved rows, `damped`, the
        models' weights, and ``rest * damped * residuals``.
    d, d0 : arrays of shapes (columns, n) and (columns,)
        Steps of coefficients and intercepts.
    promise : array of shape (columns,)
        Decrease that the model promises: it cannot vanish away from the solution, as the true
        slope along a step from an inexact model may.
    renewed : array of shape (columns,)
        Whether a model was kept, renewed in part or made.
    rows, work, changed, changes, projected, made : arrays
    """

    residuals: Array
    damped: Array
    sums: Array
    d: Array
    d0: Array
    promise: Array
    renewed: IntArray
    rows: Array
    work: Array
    changed: IntArray
    changes: Array
    projected: Array
    made: Array


def empty_room(low_rank: LowRank, columns: int) -> ModelRoom:
    """Room for so many columns."""
    n, m = low_rank.factor.shape
    single = np.float32
    return ModelRoom(
        np.empty((columns, n), single),
        np.empty((columns, n), single),
        np.empty((6, columns)),
        np.empty((columns, n), single),
        np.empty(columns),
        np.empty(columns),
        np.empty(columns, dtype=np.int64),
        np.empty((columns, n), single),
        np.empty((4, n), single),
        np.empty(n + 3, dtype=np.int64),
        np.empty(n + 3, single),
        np.empty((max(columns, m), m), single),
        np.empty((columns, len(low_rank.pairs)), single),
    )
