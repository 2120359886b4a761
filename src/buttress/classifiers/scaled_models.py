"""The approximate fits of the four classifiers that have one.

Of all of them a certificate within the tolerance, or within what rounding of the rows explains,
says that they are done; those that are not convex must also have no outer steps left to do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.classifiers.base import of_problems
from buttress.classifiers.row_strategies import ScaledFit, ScaledKernel, TrainingScores
from buttress.losses import steepest_slope
from buttress.losses.smoothed import SmoothedRamp
from buttress.solvers.blockwise.certificate import duality_gaps
from buttress.solvers.blockwise.columns import (
    RowLoss,
    column_grid,
    margin_rows,
    reject_rows,
    set_rows,
)
from buttress.solvers.blockwise.intervals import centre_free_offsets
from buttress.solvers.blockwise.outer import solve_radius_columns, solve_ramp_columns
from buttress.solvers.blockwise.reduction import ColumnCertificate, solve_columns
from buttress.solvers.sets.bias import error_rate_bias

# Half width of the rounded corner of a hinge with slope 1, on the scale of the margin. Answers of
# the ramp machine on 2500 rows of banana and 810 of image are all those of the exact one with .02;
# with .1 one of them differs, with .5 thirteen.
SMOOTHING_WIDTH = 0.02
# Passes over the rows for one convex step; `max_iter` limits the outer steps.
_MAX_PASSES = 1000
# What an approximate double ramp machine takes.
DOUBLE_RAMP_PLAIN = {"fit_intercept": True, "costs": None, "target_coverage": None, "init": "zero"}


def ramp_loss(s: float) -> SmoothedRamp:
    """The ramp of `RampClassifier`, rounded at its margin."""
    return SmoothedRamp(1.0, float(s), 1.0, SMOOTHING_WIDTH)


def double_ramp_loss(mu: float) -> SmoothedRamp:
    """One ramp of `DoubleRampClassifier`, rounded at its margin."""
    return SmoothedRamp(float(mu), -(float(mu) ** 2), 1.0 / float(mu), SMOOTHING_WIDTH * float(mu))


def fit_scaled_leaky(model: Any, fit: ScaledFit, loss: Any) -> None:
    """``mean loss + alpha ||f||^2``; `model` has alpha, fit_intercept, tol and max_iter."""
    scaled = model._scaled_kernel(fit)
    solve_leaky(model, fit, scaled, loss, float(model.alpha), None)


def solve_leaky(
    model: Any, fit: ScaledFit, scaled: ScaledKernel, loss: Any, alpha: float, start: Any
) -> None:
    """Solve at one penalty to full accuracy, certify, and store."""
    rows = margin_rows(loss, model.fit_intercept)
    columns = column_grid(fit.n_problems, [fit.folds.n_folds], [alpha])
    objective = scaled.objective(fit, rows, columns)
    # An error e of the coefficients raises the objective by about alpha e^2 in the directions
    # that only the penalty holds: that much is asked for.
    tol = max(model.tol**2 * min(1.0, alpha) / 10.0, 1e-22)
    solution = solve_columns(objective, tol=tol, max_passes=int(model.max_iter), start=start)
    q = rows.n_offsets
    theta, intervals = centre_free_offsets(objective, solution.theta)
    weights = theta[: len(theta) - q]
    intercept = theta[-1] if q else np.zeros(fit.n_problems)
    model._store_scaled(fit, scaled, weights, intercept)
    model.intercept_interval_ = of_problems(intervals)
    model.solver_ = f"reduction ({solution.method})"
    gaps, objectives = duality_gaps(objective, theta)
    known = bool(np.isfinite(gaps).all())
    if not known:
        gaps = np.abs(objective(theta, np.arange(fit.n_problems))[1]).max(axis=0)
    # The solver aims at coefficients; a closed gap is enough where rounding stops it earlier.
    done = solution.converged | (gaps <= model.tol * (1.0 + np.abs(objectives)))
    certificates = [
        ColumnCertificate(float(f), float(gap), solution.n_iter, bool(c))
        for f, gap, c in zip(objectives, gaps, done, strict=True)
    ]
    kind = "duality_gap" if known else "kkt_residual"
    model._store_certificates(certificates, kind=kind, outer_steps=False)


@dataclass(frozen=True, eq=False)
class ScaledRamp:
    """Solutions of ramp problems in the units of ``1/2 ||f||^2 + C sum loss``."""

    weights: Array  # (components, columns)
    offsets: Array  # (n_offsets, columns)
    certificates: list[ColumnCertificate]  # converged: no outer steps were left to do
    paths: list[Array]
    method: str


def solve_scaled_ramp(
    fit: ScaledFit,
    scaled: ScaledKernel,
    rows: RowLoss,
    Cs: Any,
    *,
    folds: Any = None,
    tol: float = 1e-9,
    inner_tol: float = 1e-12,
    max_outer: int = 100,
) -> ScaledRamp:
    """All penalties `Cs` (fastest), folds and problems (slowest) together."""
    folds = [fit.folds.n_folds] if folds is None else folds
    columns = column_grid(fit.n_problems, folds, Cs)
    totals = fit.summary.fold_weight.sum(axis=0)[columns.fold]
    C = columns.alpha
    # 1/2 ||f||^2 + C sum loss, divided by C times the total weight.
    scale = C * totals
    columns = type(columns)(columns.problem, columns.fold, 1.0 / (2.0 * scale))
    objective = scaled.objective(fit, rows, columns)
    outer = solve_ramp_columns(
        objective, tol=tol, inner_tol=inner_tol, max_outer=max_outer, max_passes=_MAX_PASSES
    )
    solution, q = outer.solution, rows.n_offsets
    certificates = [
        ColumnCertificate(float(f * s), float(g * s), int(n), bool(c))
        for f, g, s, n, c in zip(
            solution.objective, solution.gap, scale, outer.n_outer, outer.finished, strict=True
        )
    ]
    paths = [outer.objective_path[: outer.n_outer[i], i] * scale[i] for i in range(len(scale))]
    cut = len(solution.theta) - q
    return ScaledRamp(
        solution.theta[:cut],
        solution.theta[cut:],
        certificates,
        paths,
        solution.method,
    )


def fit_scaled_ramp(model: Any, fit: ScaledFit) -> TrainingScores:
    """The ramp machine; returns the training rows' scores for its row attributes."""
    if model.radius is not None:
        raise ValueError(
            "radius needs the exact kernel: with an approximation choose C instead "
            "(approximation=None keeps radius)."
        )
    scaled = model._scaled_kernel(fit)
    rows = margin_rows(ramp_loss(model.s), model.fit_intercept)
    ramp = solve_scaled_ramp(fit, scaled, rows, [float(model.C)], max_outer=int(model.max_iter))
    intercept = ramp.offsets[0] if model.fit_intercept else np.zeros(fit.n_problems)
    model.C_ = of_problems([float(model.C)] * fit.n_problems)
    model.ball_active_ = of_problems([False] * fit.n_problems)
    model.smoothing_width_ = SMOOTHING_WIDTH
    return _store_ramp(model, fit, scaled, ramp, intercept)


