"""The search for the Rademacher penalty of one sign vector along a grid of betas.

With ``c = 2 beta alpha`` every concave step is a box problem in the same matrix,

    minimise  c'Kc/2 - 2 beta sum_{sigma_i = -1} y_i c_i,

and only the box depends on the point of linearisation, through one bit per row: the
*pattern* ``1[u_i < 1]`` where sigma_i = +1 and ``1[u_i < 0]`` where sigma_i = -1, with
``u = y f``. A pattern therefore is a start, and a pattern seen before ends a run.

The loops over rows are compiled, those over steps are not: a compiled caller would compile the
box solver once more, and a first use would wait three quarters of a minute instead of seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._compile import compiled
from buttress.losses.ramp import generalized_ramp_at
from buttress.solvers.boxqp.box_qp import SharedMatrix, minimise_in_box

# Two to five steps are usual, and a pattern that repeats ends a climb before.
_MOST_CLIMB_STEPS = 200
_MOST_FLIP_ROUNDS = 4
# Gap of a first, rough climb from a further start, as a share of what has been gained so far.
_ROUGH_SHARE = 1e-2


@dataclass(frozen=True, eq=False)
class Draw:
    """One sign vector and everything that does not depend on beta."""

    shared: SharedMatrix
    y: Array
    sigma: Array
    gamma: float
    codes: IntArray  # random numbers, one per row: the xor over a pattern names it


class Grid(NamedTuple):
    """The betas, descending, and the tolerance on the gap of a concave step at each."""

    betas: Array
    tols: Array


class Kept(NamedTuple):
    """The best point found at each beta."""

    cells: Array  # (B, 4): J, W, R, gap
    patterns: BoolArray  # (B, n)
    duals: Array  # (B, n): c
    margins: Array  # (B, n): y f
    centre: float  # J at alpha = 0
    jumps: BoolArray  # (B,): the branch followed from the larger beta was beaten


@compiled()
def _read_pattern(sigma: Array, gamma: float, u: Array, pattern: BoolArray) -> float:
    """Set the pattern at the margins `u`; return the tolerance that counts as a kink."""
    largest = 1.0
    for i in range(len(u)):
        largest = max(largest, abs(u[i]))
    tol = 1e-9 * largest
    for i in range(len(u)):
        if sigma[i] > 0.0:
            pattern[i] = u[i] < 1.0 - tol
        else:
            pattern[i] = gamma < 1.0 and u[i] < -tol
    return tol


@compiled()
def _set_box(
    y: Array, sigma: Array, gamma: float, pattern: BoolArray, lower: Array, upper: Array, c: Array
) -> None:
    """The box of a pattern, and `c` moved into it."""
    n = len(pattern)
    flat = 2.0 / n * (1.0 - gamma)
    for i in range(n):
        if sigma[i] > 0.0:
            low = -2.0 / n if pattern[i] else 0.0
            high = low + flat
        else:
            low = -flat if pattern[i] else 0.0
            high = low + 2.0 / n
        if y[i] > 0.0:
            lower[i], upper[i] = low, high
        else:
            lower[i], upper[i] = -high, -low
        c[i] = min(max(c[i], lower[i]), upper[i])


@compiled()
def signed_risk(u: Array, sigma: Array, gamma: float) -> float:
    """``(2/n) sum_i sigma_i phi(u_i)``."""
    total = 0.0
    for i in range(len(u)):
        total += sigma[i] * generalized_ramp_at(u[i], gamma)
    return 2.0 / len(u) * total


@compiled()
def _name(codes: IntArray, pattern: BoolArray) -> np.int64:
    code = np.int64(0)
    for i in range(len(pattern)):
        if pattern[i]:
            code ^= codes[i]
    return code


@compiled()
def _mark_kinks(sigma: Array, gamma: float, u: Array, tol: float, pattern: BoolArray) -> bool:
    """Take the other subgradient wherever `u` sits on a kink of the convex part."""
    moved = False
    for i in range(len(u)):
        if sigma[i] < 0.0 and gamma == 1.0:
            continue
        distance = u[i] - 1.0 if sigma[i] > 0.0 else u[i]
        if abs(distance) <= tol and not pattern[i]:
            pattern[i] = True
            moved = True
    return moved


def climb(
    draw: Draw,
    beta: float,
    tol: float,
    pattern: BoolArray,
    c: Array,
    u: Array,
    seen: set[int],
    path: list[float] | None = None,
) -> tuple[float, float, float, float, int]:
    """The concave-convex iteration from a pattern, until the pattern repeats.

    `pattern`, `c` and the margins `u` are overwritten; `seen` holds the names of known patterns,
    and `path` is given the objectives. Returns the objective J, W, the penalty R, the gap of
    the last concave step and the number of steps; J is -inf when the first pattern was known.
    """
    n = len(u)
    y, sigma, gamma, K = draw.y, draw.sigma, draw.gamma, draw.shared.K
    lower, upper, new = np.empty(n), np.empty(n), np.empty(n, dtype=np.bool_)
    b = np.where(sigma < 0.0, 2.0 * beta * y, 0.0)
    J, W, R, gap = -np.inf, 0.0, 0.0, 0.0
    for step in range(_MOST_CLIMB_STEPS):
        code = int(_name(draw.codes, pattern))
        if code in seen:
            return J, W, R, gap, step
        seen.add(code)
        _set_box(y, sigma, gamma, pattern, lower, upper, c)
        g = K @ c - b
        gap, _ = minimise_in_box(draw.shared, b, lower, upper, c, g, 2.0 * beta * tol)
        gap /= 2.0 * beta
        f = (g + b) / (2.0 * beta)
        np.multiply(y, f, out=u)
        W = float(c @ f) / (2.0 * beta)
        R = signed_risk(u, sigma, gamma)
        before = J
        J = R - beta * W
        if path is not None:
            path.append(J)
        kink = _read_pattern(sigma, gamma, u, new)
        risen = before + 1e-13 * max(1.0, abs(J)) < J
        if not risen:
            return J, W, R, gap, step + 1
        if np.array_equal(new, pattern) and not _mark_kinks(sigma, gamma, u, kink, new):
            return J, W, R, gap, step + 1
        pattern[:] = new
    return J, W, R, gap, _MOST_CLIMB_STEPS


class _DrawSearch:
    """The best points of one draw along the grid, and what the climbs share."""

    def __init__(self, draw: Draw, grid: Grid, kept: Kept) -> None:
        self.draw, self.grid, self.kept = draw, grid, kept
        n = len(draw.y)
        self.trial, self.c, self.u = np.empty(n, dtype=np.bool_), np.zeros(n), np.empty(n)
        self.kink = np.where(draw.sigma > 0.0, 1.0, 0.0)

    def offer(self, k: int, seen: set[int]) -> tuple[float, bool]:
        """Climb at the k-th beta and keep the end point when it is better than what is there."""
        kept, grid = self.kept, self.grid
        J, W, R, gap, _ = climb(
            self.draw, grid.betas[k], grid.tols[k], self.trial, self.c, self.u, seen
        )
        better = bool(kept.cells[k, 0] + 1e-12 * max(1.0, abs(J)) < J)
        if better:
            kept.cells[k] = J, W, R, gap
            kept.patterns[k] = self.trial
            kept.duals[k] = self.c
            kept.margins[k] = self.u
        return J, better

    def from_starts(self, k: int, starts: BoolArray, seen: set[int]) -> None:
        """Climb from the pattern kept at the beta before and from all `starts`."""
        kept, grid = self.kept, self.grid
        explored: set[int] = set()
        for s in range(0 if k == 0 else -1, len(starts)):
            self.trial[:] = starts[s] if s >= 0 else kept.patterns[k - 1]
            if s > 0:
                # A rough climb first: any alpha gives a valid J, and few starts are worth more.
                scale = abs(kept.cells[k, 0] - kept.centre)
                rough = max(_ROUGH_SHARE * scale, grid.tols[k])
                J = climb(self.draw, grid.betas[k], rough, self.trial, self.c, self.u, explored)[0]
                if kept.cells[k, 0] - 2.0 * rough > J:
                    continue
            self.offer(k, seen)

    def from_flips(self, k: int, n_flips: int, seen: set[int]) -> None:
        """Flip single bits of the best pattern, those of margins nearest to their kink first."""
        for _ in range(_MOST_FLIP_ROUNDS):
            order = np.argsort(np.abs(self.kept.margins[k] - self.kink))
            if not any(self._flipped(k, i, seen) for i in order[:n_flips]):
                break
        self.c[:] = self.kept.duals[k]

    def _flipped(self, k: int, i: int, seen: set[int]) -> bool:
        self.trial[:] = self.kept.patterns[k]
        self.trial[i] = not self.trial[i]
        self.c[:] = self.kept.duals[k]
        return self.offer(k, seen)[1]

    def from_neighbour(self, k: int, near: int) -> None:
        """Offer a beta its neighbour's pattern; where that ends below what is kept, W jumps."""
        self.trial[:] = self.kept.patterns[near]
        self.c[:] = self.kept.duals[near]
        J, _ = self.offer(k, set())
        self.kept.jumps[k] = self.kept.cells[k, 0] - 1e-9 * max(1.0, abs(J)) > J


def follow(draw: Draw, grid: Grid, kept: Kept, starts: BoolArray, n_flips: int) -> None:
    """Fill `kept` for every beta of the descending grid.

    Each beta is climbed from the pattern kept at the one before and from all `starts`; then
    single bits of the best pattern are flipped. A pass upwards and one downwards offer each beta
    its neighbour's pattern.
    """
    search, n_betas = _DrawSearch(draw, grid, kept), len(grid.betas)
    kept.cells[:, 0] = -np.inf
    for k in range(n_betas):
        seen: set[int] = set()
        search.from_starts(k, starts, seen)
        search.from_flips(k, n_flips, seen)
    for k in range(n_betas - 2, -1, -1):
        search.from_neighbour(k, k + 1)
    for k in range(1, n_betas):
        search.from_neighbour(k, k - 1)
    kept.jumps[0] = False
