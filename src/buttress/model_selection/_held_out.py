"""Cross-validation at scale: all folds and candidates ride in the same passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring

from buttress._arrays import Array, IntArray
from buttress.blocks.base import Block
from buttress.classifiers.row_strategies import ScaledFit, ScaledKernel
from buttress.solvers.blockwise.passes import HeldOutPass, Reader

StandIn = Callable[[Array, int, int], Any]


@dataclass(frozen=True, eq=False)
class _FoldScores:
    """Decision values of the held-out rows, fold by fold."""

    reader: Reader
    weights: Array  # (folds, n_raw, problems * candidates)
    intercept: Array  # (folds, problems * candidates)

    def __call__(self, block: Block) -> list[tuple[IntArray, Array, Array]]:
        codes, weight, scores = [], [], []
        all_codes, start = self.reader.codes(block), 0
        n_folds = len(self.weights)
        for tile in self.reader.tiles(block):
            test = self.reader.folds.test(tile.numbers)
            tile_codes = all_codes[start : start + len(tile.raw)]
            start += len(tile.raw)
            for fold in range(n_folds):
                out = test[:, fold]
                codes.append(tile_codes[out])
                weight.append(tile.weight[out].astype(np.float64))
                scores.append(tile.raw[out] @ self.weights[fold] + self.intercept[fold])
        return [
            (
                np.concatenate(codes[fold::n_folds]),
                np.concatenate(weight[fold::n_folds]),
                np.concatenate(scores[fold::n_folds]),
            )
            for fold in range(n_folds)
        ]


def held_out_scores(
    fit: ScaledFit,
    scaled: ScaledKernel,
    weights: Array,
    intercept: Array,
    scoring: Any,
    stand_in: StandIn,
    *,
    bands: Array | None = None,
    d: float = 0.0,
    weighted: bool = True,
) -> Array:
    """The score of every candidate on every fold, shape (candidates, folds).

    Parameters
    ----------
    fit, scaled
        The data, and the kernel with its map.
    weights : array of shape (components, problems, folds, candidates)
        Models trained without each fold.
    intercept : array of shape (problems, folds, candidates)
    scoring : "accuracy", "reject_risk", str or callable
        The first two (the second for two classes) are counted in one pass that keeps nothing.
        For all others the decision values of the held-out rows are collected.
    stand_in : callable
        From decision values of shape (rows, problems), a fold and a candidate to an object
        that scikit-learn's scorers take for a fitted classifier.
    bands : array of shape (folds, candidates), optional
        Half widths of the rejection bands.
    d : float
        Cost of a rejection.
    weighted : bool
        Whether a scorer is told the weights of the rows.
    """
    m, n_problems, n_folds, n_candidates = weights.shape
    raw = scaled.raw_weights(weights.reshape(m, -1)).astype(fit.source.dtype)
    raw = raw.reshape(-1, n_problems, n_folds, n_candidates)
    reader = Reader(scaled.reading, fit.classes, fit.folds)
    counted = scoring == "accuracy" or (scoring == "reject_risk" and n_problems == 1)
    if isinstance(scoring, str) and counted:
        width: Array = np.zeros((n_folds, n_candidates))
        if bands is not None and scoring == "reject_risk":
            width = bands
        task = HeldOutPass(
            reader,
            raw.reshape(len(raw), -1),
            intercept.reshape(-1),
            np.repeat(np.arange(n_folds), n_candidates),
            np.tile(width.ravel(), n_problems)
            if scoring == "reject_risk"
            else np.zeros(raw[0].size),
        )
        wrong, rejected, total = scaled.source.sum(task)
        _check_counted(total)
        value = 1.0 - wrong / total if scoring == "accuracy" else -(wrong + d * rejected) / total
        return np.asarray(value.reshape(n_folds, n_candidates).T)
    per_fold = raw.transpose(2, 0, 1, 3).reshape(n_folds, len(raw), -1)
    task_scores = _FoldScores(reader, per_fold, intercept.transpose(1, 0, 2).reshape(n_folds, -1))
    blocks = list(scaled.source.map(task_scores))
    table = np.empty((n_candidates, n_folds))
    for fold in range(n_folds):
        codes = np.concatenate([block[fold][0] for block in blocks])
        weight = np.concatenate([block[fold][1] for block in blocks])
        scores = np.concatenate([block[fold][2] for block in blocks])
        _check_counted(weight.sum(keepdims=True))
        by_candidate = scores.reshape(len(scores), n_problems, n_candidates)
        labels: NDArray[Any] = fit.labels[codes]
        options = {} if not weighted or (weight == 1).all() else {"sample_weight": weight}
        for index in range(n_candidates):
            model = stand_in(np.ascontiguousarray(by_candidate[:, :, index]), fold, index)
            scorer = check_scoring(model, scoring=scoring)
            rows = np.ascontiguousarray(by_candidate[:, :, index])
            table[index, fold] = scorer(model, rows, labels, **options)
    return table


def _check_counted(total: Array) -> None:
    if not (total > 0).all():
        raise ValueError("A fold has no held-out rows: use fewer folds.")


def split_columns(theta: Array, n_problems: int, n_folds: int, n_values: int) -> Array:
    """Columns of `column_grid` as an array (parameters, problems, folds, values)."""
    return np.asarray(theta.reshape(len(theta), n_problems, n_folds, n_values))


def fitted_linear(model: Any, classes: NDArray[Any], n_problems: int) -> Any:
    """Make an unfitted classifier one whose rows are decision values already."""
    model.set_params(kernel="linear")
    model.classes_ = classes
    model.coef_ = np.eye(n_problems)
    model.intercept_ = np.zeros(n_problems)
    model.n_features_in_ = n_problems
    return model
