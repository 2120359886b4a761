"""The two strategies of training on rows, and what the one in blocks works with.

`ExactRows` and `ScaledFit` both train an estimator, which says how in ``_fit_exact`` and
``_fit_scaled``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, IntArray
from buttress.blocks.base import BlockSource
from buttress.classifiers.training import TrainingSet
from buttress.kernels import Kernel
from buttress.kernels.approximate import FeatureMap
from buttress.solvers.blockwise.columns import Folds, ProblemColumns, RowLoss
from buttress.solvers.blockwise.objective import Objective, make_objective
from buttress.solvers.blockwise.scan import Summary


@dataclass(frozen=True, eq=False)
class ExactRows:
    """Training rows in memory, all of whose similarities are computed."""

    data: TrainingSet

    def train(self, model: Any, *context: Any) -> None:
        """Fit the estimator."""
        model._fit_exact(self.data, *context)


@dataclass(frozen=True, eq=False)
class ScaledFit:
    """Training data in blocks, with the kernel and its feature map fixed.

    Attributes
    ----------
    source : BlockSource
    summary : Summary
    folds : Folds
    name : str or None
        "nystroem", "fourier", or None where the linear kernel needs no approximation.
    seed : int
    limit : float
        Bytes that mapped rows may take in memory.
    data : TrainingSet or None
        The validated arrays, where the data came as such.
    """

    source: BlockSource
    summary: Summary
    folds: Folds
    name: str | None
    seed: int
    limit: float
    data: TrainingSet | None

    @property
    def classes(self) -> NDArray[Any]:
        """Labels as the solver sees them (codes, for arrays)."""
        return self.summary.classes

    @property
    def labels(self) -> NDArray[Any]:
        """The user's labels."""
        return self.summary.classes if self.data is None else self.data.classes

    @property
    def n_problems(self) -> int:
        return 1 if len(self.classes) == 2 else len(self.classes)

    def train(self, model: Any, *context: Any) -> None:
        """Fit the estimator."""
        model._fit_scaled(self, *context)


@dataclass(frozen=True, eq=False)
class ScaledKernel:
    """A kernel, its feature map, and the landmarks' row numbers and label codes."""

    kernel: Kernel
    features: FeatureMap
    rows: IntArray
    codes: IntArray
    source: BlockSource
    reading: FeatureMap

    def objective(
        self, fit: ScaledFit, rows: RowLoss, columns: ProblemColumns, linear: Any = None
    ) -> Objective:
        """The problems of some columns."""
        return make_objective(
            self.source, self.reading, fit.summary, rows, columns, fit.folds, linear
        )

    def raw_weights(self, theta: Array) -> Array:
        """Weights on the raw features (for Nyström: on the landmarks) of coordinates."""
        basis = self.features.basis
        return theta if basis is None else np.asarray(basis @ theta)


@dataclass(frozen=True, eq=False)
class TrainingScores:
    """Decision values of the training rows, and where those stand in the user's data.

    Attributes
    ----------
    scores : array of shape (n, n_problems)
    codes : array of shape (n,)
        Index of every row's label.
    weight : array of shape (n,)
    rows : array of shape (n,)
        Numbers of the rows in the user's data.
    n_rows : int
        Rows of the user's data, those of weight zero included.
    """

    scores: Array
    codes: IntArray
    weight: Array
    rows: IntArray
    n_rows: int

    def targets(self, problem: int) -> Array:
        """±1 labels of a binary problem."""
        positive = 1 if self.scores.shape[1] == 1 else problem
        return np.where(self.codes == positive, 1.0, -1.0)
