"""Two margins on separable data: the product that the leaky hockey stick reaches, and the least."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from numbers import Real
from typing import Any

import numpy as np
from scipy import linalg, optimize

from buttress._arrays import Array


@dataclass(frozen=True, eq=False)
class MarginDirections:
    """Directions of unit l_q norm through the origin.

    Attributes
    ----------
    product : array of shape (p,)
        Maximises the product of all margins ``y_i x_i'w``: where the leaky hockey stick's
        direction goes as its penalty goes to 0.
    smallest : array of shape (p,)
        Maximises the smallest margin: where the support vector machine's goes.
    product_margins, smallest_margins : arrays of shape (n,)
        The margins of both.
    angle : float
        Between the two, in radians.
    q : float
        The norm.
    residual : float
        Largest violation of the optimality condition of `product` (0 at the maximum),
        relative to the gradient.
    X, y : arrays
        The data.
    """

    product: Array
    smallest: Array
    product_margins: Array
    smallest_margins: Array
    angle: float
    q: float
    residual: float
    X: Array
    y: Array

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw both boundaries of two-dimensional data (`buttress.inspection.MarginDisplay`)."""
        # Pictures stand above the theory in the order of imports.
        return import_module("buttress.inspection").MarginDisplay(self).plot(ax=ax, **style)


def margin_directions(X: Any, y: Any, q: float = 2) -> MarginDirections:
    """The product-of-margins direction beside the maximum-margin direction.

    Parameters
    ----------
    X : array of shape (n, p)
        Rows that a hyperplane through the origin separates; add a column of ones for an
        intercept (it then counts in the norm).
    y : array of shape (n,)
        Labels, -1 or +1.
    q : float in (1, inf), default=2
        The norm that is held at one.

    Raises
    ------
    ValueError
        When no hyperplane through the origin separates the classes.

    Notes
    -----
    The first maximises ``sum_i log(y_i x_i'w) - (n/q) ||w||_q^q``, a concave problem whose
    solution has unit norm, by damped Newton steps; for q = 2 the dual of the second is a
    nonnegative least squares problem. Cost: n p² per step and a few dozen steps.

    References
    ----------
    O. Kwon and H. Zou, "Leaky hockey stick loss", JMLR 24, 2023, Theorem 3.

    Examples
    --------
    >>> X = np.array([[2.0, 0.0], [0.5, 1.0], [-1.0, -0.5]])
    >>> found = margin_directions(X, [1, 1, -1])
    >>> bool(np.prod(found.product_margins) > np.prod(found.smallest_margins))
    True
    >>> bool(found.smallest_margins.min() >= found.product_margins.min())
    True
    """
    rows, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if rows.ndim != 2 or labels.shape != rows.shape[:1] or len(rows) == 0:
        raise ValueError(f"X must have shape (n, p) and y (n,), got {rows.shape}, {labels.shape}.")
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise ValueError("y must contain -1 and +1 only.")
    if not isinstance(q, Real) or isinstance(q, bool) or not 1.0 < q < math.inf:
        raise ValueError(f"q={q!r} is out of range: expected a number in (1, inf).")
    A = rows * labels[:, None]
    scale = float(np.abs(A).max())
    if scale == 0.0:
        raise ValueError(_NOT_SEPARABLE)
    start = _separating_direction(A / scale)
    product, residual = _maximise_product(A / scale, start, float(q))
    smallest = _maximise_smallest(A / scale, start, float(q))
    cosine = product @ smallest / (linalg.norm(product) * linalg.norm(smallest))
    return MarginDirections(
        product=product,
        smallest=smallest,
        product_margins=A @ product,
        smallest_margins=A @ smallest,
        angle=float(np.arccos(np.clip(cosine, -1.0, 1.0))),
        q=float(q),
        residual=residual,
        X=rows,
        y=labels,
    )


# Of the search for the smallest margin.
_MOST_RUNS = 50

_NOT_SEPARABLE = (
    "No hyperplane through the origin separates the two classes, so no direction has all "
    "margins positive. Add a column of ones to X for an intercept."
)


def _separating_direction(A: Array) -> Array:
    """A direction with all margins positive: maximise the smallest one in the unit cube."""
    n, p = A.shape
    result = optimize.linprog(
        np.concatenate([np.zeros(p), [-1.0]]),
        A_ub=np.hstack([-A, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        bounds=[(-1.0, 1.0)] * p + [(None, None)],
        method="highs",
    )
    if not result.success or result.x[-1] <= 1e-12:
        raise ValueError(_NOT_SEPARABLE)
    return np.asarray(result.x[:p])


def _maximise_product(A: Array, w: Array, q: float) -> tuple[Array, float]:
    n = len(A)

    def objective(w: Array) -> float:
        margins = A @ w
        if margins.min() <= 0.0:
            return math.inf
        return float(n / q * np.sum(np.abs(w) ** q) - np.sum(np.log(margins)))

    w = w / np.sum(np.abs(w) ** q) ** (1.0 / q)
    value, residual = objective(w), math.inf
    best: tuple[float, Array] = (math.inf, w)
    for _ in range(500):
        margins = A @ w
        pull = A.T @ (1.0 / margins)
        gradient = n * np.sign(w) * np.abs(w) ** (q - 1.0) - pull
        residual = float(np.abs(gradient).max() / np.abs(pull).max())
        # The objective stops telling points apart long before the gradient does.
        stalled = residual > 0.9 * best[0] and best[0] < 1e-6
        if residual < best[0]:
            best = (residual, w)
        if residual < 1e-14 or stalled:
            break
        # For q < 2 the curvature is infinite at a zero weight; a floor keeps the step finite.
        curve = n * (q - 1.0) * np.maximum(np.abs(w), 1e-10) ** (q - 2.0)
        hessian = (A / margins[:, None] ** 2).T @ A + np.diag(np.maximum(curve, 1e-12))
        step = -linalg.solve(hessian, gradient, assume_a="pos")
        slope, length = float(gradient @ step), 1.0
        rounding = 1e-14 * max(1.0, abs(value))
        while objective(w + length * step) > value + 1e-4 * length * slope + rounding:
            length *= 0.5
        w = w + length * step
        value = objective(w)
    residual, w = best
    return w / np.sum(np.abs(w) ** q) ** (1.0 / q), residual


def _maximise_smallest(A: Array, start: Array, q: float) -> Array:
    if q == 2.0:
        # The nearest point of the rows' hull to the origin, as nonnegative least squares.
        stacked = np.vstack([A.T, np.ones(len(A))])
        target = np.concatenate([np.zeros(A.shape[1]), [1.0]])
        weights, _ = optimize.nnls(stacked, target, maxiter=50 * len(A))
        w = A.T @ weights
        return np.asarray(w / linalg.norm(w))
    # min ||w||_q^q with all margins at least one, begun again while a run still gains: powers of
    # small weights are too flat for the end of one run.
    best, size = start / (A @ start).min(), np.inf
    for _ in range(_MOST_RUNS):
        unit = linalg.norm(best, q)
        result = optimize.minimize(
            lambda w, unit=unit: (
                np.sum(np.abs(w / unit) ** q),
                q / unit * np.sign(w) * np.abs(w / unit) ** (q - 1.0),
            ),
            best,
            jac=True,
            method="SLSQP",
            constraints={"type": "ineq", "fun": lambda w: A @ w - 1.0, "jac": lambda w: A},
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        least = (A @ result.x).min()
        scaled = result.x / least if least > 0.0 else best
        if not linalg.norm(scaled, q) < (1.0 - 1e-13) * size:
            break
        best, size = scaled, linalg.norm(scaled, q)
    return np.asarray(best / size)
