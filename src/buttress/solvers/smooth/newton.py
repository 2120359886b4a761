"""Newton's method along any list of penalties, in kernel or feature form."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array, IntArray
from buttress.losses import LeakyHockeyStick
from buttress.solvers.smooth._feature_newton import feature_path, interpreted_feature_path
from buttress.solvers.smooth._kernel_newton import interpreted_kernel_path, kernel_path
from buttress.solvers.smooth.geometry import Geometry

# Penalties are never taken in larger steps than this: a tiny one from nowhere fails.
_LARGEST_RATIO = 10.0


def small_steps(lambdas: Array) -> tuple[Array, IntArray]:
    """Decreasing penalties in small steps that include all of `lambdas`, and where they are."""
    rungs: list[float] = []
    wanted = np.empty(len(lambdas), dtype=np.int64)
    last = max(1.0, float(lambdas[0]))
    for index, lam in enumerate(lambdas):
        steps = int(np.ceil(np.log(last / lam) / np.log(_LARGEST_RATIO) - 1e-9))
        if steps > 1 or (not rungs and steps == 1):
            between = last * (lam / last) ** (np.arange(0 if not rungs else 1, steps) / steps)
            rungs.extend(between.tolist())
        rungs.append(float(lam))
        wanted[index] = len(rungs) - 1
        last = float(lam)
    return np.array(rungs), wanted


def newton(
    geometry: Geometry,
    y: Array,
    omega: Array,
    lambdas: Array,
    loss: Any,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    start: tuple[Array, float] | None = None,
    *,
    wanted: Any = slice(None),
    with_scores: bool = True,
    signs_only: bool = False,
) -> tuple[Any, ...]:
    """Coefficients, intercepts, scores, intervals, residuals and iterations.

    Parameters
    ----------
    wanted : slice or array of int
        The penalties to return, all unless given.
    with_scores : bool
        Whether scores are computed in feature form, too; None takes their place otherwise.
    signs_only : bool
        Whether only the signs of the scores at rows without weight are needed.
    """
    leaky = isinstance(loss, LeakyHockeyStick)
    coef, intercept = (np.zeros(geometry.matrix.shape[1]), np.nan) if start is None else start
    arguments = (
        geometry.matrix,
        np.ascontiguousarray(y, dtype=np.float64),
        np.ascontiguousarray(omega, dtype=np.float64),
        lambdas,
        float(loss.r) if leaky else loss,
        loss.tail_exponent() if leaky else 0.0,
        fit_intercept,
        tol,
        max_iter,
        np.ascontiguousarray(coef, dtype=np.float64),
        float(intercept),
    )
    function: Any
    if geometry.kernel_form:
        function = kernel_path if leaky else interpreted_kernel_path
        return tuple(part[wanted] for part in function(*arguments, signs_only))
    function = feature_path if leaky else interpreted_feature_path
    coefs, *rest = (part[wanted] for part in function(*arguments, signs_only))
    intercepts, *rest = rest
    return coefs, intercepts, coefs @ geometry.matrix.T if with_scores else None, *rest
