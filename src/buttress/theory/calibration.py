"""Which losses lead to the Bayes rule, and how fast: the psi-transform of a margin loss."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.losses import DoubleRamp, GeneralizedRamp, Hinge, LeakyHockeyStick, Ramp
from buttress.theory._conditional_risk import least_risk, lower_hull

Curve = Callable[[Array], Array]
# Where the numerical transform is evaluated; the ends behave like their neighbours.
_THETAS = np.concatenate([np.linspace(0.0, 0.99, 496), 1.0 - np.geomspace(8e-3, 1e-6, 60), [1.0]])


@dataclass(frozen=True, eq=False)
class Calibration:
    """Conditional risks of a margin loss and what they say about the 0-1 risk.

    ``eta`` is P(Y = +1 | x) and ``theta = 2 eta - 1``. All functions take arrays.

    Attributes
    ----------
    loss : object
        The loss.
    method : {"closed form", "numerical"}
        Where the functions come from. A numerical one minimises over scores up to 5e12 in
        size and takes the convex hull on a grid: evidence, not a proof.
    target : {"0-1", "0-d-1"}
        The loss that is compared with; "0-d-1" for losses with a reject option.
    calibrated : bool
        Whether a score of the wrong sign (or a wrong decision) always costs more than the
        best score: the condition under which small excess risk means a small excess error.
    constant : float
        The largest c such that ``excess target risk <= (excess risk of the loss) / c``; 0
        when there is no linear bound (then use `psi`).
    """

    loss: Any
    method: str
    target: str
    calibrated: bool
    constant: float
    _least: Curve = field(repr=False)
    _least_wrong: Curve = field(repr=False)
    _hull: Curve = field(repr=False)
    _minimiser: Curve | None = field(default=None, repr=False)

    def H(self, eta: Any) -> Array:
        """The smallest conditional risk, ``inf_a eta L(a) + (1 - eta) L(-a)``."""
        return self._least(_probabilities(eta))

    def H_minus(self, eta: Any) -> Array:
        """The smallest conditional risk among scores with a sign other than the Bayes rule's."""
        return self._least_wrong(_probabilities(eta))

    def psi_tilde(self, theta: Any) -> Array:
        """``H_minus((1 + |theta|)/2) - H((1 + |theta|)/2)``."""
        eta = (1.0 + np.abs(_differences(theta))) / 2.0
        return np.asarray(self._least_wrong(eta) - self._least(eta))

    def psi(self, theta: Any) -> Array:
        """The convex hull of `psi_tilde`: ``psi(excess 0-1 risk) <= excess risk``."""
        return self._hull(np.abs(_differences(theta)))

    def minimiser(self, eta: Any) -> Array:
        """A score of least conditional risk; where there are several, the one nearest to 0."""
        eta = _probabilities(eta)
        if self._minimiser is not None:
            return self._minimiser(eta)
        return least_risk(self.loss, eta)[1]


def calibration(loss: Any, *, method: str = "auto") -> Calibration:
    """Conditional risks, psi-transform and verdict for a margin loss.

    Parameters
    ----------
    loss : object with ``value``
        A function of the margin ``u = y f``; any object whose ``value`` takes arrays. The set
        losses are functions of ``rho - u``: for them there is `set_calibration`.
    method : {"auto", "closed form", "numerical"}, default="auto"
        "auto" takes the closed form where there is one: `Ramp`, `Hinge`, `GeneralizedRamp`,
        `LeakyHockeyStick` (all r), and `DoubleRamp` against the 0-d-1 loss.

    Notes
    -----
    With ``m = min(eta, 1 - eta)``: the ramp has ``H = min(2, 1 - s) m``,
    ``H_minus = min(1, (1 - s)(1 - m))`` and ``psi(theta) = |theta|`` for every s <= 0; the
    hinge is its limit. The generalised ramp is the ramp with ``1 - s = 1 + gamma``. The leaky
    hockey stick has ``H = 1 - eta log(eta / (1 - eta))`` at eta >= 1/2, ``H_minus = 1`` and
    ``psi(theta) = (1 + theta) artanh(theta)``; its family L_r ``psi(theta) =
    (1 + theta)/2 (r - 1)(o^(1/(r-1)) - 1)`` with the odds o. The double ramp has, for
    ``rho >= mu``, ``H = (1 + mu) min(eta, 1 - eta, d)``: 1 + mu times the Bayes risk of the
    0-d-1 loss.

    References
    ----------
    P. L. Bartlett, M. I. Jordan and J. D. McAuliffe, "Convexity, classification, and risk
    bounds", Journal of the American Statistical Association 101, 2006.

    Examples
    --------
    >>> from buttress.losses import Ramp
    >>> result = calibration(Ramp(s=-0.5))
    >>> result.calibrated, result.constant, result.method
    (True, 1.0, 'closed form')
    >>> result.H([0.2, 0.5]).round(12)
    array([0.3 , 0.75])

    A loss of your own:

    >>> class Square:
    ...     def value(self, u):
    ...         return (1 - u) ** 2
    >>> mine = calibration(Square())
    >>> mine.method, mine.calibrated, bool(abs(mine.psi(0.5) - 0.25) < 1e-6)
    ('numerical', True, True)
    """
    if not callable(getattr(loss, "value", None)):
        raise ValueError(f"loss={loss!r} is not accepted: expected an object with `value`.")
    if method not in ("auto", "closed form", "numerical"):
        raise ValueError(
            f"method={method!r} is not accepted: expected 'auto', 'closed form' or 'numerical'."
        )
    if method != "numerical":
        closed = _closed_form(loss)
        if closed is not None:
            return closed
        if method == "closed form":
            raise ValueError(
                f"There is no closed form for {type(loss).__name__}: expected Ramp, Hinge, "
                "GeneralizedRamp, LeakyHockeyStick or DoubleRamp with rho >= mu."
            )
    _warn_if_growing(loss)
    return _numerical(loss)


