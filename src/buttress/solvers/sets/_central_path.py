"""Interior point for wide radii, where Newton steps of the primal problem go astray.

On a linear piece a loss has no curvature, and with wide radii most rows lie on one: Newton steps
jump from piece to piece. Exponential tails change by powers of ten within one step. Both problems
together are followed here from inside. With the row weights ``beta = w l'``, split at the kink of
the conjugate where it has one, ``beta = sum of pieces``, ``0 <= piece <= cap``, a solution has

    2 mu f = (1/M) sum_i y_i beta_i phi_i,   sums of beta M in both classes,
    c'(part_i) + y_i f(x_i) - r >= 0, <= 0 where ``part_i`` is below its cap, above zero,
    mu >= 0,   ||f||^2 <= radius^2,   one of them an equality,

with the derivatives ``c'`` of the conjugate's pieces: two parabolas, or an entropy. ``f`` is a
variable of its own and not computed from the weights, so that it keeps its digits where ``mu``
tends to zero; and weights are linear where losses are exponential.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array
from buttress.losses import EllipsoidError, Exponential, Logistic, TruncatedQuadratic
from buttress.solvers.sets._path_factor import PathSystem
from buttress.solvers.sets.thresholds import class_threshold

# The duality gap, relative to the size of the objective, that is small enough; below the second
# the path ends when a step does not halve it.
_END, _NEAR_END = 1e-13, 1e-10
_PATH_STEPS = 80
_SHORTEST_ON_PATH = 1e-8
# So many steps in a row without a better point end the search.
_STEPS_WITHOUT_GAIN = 6
# The function at the start has values of this size, or is as large as the ball allows.
_GENTLE = 4.0


@dataclass(frozen=True, eq=False)
class CentralPoint:
    """Where the search stands.

    Attributes
    ----------
    v : array of shape (p,)
        Coordinates of ``f``.
    r : array of shape (2,)
        The thresholds of both classes.
    pieces, room : arrays of shape (n_pieces, n)
        The pieces of the row weights and their distances from the caps (which have their own
        digits; infinite where there is no cap).
    low, high : arrays of shape (n_pieces, n)
        Multipliers of ``pieces >= 0`` and ``pieces <= cap``.
    mu, slack : float
        The multiplier of the ball, and ``radius^2 - ||f||^2``.
    n_iter : int
        Steps; each costs one factorisation.
    """

    v: Array
    r: Array
    pieces: Array
    room: Array
    low: Array
    high: Array
    mu: float
    slack: float
    n_iter: int = 0

    def moved(self, change: CentralPoint, length: float) -> CentralPoint:
        """The point `length` times the change away."""
        return CentralPoint(
            self.v + length * change.v,
            self.r + length * change.r,
            self.pieces + length * change.pieces,
            self.room + length * change.room,
            self.low + length * change.low,
            self.high + length * change.high,
            self.mu + length * change.mu,
            self.slack + length * change.slack,
            self.n_iter + 1,
        )

    @property
    def weights(self) -> Array:
        """The row weights ``beta``."""
        return np.asarray(self.pieces.sum(axis=0))

    def products(self, total: float) -> float:
        """The complementarity."""
        capped = np.isfinite(self.room)
        pushed = float(self.room[capped] @ self.high[capped])
        return (float(np.sum(self.pieces * self.low)) + pushed) / total + self.mu * self.slack


# The losses that this module can follow.
Followed = EllipsoidError | TruncatedQuadratic | Exponential | Logistic


def follow_central_path(
    system: PathSystem, loss: Followed, radius: float, mu: float
) -> CentralPoint:
    """The best point found; its certificate is the caller's to make.

    Parameters
    ----------
    system : PathSystem
        The points and their labels.
    loss : EllipsoidError, TruncatedQuadratic, Exponential or Logistic
    radius : float
    mu : float
        A first guess of the multiplier.
    """
    path = _Path(system, loss, radius)
    at = path.start(mu)
    best, smallest, least, waited, blurred = at, np.inf, np.inf, 0, False
    while at.n_iter < _PATH_STEPS:
        gap, blur = path.gap(at)
        products = max(at.products(path.total), _END)
        done = gap <= _END or (blurred and gap > 0.5 * smallest)
        blurred = blurred or gap <= max(blur, _NEAR_END)
        # far from the end only the products tell that there is progress
        waited = 0 if gap < 0.9 * smallest or products < 0.9 * least else waited + 1
        least = min(least, products)
        if gap < smallest:
            best, smallest = at, gap
        if done or waited > _STEPS_WITHOUT_GAIN:
            break
        change = _Step(path, at).corrected()
        # the ball is curved: across more than its radius the linear part of its norm misleads
        across = radius / max(float(np.linalg.norm(change.v)), 1e-300)
        length = min(1.0, 0.995 * path.longest(at, change), across)
        if not (np.isfinite(length) and length > _SHORTEST_ON_PATH):
            break
        at = at.moved(change, length)
    return best


@dataclass(frozen=True, eq=False)
class _Parabolas:
    """``c'(b) = curved b + linear`` for both pieces."""

    curved: Array
    linear: Array
    cap: Array

    def derivative(self, pieces: Array, room: Array) -> Array:
        return np.asarray(self.curved * pieces + self.linear)

    def curvature(self, pieces: Array, room: Array) -> Array:
        return np.broadcast_to(self.curved, pieces.shape)


