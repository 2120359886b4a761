"""A search on mapped rows in blocks: all candidates and folds ride in the same passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.classifiers.row_strategies import ScaledFit, ScaledKernel
from buttress.model_selection._exact import Advance
from buttress.model_selection._held_out import StandIn, fitted_linear, held_out_scores
from buttress.model_selection._mapped_candidates import Candidates
from buttress.model_selection._results import Metadata, Solved


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
        return Solved(scaled.kernel.params.get("gamma"), table, None)

    def scores(self, scaled: ScaledKernel, candidates: Candidates, stand_in: StandIn) -> Array:
        """The score of every candidate on every fold, shape (candidates, folds)."""
        model = self.model
        counted = model.scoring in ("accuracy", "reject_risk") and isinstance(model.scoring, str)
        if model.scoring == "reject_risk" and self.fit.n_problems > 1:
            counted = False
        return held_out_scores(
            self.fit,
            scaled,
            candidates.weights,
            candidates.intercept,
            model.scoring if counted else model._scorer(),
            stand_in,
            bands=None if candidates.bands is None else candidates.bands[0],
            d=float(getattr(model, "d", 0.0)),
            weighted=self.metadata.weighted,
        )

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