def _warn_if_growing(loss: Any) -> None:
    """A loss that only grows is nearly always one of ``z = rho - u``, not of the margin."""
    steps = np.diff(loss.value(np.linspace(-3.0, 3.0, 61)))
    if np.all(steps >= 0) and np.any(steps > 0):
        warnings.warn(
            f"{type(loss).__name__} grows with its argument, so as a loss of the margin u = y f(x) "
            "it rewards errors. A set loss is a function of z = rho - u: use `set_calibration`, "
            "or pass an object whose value(u) is loss.value(-u).",
            UserWarning,
            stacklevel=3,
        )


def psi_transform(loss: Any, theta: Any, *, method: str = "auto") -> Array:
    """``psi(theta)`` of a margin loss, for theta in [-1, 1].

    Parameters
    ----------
    loss, method
        As in `calibration`.
    theta : float or array

    Examples
    --------
    >>> from buttress.losses import Hinge
    >>> psi_transform(Hinge(), [0.0, 0.3])
    array([0. , 0.3])
    """
    return calibration(loss, method=method).psi(theta)


def _closed_form(loss: Any) -> Calibration | None:
    if isinstance(loss, Hinge):
        return _ramp_like(loss, math.inf)
    if isinstance(loss, Ramp):
        return _ramp_like(loss, 1.0 - loss.s)
    if isinstance(loss, GeneralizedRamp):
        return _ramp_like(loss, 1.0 + loss.gamma)
    if isinstance(loss, LeakyHockeyStick):
        return _leaky(loss)
    if isinstance(loss, DoubleRamp) and loss.rho >= loss.mu:
        return _double_ramp(loss)
    return None


def _ramp_like(loss: Any, cap: float) -> Calibration:
    """The ramp with largest loss `cap`; hinge and generalised ramp are of this kind."""

    def least(eta: Array) -> Array:
        return np.asarray(min(2.0, cap) * np.minimum(eta, 1.0 - eta))

    def least_wrong(eta: Array) -> Array:
        return np.asarray(np.minimum(1.0, cap * np.maximum(eta, 1.0 - eta)))

    def minimiser(eta: Array) -> Array:
        return np.asarray(np.sign(2.0 * eta - 1.0))

    return Calibration(loss, "closed form", "0-1", True, 1.0, least, least_wrong, np.abs, minimiser)


def _leaky(loss: LeakyHockeyStick) -> Calibration:
    # 1/(r - 1): the power of the odds; 0 in the limit r = inf, where powers become logs.
    power = 0.0 if math.isinf(loss.r) else 1.0 / (loss.r - 1.0)

    def gain(eta: Array) -> Array:
        """``1 - H`` by the larger of the two probabilities."""
        top = np.maximum(eta, 1.0 - eta)
        with np.errstate(divide="ignore", over="ignore"):
            log_odds = np.log(top) - np.log1p(-top)
            rise = log_odds if power == 0.0 else np.expm1(power * log_odds) / power
        return np.asarray(top * rise)

    def least(eta: Array) -> Array:
        return np.asarray(1.0 - gain(eta))

    def hull(theta: Array) -> Array:
        return gain((1.0 + theta) / 2.0)

    def minimiser(eta: Array) -> Array:
        top = np.maximum(eta, 1.0 - eta)
        with np.errstate(divide="ignore", over="ignore"):
            size = np.exp((1.0 + power) * (np.log(top) - np.log1p(-top)))
        # At 1/2 all of [-1, 1] is best; zero is its middle.
        return np.where(eta == 0.5, 0.0, np.sign(eta - 0.5) * size)

    return Calibration(loss, "closed form", "0-1", True, 1.0, least, np.ones_like, hull, minimiser)