@dataclass(frozen=True, eq=False)
class _Entropy:
    """``c'(b) = log(b / unit)``, or ``log(b / (cap - b))`` where there is a cap."""

    unit: Array
    cap: Array

    def derivative(self, pieces: Array, room: Array) -> Array:
        return np.asarray(np.log(pieces / np.where(np.isfinite(room), room, self.unit)))

    def curvature(self, pieces: Array, room: Array) -> Array:
        return np.asarray(1.0 / pieces + 1.0 / room)


def _curves(loss: Followed, w: Array) -> _Parabolas | _Entropy:
    """The derivative of the conjugate, by pieces, for weights in units of ``beta``."""
    unbounded = np.full_like(w, np.inf)
    if isinstance(loss, EllipsoidError):
        unit = loss.omega / loss.scale
        # c1(b) = scale ((u b)^2 - 2 (1 + h) u b), c2(b) = scale ((u b)^2 + 2 h u b)
        linear = np.array([[-2.0 * (1.0 + loss.h) * loss.omega], [2.0 * loss.h * loss.omega]])
        return _Parabolas(2.0 * loss.scale * unit**2 / w, linear, np.stack([w / unit, unbounded]))
    if isinstance(loss, TruncatedQuadratic):
        # c1(b) = b1 b + b2 b^2, and the same parabola from one on
        linear = np.array([[loss.b1], [loss.b1 + 2.0 * loss.b2]])
        return _Parabolas(2.0 * loss.b2 / w, linear, np.stack([w, unbounded]))
    cap = unbounded if isinstance(loss, Exponential) else loss.slope * w
    return _Entropy(w, cap[None])


