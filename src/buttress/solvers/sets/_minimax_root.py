"""The minimax machine in feature space as a scalar root, one Cholesky factorisation per step.

With class scatters ``C_p`` and ``C_n`` and a ridge ``r > 0`` the direction is

    w(t) = (t C_p + (1 - t) C_n + r)^-1 (mean_p - mean_n)   at   t s_p(w) = (1 - t) s_n(w),

``s_o(w)^2 = <w, (C_o + r) w>``. The matrix is the Hessian of the distance solver with other
weights, so that its two representations of functions serve here too: nothing is diagonalised,
and neighbouring ridges share the Gram matrix and the last ``t``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array
from buttress.solvers.sets._spaces import (
    FeatureFunctions,
    Function,
    IllConditioned,
    KernelFunctions,
    LabelledRows,
)
from buttress.solvers.sets.geometry import CentredGeometry

# Steps after which no bracket is left but rounding.
_MOST_STEPS = 60
# The logarithm of the mixture's odds stays within these.
_FARTHEST = 27.0
# An imbalance below this that does not fall any more is rounding.
_NEARLY = 1e-9
COINCIDE = (
    "The class means coincide, so no hyperplane separates them: a minimax probability machine "
    "needs different means (try a nonlinear kernel)."
)


@dataclass(frozen=True, eq=False)
class MinimaxFunction:
    """A minimax machine as a function on the rows.

    Attributes
    ----------
    coef : array of shape (n,)
        ``f = sum_i coef_i k(x_i, .)`` up to a constant, scaled so that the class means of ``f``
        differ by one.
    values : array of shape (n,)
        ``f`` on the centred rows.
    intercept : float
        The minimax bias for `values`.
    deviations, means : tuple of float
        Of ``f`` in the positive and in the negative class, the ridge in the former.
    kappa, mixture, objective, gap : float
        As in `MinimaxResult`.
    n_iter : int
        Factorisations.
    """

    coef: Array
    values: Array
    intercept: float
    deviations: tuple[float, float]
    means: tuple[float, float]
    kappa: float
    mixture: float
    objective: float
    gap: float
    n_iter: int


def minimax_path(
    geometry: CentredGeometry,
    y: Array,
    weight: Array,
    ridges: Sequence[float] | Array,
    *,
    precision: float = 1e-13,
    max_iter: int = _MOST_STEPS,
) -> list[MinimaxFunction]:
    """The minimax machine at several ridges, each started from the one before.

    Parameters
    ----------
    geometry : CentredGeometry
        The points.
    y : array of shape (n,)
        Labels, ±1, both present.
    weight : array of shape (n,)
        Positive weights.
    ridges : sequence of float
        Positive.
    precision : float
        Accepted relative imbalance of the two deviations, and so of the objective.
    max_iter : int
        Cap on the factorisations per ridge; the gap tells how far the last one is off.

    Returns
    -------
    list of MinimaxFunction

    Raises
    ------
    ValueError
        When the class means coincide.

    Notes
    -----
    Three to six Cholesky factorisations per ridge: n^3/3 operations each in kernel form, n r^2
    for points of rank r.
    """
    rows = LabelledRows(np.asarray(y, dtype=np.float64), np.asarray(weight, dtype=np.float64))
    most = min(max_iter, _MOST_STEPS)
    search = _Root(geometry.space(), rows)
    odds, results = 0.0, []
    for ridge in ridges:
        try:
            result, odds = search.solve(float(ridge), odds, precision, most)
        except IllConditioned:
            search = _Root(FeatureFunctions(geometry.features), rows)
            result, odds = search.solve(float(ridge), odds, precision, most)
        results.append(result)
    return results


@dataclass(frozen=True, eq=False)
class _Trial:
    """The direction at one mixture: its deviations, their imbalance and its derivative."""

    w: Function
    mixture: float
    means: tuple[float, float]
    deviations: tuple[float, float]
    imbalance: float
    slope: float


class _Root:
    """The scalar equation in the logarithm of ``t / (1 - t)``, nearly linear there."""

    def __init__(self, space: KernelFunctions | FeatureFunctions, rows: LabelledRows) -> None:
        self.space, self.rows = space, rows
        self.share = rows.uniform()
        self.signed = rows.y * self.share
        self.difference = self._function(self.signed)
        size = float(np.sqrt(max(space.inner(self.difference, self.difference), 0.0)))
        if not size > 1e-12 * space.spread:
            raise ValueError(COINCIDE)

    def solve(
        self, ridge: float, odds: float, precision: float, most: int
    ) -> tuple[MinimaxFunction, float]:
        """Newton steps for the imbalance, kept between the last two that bracket the root."""
        low, high, last, n_iter = -_FARTHEST, _FARTHEST, np.inf, 0
        while True:
            trial = self._at(ridge, odds)
            size = abs(trial.imbalance)
            n_iter += 1
            # done, or as far as rounding allows
            if size <= precision or (size < _NEARLY and size >= 0.5 * last):
                break
            if n_iter == most:
                break
            last = size
            low, high = (low, odds) if trial.imbalance > 0 else (odds, high)
            new = odds - trial.imbalance / trial.slope if trial.slope > 0 else np.nan
            odds = new if low < new < high else 0.5 * (low + high)
        return self._finished(ridge, trial, n_iter), odds

    def _at(self, ridge: float, odds: float) -> _Trial:
        space, rows = self.space, self.rows
        t = 1.0 / (1.0 + np.exp(-odds))
        mixture = np.where(rows.masks[0], t, 1.0 - t) * self.share
        factor = space.factor(0.5 * ridge, rows.total * mixture, rows)
        (minus,) = factor.descent(self.difference)
        w = (-minus[0], -minus[1])
        scatter, means = self._scatter(w[1])
        (change,) = factor.descent(self._function(rows.y * scatter))
        norm, turn = space.inner(w, w), space.inner(w, change)
        squares, rates = [], []
        for mask in rows.masks:
            squares.append(float(scatter[mask] @ w[1][mask]) + ridge * norm)
            rates.append(float(scatter[mask] @ change[1][mask]) + ridge * turn)
        s = (float(np.sqrt(squares[0])), float(np.sqrt(squares[1])))
        slope = 1.0 + t * (1.0 - t) * (rates[0] / squares[0] - rates[1] / squares[1])
        return _Trial(w, float(t), means, s, odds + float(np.log(s[0] / s[1])), slope)

    def _scatter(self, values: Array) -> tuple[Array, tuple[float, float]]:
        """Row coefficients of ``C_p w + C_n w``, and the class means of ``w``."""
        p, n = self.rows.masks
        means = float(self.share[p] @ values[p]), float(self.share[n] @ values[n])
        return self.share * (values - np.where(p, *means)), means

    def _function(self, coef: Array) -> Function:
        """``sum_i coef_i phi_i`` in the coordinates of the space."""
        if isinstance(self.space, FeatureFunctions):
            return self.space.features.T @ coef, coef
        return coef, self.space.values(coef)

    def _finished(self, ridge: float, trial: _Trial, n_iter: int) -> MinimaxFunction:
        t, s = trial.mixture, trial.deviations
        scale = 1.0 / (trial.means[0] - trial.means[1])
        # t S_p w + (1-t) S_n w = difference: its two parts bound kappa from above, w from below
        upper = max(t * s[0], (1.0 - t) * s[1])
        objective = scale * (s[0] + s[1])
        kappa = 1.0 / objective
        s, means = (scale * s[0], scale * s[1]), (scale * trial.means[0], scale * trial.means[1])
        values = scale * trial.w[1]
        if isinstance(self.space, FeatureFunctions):
            # ridge w = difference - (t C_p + (1-t) C_n) w divides by no small eigenvalue
            scatter, _ = self._scatter(values)
            mixed = np.where(self.rows.masks[0], t, 1.0 - t) * scatter
            coef: Array = np.asarray((scale * self.signed - mixed) / ridge, dtype=np.float64)
        else:
            coef = scale * trial.w[0]
        return MinimaxFunction(
            coef=coef,
            values=values,
            intercept=0.5 * (kappa * (s[0] - s[1]) - means[0] - means[1]),
            deviations=s,
            means=means,
            kappa=kappa,
            mixture=t,
            objective=objective,
            gap=max(objective - 1.0 / upper, 0.0),
            n_iter=n_iter,
        )