def _double_ramp(loss: DoubleRamp) -> Calibration:
    d, mu, rho = loss.d, loss.mu, loss.rho

    def bayes(eta: Array) -> Array:
        return np.asarray(np.minimum(np.minimum(eta, 1.0 - eta), d))

    def least(eta: Array) -> Array:
        return np.asarray((1.0 + mu) * bayes(eta))

    # The risk is piecewise linear in the score: in each of the three decisions its infimum
    # is at a kink or at an end, and the decision's own 0-d-1 risk does not vary inside.
    kinks = np.array([rho - mu, rho - mu * mu, rho, rho + mu * mu, rho + mu])
    inside, outside = kinks[kinks <= rho], kinks[kinks >= rho]
    inside = np.concatenate([-inside, inside])

    def infimum(eta: Array, scores: Array) -> Array:
        on, off = loss.value(scores), loss.value(-scores)
        return np.asarray(np.min(eta[..., None] * on + (1.0 - eta[..., None]) * off, axis=-1))

    def least_wrong(eta: Array) -> Array:
        costs = np.stack([1.0 - eta, eta, np.full_like(eta, d)])
        risks = np.stack([infimum(eta, p) for p in (outside, -outside, inside)])
        wrong = costs > bayes(eta) + 1e-15
        return np.asarray(np.min(np.where(wrong, risks, np.inf), axis=0))

    def hull(theta: Array) -> Array:
        return np.asarray(constant * theta)

    # Excess over excess is a ratio of linear functions between these probabilities.
    eta = np.array([0.0, d, 0.5, 1.0 - d, 1.0])
    eta = np.concatenate([eta, eta + 1e-9, eta - 1e-9]).clip(0.0, 1.0)
    constant = math.inf
    for scores, cost in ((outside, 1.0 - eta), (-outside, eta), (inside, np.full_like(eta, d))):
        excess = cost - bayes(eta)
        ratio = (infimum(eta, scores) - least(eta))[excess > 1e-6] / excess[excess > 1e-6]
        constant = min(constant, float(ratio.min(initial=math.inf)))
    return Calibration(
        loss, "closed form", "0-d-1", constant > 0.0, constant, least, least_wrong, hull
    )


def _numerical(loss: Any) -> Calibration:
    def least(eta: Array) -> Array:
        return least_risk(loss, eta)[0]

    def least_wrong(eta: Array) -> Array:
        return least_risk(loss, eta, wrong=True)[0]

    eta = (1.0 + _THETAS) / 2.0
    drop = least_wrong(eta) - least(eta)
    finite = np.isfinite(drop)
    x, y = lower_hull(_THETAS[finite], np.maximum(drop[finite], 0.0))

    def hull(theta: Array) -> Array:
        # A convex function continues at least along its last piece.
        slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
        beyond = y[-1] + slope * (theta - x[-1])
        return np.where(theta > x[-1], beyond, np.interp(theta, x, y))

    scale = max(1.0, float(np.max(np.abs(least(np.array([0.5]))))))
    calibrated = bool(np.all(drop[_THETAS >= 0.02] > 1e-9 * scale))
    # psi(theta)/theta does not fall, so its infimum is the limit at 0, extrapolated here.
    near, far = hull(_THETAS[1:3]) / _THETAS[1:3]
    constant = float(2.0 * near - far)
    constant = constant if calibrated and constant > 1e-6 else 0.0
    return Calibration(loss, "numerical", "0-1", calibrated, constant, least, least_wrong, hull)


def _probabilities(eta: Any) -> Array:
    values = np.asarray(eta, dtype=float)
    if not np.all((values >= 0.0) & (values <= 1.0)):
        raise ValueError("eta is out of range: expected probabilities in [0, 1].")
    return values


def _differences(theta: Any) -> Array:
    values = np.asarray(theta, dtype=float)
    if not np.all(np.abs(values) <= 1.0):
        raise ValueError("theta is out of range: expected numbers in [-1, 1].")
    return values
