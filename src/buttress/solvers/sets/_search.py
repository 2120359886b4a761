"""The multiplier search: Newton steps in ``f`` and in ``mu`` together until ``||f|| = radius``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.solvers.sets._refinement import REFINED_ROWS, RefinedFactor, serves
from buttress.solvers.sets._spaces import Function, IllConditioned, KernelFactor, LabelledRows
from buttress.solvers.sets.thresholds import class_threshold

# Below this part of the first multiplier the kernel form loses too many digits.
_SMALLEST_IN_KERNEL_FORM = 1e-7
# Below this part the constraint counts as inactive: the gap is then negligible.
_INACTIVE = 1e-13
# With few rows the last factor serves again when the relative gradient is below this, and
# fell by as much.
_CHORD = 0.4
# How exactly refined steps and tangents are solved: as the remaining error asks, within these.
_STEP, _TANGENT = (1e-3, 0.1), (1e-3, 0.03)
# Within this relative gradient a point is near the path.
_NEAR_PATH = 0.1
# A step is short enough where the slope along it is this part of the slope at its beginning.
_FLAT_ENOUGH = 0.1
_SHORTEST_CUT = 1e-12
# So many steps in a row without any change of the objective, cut short, or that only moved the
# multiplier, end the search.
_MOST_FUTILE = 8
_MOST_CUT = 60
_MOST_AT_REST = 20
# So many moves of the multiplier may rest on unfinished steps; later ones wait for a proof.
_BOLD_MOVES = 10


@dataclass(eq=False)
class SearchPoint:
    """Where a search stands: coordinates, values on the rows, thresholds, multiplier.

    ``weights`` are the row weights ``beta / M`` where they are known better than as ``l'``.
    """

    x: Array
    g: Array
    r: tuple[float, float]
    mu: float
    tangent: Function | None = None
    n_iter: int = 0
    done: bool = False
    weights: Array | None = None


class Search:
    """Solve the penalised problem at given ``mu``, or the constrained one at given radius."""

    def __init__(
        self, space: Any, rows: LabelledRows, loss: Any, max_iter: int, precision: float
    ) -> None:
        self.space, self.rows, self.loss, self.max_iter = space, rows, loss, max_iter
        self.precision = precision
        self.masks = rows.masks
        start = space.gradient(
            np.zeros(space.size), np.zeros(len(rows.y)), 0.0, rows.uniform() * rows.total, rows
        )
        self.mean_difference = self.norm(start)
        # the gradient is a difference of two weighted means, known to this many digits
        self.rounding = 1e-14 * max(self.mean_difference, space.spread)

    def start(self, mu: float) -> SearchPoint:
        """The zero function."""
        g = np.zeros(len(self.rows.y))
        return SearchPoint(np.zeros(self.space.size), g, self.thresholds(g, (0.0, 0.0)), mu)

    def first_multiplier(self, radius: float) -> float:
        """An upper bound of the multiplier, exact for small radii."""
        return self.mean_difference / (2.0 * radius)

    def thresholds(self, g: Array, guess: tuple[float, float]) -> tuple[float, float]:
        rows, total = self.rows, self.rows.total
        p, n = self.masks
        return (
            class_threshold(self.loss, g[p], rows.w[p], total, guess[0]),
            class_threshold(self.loss, -g[n], rows.w[n], total, guess[1]),
        )

    def excess(self, g: Array, r: tuple[float, float]) -> Array:
        """``xi_i = r_class - y_i f(x_i)``."""
        return np.where(self.masks[0], r[0], r[1]) - self.rows.y * g

    def loss_part(self, g: Array, r: tuple[float, float]) -> float:
        """The primal objective without the penalty."""
        rows = self.rows
        return float(rows.w @ self.loss.value(self.excess(g, r))) / rows.total - r[0] - r[1]

    # -- penalised -------------------------------------------------------------------------

    def penalised(self, point: SearchPoint) -> SearchPoint:
        """Newton steps at fixed multiplier."""
        while point.n_iter < self.max_iter:
            grad, size = self._gradient(point)
            if size <= self._accepted(point, self.precision):
                point.done = True
                break
            self._newton(point, grad, self._factor(point).descent(grad)[0])
        return point

    # -- constrained -----------------------------------------------------------------------

    def constrained(
        self, point: SearchPoint, radius: float, max_iter: int, precision: float | None = None
    ) -> SearchPoint:
        """Newton steps in ``f`` and the multiplier until the norm is `radius`.

        ``f_mu`` lies within ``||gradient|| / (2 mu)`` of the current function, which makes
        every step's norm a proof on which side of the root ``mu`` is.
        """
        precision = self.precision if precision is None else precision
        low, high = 0.0, self.first_multiplier(radius) * (1.0 + 1e-9)
        smallest = _INACTIVE * high
        moves, rests, last, tangent_at = 0, 0, np.inf, np.inf
        point.done = False
        if point.tangent is not None and point.mu > 0:
            # from the multiplier that the point belongs to, though it may exceed the new bound
            self._move_multiplier(point, point.tangent, 0.0, radius, low, high, smallest)
        point.mu = min(point.mu, high)
        self._futile = self._cut = 0
        while point.n_iter < max_iter and self._cut < _MOST_CUT:
            grad, size = self._gradient(point)
            norm = self.norm((point.x, point.g))
            at_rest = size <= self._accepted(point, precision)
            rests = rests + 1 if at_rest else 0
            if self._futile >= _MOST_FUTILE or rests >= _MOST_AT_REST:
                point.done = True  # rounding allows no more; the certificate says how much
                break
            if point.mu == 0.0:
                if at_rest and norm <= radius:
                    point.done = True
                    break
                if norm > 2.0 * radius or at_rest:
                    # the constraint is active after all
                    self._leave_zero(point, low, high, smallest)
                    continue
                (step,) = self._factor(point).descent(grad)
                if self.norm(step) > 10.0 * radius:
                    point.n_iter += 1
                    self._leave_zero(point, low, high, smallest)
                    continue
                full = self._newton(point, grad, step)
                if full and self.norm(step) <= 1e-12 * norm <= 1e-12 * radius:
                    point.done = True
                    break
                continue
            error = size / (2.0 * point.mu)
            proven = abs(norm - radius) > error
            if proven and norm > radius:
                low = max(low, point.mu)
            elif proven:
                high = min(high, point.mu)
            if at_rest and abs(norm - radius) <= precision * radius:
                point.done = True
                break
            if at_rest and point.mu <= smallest:
                point.done = True  # inactive: the gap is of the order of mu
                break
            relative = error / norm if norm > 0 else np.inf
            # a tangent at nearly this multiplier serves again for a move that is small anyway
            off = max(relative, abs(norm / radius - 1.0))
            rights = [grad]
            if off * abs(point.mu / tangent_at - 1.0) > 0.1 * precision:
                rights.append((2.0 * point.x, 2.0 * point.g))
            accuracy = (
                _within(0.3 * precision, relative, _STEP),
                _within(precision, off, _TANGENT),
            )
            step, *tangents = self._directions(point, rights, relative, last, accuracy)
            if tangents:
                (tangent,) = tangents
                # far from the path it says little about the path
                tangent_at = point.mu if relative <= _NEAR_PATH else np.inf
            last = relative
            full = at_rest or self._newton(point, grad, step, count=False)
            point.n_iter += 1
            if full and (proven or at_rest or moves < _BOLD_MOVES):
                moves += 1
                length = self.norm(step)
                self._move_multiplier(point, tangent, length, radius, low, high, smallest)
        return point

    def _leave_zero(self, point: SearchPoint, low: float, high: float, smallest: float) -> None:
        start = self.start(max(np.sqrt(max(low, smallest) * high), smallest))
        point.x, point.g, point.r, point.mu = start.x, start.g, start.r, start.mu
        self._zero_failed = True

    _zero_failed = False
    _kept: Any = None
    # steps in a row that rounding alone decided, and that had to be cut
    _futile = 0
    _cut = 0

    def _move_multiplier(
        self,
        point: SearchPoint,
        tangent: Function,
        step: float,
        radius: float,
        low: float,
        high: float,
        smallest: float,
    ) -> None:
        """One Newton step for ``1 / ||f_mu|| = 1 / radius``, nearly linear in ``mu``.

        Nothing is done while the last step in ``f`` exceeds what a move of ``mu`` would mend, nor
        at the zero function, which says nothing about ``mu``.
        """
        point.tangent = tangent
        norm = self.norm((point.x, point.g))
        if norm == 0.0 or (step > 0.3 * norm and step > 0.5 * abs(norm - radius)):
            return
        slope = self.space.inner((point.x, point.g), tangent) / norm
        new = point.mu + norm * (1.0 - norm / radius) / slope if slope < 0 else 0.0
        if not low < new < high:
            if new <= 0.0 and low == 0.0 and self.space.sound_at_zero and not self._zero_failed:
                point.mu = 0.0
                return
            new = self._inside(point.mu, new, low, high)
        new = max(new, 0.02 * point.mu, smallest)
        if not self.space.sound_at_zero and new < _SMALLEST_IN_KERNEL_FORM * (
            self.first_multiplier(radius)
        ):
            raise IllConditioned
        self._predict(point, tangent, new)

    @staticmethod
    def _inside(mu: float, new: float, low: float, high: float) -> float:
        """A multiplier within the bracket in place of `new`, which is not."""
        if new >= high and low < mu < high:
            return float(np.sqrt(mu * high))
        return float(np.sqrt(low * high)) if low > 0 else 0.1 * min(mu, high)

    def _predict(self, point: SearchPoint, tangent: Function, new: float) -> None:
        """Move to the multiplier `new`, with the better of two extrapolations of ``f``.

        One is linear in ``mu``; the other takes ``2 mu f = z_p - z_n`` as linear in log(mu).
        """
        mu, ratio = point.mu, point.mu / new
        bend = -np.log(ratio)
        current = (point.x, point.g)
        candidates = [
            current,
            tuple(f + (new - mu) * d for f, d in zip(current, tangent, strict=True)),
            tuple(ratio * (f + bend * (f + mu * d)) for f, d in zip(current, tangent, strict=True)),
        ]
        point.mu = new
        thresholds = [point.r, *(self.thresholds(g, point.r) for _, g in candidates[1:])]
        values = [self._objective(f, r, new) for f, r in zip(candidates, thresholds, strict=True)]
        best = int(np.argmin(values))
        (point.x, point.g), point.r = candidates[best], thresholds[best]

    def _directions(
        self,
        point: SearchPoint,
        rights: list[Any],
        relative: float,
        last: float,
        accuracy: tuple[float, float],
    ) -> list[Function]:
        """The Newton step, and the tangent of the path, from the last factor where that will do.

        With many rows it is refined to the current problem, with few used as it is while the
        gradient falls fast enough.
        """
        kept, n = self._kept, len(self.rows.y)
        if isinstance(kept, KernelFactor) and n >= REFINED_ROWS:
            if serves(kept, point.mu):
                curvature = self._curvature(point)
                refined = RefinedFactor(kept, point.mu, curvature, self.rows, accuracy)
                directions = refined.descent(*rights)
                if directions is not None:
                    return directions
        elif kept is not None and relative <= _CHORD * min(1.0, last):
            return kept.descent(*rights)  # type: ignore[no-any-return]
        self._kept = self._factor(point)
        return self._kept.descent(*rights)  # type: ignore[no-any-return]

    # -- pieces ----------------------------------------------------------------------------

    def norm(self, function: Function) -> float:
        """``||f||`` of a function given as (coordinates, values)."""
        return float(np.sqrt(max(self.space.inner(function, function), 0.0)))

    def _objective(self, f: Function, r: tuple[float, float], mu: float) -> float:
        return self.loss_part(f[1], r) + mu * float(self.space.inner(f, f))

    def _gradient(self, point: SearchPoint) -> tuple[Any, float]:
        beta = self.rows.w * self.loss.derivative(self.excess(point.g, point.r))
        grad = self.space.gradient(point.x, point.g, point.mu, beta, self.rows)
        return grad, self.norm(grad)

    def _accepted(self, point: SearchPoint, precision: float) -> float:
        size = 2.0 * point.mu * self.norm((point.x, point.g))
        return float(max(precision * size, self.rounding))

    def _curvature(self, point: SearchPoint) -> Array:
        return np.asarray(self.rows.w * self.loss.curvature(self.excess(point.g, point.r)))

    def _factor(self, point: SearchPoint) -> Any:
        return self.space.factor(point.mu, self._curvature(point), self.rows)

    def _newton(self, point: SearchPoint, grad: Any, step: Function, *, count: bool = True) -> bool:
        """The whole step, or as much of it as lowers the objective; True when it was whole."""
        point.n_iter += count
        dx, dg = step
        slope = self.space.inner(grad, (dx, dg))
        before = self._objective((point.x, point.g), point.r, point.mu)
        noise = 1e-13 * max(1.0, abs(before))
        x, g = point.x + dx, point.g + dg
        r = self.thresholds(g, point.r)
        value = self._objective((x, g), r, point.mu)
        full = bool(value <= before + 1e-4 * slope + noise)
        self._futile = self._futile + 1 if abs(before - value) <= 0.1 * noise else 0
        self._cut = 0 if full else self._cut + 1
        if not full:
            t, r = self._shorter(point, step, slope)
            x, g = point.x + t * dx, point.g + t * dg
            # An older factor may be to blame.
            self._kept = None
        point.x, point.g, point.r = x, g, r
        return bool(full)

    def _shorter(
        self, point: SearchPoint, step: Function, slope: float
    ) -> tuple[float, tuple[float, float]]:
        """Where along a step that is too long the objective is nearly smallest.

        Its derivative costs O(n) and rises with t: regula falsi, halving the weight of an end that
        stays. With a loss of quadratic pieces the minimum along every step is what makes Newton
        steps end.
        """
        dx, dg = step
        rows, mu = self.rows, point.mu
        inner = self.space.inner((point.x, point.g), step)
        square = self.space.inner(step, step)
        low, at_low, high, at_high = 0.0, slope, 1.0, np.inf
        t, r = 0.5, point.r
        for _ in range(40):
            g = point.g + t * dg
            r = self.thresholds(g, r)
            beta = rows.w * self.loss.derivative(self.excess(g, r))
            derivative = 2.0 * mu * (inner + t * square) - float((rows.y * beta) @ dg) / rows.total
            if abs(derivative) <= _FLAT_ENOUGH * abs(slope):
                break
            if derivative < 0:
                low, at_low = t, derivative
                at_high *= 0.5
            else:
                high, at_high = t, derivative
                at_low *= 0.5
            falling = at_low / (at_low - at_high) if np.isfinite(at_high) else 0.5
            t = low + (high - low) * min(max(falling, 0.05), 0.95)
        before = self._objective((point.x, point.g), point.r, mu)
        while t > _SHORTEST_CUT:
            x, g = point.x + t * dx, point.g + t * dg
            r = self.thresholds(g, point.r)
            # where derivatives overflow only the value tells
            if self._objective((x, g), r, mu) <= before + 1e-4 * t * slope:
                break
            t *= 0.5
        return t, r


def _within(accepted: float, error: float, bounds: tuple[float, float]) -> float:
    """By how much `error` must shrink to be `accepted`, within bounds."""
    return min(max(accepted / max(error, accepted), bounds[0]), bounds[1])
