"""Interior point for losses of quadratic and linear pieces, where Newton steps go astray.

On a linear piece the loss has no curvature, and with wide radii most rows lie on one: Newton
steps of the primal problem then jump from piece to piece. Both problems together are followed
here from inside. With the row weights ``beta = w l'`` split at the kink of the conjugate (or
anywhere, where it has none), ``beta = lower + upper``, ``0 <= lower <= cap``, ``upper >= 0``, a
solution has

    2 mu f = (1/M) sum_i y_i beta_i phi_i,   sums of beta M in both classes,
    c1'(lower_i) + y_i f(x_i) - r >= 0, <= 0 where ``lower_i`` is below its cap, above zero,
    c2'(upper_i) + y_i f(x_i) - r >= 0, = 0 where ``upper_i`` is above zero,
    mu >= 0,   ||f||^2 <= radius^2,   one of them an equality,

with the derivatives ``c1'``, ``c2'`` of two parabolas. ``f`` is a variable of its own and not
computed from the weights, so that it keeps its digits where ``mu`` tends to zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array
from buttress.losses import EllipsoidError, TruncatedQuadratic
from buttress.solvers.sets._spaces import FeatureFactor, Rows

# Complementarity, relative to the size of the objective, at which rounding takes over.
_END = 1e-13
_PATH_STEPS = 80
_SHORTEST_ON_PATH = 1e-8
# So many steps in a row without a better point end the search.
_STEPS_WITHOUT_GAIN = 14


@dataclass(frozen=True, eq=False)
class CentralPoint:
    """Where the search stands.

    Attributes
    ----------
    v : array of shape (p,)
        Coordinates of ``f``.
    r : array of shape (2,)
        The thresholds of both classes.
    lower, room, upper : arrays of shape (n,)
        The lower part of the row weights, its distance from the cap (which has its own digits),
        and the upper part.
    forces : array of shape (3, n)
        Multipliers of ``lower >= 0``, ``lower <= cap`` and ``upper >= 0``.
    mu, slack : float
        The multiplier of the ball, and ``radius^2 - ||f||^2``.
    n_iter : int
        Steps; each costs one factorisation.
    """

    v: Array
    r: Array
    lower: Array
    room: Array
    upper: Array
    forces: Array
    mu: float
    slack: float
    n_iter: int = 0

    def moved(self, change: CentralPoint, length: float) -> CentralPoint:
        """The point `length` times the change away."""
        return CentralPoint(
            self.v + length * change.v,
            self.r + length * change.r,
            self.lower + length * change.lower,
            self.room + length * change.room,
            self.upper + length * change.upper,
            self.forces + length * change.forces,
            self.mu + length * change.mu,
            self.slack + length * change.slack,
            self.n_iter + 1,
        )


# The losses that this module can follow.
Pieces = EllipsoidError | TruncatedQuadratic


def follow_central_path(
    features: Array, rows: Rows, loss: Pieces, radius: float, mu: float
) -> CentralPoint:
    """The best point found; its certificate is the caller's to make.

    Parameters
    ----------
    features : array of shape (n, p)
        The points.
    rows : Rows
    loss : EllipsoidError or TruncatedQuadratic
    radius : float
    mu : float
        A first guess of the multiplier.
    """
    path = _Path(features, rows, loss, radius)
    at = path.start(mu)
    best, smallest, waited = at, np.inf, 0
    while at.n_iter < _PATH_STEPS:
        step = _Step(path, at)
        error = step.error
        if error < smallest:
            best, smallest, waited = at, error, 0
        else:
            waited += 1
        if smallest <= _END or waited > _STEPS_WITHOUT_GAIN or not np.isfinite(error):
            break
        change = step.corrected()
        length = min(1.0, 0.995 * path.longest(at, change))
        if not (np.isfinite(length) and length > _SHORTEST_ON_PATH):
            break
        at = at.moved(change, length)
    return best


class _Path:
    """The problem in the units of the search."""

    def __init__(self, features: Array, rows: Rows, loss: Pieces, radius: float) -> None:
        self.features, self.rows, self.radius = features, rows, radius
        self.total = rows.total
        if isinstance(loss, EllipsoidError):
            unit = loss.omega / loss.scale
            # c1(b) = scale ((u b)^2 - 2 (1 + h) u b), c2(b) = scale ((u b)^2 + 2 h u b)
            self.curved = 2.0 * loss.scale * unit**2 / rows.w
            first, second = -2.0 * (1.0 + loss.h) * loss.omega, 2.0 * loss.h * loss.omega
            self.cap = rows.w / unit
        else:
            # c1(b) = b1 b + b2 b^2, and the same parabola from one on
            self.curved = 2.0 * loss.b2 / rows.w
            first, second = loss.b1, loss.b1 + 2.0 * loss.b2
            self.cap = rows.w
        self.linear = np.array([[first], [second]])
        self.A = np.stack([mask.astype(np.float64) for mask in rows.masks])

    def start(self, mu: float) -> CentralPoint:
        """Uniform weights within the classes, the function that belongs to them at `mu`."""
        beta = self.rows.uniform() * self.total
        lower = np.minimum(0.5 * beta, 0.5 * self.cap)
        upper = beta - lower
        v = self.features.T @ (self.rows.y * beta) / (2.0 * mu * self.total)
        v *= min(1.0, 0.9 * self.radius / max(float(np.linalg.norm(v)), 1e-300))
        first, _ = self.slopes(lower, upper, self.features @ v, np.zeros(2))
        r = (self.A @ first) / self.A.sum(axis=1)
        first, second = self.slopes(lower, upper, self.features @ v, r)
        unit = float(np.abs(first).mean() + np.abs(second).mean())
        forces = np.stack([np.maximum(s, 0.0) + unit for s in (first, -first, second)])
        slack = self.radius**2 - float(v @ v)
        return CentralPoint(v, r, lower, self.cap - lower, upper, forces, mu, slack)

    def slopes(self, lower: Array, upper: Array, g: Array, r: Array) -> Array:
        """Derivatives of the Lagrangian in both parts, times M."""
        common = self.rows.y * g - r @ self.A
        return np.asarray(self.curved * np.stack([lower, upper]) + self.linear + common)

    def longest(self, at: CentralPoint, change: CentralPoint) -> float:
        """How far along `change` everything stays positive, at most one."""
        longest = 1.0
        for value, step in (
            (at.lower, change.lower),
            (at.room, change.room),
            (at.upper, change.upper),
            (at.forces, change.forces),
            (np.array([at.mu, at.slack]), np.array([change.mu, change.slack])),
        ):
            falling = step < 0
            if falling.any():
                longest = min(longest, float((-value[falling] / step[falling]).min()))
        return longest


class _Step:
    """Residuals at one point, and the Newton directions from there."""

    def __init__(self, path: _Path, at: CentralPoint) -> None:
        self.path, self.at = path, at
        g = path.features @ at.v
        first, second = path.slopes(at.lower, at.upper, g, at.r)
        low, high, up = at.forces
        self.residual = np.stack([first - low + high, second - up])
        beta = at.lower + at.upper
        self.missing = path.total - path.A @ beta
        image = path.features.T @ (path.rows.y * beta) / path.total
        self.apart = 2.0 * at.mu * at.v - image
        square = float(at.v @ at.v)
        self.outside = path.radius**2 - square - at.slack
        self.complementarity = (
            float(at.lower @ low + at.room @ high + at.upper @ up) / path.total + at.mu * at.slack
        )
        off = float(np.abs(self.residual[0]) @ at.lower + np.abs(self.residual[1]) @ at.upper)
        off = (off + float(np.abs(self.missing) @ np.abs(at.r))) / path.total
        off += float(np.linalg.norm(self.apart)) * path.radius
        parts = path.curved * (at.lower**2 + at.upper**2)
        linear = path.linear[0, 0] * at.lower.sum() + path.linear[1, 0] * at.upper.sum()
        value = float(0.5 * parts.sum() + linear) / path.total
        # with a multiplier near zero the ball must be counted for itself
        beyond = max(abs(self.outside), square - path.radius**2) / path.radius**2
        self.error = (self.complementarity + off) / (1.0 + abs(value)) + beyond

    def corrected(self) -> CentralPoint:
        """The predictor, then the corrector that aims at the centre it points to."""
        path, at = self.path, self.at
        low, high, up = at.forces
        self.theta = path.curved + np.stack([low / at.lower + high / at.room, up / at.upper])
        self.phi = np.sum(1.0 / self.theta, axis=0)
        self.factor = FeatureFactor(path.features, at.mu, self.phi, path.rows)
        aim = self._direction(np.zeros_like(at.forces), 0.0)
        length = path.longest(at, aim)
        after = at.moved(aim, length)
        left = float(after.lower @ after.forces[0] + after.upper @ after.forces[2])
        left += float(after.room @ after.forces[1])
        left = left / path.total + after.mu * after.slack
        share = (left / self.complementarity) ** 3
        # every product gets the same part of the complementarity
        centre = share * self.complementarity / (3 * len(at.lower) + 1)
        targets = centre * path.total - np.stack(
            [
                aim.lower * aim.forces[0],
                -aim.lower * aim.forces[1],
                aim.upper * aim.forces[2],
            ]
        )
        return self._direction(targets, centre - aim.mu * aim.slack)

    def _direction(self, targets: Array, target: float) -> CentralPoint:
        """The change for which the products, to first order, become the targets."""
        path, at, phi = self.path, self.at, self.phi
        low, high, up = at.forces
        right = -self.residual
        right[0] += targets[0] / at.lower - low - (targets[1] / at.room - high)
        right[1] += targets[2] / at.upper - up
        freely = np.sum(right / self.theta, axis=0)
        sums = path.A @ phi
        level = (self.missing - path.A @ freely) / sums
        weights = path.rows.y * (freely + phi * (level @ path.A))
        wanted = path.features.T @ weights / path.total - self.apart
        # the ball: its multiplier follows the step along v
        pull = (target - at.mu * at.slack - at.mu * self.outside) / at.slack
        wanted -= 2.0 * pull * at.v
        (dv, dg), (along, along_g) = self.factor.descent((-wanted, wanted), (-at.v, wanted))
        stiff = 4.0 * at.mu / at.slack
        back = stiff * float(at.v @ dv) / (1.0 + stiff * float(at.v @ along))
        dv, dg = dv - back * along, dg - back * along_g
        dmu = pull + 2.0 * at.mu / at.slack * float(at.v @ dv)
        dslack = self.outside - 2.0 * float(at.v @ dv)
        moved = path.rows.y * dg
        dr = level + (path.A @ (phi * moved)) / sums
        common = moved - dr @ path.A
        dlower, dupper = (right - common) / self.theta
        forces = np.stack(
            [
                (targets[0] - low * dlower) / at.lower - low,
                (targets[1] + high * dlower) / at.room - high,
                (targets[2] - up * dupper) / at.upper - up,
            ]
        )
        return CentralPoint(dv, dr, dlower, -dlower, dupper, forces, dmu, dslack)
