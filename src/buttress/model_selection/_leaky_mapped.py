"""The leaky hockey stick path with cross-validation, by passes over blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.classifiers.leaky_path import RegularizationPath, make_loss
from buttress.classifiers.row_strategies import ScaledFit, ScaledKernel
from buttress.classifiers.scaled_models import solve_leaky
from buttress.classifiers.stopping import ended_by_limit
from buttress.model_selection._exact import Advance
from buttress.model_selection._leaky_exact import KnownScores
from buttress.model_selection._mapped import MappedSearch
from buttress.model_selection._mapped_candidates import Candidates
from buttress.model_selection._results import Solved
from buttress.solvers.blockwise.certificate import duality_gaps
from buttress.solvers.blockwise.columns import column_grid, margin_rows
from buttress.solvers.blockwise.intervals import centre_free_offsets
from buttress.solvers.blockwise.reduction import ColumnSolution, solve_columns

# Accuracy of the path: far below the differences that change a score.
_PATH_TOLERANCE = 1e-7


class MappedLeakySearch(MappedSearch):
    """All penalties and folds, and the refit, of a width and an exponent ride together."""

    def _solve_width(
        self, width: Any, combinations: list[dict[str, Any]], advance: Advance
    ) -> Solved:
        model, fit, alphas = self.model, self.fit, self.model._alphas()
        n_folds = fit.folds.n_folds
        scaled = model._scaled_kernel(fit, width)
        tables, short = [], []
        best: Any = None
        for r in [first["r"] for first in combinations[:: len(alphas)]]:
            rows = margin_rows(make_loss(model.loss, r), model.fit_intercept)
            columns = column_grid(fit.n_problems, range(n_folds + 1), alphas)
            objective = scaled.objective(fit, rows, columns)
            solved = solve_columns(objective, tol=_PATH_TOLERANCE, max_passes=int(model.max_iter))
            theta, _ = centre_free_offsets(objective, solved.theta)
            cube = theta.reshape(len(theta), fit.n_problems, n_folds + 1, len(alphas))
            q = rows.n_offsets
            weights, offsets = cube[: len(cube) - q], cube[len(cube) - q :]
            intercept = offsets[0] if q else np.zeros(cube.shape[1:])
            ended = ended_by_limit(solved.converged, solved.n_iter, model.max_iter)
            ended = ended.reshape(intercept.shape)[:, :-1]
            folds = Candidates(weights[:, :, :-1], intercept[:, :-1], ended)
            short.append(ended.any(axis=0).T)
            tables.append(self.scores(scaled, folds, self._stand_in))
            mean = float(tables[-1].mean(axis=1).max())
            if best is None or mean > best[0] + 1e-12:
                best = (mean, _Refit(r, scaled, solved, cube[:, :, -1]))
        advance(1)
        width_used = scaled.kernel.params.get("gamma")
        return Solved(width_used, np.concatenate(tables), np.concatenate(short), best[1])

    def refit(self, params: dict[str, Any], solved: Solved | None) -> Any:
        alphas, model = self.model._alphas(), self.model
        if solved is None or solved.kept.r != params["r"]:
            again = [{"alpha": alpha, "r": params["r"]} for alpha in alphas]
            solved = self._solve_width(params["gamma"], again, lambda steps: None)
        kept: _Refit = solved.kept
        estimator = self.estimator(params["gamma"], alpha=params["alpha"], r=params["r"])
        loss = make_loss(model.loss, kept.r)
        paths = _paths(model, self.fit, kept.scaled, loss, alphas, kept.solved, kept.theta)
        model.path_ = paths[0] if len(paths) == 1 else paths
        index = int(np.flatnonzero(alphas == params["alpha"])[0])
        start = np.ascontiguousarray(kept.theta[:, :, index])
        solve_leaky(estimator, self.fit, kept.scaled, loss, params["alpha"], start)
        return estimator

    def _stand_in(self, values: Array, fold: int, index: int) -> KnownScores:
        return KnownScores(self.fit.labels, values)


@dataclass(frozen=True, eq=False)
class _Refit:
    """The path on all rows for one width and exponent."""

    r: float
    scaled: ScaledKernel
    solved: ColumnSolution
    theta: Array


def _paths(
    model: Any,
    fit: ScaledFit,
    scaled: ScaledKernel,
    loss: Any,
    alphas: Array,
    solved: ColumnSolution,
    refit: Array,
) -> list[RegularizationPath]:
    """The refit's path with certificates, one per binary problem."""
    rows = margin_rows(loss, model.fit_intercept)
    n_problems, n_alphas = fit.n_problems, len(alphas)
    columns = column_grid(n_problems, [fit.folds.n_folds], alphas)
    objective = scaled.objective(fit, rows, columns)
    theta, intervals = centre_free_offsets(objective, refit.reshape(len(refit), -1))
    gaps, objectives = duality_gaps(objective, theta)
    done = solved.converged.reshape(n_problems, -1, n_alphas)[:, -1]
    cut = len(theta) - rows.n_offsets
    raw = scaled.raw_weights(theta[:cut])
    intercepts = theta[-1] if rows.n_offsets else np.zeros(len(gaps))
    paths = []
    for problem in range(n_problems):
        span = slice(problem * n_alphas, (problem + 1) * n_alphas)
        linear = fit.name is None
        b = intercepts[span]
        paths.append(
            RegularizationPath(
                alphas=alphas,
                intercepts=b,
                intervals=intervals[span],
                dual_coefs=np.empty((n_alphas, 0)) if linear else raw[:, span].T,
                coefs=raw[:, span].T if linear else None,
                objectives=objectives[span],
                gaps=gaps[span],
                n_iter=np.full(n_alphas, solved.n_iter),
                converged=done[problem],
            )
        )
    return paths
