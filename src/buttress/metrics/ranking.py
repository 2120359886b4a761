"""Rows in the order of their confidence, ready to be counted with other weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from buttress._arrays import Array, BoolArray, IntArray
from buttress.metrics.counts import column, relative, row_outcomes


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Answers and confidences, sorted once.

    Attributes
    ----------
    levels : array of shape (n_levels,)
        The distinct confidences, from the largest down.
    level_of : integer array of shape (n,)
        The level of every row.
    wrong : array of bool of shape (n,)
    weight : array of shape (n,)
    """

    levels: Array
    level_of: IntArray
    wrong: BoolArray
    weight: Array

    @classmethod
    def of(cls, y: Any, pred: Any, score: Any, sample_weight: Any = None) -> RankedRows:
        """Check and sort; a mask of `pred` does not count.

        Raises
        ------
        ValueError
            When a label, an answer or a score is missing, or there is none.
        """
        outcome = row_outcomes(y, np.ma.getdata(pred), None, sample_weight, all_answered=True)
        score = np.asarray(column(score, "score"), dtype=np.float64)
        check_consistent_length(outcome.wrong, score)
        if len(score) == 0 or np.isnan(score).any():
            raise ValueError("score must hold at least one number and no NaN.")
        values, level_of = np.unique(-score, return_inverse=True)
        return cls(-values, level_of, outcome.wrong, outcome.weight)

    def counts(self, times: Array | IntArray | None = None) -> tuple[Array, Array]:
        """Weight of the rows and of the errors at every level; only their ratios count.

        Parameters
        ----------
        times : array of shape (n,), optional
            Factors of the rows' weights, as how often a resample drew them.
        """
        weight = self.weight if times is None else relative(self.weight * times)
        n = len(self.levels)
        sums = [
            np.bincount(self.level_of, weights=summands, minlength=n).astype(np.float64)
            for summands in (weight, weight * self.wrong)
        ]
        return sums[0], sums[1]
