"""Store the models of the hinge machines, and certify the numbers that were stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.classifiers.training import TrainingSet
from buttress.kernels import Kernel

# No warning for residuals up to this part of the largest score, and for gaps up to this part of the
# objective: rounding of the stored numbers leaves as much.
_ROUNDING = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 1e-5}
# From this tolerance on, asked for or all that the rows allow, the gap may be as large as residuals
# of that size make it.
_LOOSE = 1e-6
# Rows and support vectors whose similarities are summed at a time.
_ROWS = 10_000
_VECTORS = 512


def store_hinge_models(
    model: Any, data: TrainingSet, kernel: Kernel, solutions: Sequence[Any], tol: float
) -> list[Any]:
    """Keep the expansions of the solutions; return them with the stored model's certificates.

    Parameters
    ----------
    model : BaseKernelClassifier
    data : TrainingSet
    kernel : Kernel
    solutions : sequence of RampSolution, DoubleRampSolution or StackedHingeSolution
        One per binary problem.
    tol : float
        What they were solved to, on the scale of f.

    Returns
    -------
    list
        With objective, gap and violation computed in float64 from ``coef_`` or ``dual_coef_``
        and ``intercept_``; ``converged`` only where both meet the tolerance.
    """
    intercept = np.array([solution.b for solution in solutions])
    vectors = [solution.w for solution in solutions if solution.w is not None]
    coef = np.array(vectors) if vectors else None
    if coef is not None and kernel.center is not None:
        intercept = intercept - coef @ kernel.center.astype(np.float64)
    dual = np.array([solution.c for solution in solutions])
    model._store_expansion(data, kernel, dual, intercept, coef)
    rounding = _ROUNDING[np.dtype(model.intercept_.dtype)]
    exact = model.intercept_.dtype == np.float64 and not hasattr(model, "coef_")
    if not exact:
        values, norms = _stored_values(model, data)
    certified = []
    for k, solution in enumerate(solutions):
        if not exact:
            b = _bias(model, k)
            worth = solution.worth(values[:, k] - b, b, norms[k])
            solution = replace(
                solution, objective=worth.objective, gap=worth.gap, violation=worth.violation
            )
        largest = 1.0 + float(np.abs(solution.g + solution.b).max(initial=0.0))
        met = solution.violation <= max(2.0 * tol, rounding * largest)
        allowed = max(tol, rounding) * (1.0 + abs(solution.objective))
        if tol >= _LOOSE:
            # residuals of the size asked for leave a gap of as much in every term
            allowed = max(allowed, 2.0 * tol * float(solution.certificate.terms.weight.sum()))
        met = met and solution.gap <= allowed
        certified.append(replace(solution, converged=bool(solution.converged and met)))
    return certified


def _bias(model: Any, k: int) -> float:
    """The stored bias, for rows taken from the kernel's center."""
    b = float(model.intercept_[k])
    center = model.kernel_.center
    if hasattr(model, "coef_") and center is not None:
        b += float(model.coef_[k].astype(np.float64) @ center.astype(np.float64))
    return b


def _stored_values(model: Any, data: TrainingSet) -> tuple[Array, Array]:
    """Scores of the training rows by the stored numbers in float64, and squared norms."""
    intercept = model.intercept_.astype(np.float64)
    if hasattr(model, "coef_"):
        coef = model.coef_.astype(np.float64)
        return np.asarray(data.X.astype(np.float64) @ coef.T) + intercept, np.sum(coef**2, axis=1)
    dual = model.dual_coef_.astype(np.float64)
    # where the support vectors stand among the rows of `data`
    used = np.flatnonzero(np.isin(data.rows, model.support_))
    n = len(data.codes)
    values = np.zeros((n, len(dual)))
    # few support vectors at a time against many rows: tiles of a size that caches hold
    for first in range(0, len(used), _VECTORS):
        some = slice(first, first + _VECTORS)
        support = data.X[used[some]].astype(np.float64)
        for start in range(0, n, _ROWS):
            block = data.X[start : start + _ROWS].astype(np.float64)
            if model._precomputed:
                values[start : start + _ROWS] += block[:, used[some]] @ dual[:, some].T
            else:
                values[start : start + _ROWS] += model.kernel_.sums(block, support, dual[:, some])
    return values + intercept, np.asarray(np.sum(dual * values[used].T, axis=1))