def fit_scaled_double_ramp(model: Any, fit: ScaledFit) -> TrainingScores:
    """The double ramp machine; returns the training rows' scores for its row attributes."""
    refuse_beside(model, DOUBLE_RAMP_PLAIN)
    scaled = model._scaled_kernel(fit)
    rows = reject_rows(double_ramp_loss(model.mu), float(model.d))
    ramp = solve_scaled_ramp(fit, scaled, rows, [float(model.C)], max_outer=int(model.max_iter))
    intercept, rho = band(ramp.offsets, float(model.d))
    model.rho_ = of_problems(rho.tolist())
    model.thresholds_ = of_problems(np.column_stack([-rho, rho]))
    model.smoothing_width_ = SMOOTHING_WIDTH * float(model.mu)
    return _store_ramp(model, fit, scaled, ramp, intercept)


def _store_ramp(
    model: Any, fit: ScaledFit, scaled: ScaledKernel, ramp: ScaledRamp, intercept: Array
) -> TrainingScores:
    """Keep the model and its certificates; returns the scores of the training rows."""
    model._store_scaled(fit, scaled, ramp.weights, intercept)
    model.objective_path_ = ramp.paths[0] if fit.n_problems == 1 else ramp.paths
    model.solver_ = f"reduction ({ramp.method})"
    model._store_certificates(ramp.certificates, kind="duality_gap")
    training_scores: TrainingScores = model._training_scores(fit)
    return training_scores


def band(offsets: Array, d: float) -> tuple[Array, Array]:
    """Intercept and half width of the band from the two offsets."""
    intercept = (offsets[0] + offsets[1]) / 2.0
    # rho and -rho are the same band, and the objective is no larger at the positive one.
    rho = np.zeros_like(intercept) if d == 0.5 else np.abs(offsets[1] - offsets[0]) / 2.0
    return intercept, rho


@dataclass(frozen=True, eq=False)
class ScaledSets:
    """Solutions of uncertainty-set problems."""

    weights: Array
    intercept: Array
    rho: Array
    certificates: list[ColumnCertificate]
    method: str


