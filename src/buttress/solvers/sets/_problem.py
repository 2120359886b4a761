"""One binary problem of the distance solver: from a point of the search to a certified result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.losses import SmoothLoss, require
from buttress.losses.hinge import HardMargin, NuHinge
from buttress.solvers.sets._central_path import Followed, follow_central_path
from buttress.solvers.sets._conic import conic_weights
from buttress.solvers.sets._hulls import hull_weights
from buttress.solvers.sets._path_factor import PathSystem
from buttress.solvers.sets._result import DistanceResult, check_feasible
from buttress.solvers.sets._search import Search, SearchPoint
from buttress.solvers.sets._spaces import FeatureFunctions, IllConditioned, LabelledRows
from buttress.solvers.sets.geometry import CentredGeometry
from buttress.solvers.sets.thresholds import central_threshold, quantile_threshold

# Where ||z_p - z_n|| is below this part of the distance of the class means, dividing by it
# loses too many digits.
_NEARLY_TOUCHING = 1e-6
# Where this relative error of ``f`` is asked for, a gap above the tolerance is worth more steps.
_EXACT = 1e-9
# Newton steps that go straight for the radius before the interior point has the word, or smaller
# radii: nine of ten of the sets of `benchmarks/worst_case.py` need no more.
_STRAIGHT_STEPS = 20
# The share of the tolerance that is left to the distance of sets that meet.
_MEETING = 0.5
# The approach starts where the scores are of this size and grows the radius by this factor.
_GENTLE = 4.0
_RADIUS_GROWTH = 3.0
# An expansion of at least this part of the radius is scaled to it where the bound is active.
_WHOLE_NORM = 1.0 - 1e-6
# So often a function that rounding pushed out of the ball is shrunk into it.
_SHRINKINGS = 20


def _gap(result: DistanceResult) -> float:
    """The gap; steps that went astray may have left numbers that are none."""
    return result.gap if np.isfinite(result.gap) else np.inf


class DistanceProblem:
    """One binary problem; keeps the last point for the next radius."""

    def __init__(
        self,
        geometry: CentredGeometry | Array,
        y: Array,
        loss: Any,
        sample_weight: Array | None,
        tol: float,
        max_iter: int,
        precision: float = 1e-10,
        storage: Any = np.float64,
    ) -> None:
        self.geometry = (
            geometry if isinstance(geometry, CentredGeometry) else CentredGeometry(geometry)
        )
        y = np.asarray(y, dtype=np.float64)
        w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        check_feasible(loss, y, w)
        self.rows, self.loss, self.tol, self.max_iter = LabelledRows(y, w), loss, tol, max_iter
        self.hinge = isinstance(loss, (NuHinge, HardMargin))
        self.precision, self.storage = precision, np.dtype(storage)
        self.last: SearchPoint | None = None
        self.search: Search | None = None
        self.hull: tuple[Array, int] | None = None
        # of those that will be asked for
        self.largest_radius = 0.0
        if not self.hinge:
            require(loss, SmoothLoss, "The distance solver")

    # -- solving ---------------------------------------------------------------------------

    def at_radius(self, radius: float) -> DistanceResult:
        if self.hinge:
            return self._hinge(radius)
        search = self._start_search()
        if search.mean_difference <= 1e-14 * search.space.spread:
            return self._certified(search.start(0.0), radius, active=False)
        point = self.last
        if point is None:
            point = search.start(search.first_multiplier(radius))
        point = self._straight(search, replace(point, n_iter=0, weights=None), radius)
        result = self._at_point(point, radius)
        exact = self.precision <= _EXACT  # less is enough for choosing among radii
        if point.n_iter >= self.max_iter or (point.done and (result.converged or not exact)):
            return result
        if isinstance(self.loss, Followed):
            point = self._from_inside(self.loss, radius, point.n_iter)
        else:
            point = self._over_smaller(radius, point.n_iter)
        return min(result, self._at_point(point, radius), key=_gap)

    def _at_point(self, point: SearchPoint, radius: float) -> DistanceResult:
        """The result at the end of a search, which the next one starts from."""
        self.last = point
        norm = self._start_search().norm((point.x, point.g))
        return self._certified(point, radius, active=norm >= radius * (1.0 - 1e-9))

    def _straight(self, search: Search, point: SearchPoint, radius: float) -> SearchPoint:
        """Newton steps for this radius at once; they end unfinished where they go astray."""
        most = min(_STRAIGHT_STEPS, self.max_iter)
        try:
            return search.constrained(point, radius, most)
        except IllConditioned:
            search = self._start_search(features=True)
            if isinstance(self.loss, Followed):
                return replace(search.start(search.first_multiplier(radius)), n_iter=point.n_iter)
            start = search.start(search.first_multiplier(radius))
            return search.constrained(start, radius, most)

    def _from_inside(self, loss: Followed, radius: float, spent: int) -> SearchPoint:
        """By the interior point, which keeps the digits that Newton steps lose."""
        mu = self._start_search().first_multiplier(radius)
        system = PathSystem(self.geometry.features, self.rows, self.geometry.gram)
        inside = follow_central_path(system, loss, radius, mu)
        search = self._start_search(features=True)
        g = self.geometry.features @ inside.v
        thresholds = search.thresholds(g, (float(inside.r[0]), float(inside.r[1])))
        weights = inside.weights / self.rows.total
        steps = spent + inside.n_iter
        return SearchPoint(inside.v, g, thresholds, inside.mu, n_iter=steps, weights=weights)

    def _over_smaller(self, radius: float, spent: int) -> SearchPoint:
        """Approach `radius` from smaller ones: sharp losses converge slowly from far away."""
        try:
            return self._continued(self._start_search(), radius, spent)
        except IllConditioned:
            return self._continued(self._start_search(features=True), radius, spent)

    def _continued(self, search: Search, radius: float, spent: int) -> SearchPoint:
        smaller = _GENTLE / max(search.space.spread, 1e-300)
        n_steps = int(np.ceil(np.log(max(radius / smaller, 1.0)) / np.log(_RADIUS_GROWTH)))
        point = search.start(search.first_multiplier(min(smaller, radius)))
        point.n_iter = spent
        for k in range(n_steps, 0, -1):
            point = search.constrained(
                point, radius / _RADIUS_GROWTH**k, self.max_iter, precision=1e-2
            )
        return search.constrained(point, radius, self.max_iter)

    def at_penalty(self, penalty: float) -> DistanceResult:
        if self.hinge:
            raise TypeError(
                f"The penalised form needs a differentiable loss; {type(self.loss).__name__} "
                "is not."
            )
        search = self._start_search()
        try:
            point = search.penalised(search.start(penalty))
        except IllConditioned:
            search = self._start_search(features=True)
            point = search.penalised(search.start(penalty))
        radius = search.norm((point.x, point.g))
        result = self._certified(point, radius, active=True)
        return replace(result, penalty=penalty)

    def _start_search(self, features: bool = False) -> Search:
        if self.search is None or features:
            space = FeatureFunctions(self.geometry.features) if features else self.geometry.space()
            self.search = Search(space, self.rows, self.loss, self.max_iter, self.precision)
            self.last = None
        return self.search

    # -- certificates ----------------------------------------------------------------------

    def _certified(self, point: SearchPoint, radius: float, *, active: bool) -> DistanceResult:
        """Scale to the ball, recompute thresholds, weights, both objectives and the gap."""
        search, rows = self.search, self.rows
        assert search is not None
        norm = search.norm((point.x, point.g))
        factor = radius / norm if active and norm > 0 else 1.0
        x, g = point.x * factor, point.g * factor
        p, n = rows.masks
        r = self._thresholds(g, point.r)
        alpha = point.weights
        if alpha is None:
            alpha = rows.w * self.loss.derivative(search.excess(g, r)) / rows.total
        alpha = np.where(p, alpha / alpha[p].sum(), alpha / alpha[n].sum())
        _, distance = self.geometry.difference(rows.y * alpha)
        touching = distance <= _NEARLY_TOUCHING * search.mean_difference
        if self.geometry.explicit:
            nearest = rows.y * alpha * (radius / max(distance, 1e-300))
            c = self.geometry.coefficients(x) if touching else nearest
            return self._result(c, x, r, alpha, distance, radius, active, point.n_iter)
        if isinstance(search.space, FeatureFunctions):
            x = self._expansion(x, r, alpha, 0.0 if touching else distance, radius)
            # directions that no expansion holds may have made up most of the norm
            active = active and self.geometry.function(x, None)[1] >= _WHOLE_NORM * radius
        return self._result(x, None, r, alpha, distance, radius, active, point.n_iter)

    def _expansion(
        self, v: Array, r: tuple[float, float], alpha: Array, distance: float, radius: float
    ) -> Array:
        """The coefficients, of several that stand for nearly the same function, that serve best."""
        wanted = self._primal(self.geometry.features @ v, r)
        best, least = v, np.inf
        for c in self._expansions(v, alpha, distance, radius):
            g, norm = self.geometry.function(self._stored(c), None)
            g = g * min(1.0, radius / norm) if norm > 0 else g
            value = self._primal(g, self._thresholds(g, r))
            if value < least:
                best, least = c, value
            if least <= wanted + 0.1 * self.tol * max(1.0, abs(wanted)):
                break
        return best

    def _expansions(
        self, v: Array, alpha: Array, distance: float, radius: float
    ) -> Iterator[Array]:
        if distance > 0.0 and float(np.linalg.norm(v)) >= radius * (1.0 - 1e-9):
            yield self.rows.y * alpha * (radius / distance)
        yield from self.geometry.expansions(v)

    def _hinge(self, radius: float) -> DistanceResult:
        rows = self.rows
        if self.hull is None:
            cap = self.loss.slope_bound * rows.w / rows.total
            # Of sets that meet the gap is the radius times what rounding leaves of the distance.
            enough = _MEETING * self.tol / max(radius, self.largest_radius)
            self.hull = hull_weights(self.geometry, rows, cap, self.max_iter, enough)
        alpha, n_iter = self.hull
        values, distance = self.geometry.difference(rows.y * alpha)
        factor = radius / distance if distance > 0 else 0.0
        c, g = rows.y * alpha * factor, values * factor
        r = self._thresholds(g, (0.0, 0.0))
        # touching sets: rounding decides the direction, and the zero function is optimal
        if self._primal(g, r) >= 0.0:
            c, factor = np.zeros_like(c), 0.0
            r = (0.0, 0.0)
        v = self.geometry.features.T @ c if self.geometry.explicit else None
        return self._result(c, v, r, alpha, distance, radius, bool(factor), n_iter)

    def by_cone(self, radius: float) -> DistanceResult:
        """The same from the weights that a conic solver finds."""
        rows, features = self.rows, self.geometry.features
        alpha, n_iter = conic_weights(features, rows.y, rows.w, self.loss, radius, self.max_iter)
        if self.hinge:
            self.hull = alpha, n_iter
            return self._hinge(radius)
        z = features.T @ (rows.y * alpha)
        distance = float(np.linalg.norm(z))
        if distance > _NEARLY_TOUCHING * self._start_search().space.spread:
            v: Array = z * (radius / distance)
        else:
            v = self._from_optimality(alpha)
        self._start_search(features=True)
        point = SearchPoint(v, features @ v, (0.0, 0.0), 0.0, n_iter=n_iter)
        norm = float(np.linalg.norm(v))
        return self._certified(point, radius, active=norm >= radius * (1.0 - 1e-9))

    def _from_optimality(self, alpha: Array) -> Array:
        """``f`` of touching sets: least squares in ``r_i - y_i f(x_i) = l*'(M alpha_i / w_i)``."""
        rows, features = self.rows, self.geometry.features
        weight = rows.total * alpha / rows.w
        xi = self.loss.conjugate_derivative(weight)
        # a weight at a kink of the conjugate (a linear piece of the loss) fixes no xi
        left, right = (self.loss.conjugate_derivative(weight * (1 + e)) for e in (-1e-5, 1e-5))
        smooth = np.abs(right - left) <= 1e-3 * np.maximum(1.0, np.abs(xi))
        used = (alpha > 1e-7 * alpha.max()) & np.isfinite(xi) & smooth
        p, n = rows.masks
        system = np.column_stack([-rows.y[:, None] * features, p, n])[used]
        return np.asarray(np.linalg.lstsq(system, xi[used], rcond=1e-10)[0][: features.shape[1]])

    def _thresholds(self, g: Array, guess: tuple[float, float]) -> tuple[float, float]:
        """The best thresholds of both classes for given values, midpoints where not unique."""
        rows = self.rows
        p, n = rows.masks
        if not self.hinge:
            return (
                central_threshold(self.loss, g[p], rows.w[p], rows.total, guess[0]),
                central_threshold(self.loss, -g[n], rows.w[n], rows.total, guess[1]),
            )
        if isinstance(self.loss, HardMargin):
            return float(g[p].min()), float((-g[n]).min())
        target = 0.5 * self.loss.nu * rows.total
        return (
            quantile_threshold(g[p], rows.w[p], target),
            quantile_threshold(-g[n], rows.w[n], target),
        )

    def _result(
        self,
        c: Array,
        v: Array | None,
        r: tuple[float, float],
        alpha: Array,
        distance: float,
        radius: float,
        active: bool,
        n_iter: int,
    ) -> DistanceResult:
        """The function that is returned, kept within the ball; all else follows from it."""
        rows = self.rows
        g, norm = self.geometry.function(c, v)
        if active and norm > 0.0:
            c, v = c * (radius / norm), None if v is None else v * (radius / norm)
            g, norm = g * (radius / norm), radius
        c, v, g, norm = self._within(c, v, g, norm, radius)
        r = self._thresholds(g, r)
        primal = self._primal(g, r)
        conjugate = self.loss.conjugate(self._in_domain(rows.total * alpha / rows.w))
        p, n = rows.masks
        levels = (
            float(rows.w[p] @ conjugate[p]) / rows.total,
            float(rows.w[n] @ conjugate[n]) / rows.total,
        )
        dual = levels[0] + levels[1] + radius * distance
        gap = max(primal + dual, 0.0)
        rho, b = 0.5 * (r[0] + r[1]), 0.5 * (r[1] - r[0])
        offset = self.geometry.offset(c, v)
        return DistanceResult(
            coef=c,
            weight_vector=v,
            intercept=b - offset,
            rho=rho,
            values=g + offset,
            alpha=alpha,
            levels=levels,
            norm=norm,
            distance=distance,
            penalty=distance / (2.0 * norm) if norm > 0 else 0.0,
            active=active,
            objective=primal,
            dual_objective=-dual,
            gap=gap,
            n_iter=max(1, n_iter),
            converged=gap <= self.tol * max(1.0, abs(primal)),
        )

    def _within(
        self, c: Array, v: Array | None, g: Array, norm: float, radius: float
    ) -> tuple[Array, Array | None, Array, float]:
        """The function as it is stored, in the ball; single precision rounds after scaling."""
        single = self.storage != np.float64
        eps = float(np.finfo(self.storage).eps)
        for tries in range(_SHRINKINGS):
            if single:
                c, v = self._stored(c), None if v is None else self._stored(v)
                g, norm = self.geometry.function(c, v)
            if norm <= radius:
                break
            factor = radius / norm * (1.0 - 2.0**tries * eps if single else 1.0)
            c, v = c * factor, None if v is None else v * factor
            g, norm = g * factor, norm * factor
        return c, v, g, norm

    def _stored(self, x: Array) -> Array:
        """Coefficients as the model will keep them."""
        return np.asarray(x.astype(self.storage, copy=False).astype(np.float64, copy=False))

    def _primal(self, g: Array, r: tuple[float, float]) -> float:
        rows = self.rows
        xi = np.where(rows.y > 0, r[0], r[1]) - rows.y * g
        return float(rows.w @ self.loss.value(xi)) / rows.total - r[0] - r[1]

    def _in_domain(self, weights: Array) -> Array:
        """Rounding must not push a weight at the cap out of the conjugate's domain."""
        bound = float(getattr(self.loss, "slope_bound", np.inf))
        return np.minimum(weights, bound) if weights.max() <= bound * (1 + 1e-9) else weights