class _Path:
    """The problem in the units of the search."""

    def __init__(self, system: PathSystem, loss: Followed, radius: float) -> None:
        self.system, self.loss, self.radius = system, loss, radius
        self.features, self.rows = system.features, system.rows
        self.total = self.rows.total
        self.curves = _curves(loss, self.rows.w)
        self.A = np.stack([mask.astype(np.float64) for mask in self.rows.masks])

    def start(self, mu: float) -> CentralPoint:
        """Uniform weights within the classes, the function that belongs to them at `mu`."""
        beta, cap = self.rows.uniform() * self.total, self.curves.cap
        if len(cap) == 1:
            pieces = beta[None]
        else:
            first = np.minimum(0.5 * beta, 0.5 * cap[0])
            pieces = np.stack([first, beta - first])
        v = self.features.T @ (self.rows.y * beta) / (2.0 * mu * self.total)
        v *= min(1.0, 0.9 * self.radius / max(float(np.linalg.norm(v)), 1e-300))
        if isinstance(self.curves, _Entropy):
            v *= min(1.0, _GENTLE / max(float(np.abs(self.features @ v).max()), 1e-300))
        g, room = self.features @ v, cap - pieces
        first = self.slopes(pieces, room, g, np.zeros(2))[0]
        r = (self.A @ first) / self.A.sum(axis=1)
        slopes = self.slopes(pieces, room, g, r)
        unit = float(np.abs(slopes).mean(axis=1).sum())
        low = np.maximum(slopes, 0.0) + unit
        high = np.where(np.isfinite(cap), np.maximum(-slopes, 0.0) + unit, 0.0)
        slack = self.radius**2 - float(v @ v)
        return CentralPoint(v, r, pieces, room, low, high, mu, slack)

    def slopes(self, pieces: Array, room: Array, g: Array, r: Array) -> Array:
        """Derivatives of the Lagrangian in all pieces, times M."""
        return np.asarray(self.curves.derivative(pieces, room) + (self.rows.y * g - r @ self.A))

    def gap(self, at: CentralPoint) -> tuple[float, float]:
        """The duality gap, and how much of it may be rounding; relative to the objective."""
        rows, loss = self.rows, self.loss
        p, n = rows.masks
        g, beta = self.features @ at.v, at.weights
        g *= min(1.0, self.radius / max(float(np.linalg.norm(at.v)), 1e-300))
        alpha = np.where(p, beta / beta[p].sum(), beta / beta[n].sum())
        above = class_threshold(loss, g[p], rows.w[p], self.total, float(at.r[0]))
        below = class_threshold(loss, -g[n], rows.w[n], self.total, float(at.r[1]))
        value = loss.value(np.where(p, above, below) - rows.y * g)
        primal = float(rows.w @ value) / self.total - above - below
        distance, off = self.system.distance(rows.y * alpha)
        dual = float(rows.w @ loss.conjugate(self.total * alpha / rows.w)) / self.total
        gap, unit = primal + dual + self.radius * distance, max(1.0, abs(primal))
        return gap / unit if np.isfinite(gap) else np.inf, self.radius * off / unit

    def longest(self, at: CentralPoint, change: CentralPoint) -> float:
        """How far along `change` everything stays positive, at most one."""
        longest = 1.0
        for value, step in (
            (at.pieces, change.pieces),
            (at.room, change.room),
            (at.low, change.low),
            (at.high, change.high),
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
        self.residual = path.slopes(at.pieces, at.room, g, at.r) - at.low + at.high
        beta = at.weights
        self.missing = path.total - path.A @ beta
        image = path.features.T @ (path.rows.y * beta) / path.total
        self.apart = 2.0 * at.mu * at.v - image
        square = float(at.v @ at.v)
        self.outside = path.radius**2 - square - at.slack
        self.complementarity = at.products(path.total)

    def corrected(self) -> CentralPoint:
        """The predictor, then the corrector that aims at the centre it points to."""
        path, at = self.path, self.at
        curvature = path.curves.curvature(at.pieces, at.room)
        self.theta = curvature + at.low / at.pieces + at.high / at.room
        self.phi = np.sum(1.0 / self.theta, axis=0)
        self.factor = path.system.factor(at.mu, self.phi)
        self.along = self.factor.solve(at.v)
        nothing = np.zeros_like(at.pieces)
        aim = self._direction(nothing, nothing, 0.0)
        after = at.moved(aim, path.longest(at, aim))
        share = (after.products(path.total) / self.complementarity) ** 3
        # every product gets the same part of the complementarity
        count = at.pieces.size + np.count_nonzero(np.isfinite(at.room)) + 1
        centre = share * self.complementarity / count
        return self._direction(
            centre * path.total - aim.pieces * aim.low,
            centre * path.total + aim.pieces * aim.high,
            centre - aim.mu * aim.slack,
        )

    def _direction(self, low_target: Array, high_target: Array, target: float) -> CentralPoint:
        """The change for which the products, to first order, become the targets."""
        path, at, phi = self.path, self.at, self.phi
        right = low_target / at.pieces - at.low - (high_target / at.room - at.high) - self.residual
        freely = np.sum(right / self.theta, axis=0)
        sums = path.A @ phi
        level = (self.missing - path.A @ freely) / sums
        weights = path.rows.y * (freely + phi * (level @ path.A))
        wanted = path.features.T @ weights / path.total - self.apart
        dv = self.factor.solve(wanted)
        # The ball's multiplier pulls along v; nothing is divided by the slack, which may be tiny.
        pull = target - at.mu * (at.slack + self.outside) + 2.0 * at.mu * float(at.v @ dv)
        dmu = pull / (at.slack + 4.0 * at.mu * float(at.v @ self.along))
        dv = dv - 2.0 * dmu * self.along
        dslack = self.outside - 2.0 * float(at.v @ dv)
        moved = path.rows.y * (path.features @ dv)
        dr = level + (path.A @ (phi * moved)) / sums
        change = (right - (moved - dr @ path.A)) / self.theta
        low = (low_target - at.low * change) / at.pieces - at.low
        high = (high_target + at.high * change) / at.room - at.high
        return CentralPoint(dv, dr, change, -change, low, high, dmu, dslack)
