"""Compiled search for the Rademacher penalty of one sign vector along a grid of betas.

With ``c = 2 beta alpha`` every concave step is a box problem in the same matrix,

    minimise  c'Kc/2 - 2 beta sum_{sigma_i = -1} y_i c_i,

and only the box depends on the point of linearisation, through one bit per row: the
*pattern* ``1[u_i < 1]`` where sigma_i = +1 and ``1[u_i < 0]`` where sigma_i = -1, with
``u = y f``. A pattern therefore is a start, and a pattern seen before ends a run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._compile import compiled
from buttress.solvers.boxqp.box_qp import minimise_in_box

_MAX_STEPS = 200
_MAX_FLIP_ROUNDS = 4
_ROUGH = 1e-2


class Draw(NamedTuple):
    """One sign vector and everything that does not depend on beta."""

    K: Array
    root: Array
    ridge: float
    y: Array
    sigma: Array
    gamma: float
    codes: IntArray  # random numbers, one per row: the xor over a pattern names it


class Grid(NamedTuple):
    """The betas, descending, and the tolerance on the gap of a concave step at each."""

    betas: Array
    tols: Array
    no_path: Array  # empty: where a run would write its objectives


class Kept(NamedTuple):
    """The best point found at each beta."""

    cells: Array  # (B, 4): J, W, R, gap
    patterns: BoolArray  # (B, n)
    duals: Array  # (B, n): c
    margins: Array  # (B, n): y f
    centre: float  # J at alpha = 0
    jumps: BoolArray  # (B,): the branch followed from the larger beta was beaten


@compiled()
def _read_pattern(draw: Draw, u: Array, pattern: BoolArray) -> float:
    """Set the pattern at the margins `u`; return the tolerance that counts as a kink."""
    tol: float = 1e-9 * max(1.0, np.max(np.abs(u)))
    for i in range(len(u)):
        if draw.sigma[i] > 0.0:
            pattern[i] = u[i] < 1.0 - tol
        else:
            pattern[i] = draw.gamma < 1.0 and u[i] < -tol
    return tol


@compiled()
def _set_box(draw: Draw, pattern: BoolArray, lower: Array, upper: Array) -> None:
    n = len(pattern)
    flat = 2.0 / n * (1.0 - draw.gamma)
    for i in range(n):
        if draw.sigma[i] > 0.0:
            low = -2.0 / n if pattern[i] else 0.0
            high = low + flat
        else:
            low = -flat if pattern[i] else 0.0
            high = low + 2.0 / n
        if draw.y[i] > 0.0:
            lower[i], upper[i] = low, high
        else:
            lower[i], upper[i] = -high, -low


@compiled()
def signed_risk(u: Array, sigma: Array, gamma: float) -> float:
    """``(2/n) sum_i sigma_i phi(u_i)``."""
    total = 0.0
    for i in range(len(u)):
        loss = 1.0 - gamma * u[i] if u[i] < 0.0 else max(1.0 - u[i], 0.0)
        total += sigma[i] * loss
    return 2.0 / len(u) * total


@compiled()
def _name(draw: Draw, pattern: BoolArray) -> np.int64:
    code = np.int64(0)
    for i in range(len(pattern)):
        if pattern[i]:
            code ^= draw.codes[i]
    return code


@compiled()
def _mark_kinks(draw: Draw, u: Array, tol: float, pattern: BoolArray) -> bool:
    """Take the other subgradient wherever `u` sits on a kink of the convex part."""
    moved = False
    for i in range(len(u)):
        if draw.sigma[i] < 0.0 and draw.gamma == 1.0:
            continue
        distance = u[i] - 1.0 if draw.sigma[i] > 0.0 else u[i]
        if abs(distance) <= tol and not pattern[i]:
            pattern[i] = True
            moved = True
    return moved


@compiled()
def climb(
    draw: Draw,
    beta: float,
    tol: float,
    pattern: BoolArray,
    c: Array,
    u: Array,
    seen: IntArray,
    path: Array,
) -> tuple[float, float, float, float, int]:
    """The concave-convex iteration from a pattern, until the pattern repeats.

    `pattern`, `c` and the margins `u` are overwritten; `seen` holds the number of known
    patterns followed by their names. Returns the objective J, W, the penalty R, the gap of
    the last concave step and the number of steps; J is -inf when the first pattern was known.
    """
    n = len(u)
    lower, upper, new = np.empty(n), np.empty(n), np.empty(n, dtype=np.bool_)
    b = np.where(draw.sigma < 0.0, 2.0 * beta * draw.y, 0.0)
    J, W, R, gap = -np.inf, 0.0, 0.0, 0.0
    for step in range(_MAX_STEPS):
        code = _name(draw, pattern)
        for k in range(1, seen[0] + 1):
            if seen[k] == code:
                return J, W, R, gap, step
        if seen[0] + 1 < len(seen):
            seen[0] += 1
            seen[seen[0]] = code
        _set_box(draw, pattern, lower, upper)
        for i in range(n):
            c[i] = min(max(c[i], lower[i]), upper[i])
        g = np.dot(draw.K, c) - b
        gap, _ = minimise_in_box(
            draw.K, draw.root, draw.ridge, b, lower, upper, c, g, 2.0 * beta * tol
        )
        gap /= 2.0 * beta
        W = 0.0
        for i in range(n):
            f = (g[i] + b[i]) / (2.0 * beta)
            u[i] = draw.y[i] * f
            W += c[i] / (2.0 * beta) * f
        R = signed_risk(u, draw.sigma, draw.gamma)
        before = J
        J = R - beta * W
        if step < len(path):
            path[step] = J
        kink = _read_pattern(draw, u, new)
        risen = before + 1e-13 * max(1.0, abs(J)) < J
        if not risen or (np.all(new == pattern) and not _mark_kinks(draw, u, kink, new)):
            return J, W, R, gap, step + 1
        pattern[:] = new
    return J, W, R, gap, _MAX_STEPS


@compiled()
def _offer(
    draw: Draw,
    k: int,
    grid: Grid,
    kept: Kept,
    trial: BoolArray,
    c: Array,
    u: Array,
    seen: IntArray,
) -> tuple[float, bool]:
    """Climb at the k-th beta and keep the end point when it is better than what is there."""
    J, W, R, gap, _ = climb(draw, grid.betas[k], grid.tols[k], trial, c, u, seen, grid.no_path)
    better = kept.cells[k, 0] + 1e-12 * max(1.0, abs(J)) < J
    if better:
        kept.cells[k, 0], kept.cells[k, 1], kept.cells[k, 2], kept.cells[k, 3] = J, W, R, gap
        kept.patterns[k] = trial
        kept.duals[k] = c
        kept.margins[k] = u
    return J, better


@compiled()
def follow(draw: Draw, grid: Grid, kept: Kept, starts: BoolArray, n_flips: int) -> None:
    """Fill `kept` for every beta of the descending grid.

    Each beta is climbed from the pattern kept at the one before and from all `starts`; then
    single bits of the best pattern are flipped, those of the margins nearest to their kink
    first. A pass upwards and one downwards offer each beta its neighbour's pattern; where
    the branch followed downwards ends below what is kept, W jumps.
    """
    n, n_betas = len(draw.y), len(grid.betas)
    trial, c, u = np.empty(n, dtype=np.bool_), np.zeros(n), np.empty(n)
    seen = np.zeros(64 * (len(starts) + 2) + 1, dtype=np.int64)
    explored = np.zeros_like(seen)
    kept.cells[:, 0] = -np.inf
    kink = np.where(draw.sigma > 0.0, 1.0, 0.0)
    for k in range(n_betas):
        seen[0] = 0
        explored[0] = 0
        for s in range(0 if k == 0 else -1, len(starts)):
            trial[:] = starts[s] if s >= 0 else kept.patterns[k - 1]
            if s > 0:
                # A rough climb first: any alpha gives a valid J, and few starts are worth more.
                scale = abs(kept.cells[k, 0] - kept.centre)
                rough = max(_ROUGH * scale, grid.tols[k])
                J = climb(draw, grid.betas[k], rough, trial, c, u, explored, grid.no_path)[0]
                if kept.cells[k, 0] - 2.0 * rough > J:
                    continue
            _offer(draw, k, grid, kept, trial, c, u, seen)
        improved = True
        rounds = 0
        while improved and rounds < _MAX_FLIP_ROUNDS:
            improved = False
            rounds += 1
            order = np.argsort(np.abs(kept.margins[k] - kink))
            for i in order[: min(n_flips, n)]:
                trial[:] = kept.patterns[k]
                trial[i] = not trial[i]
                c[:] = kept.duals[k]
                improved = _offer(draw, k, grid, kept, trial, c, u, seen)[1]
                if improved:
                    break
        c[:] = kept.duals[k]
    for down in range(2):
        for j in range(1, n_betas):
            k, near = (j, j - 1) if down else (n_betas - 1 - j, n_betas - j)
            seen[0] = 0
            trial[:] = kept.patterns[near]
            c[:] = kept.duals[near]
            J, _ = _offer(draw, k, grid, kept, trial, c, u, seen)
            kept.jumps[k] = kept.cells[k, 0] - 1e-9 * max(1.0, abs(J)) > J
    kept.jumps[0] = False
