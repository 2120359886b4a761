"""The dual of penalised mean-loss problems, as a certificate and as the paper states it.

The penalised primal and its dual are, with weights that sum to one,

    P(f, b) = sum_i w_i L(y_i (f(x_i) + b)) + alpha ||f||^2
    D(s)    = sum_i w_i (-L*(-s_i)) - (1 / (4 alpha)) ||sum_i w_i s_i y_i k(x_i, .)||^2

over slopes s with ``sum_i w_i s_i y_i = 0`` when there is an intercept. Kwon and Zou state the
leaky hockey stick problem with a bound on the norm instead (their Lemmas 1 and 2);
`constrained_form` translates, and puts back the constant n that their dual lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.losses import LeakyHockeyStick

# Intermediate arrays of so many numbers stay in the cache.
_CACHED_NUMBERS = 8_192


@dataclass(frozen=True, eq=False)
class DualityBounds:
    """Primal and dual values of L models, shape (L,)."""

    primal: Array
    dual: Array

    @property
    def gap(self) -> Array:
        """How far each primal value can be from the optimum, at most."""
        return np.maximum(self.primal - self.dual, 0.0)


def has_dual(loss: Any) -> bool:
    """Whether the loss knows its conjugate, so that a gap can be computed.

    Examples
    --------
    >>> has_dual(LeakyHockeyStick())
    True
    """
    return hasattr(loss, "conjugate")


def few_models(shape: tuple[int, int]) -> Iterator[slice]:
    """Parts of an array of L models and n rows so small that what lies between stays cached.

    Examples
    --------
    >>> list(few_models((5, 4000)))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    few = max(1, _CACHED_NUMBERS // shape[1])
    return (slice(first, first + few) for first in range(0, shape[0], few))


def certify(
    loss: Any,
    y: Array,
    omega: Array,
    penalties: Array,
    scores: Array,
    intercepts: Array,
    squared_norms: Array,
    similarity_norms: Callable[[Array], Array],
    *,
    fit_intercept: bool = True,
) -> DualityBounds:
    """The duality gaps of L models from their scores on the n training rows.

    Parameters
    ----------
    loss : loss with ``value``, ``derivative`` and ``conjugate``
    y, omega : arrays of shape (n,)
        Labels ±1, and weights that sum to one.
    penalties, intercepts, squared_norms : arrays of shape (L,)
        alpha, b and ``||f||^2``.
    scores : array of shape (L, n)
        f at the rows, without the intercept.
    similarity_norms : callable
        From an array of shape (L, n) to the L numbers ``v' K v``.

    Notes
    -----
    The dual point takes the slopes at the given scores and shrinks those of the heavier class
    until the classes balance, which keeps it feasible.
    """
    primal, dual = np.empty(len(penalties)), np.empty(len(penalties))
    pulls = np.empty(scores.shape)
    _set_parts(loss, y, omega, scores, intercepts, fit_intercept, primal, dual, pulls)
    primal += penalties * squared_norms
    dual -= similarity_norms(pulls) / (4.0 * penalties)
    return DualityBounds(primal, dual)


def _set_parts(
    loss: Any,
    y: Array,
    omega: Array,
    scores: Array,
    intercepts: Array,
    fit_intercept: bool,
    primal: Array,
    dual: Array,
    pulls: Array,
) -> None:
    """The losses' parts of both objectives, and the signed weighted slopes of the dual point."""
    positive = y > 0
    for models in few_models(scores.shape):
        u = y * (scores[models] + intercepts[models, None])
        primal[models] = loss.value(u) @ omega
        s = -np.asarray(loss.derivative(u))
        if fit_intercept:
            up, down = s @ (omega * positive), s @ (omega * ~positive)
            ratio = np.minimum(1.0, np.stack([down / up, up / down], axis=1))
            s *= np.where(positive, ratio[:, :1], ratio[:, 1:])
        dual[models] = -loss.conjugate(-s) @ omega
        np.multiply(s, omega * y, out=pulls[models])


def kkt_residuals(
    loss: Any, y: Array, omega: Array, penalties: Array, decision: Array, dual_coef: Array
) -> Array:
    """The largest error of ``2 alpha a_i = -w_i y_i L'(y_i f_i)`` relative to w_i, per model.

    A certificate for losses that do not know their conjugate. `decision` and `dual_coef` have
    shape (L, n).
    """
    slope = np.asarray(loss.derivative(y * decision))
    return np.asarray(
        np.max(np.abs(2.0 * penalties[:, None] * dual_coef / omega + y * slope), axis=1)
    )


@dataclass(frozen=True, eq=False)
class ConstrainedForm:
    """A leaky hockey stick model as the solution of its paper's problems (3) and (4).

    Problem (3) minimises ``-sum log d_i + C sum eta_i`` over ``||w|| <= 1``, an offset and
    slacks ``eta_i >= 0``, with ``d_i = y_i (w_0 + w'x_i) + eta_i``. Problem (4) maximises
    ``sum log sigma_i - ||sum_i y_i sigma_i x_i||`` over ``0 < sigma_i <= C``,
    ``sum_i y_i sigma_i = 0``.

    Attributes
    ----------
    C : float
        The norm of f.
    sigma : array of shape (n,)
        The point of (4).
    offset : float
        The w_0 of (3), ``b / C``.
    resultant : float
        ``||sum_i y_i sigma_i x_i||``.
    primal : float
        The value of (3).
    dual : float
        The value of (4) plus n, the constant that makes the two equal at the optimum.
    """

    C: float
    sigma: Array
    offset: float
    resultant: float
    primal: float
    dual: float

    @property
    def alpha(self) -> float:
        """The penalty of which this model is the solution."""
        return self.resultant / (2.0 * len(self.sigma) * self.C**2)


def constrained_form(
    y: Array, scores: Array, intercept: float, squared_norm: float, K: Array
) -> ConstrainedForm:
    """Translate a penalised leaky hockey stick solution (r = inf, equal weights).

    Parameters
    ----------
    y : array of shape (n,)
        Labels ±1.
    scores : array of shape (n,)
        f at the rows, without the intercept.
    intercept : float
    squared_norm : float
        ``||f||^2``, positive.
    K : array of shape (n, n)
        The Gram matrix.

    Examples
    --------
    >>> from buttress import LeakyHockeyStickClassifier
    >>> X = np.array([[2.0], [1.0], [-1.0], [-3.0]]); y = np.array([1, 1, -1, -1])
    >>> model = LeakyHockeyStickClassifier(kernel="linear", alpha=0.05).fit(X, y)
    >>> scores = X @ model.coef_[0]
    >>> form = constrained_form(y, scores, model.intercept_[0], float(model.coef_[0] @
    ...     model.coef_[0]), X @ X.T)
    >>> round(form.alpha, 6), round(abs(form.primal - form.dual), 6)
    (0.05, 0.0)
    """
    if not squared_norm > 0:
        raise ValueError("f = 0 has no direction: the constrained form does not determine it.")
    C = float(np.sqrt(squared_norm))
    loss = LeakyHockeyStick()
    u = y * (np.asarray(scores, dtype=np.float64) + intercept)
    sigma = -C * loss.derivative(u)
    pull = y * sigma
    resultant = float(np.sqrt(max(float(pull @ (K @ pull)), 0.0)))
    n = len(y)
    return ConstrainedForm(
        C=C,
        sigma=sigma,
        offset=float(intercept) / C,
        resultant=resultant,
        primal=float(loss.value(u).sum()) + n * float(np.log(C)),
        dual=float(np.log(sigma).sum()) - resultant + n,
    )
