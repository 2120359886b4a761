"""The leaky hockey stick path with cross-validation, by passes over blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.classifiers.approximation import ScaledFit, ScaledKernel
from buttress.classifiers.leaky_path import RegularizationPath, make_loss
from buttress.classifiers.scaled_models import solve_leaky
from buttress.model_selection._scaled_cv import StandIn, held_out_scores, split_columns
from buttress.solvers.blockwise.certificate import duality_gaps
from buttress.solvers.blockwise.columns import column_grid, margin_rows
from buttress.solvers.blockwise.intervals import centre_free_offsets
from buttress.solvers.blockwise.reduction import ColumnSolution, solve_columns

# Accuracy of the path: far below the differences that change a score.
_PATH_TOLERANCE = 1e-7


def fit_scaled_leaky_cv(
    model: Any,
    fit: ScaledFit,
    alphas: Array,
    exponents: Sequence[float],
    make_candidate: Callable[..., Any],
    stand_in: StandIn,
) -> None:
    """Solve path and folds for every width and exponent, choose, and refit."""
    widths = [None] if model.gammas is None else list(model.gammas)
    n_folds = fit.folds.n_folds
    table = np.empty((len(exponents), len(widths), len(alphas), n_folds))
    best: Any = None
    for j, width in enumerate(widths):
        scaled = model._scaled_kernel(fit, width)
        for i, r in enumerate(exponents):
            rows = margin_rows(make_loss(model.loss, r), model.fit_intercept)
            columns = column_grid(fit.n_problems, range(n_folds + 1), alphas)
            objective = scaled.objective(fit, rows, columns)
            found = solve_columns(objective, tol=_PATH_TOLERANCE, max_passes=int(model.max_iter))
            theta, _ = centre_free_offsets(objective, found.theta)
            cube = split_columns(theta, fit.n_problems, n_folds + 1, len(alphas))
            q = rows.n_offsets
            weights, offsets = cube[: len(cube) - q], cube[len(cube) - q :]
            intercept = offsets[0] if q else np.zeros(cube.shape[1:])
            table[i, j] = held_out_scores(
                fit, scaled, weights[:, :, :-1], intercept[:, :-1], model.scoring, stand_in
            )
            candidate = make_candidate(scaled, r, table[i, j], (found, cube[:, :, -1]))
            if best is None or candidate.beats(best):
                best = candidate
    model._choose(alphas, best)
    model.cv_results_ = {
        "r": np.array(exponents),
        "gamma": np.array(widths, dtype=object),
        "scores": table,
    }
    scaled, (found, refit) = best.problem, best.refit
    loss = make_loss(model.loss, best.r)
    paths = _paths(model, fit, scaled, loss, alphas, found, refit)
    model.path_ = paths[0] if len(paths) == 1 else paths
    index = int(np.flatnonzero(alphas == model.alpha_)[0])
    solve_leaky(model, fit, scaled, loss, model.alpha_, np.ascontiguousarray(refit[:, :, index]))


def _paths(
    model: Any,
    fit: ScaledFit,
    scaled: ScaledKernel,
    loss: Any,
    alphas: Array,
    found: ColumnSolution,
    refit: Array,
) -> list[RegularizationPath]:
    """The refit's path with certificates, one per binary problem."""
    rows = margin_rows(loss, model.fit_intercept)
    n_problems, n_alphas = fit.n_problems, len(alphas)
    columns = column_grid(n_problems, [fit.folds.n_folds], alphas)
    objective = scaled.objective(fit, rows, columns)
    theta, intervals = centre_free_offsets(objective, refit.reshape(len(refit), -1))
    gaps, objectives = duality_gaps(objective, theta)
    done = found.converged.reshape(n_problems, -1, n_alphas)[:, -1]
    cut = len(theta) - rows.n_offsets
    raw = scaled.raw_weights(theta[:cut])
    intercepts = theta[-1] if rows.n_offsets else np.zeros(len(gaps))
    paths = []
    for problem in range(n_problems):
        mine = slice(problem * n_alphas, (problem + 1) * n_alphas)
        linear = fit.name is None
        b = intercepts[mine]
        paths.append(
            RegularizationPath(
                alphas=alphas,
                intercepts=b,
                intervals=intervals[mine],
                dual_coefs=np.empty((n_alphas, 0)) if linear else raw[:, mine].T,
                coefs=raw[:, mine].T if linear else None,
                objectives=objectives[mine],
                gaps=gaps[mine],
                n_iter=np.full(n_alphas, found.n_iter),
                converged=done[problem],
            )
        )
    return paths
