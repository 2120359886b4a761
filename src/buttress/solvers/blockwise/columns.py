"""The binary problems that ride together: one column per label, fold and penalty.

All of them have the form, for parameters w and offsets o,

    (1/S) sum_i s_i m_i sum_k c_k(y_i) psi(y_i (phi_i'w + o_k(y_i))) + slope'o + alpha ||w||^2

with row weights s, fold membership m in {0, 1} and S = sum_i s_i m_i. One offset and unit
costs give the usual margin classifier. The double ramp has two offsets and two terms per row,
the uncertainty-set losses two offsets and one term per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray, IntArray
from buttress.losses import OfNegative
from buttress.solvers.smooth.margins import compiled_loss, loss_scalars

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Term:
    """One loss term of a row: which offset it uses and what it costs, by the row's side."""

    offset_below: int = 0
    offset_above: int = 0
    cost_below: float = 1.0
    cost_above: float = 1.0


@dataclass(frozen=True, eq=False)
class RowLoss:
    """What one row adds to the objective.

    Attributes
    ----------
    loss : object with value, derivative and curvature of the margin
    terms : tuple of Term
    n_offsets : int
        0 for a model without intercept.
    slope : tuple of float
        The objective's own linear term in the offsets.
    """

    loss: Any
    terms: tuple[Term, ...] = (Term(),)
    n_offsets: int = 1
    slope: tuple[float, ...] = (0.0,)

    @property
    def scalars(self) -> Any:
        """What compiled loops are given for the loss; None where it has nothing for them."""
        return loss_scalars(self.loss)


def margin_rows(loss: Any, fit_intercept: bool = True) -> RowLoss:
    """The usual margin classifier ``mean loss(y (phi'w + b)) + alpha ||w||^2``.

    A smooth loss that will be called from Python says so.
    """
    if hasattr(loss, "curvature"):
        compiled_loss(loss)
    return RowLoss(loss) if fit_intercept else RowLoss(loss, n_offsets=0, slope=())


def reject_rows(loss: Any, d: float) -> RowLoss:
    """Two thresholds with a common w: offsets ``b - rho`` and ``b + rho``.

    Parameters
    ----------
    loss : loss of the margin
    d : float
        Cost of a rejection.
    """
    terms = (Term(0, 0, 1.0 - d, d), Term(1, 1, d, 1.0 - d))
    return RowLoss(loss, terms, n_offsets=2, slope=(0.0, 0.0))


def set_rows(loss: Any) -> RowLoss:
    """``-2 rho + mean loss(rho - y (phi'w + b))``: offsets ``b - rho`` (+1), ``b + rho`` (-1)."""
    return RowLoss(OfNegative(loss), (Term(1, 0),), n_offsets=2, slope=(1.0, -1.0))


@dataclass(frozen=True, eq=False)
class Folds:
    """Which rows a fold trains on.

    Attributes
    ----------
    n_folds : int
        0 for no cross-validation.
    seed : int
        A row's test fold is a hash of its number and the seed.
    tables : pair of bool arrays of shape (n, n_folds), or None
        Rows of the training and test sets, for folds that are given.
    """

    n_folds: int = 0
    seed: int = 0
    tables: tuple[BoolArray, BoolArray] | None = None

    def train(self, numbers: IntArray) -> BoolArray:
        """Training membership, one column per fold and a last one with all rows."""
        inside = np.ones((len(numbers), self.n_folds + 1), dtype=bool)
        if self.tables is not None:
            inside[:, :-1] = self.tables[0][numbers]
        elif self.n_folds:
            inside[:, :-1] = ~self._hashed(numbers)
        return inside

    def test(self, numbers: IntArray) -> BoolArray:
        """Test membership, one column per fold."""
        if self.tables is not None:
            return np.asarray(self.tables[1][numbers])
        if not self.n_folds:
            return np.ones((len(numbers), 0), dtype=bool)
        return self._hashed(numbers)

    def _hashed(self, numbers: IntArray) -> BoolArray:
        fold = row_hash(numbers, self.seed) % np.uint64(self.n_folds)
        return np.asarray(fold[:, None] == np.arange(self.n_folds, dtype=np.uint64))


def row_hash(numbers: IntArray, seed: int) -> NDArray[np.uint64]:
    """A random number in [0, 2^64) for every row number and seed (the SplitMix64 mixer).

    Examples
    --------
    >>> counts = np.bincount(row_hash(np.arange(3000), seed=1) % np.uint64(3))
    >>> bool(counts.min() > 900)
    True
    """
    # Array arithmetic wraps silently; a Python integer is reduced before it enters.
    shift = np.uint64((seed * 0xD1B54A32D192ED03 + 1) % 2**64)
    z = np.asarray(numbers).astype(np.uint64) * _GOLDEN + shift
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


@dataclass(frozen=True, eq=False)
class ProblemColumns:
    """The problems solved together.

    Attributes
    ----------
    problem : array of int
        Index of the binary problem: 0 for two classes, else the class set against the rest.
    fold : array of int
        Index of the fold whose training rows count, `n_folds` for all rows.
    alpha : array of float
        The penalty.
    """

    problem: IntArray
    fold: IntArray
    alpha: Array

    def __len__(self) -> int:
        return len(self.alpha)

    def __getitem__(self, index: Any) -> ProblemColumns:
        return ProblemColumns(self.problem[index], self.fold[index], self.alpha[index])


def column_grid(n_problems: int, folds: Sequence[int], alphas: Any) -> ProblemColumns:
    """One column for every combination, penalties fastest, then folds, then problems.

    Examples
    --------
    >>> column_grid(1, [0, 1], [0.1, 0.2]).fold.tolist()
    [0, 0, 1, 1]
    """
    problem, fold, alpha = np.meshgrid(
        np.arange(n_problems), np.asarray(folds), np.asarray(alphas, dtype=float), indexing="ij"
    )
    return ProblemColumns(problem.ravel(), fold.ravel(), alpha.ravel())
