"""Curves with asymptotes: the likelihood of given labels under many noise rates at once.

For every row i the log-odds of true class j against class 0 are ``F_ij . theta``; labels pass
through a transition matrix T, so ``P(given k | row i) = sum_j T_jk softmax_j(F_i . theta)``.
`maximise` finds theta for a whole batch of transition matrices together, because the noise rates
are integrated over a grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._threads import in_threads, workers

# Newton steps; from a start within a grid's reach 8 to 15 are used.
_MOST_STEPS = 60
_HALVINGS = 12
# Probabilities below this are rounding, and their logarithm would decide the fit.
_TINY = 1e-300
# Log-odds beyond this leave the numbers of double precision.
_LARGEST_ODDS = 690.0
# Numbers held for one batch of transition matrices: 4 MB stay in the cache (of 1 to 64 MB the
# fastest for 6000 and 10 000 rows, and as fast for 1000).
_BATCH_ENTRIES = 500_000


@dataclass(frozen=True, eq=False)
class Design:
    """What the curves are fitted to.

    Attributes
    ----------
    features : array of shape (n, n_classes - 1, n_parameters)
        F in the module's formula, classes 1 and up.
    codes : array of shape (n,)
        Index of the given label.
    weight : array of shape (n,)
    precision : array of shape (n_parameters, n_parameters)
        Inverse covariance of the normal prior of theta, centred at zero.
    """

    features: Array
    codes: IntArray
    weight: Array
    precision: Array

    @property
    def n_parameters(self) -> int:
        """Slopes of the scores and intercepts of the classes."""
        return int(self.features.shape[2])


@dataclass(frozen=True, eq=False)
class Curves:
    """Fits of one batch of transition matrices.

    Attributes
    ----------
    coefficients : array of shape (m, n_parameters)
    objective : array of shape (m,)
        Log-likelihood plus log prior of the coefficients (without constants).
    curvature : array of shape (m, n_parameters, n_parameters)
        Minus its second derivative, made positive definite.
    """

    coefficients: Array
    objective: Array
    curvature: Array

    @property
    def log_evidence(self) -> Array:
        """Laplace's approximation of the coefficients' integral, up to one constant."""
        return np.asarray(self.objective - 0.5 * np.linalg.slogdet(self.curvature)[1])


def class_probabilities(features: Array, coefficients: Array) -> Array:
    """P(true class | row) for every theta, shape (m, n, n_classes)."""
    n, others, p = features.shape
    if others == 1:
        odds = _odds_against(features[:, 0], coefficients)
        second = 1.0 / (1.0 + odds)
        return np.stack([odds * second, second], axis=2)
    proba = np.zeros((len(coefficients), n, others + 1))
    proba[:, :, 1:] = (coefficients @ features.reshape(n * others, p).T).reshape(-1, n, others)
    proba -= proba.max(axis=2, keepdims=True)
    np.exp(proba, out=proba)
    proba /= proba.sum(axis=2, keepdims=True)
    return proba


def true_class_posterior(proba: Array, codes: IntArray, transition: Array) -> tuple[Array, Array]:
    """P(true class | row, given label), and P(given label | row)."""
    # transition[:, :, codes] is (m, j, n): how a true j comes to bear the row's label
    joint = proba * np.swapaxes(transition[:, :, codes], 1, 2)
    # a sum over two neighbours is several times dearer by an axis
    total = joint[:, :, 0] + joint[:, :, 1] if joint.shape[2] == 2 else joint.sum(axis=2)
    given = np.maximum(total, _TINY)
    joint /= given[:, :, None]
    return joint, given


def maximise(design: Design, transition: Array, start: Array) -> Curves:
    """The best coefficients for every transition matrix, by Newton's method with halving.

    Parameters
    ----------
    design : Design
    transition : array of shape (m, n_classes, n_classes)
    start : array of shape (n_parameters,) or (m, n_parameters)
    """
    m = len(transition)
    n, others, p = design.features.shape
    start = np.broadcast_to(start, (m, p))
    step = max(1, _BATCH_ENTRIES // (n * (others * p + 2)))

    def batch(a: int) -> tuple[Array, Array, Array]:
        return _newton(design, transition[a : a + step], start[a : a + step])

    fits = in_threads(batch, range(0, m, step), workers())
    return Curves(*(np.concatenate(values) for values in zip(*fits, strict=True)))


def objective(design: Design, transition: Array, theta: Array) -> Array:
    """Log-likelihood plus log prior of the coefficients, one number per transition matrix."""
    if design.features.shape[1] == 1:
        odds, keep, flip = _two_class_terms(design, transition, theta)
        given = (keep + flip * odds) / (1.0 + odds)
    else:
        proba = class_probabilities(design.features, theta)
        given = true_class_posterior(proba, design.codes, transition)[1]
    return np.asarray(np.log(given) @ design.weight - _penalty(design, theta))


def log_likelihood(design: Design, transition: Array, theta: Array) -> float:
    """Of one transition matrix and one theta, without the prior."""
    value = objective(design, transition[None], theta[None])[0]
    return float(value + _penalty(design, theta[None])[0])


def _penalty(design: Design, theta: Array) -> Array:
    """Minus the logarithm of the prior of the coefficients."""
    return np.asarray(0.5 * np.einsum("mp,mp->m", theta @ design.precision, theta))


def _newton(design: Design, transition: Array, start: Array) -> tuple[Array, Array, Array]:
    theta = start.copy()
    value = objective(design, transition, theta)
    open_ = np.arange(len(theta))
    for _ in range(_MOST_STEPS):
        gradient, hessian = _derivatives(design, transition[open_], theta[open_])
        direction = np.linalg.solve(_positive(hessian), gradient[:, :, None])[:, :, 0]
        gain = np.einsum("mp,mp->m", direction, gradient)
        length = np.ones(len(open_))
        waiting = np.arange(len(open_))
        for _ in range(_HALVINGS):
            rows = open_[waiting]
            trial = theta[rows] + length[waiting, None] * direction[waiting]
            reached = objective(design, transition[rows], trial)
            better = reached >= value[rows] + 1e-4 * length[waiting] * gain[waiting]
            theta[rows[better]], value[rows[better]] = trial[better], reached[better]
            waiting = waiting[~better]
            if not len(waiting):
                break
            length[waiting] *= 0.5
        still = gain > 1e-8 * (1.0 + np.abs(value[open_]))
        still[waiting] = False
        open_ = open_[still]
        if not len(open_):
            break
    return theta, value, _positive(_derivatives(design, transition, theta)[1])


def _derivatives(design: Design, transition: Array, theta: Array) -> tuple[Array, Array]:
    """Gradient, and minus the second derivative, of the objective."""
    F, weight = design.features, design.weight
    n, others, p = F.shape
    flat = F.reshape(n * others, p)
    outer = (flat[:, :, None] * flat[:, None, :]).reshape(n * others, p * p)
    if others == 1:
        slope, bend = _two_class_slopes(design, transition, theta)
        gradient = slope @ (_signs(design)[:, None] * flat)
        hessian = (bend @ outer).reshape(-1, p, p)
        return gradient - theta @ design.precision, hessian + design.precision
    proba = class_probabilities(F, theta)
    posterior, _ = true_class_posterior(proba, design.codes, transition)
    prior_share, share = proba[:, :, 1:], posterior[:, :, 1:]
    change = ((share - prior_share) * weight[:, None]).reshape(len(theta), n * others)
    gradient = change @ flat - theta @ design.precision
    # covariance of F under the curve minus that under the posterior: E FF' - E F E F'
    hessian = -(change @ outer).reshape(-1, p, p)
    for weights, sign in ((prior_share, -1.0), (share, 1.0)):
        mean = np.einsum("mnk,nkp->mnp", weights, F, optimize=True)
        hessian += sign * np.swapaxes(mean * weight[:, None], 1, 2) @ mean
    return gradient, hessian + design.precision


# -- two classes: one number per row and curve ----------------------------------------------------


def _odds_against(rows: Array, theta: Array) -> Array:
    """``exp(-theta . row)``, kept finite, for every theta: shape (m, n)."""
    odds = theta @ -rows.T
    np.minimum(odds, _LARGEST_ODDS, out=odds)
    return np.asarray(np.exp(odds, out=odds))


def _signs(design: Design) -> Array:
    return 2.0 * design.codes - 1.0


def _two_class_terms(design: Design, transition: Array, theta: Array) -> tuple[Array, Array, Array]:
    """Odds against the given label, P(given | it is true) and P(given | it is wrong).

    With odds E the given label has the probability ``(keep + flip E) / (1 + E)``.
    """
    odds = _odds_against(_signs(design)[:, None] * design.features[:, 0], theta)
    keep = np.diagonal(transition, axis1=1, axis2=2)
    flip = transition[:, ::-1][:, [0, 1], [0, 1]]
    return odds, keep[:, design.codes], flip[:, design.codes]


def _two_class_slopes(design: Design, transition: Array, theta: Array) -> tuple[Array, Array]:
    """First and minus second derivatives by the log-odds of the given label, times the weights."""
    odds, keep, flip = _two_class_terms(design, transition, theta)
    curve = 1.0 / (1.0 + odds)
    share = keep / (keep + flip * odds)
    slope = (share - curve) * design.weight
    # p (1 - p) of the curve minus that of the posterior
    return slope, slope * (share + curve - 1.0)


def _positive(hessian: Array) -> Array:
    """The matrices with eigenvalues turned positive, so that a step never goes downhill."""
    hessian = 0.5 * (hessian + np.swapaxes(hessian, 1, 2))
    values, vectors = np.linalg.eigh(hessian)
    floor = 1e-9 * np.maximum(values[:, -1:], 1e-12)
    values = np.maximum(np.abs(values), floor)
    return np.asarray((vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2))
