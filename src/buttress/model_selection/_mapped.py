"""A search on mapped rows in blocks: all candidates and folds ride in the same passes."""

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
from buttress.model_selection._exact import Advance
from buttress.model_selection._mapped_candidates import Candidates
from buttress.model_selection._results import Metadata, Solved
from buttress.solvers.blockwise.passes import HeldOutPass, Reader

# From decision values of shape (rows, problems), a fold and a candidate.
StandIn = Callable[[Array, int, int], Any]


class MappedSearch:
    """The folds of one fit at scale, and scores of candidates on them.

    Parameters
    ----------
    model : SearchMixin
    fit : ScaledFit
    metadata : Metadata
    """

    def __init__(self, model: Any, fit: ScaledFit, metadata: Metadata) -> None:
        if metadata.score:
            raise ValueError(
                f"{', '.join(metadata.score)}: with an approximation the scorer is told nothing of "
                "the rows beside their weights."
            )
        self.model, self.fit, self.metadata = model, fit, metadata

    def estimator_width(self) -> float | None:
        """The width of `gamma` as a number."""
        width: float | None = self.model._scaled_width(self.fit)
        return width

    def n_steps(self, n_combinations: int) -> int:
        """Steps of progress for one width."""
        return 1

    def widths_at_once(self) -> int:
        """One: the threads are busy with the blocks of one width."""
        return 1

    def solve(
        self, widths: list[Any], combinations: list[dict[str, Any]], advance: Advance
    ) -> list[Solved]:
        """Score all combinations at some kernel widths."""
        return [self._solve_width(width, combinations, advance) for width in widths]

    def _solve_width(
        self, width: Any, combinations: list[dict[str, Any]], advance: Advance
    ) -> Solved:
        scaled = self.model._scaled_kernel(self.fit, width)
        candidates = self.model._mapped_candidates(self.fit, scaled, combinations)

        def stand_in(values: Array, fold: int, index: int) -> Any:
            known = self.model._make_estimator(**combinations[index])
            known = fitted_linear(known, self.fit.labels, self.fit.n_problems)
            if candidates.bands is not None:
                rho = candidates.bands[:, fold, index]
                bands = np.column_stack([-rho, rho])
                known.thresholds_ = bands[0] if len(bands) == 1 else bands
            return known

        advance(1)
        table = self.scores(scaled, candidates, stand_in)
        short = candidates.short.any(axis=0).T
        return Solved(scaled.kernel.params.get("gamma"), table, short, None)

    def scores(self, scaled: ScaledKernel, candidates: Candidates, stand_in: StandIn) -> Array:
        """The score of every candidate on every fold, shape (candidates, folds).

        The accuracy, and the risk of two classes, are counted in one pass that keeps nothing. For
        all others the decision values of the held-out rows are collected, and `stand_in` gives an
        object that scikit-learn's scorers take for the fitted classifier that they are of.
        """
        model, fit, intercept = self.model, self.fit, candidates.intercept
        m, n_problems, n_folds, n_candidates = candidates.weights.shape
        raw = scaled.raw_weights(candidates.weights.reshape(m, -1)).astype(fit.source.dtype)
        raw = raw.reshape(-1, n_problems, n_folds, n_candidates)
        reader = Reader(scaled.reading, fit.classes, fit.folds)
        named = model.scoring if isinstance(model.scoring, str) else ""
        by_risk = named == "reject_risk" and n_problems == 1
        if named == "accuracy" or by_risk:
            width = np.zeros(raw[0].size)
            if by_risk and candidates.bands is not None:
                width = candidates.bands.ravel()
            columns = raw.reshape(len(raw), -1), intercept.reshape(-1)
            fold = np.repeat(np.arange(n_folds), n_candidates)
            task = HeldOutPass(reader, *columns, fold, width)
            wrong, rejected, total = scaled.source.sum(task)
            _check_counted(total)
            cost = float(getattr(model, "d", 0.0)) * rejected
            value = -(wrong + cost) / total if by_risk else 1.0 - wrong / total
            return np.asarray(value.reshape(n_folds, n_candidates).T)
        per_fold = raw.transpose(2, 0, 1, 3).reshape(n_folds, len(raw), -1)
        collect = _FoldScores(reader, per_fold, intercept.transpose(1, 0, 2).reshape(n_folds, -1))
        blocks = list(scaled.source.map(collect))
        table = np.empty((n_candidates, n_folds))
        for number in range(n_folds):
            codes, weight, scores = (
                np.concatenate(column) for column in zip(*(b[number] for b in blocks), strict=True)
            )
            _check_counted(weight.sum(keepdims=True))
            by_candidate = scores.reshape(len(scores), n_problems, n_candidates)
            told = self.metadata.weighted and not (weight == 1).all()
            options = {"sample_weight": weight} if told else {}
            for index in range(n_candidates):
                rows = np.ascontiguousarray(by_candidate[:, :, index])
                known = stand_in(rows, number, index)
                scorer = check_scoring(known, scoring=model._scorer())
                table[index, number] = scorer(known, rows, fit.labels[codes], **options)
        return table

    def refit(self, params: dict[str, Any], solved: Solved | None) -> Any:
        """The chosen estimator, fitted on all rows."""
        values = {name: value for name, value in params.items() if name != "gamma"}
        estimator = self.estimator(params["gamma"], **values)
        estimator._fit_scaled(self.fit)
        return estimator

    def estimator(self, gamma: Any, **values: Any) -> Any:
        """An unfitted estimator that trains as the search does."""
        width = {} if gamma is None else {"gamma": gamma}
        estimator = self.model._make_estimator(**values, **width)
        estimator.n_features_in_ = self.model.n_features_in_
        return estimator


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


def _check_counted(total: Array) -> None:
    if not (total > 0).all():
        raise ValueError("A fold has no held-out rows: use fewer folds.")


def fitted_linear(model: Any, classes: NDArray[Any], n_problems: int) -> Any:
    """Make an unfitted classifier one whose rows are decision values already."""
    model.set_params(kernel="linear")
    model.classes_ = classes
    model.coef_ = np.eye(n_problems)
    model.intercept_ = np.zeros(n_problems)
    model.n_features_in_ = n_problems
    return model
