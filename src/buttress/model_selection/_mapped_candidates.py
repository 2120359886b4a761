"""Ramp, double ramp and uncertainty-set machines without each fold, by passes over blocks.

All penalties (or radii) and all folds of one kernel width are columns of the same passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray
from buttress.blocks.base import Block
from buttress.classifiers.row_strategies import ScaledFit, ScaledKernel
from buttress.classifiers.scaled_models import (
    band,
    check_smooth,
    double_ramp_loss,
    ramp_loss,
    solve_scaled_ramp,
    solve_scaled_sets,
)
from buttress.classifiers.set_machines import make_set_loss
from buttress.classifiers.stopping import ended_by_limit
from buttress.solvers.blockwise.columns import margin_rows, reject_rows
from buttress.solvers.blockwise.passes import Reader
from buttress.solvers.sets.bias import error_rate_bias

# Folds are solved to the accuracy at which scores no longer change.
_OUTER, _INNER = 1e-6, 1e-8
# The gap of uncertainty sets on folds: the search for their norm aims at a tenth of it.
_SET_GAP = 1e-5
# Columns whose scores of all training rows are held at a time, for the bias of least error.
_BIAS_COLUMNS = 16


@dataclass(frozen=True, eq=False)
class Candidates:
    """Models of all candidates without each fold.

    Attributes
    ----------
    weights : array of shape (components, problems, folds, candidates)
    intercept : array of shape (problems, folds, candidates)
    short : bool array of shape (problems, folds, candidates)
        Whether `max_iter` ended the fit.
    bands : array of shape (problems, folds, candidates), or None
        Half widths of rejection bands.
    """

    weights: Array
    intercept: Array
    short: BoolArray
    bands: Array | None = None


def ramp_candidates(
    model: Any, fit: ScaledFit, scaled: ScaledKernel, combinations: Sequence[dict[str, Any]]
) -> Candidates:
    """Models of `RampClassifierCV`: one group of columns per clipping margin s."""
    n_folds = fit.folds.n_folds
    weights: list[Any] = [None] * len(combinations)
    intercept: list[Any] = [None] * len(combinations)
    short: list[Any] = [None] * len(combinations)
    for s in sorted({float(values["s"]) for values in combinations}):
        members = [i for i, values in enumerate(combinations) if values["s"] == s]
        Cs = [float(combinations[i]["C"]) for i in members]
        rows = margin_rows(ramp_loss(s), model.fit_intercept)
        ramps = _ramps(model, fit, scaled, rows, Cs)
        shape = (fit.n_problems, n_folds, len(Cs))
        w, o = (each.reshape(len(each), *shape) for each in (ramps.weights, ramps.offsets))
        b = o[0] if len(o) else np.zeros(w.shape[1:])
        ended = _ended(model, ramps.certificates, shape)
        for position, i in enumerate(members):
            weights[i], intercept[i] = w[..., position], b[..., position]
            short[i] = ended[..., position]
    return Candidates(*(np.stack(each, axis=-1) for each in (weights, intercept, short)))


def double_ramp_candidates(
    model: Any, fit: ScaledFit, scaled: ScaledKernel, combinations: Sequence[dict[str, Any]]
) -> Candidates:
    """Models of `DoubleRampClassifierCV`."""
    Cs = [float(values["C"]) for values in combinations]
    rows = reject_rows(double_ramp_loss(model.mu), float(model.d))
    ramps = _ramps(model, fit, scaled, rows, Cs)
    b, rho = band(ramps.offsets, float(model.d))
    shape = (fit.n_problems, fit.folds.n_folds, len(Cs))
    w = ramps.weights.reshape(-1, *shape)
    short = _ended(model, ramps.certificates, shape)
    return Candidates(w, b.reshape(shape), short, rho.reshape(shape))


def _ramps(model: Any, fit: ScaledFit, scaled: ScaledKernel, rows: Any, Cs: list[float]) -> Any:
    return solve_scaled_ramp(
        fit,
        scaled,
        rows,
        Cs,
        folds=range(fit.folds.n_folds),
        tol=_OUTER,
        inner_tol=_INNER,
        max_outer=int(model.max_iter),
    )


def set_candidates(
    model: Any, fit: ScaledFit, scaled: ScaledKernel, combinations: Sequence[dict[str, Any]]
) -> Candidates:
    """Models of `UncertaintySetClassifierCV`, with the bias that its rule asks for."""
    loss = make_set_loss(model.loss, model.h, model.omega, model.nu)
    check_smooth(loss)
    radii = [float(values["radius"]) for values in combinations]
    n_folds = fit.folds.n_folds
    shape = (fit.n_problems, n_folds, len(radii))
    sets = solve_scaled_sets(fit, scaled, loss, radii, folds=range(n_folds), tol=_SET_GAP)
    intercept = sets.intercept
    if model.bias != "primal":
        intercept = _biases(model.bias, fit, scaled, loss, sets, shape)
    short = np.zeros(shape, dtype=bool)  # `max_iter` is no limit of this solver
    return Candidates(sets.weights.reshape(-1, *shape), intercept.reshape(shape), short)


def _ended(model: Any, certificates: Sequence[Any], shape: tuple[int, ...]) -> BoolArray:
    converged = [each.converged for each in certificates]
    steps = [each.n_iter for each in certificates]
    return ended_by_limit(converged, steps, model.max_iter).reshape(shape)


@dataclass(frozen=True, eq=False)
class _AllScores:
    reader: Reader
    weights: Array

    def __call__(self, block: Block) -> tuple[Any, ...]:
        tiles = [
            (tile.raw @ self.weights, tile.targets, tile.weight, tile.numbers)
            for tile in self.reader.tiles(block)
        ]
        scores, targets, weight, numbers = (np.concatenate(c) for c in zip(*tiles, strict=True))
        return scores, targets, weight, self.reader.folds.train(numbers)


def _biases(
    rule: str, fit: ScaledFit, scaled: ScaledKernel, loss: Any, sets: Any, shape: Any
) -> Array:
    """The bias of every column from the scores of its own training rows."""
    reader = Reader(scaled.reading, fit.classes, fit.folds)
    raw = scaled.raw_weights(sets.weights).astype(fit.source.dtype)
    problem, fold, _ = (a.ravel() for a in np.indices(shape))
    out = np.empty(len(problem))
    for first in range(0, len(out), _BIAS_COLUMNS):
        columns = slice(first, min(first + _BIAS_COLUMNS, len(out)))
        blocks = list(scaled.source.map(_AllScores(reader, raw[:, columns])))
        scores, targets, weight, train = (np.concatenate(c) for c in zip(*blocks, strict=True))
        for position, c in enumerate(range(columns.start, columns.stop)):
            inside = train[:, fold[c]]
            values = np.asarray(scores[inside, position], dtype=np.float64)
            y = targets[inside, problem[c]].astype(np.float64)
            w = weight[inside].astype(np.float64)
            b = float(sets.intercept[c])
            if rule == "bisect":
                slope = loss.derivative(sets.rho[c] - y * (values + b))
                out[c] = -0.5 * float((w * slope) @ values) / w.sum()
            else:
                out[c] = error_rate_bias(values, y, w, reference=b).bias
    return out