def solve_scaled_sets(
    fit: ScaledFit,
    scaled: ScaledKernel,
    loss: Any,
    radii: Any,
    *,
    folds: Any = None,
    tol: float = 1e-8,
) -> ScaledSets:
    """``min -2 rho + mean loss(rho - y f)`` with ``||f|| <= radius``, all radii and folds."""
    folds = [fit.folds.n_folds] if folds is None else folds
    columns = column_grid(fit.n_problems, folds, radii)
    _check_slopes(fit, loss)
    objective = scaled.objective(fit, set_rows(loss), columns)
    outer = solve_radius_columns(objective, columns.alpha, tol=tol, max_passes=_MAX_PASSES)
    theta = outer.solution.theta
    return ScaledSets(
        theta[:-2],
        (theta[-2] + theta[-1]) / 2.0,
        (theta[-1] - theta[-2]) / 2.0,
        outer.solution.certificates(),
        outer.solution.method,
    )


def fit_scaled_sets(model: Any, fit: ScaledFit, loss: Any) -> None:
    """The uncertainty-set classifier with a smooth loss."""
    check_smooth(loss)
    refuse_beside(model, {"holdout": 0.0})
    scaled = model._scaled_kernel(fit)
    tol = max(float(model.tol), 1e-4) if fit.source.dtype == np.float32 else float(model.tol)
    sets = solve_scaled_sets(fit, scaled, loss, [float(model.radius)], tol=tol)
    n_problems = fit.n_problems
    model._store_scaled(fit, scaled, sets.weights, np.zeros(n_problems))
    training: TrainingScores = model._training_scores(fit)
    total = training.weight.sum()
    intercept, levels = np.empty(n_problems), np.empty((n_problems, 2))
    weights = np.zeros((n_problems, training.n_rows))
    for k in range(n_problems):
        y, values = training.targets(k), np.asarray(training.scores[:, k], dtype=np.float64)
        slope = loss.derivative(sets.rho[k] - y * (values + sets.intercept[k]))
        alpha = training.weight * slope / total
        weights[k, training.rows] = alpha
        cost = training.weight * loss.conjugate(slope) / total
        levels[k] = cost[y > 0].sum(), cost[y < 0].sum()
        if model.bias == "primal":
            intercept[k] = sets.intercept[k]
        elif model.bias == "bisect":
            intercept[k] = -0.5 * float(alpha @ values)
        else:
            reference = float(sets.intercept[k])
            intercept[k] = error_rate_bias(values, y, training.weight, reference=reference).bias
    model.intercept_ = intercept.astype(fit.source.dtype)
    model.loss_ = loss
    model.rho_ = of_problems(sets.rho.tolist())
    model.set_weights_ = of_problems(weights)
    model.set_levels_ = of_problems(levels)
    model.solver_ = f"reduction ({sets.method})"
    targets = np.array([training.targets(k) for k in range(n_problems)])
    rows = None if fit.data is None else fit.data.X
    model._set_rows = (rows, targets, None if fit.data is None else fit.data.weight)
    # the search for the penalty that has this radius ends by itself
    model._store_certificates(
        sets.certificates, kind="duality_gap", limited=False, outer_steps=False
    )


def refuse_beside(model: Any, plain: dict[str, Any]) -> None:
    """Raise a ValueError for a parameter that is not `plain`: only the exact kernel knows it."""
    for name, usual in plain.items():
        value = getattr(model, name)
        if value is not usual and value != usual:
            raise ValueError(
                f"{name}={value!r} needs the exact kernel: with an approximation only "
                f"{name}={usual!r} is available."
            )


def check_smooth(loss: Any) -> None:
    """Raise a ValueError for set losses without a second derivative."""
    if not (hasattr(loss, "curvature") and hasattr(loss, "derivative")) or not np.isfinite(
        float(np.max(loss.curvature(np.array([0.0]))))
    ):
        raise ValueError(
            f"{type(loss).__name__} has corners: approximate fits need a smooth set loss "
            "('ellipsoid', 'truncated_quadratic', 'exponential' or 'logistic')."
        )


def _check_slopes(fit: ScaledFit, loss: Any) -> None:
    """A loss whose slope is bounded is unbounded below when a class is too small."""
    bound = steepest_slope(loss)
    if math.isinf(bound):
        return
    weight = fit.summary.fold_weight
    share = weight / weight.sum(axis=0)
    below = share if len(share) == 2 else np.vstack([share, 1.0 - share])
    if bound * below.min() <= 1.0:
        raise ValueError(
            f"{type(loss).__name__}: the problem is unbounded, because a class holds a share of "
            f"{below.min():.3g} of the rows and the loss's slope is at most {bound:g}; their "
            "product must exceed 1."
        )
