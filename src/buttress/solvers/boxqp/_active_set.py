"""Compiled active-set steps for the box-constrained quadratic program."""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import FAST, compiled, inner

# Operations that a step costs besides its arithmetic, and steps spent on one residual.
_STEP_OVERHEAD = 2e4
_MAX_SETTLING = 3
# Passes in a row while each leaves at most 0.6 of the gap; a pass is cheaper than a step.
_MAX_SWEEPS = 10


@inner(fastmath=FAST)
def gradient(K: Array, x: Array, b: Array, g: Array) -> None:
    """Put ``K x - b`` into `g`; `K` is symmetric."""
    n = len(x)
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += K[i, j] * x[j]
        g[i] = total - b[i]


@inner()
def box_gap(g: Array, lower: Array, upper: Array, x: Array) -> float:
    """Duality gap of a feasible `x` with gradient `g`: a sum of non-negative terms."""
    gap = 0.0
    for i in range(len(x)):
        if g[i] > 0.0:
            gap += g[i] * (x[i] - lower[i])
        else:
            gap -= g[i] * (upper[i] - x[i])
    return gap


@compiled()
def box_state(g: Array, lower: Array, upper: Array, x: Array, tol: float) -> tuple[float, int, int]:
    """The gap, how many variables are inside their box, and how many should leave a bound."""
    n, n_free, n_wrong = len(x), 0, 0
    for i in range(n):
        if lower[i] < x[i] < upper[i]:
            n_free += 1
        elif g[i] * (x[i] - lower[i]) > tol / n or -g[i] * (upper[i] - x[i]) > tol / n:
            n_wrong += 1
    return box_gap(g, lower, upper, x), n_free, n_wrong


@inner(allocates=True)
def _inside(lower: Array, upper: Array, x: Array) -> IntArray:
    """Where the variables strictly inside their box stand."""
    indices = np.empty(len(x), dtype=np.int64)
    m = 0
    for i in range(len(x)):
        if lower[i] < x[i] < upper[i]:
            indices[m] = i
            m += 1
    return indices[:m]


@inner()
def _sweep(K: Array, lower: Array, upper: Array, x: Array, g: Array, idle: float) -> None:
    """One pass of exact coordinate minimisation; `g` is kept up to date.

    A coordinate that could lower the objective by less than `idle` is left alone, so that a
    pass costs one row of `K` per coordinate that really moves.
    """
    n = len(x)
    for i in range(n):
        if g[i] > 0.0:
            room = x[i] - lower[i]
        else:
            room = upper[i] - x[i]
        if abs(g[i]) * room <= idle:
            continue
        curvature = K[i, i]
        if curvature * room > abs(g[i]):
            step = -g[i] / curvature
            x[i] += step
        elif g[i] > 0.0:
            step = -room
            x[i] = lower[i]
        else:
            step = room
            x[i] = upper[i]
        for j in range(n):
            g[j] += step * K[i, j]


@inner()
def solve_cholesky(L: Array, r: Array) -> None:
    """Overwrite `r` with the solution of ``L L' x = r``; `L` is stored by columns."""
    m = len(r)
    for j in range(m):
        r[j] /= L[j, j]
        value = r[j]
        for i in range(j + 1, m):
            r[i] -= value * L[i, j]
    for j in range(m - 1, -1, -1):
        total = r[j]
        for i in range(j + 1, m):
            total -= L[i, j] * r[i]
        r[j] = total / L[j, j]


@inner()
def _add_rows(
    K: Array, free: IntArray, step: Array, g: Array, change: Array
) -> tuple[float, float]:
    """Put ``K step`` into `change`; return ``g' step`` and ``step' K step``."""
    n = len(change)
    first = 0.0
    for a in range(len(step)):
        i = free[a]
        value = step[a]
        first += g[i] * value
        if value != 0.0:
            for j in range(n):
                change[j] += value * K[i, j]
    second = 0.0
    for a in range(len(step)):
        second += step[a] * change[free[a]]
    return first, second


@inner(allocates=True)
def _free_step(K: Array, free: IntArray, g: Array, ridge: float) -> Array:
    """Newton step of the free variables; the ridge makes it proximal, so K may be singular."""
    m = len(free)
    S = np.empty((m, m))
    d = np.empty(m)
    for a in range(m):
        row = K[free[a]]
        for c in range(a + 1):
            S[a, c] = row[free[c]]
            S[c, a] = S[a, c]
        S[a, a] += ridge
        d[a] = -g[free[a]]
    solve_cholesky(np.linalg.cholesky(S), d)
    return d


@inner()
def _first_bound(
    free: IntArray, d: Array, lower: Array, upper: Array, x: Array
) -> tuple[float, int]:
    """The longest step in [0, 1] that stays in the box, and which variable ends it (or -1)."""
    longest, blocking = 1.0, -1
    for a in range(len(free)):
        i = free[a]
        if d[a] > 0.0:
            room = upper[i] - x[i]
        else:
            room = x[i] - lower[i]
        if room < longest * abs(d[a]):
            longest, blocking = room / abs(d[a]), a
    return longest, blocking


@inner(allocates=True)
def _move(
    K: Array, free: IntArray, d: Array, lower: Array, upper: Array, x: Array, g: Array
) -> None:
    """Move the free variables by `d` and the gradient with them."""
    change = np.zeros(len(x))
    _add_rows(K, free, d, g, change)
    for a in range(len(free)):
        i = free[a]
        x[i] = min(max(x[i] + d[a], lower[i]), upper[i])
    for j in range(len(x)):
        g[j] += change[j]


@inner(allocates=True)
def _newton(K: Array, lower: Array, upper: Array, x: Array, g: Array, ridge: float) -> None:
    """Minimise over the coordinates strictly inside the box, then return to the box.

    The projected full step is taken when it lowers the objective, else the longest step
    inside the box, which always does.
    """
    free = _inside(lower, upper, x)
    if len(free) == 0:
        return
    d = _free_step(K, free, g, ridge)
    longest, blocking = _first_bound(free, d, lower, upper, x)
    if blocking >= 0:
        clipped = np.empty(len(d))
        for a in range(len(free)):
            i = free[a]
            clipped[a] = min(max(x[i] + d[a], lower[i]), upper[i]) - x[i]
        change = np.zeros(len(x))
        first, second = _add_rows(K, free, clipped, g, change)
        if first + 0.5 * second < 0.0:
            d = clipped
        else:
            for a in range(len(free)):
                d[a] *= longest
    _move(K, free, d, lower, upper, x, g)


@compiled()
def active_set(
    K: Array,
    b: Array,
    lower: Array,
    upper: Array,
    x: Array,
    g: Array,
    tol: float,
    max_iter: int,
    ridge: float,
) -> tuple[float, int]:
    """Alternate coordinate passes and Newton steps on the free coordinates, in place.

    Starts from a feasible `x` with ``g = Kx - b``. Returns the duality gap, from a gradient
    computed afresh, and the number of rounds.
    """
    idle = 0.01 * tol / len(x)
    for iteration in range(max_iter):
        before = np.inf
        for _ in range(_MAX_SWEEPS):
            _sweep(K, lower, upper, x, g, idle)
            gap = box_gap(g, lower, upper, x)
            if gap <= tol or gap > 0.6 * before:
                break
            before = gap
        if gap > tol:
            _newton(K, lower, upper, x, g, ridge)
        if box_gap(g, lower, upper, x) <= tol:
            gradient(K, x, b, g)
            gap = box_gap(g, lower, upper, x)
            if gap <= tol:
                return gap, iteration + 1
    gradient(K, x, b, g)
    return box_gap(g, lower, upper, x), max_iter


@compiled(allocates=True)
def exchange(
    K: Array,
    b: Array,
    lower: Array,
    upper: Array,
    x: Array,
    g: Array,
    tol: float,
    budget: float,
    ridge: float,
) -> tuple[float, int]:
    """Let one variable at a time leave its bound, in place, from a feasible `x`.

    After each, the free variables are minimised over; those that meet a bound on the way
    are fixed there one by one. The objective falls at every step, whatever the conditioning.
    A step costs one factorisation of the free variables; `budget` limits the operations of
    all steps. Returns the duality gap and the number of steps.
    """
    n = len(x)
    is_free = np.zeros(n, dtype=np.bool_)
    for i in _inside(lower, upper, x):
        is_free[i] = True
    members = np.empty(n, dtype=np.int64)
    steps = 0
    settling = 0
    while budget > 0.0:
        m = 0
        for i in range(n):
            if is_free[i]:
                members[m] = i
                m += 1
        free = members[:m]
        if m > 0:
            steps += 1
            budget -= m * m * (m / 3.0 + 8.0) + 4.0 * n * m + _STEP_OVERHEAD
            d = _free_step(K, free, g, ridge)
            longest, blocking = _first_bound(free, d, lower, upper, x)
            for a in range(m):
                d[a] *= longest
            _move(K, free, d, lower, upper, x, g)
            if blocking >= 0:
                i = free[blocking]
                x[i] = upper[i] if d[blocking] > 0.0 else lower[i]
                is_free[i] = False
                settling = 0
                continue
        budget -= _STEP_OVERHEAD
        total, inside, worst, entering = 0.0, 0.0, 0.0, -1
        for i in range(n):
            violation = g[i] * (x[i] - lower[i]) if g[i] > 0.0 else -g[i] * (upper[i] - x[i])
            total += violation
            if is_free[i]:
                inside += violation
            elif violation > worst:
                worst, entering = violation, i
        if total <= tol:
            gradient(K, x, b, g)
            if box_gap(g, lower, upper, x) <= tol:
                break
        # The ridge leaves a residual on the free variables; another step removes most of it.
        if entering < 0 or (inside > 0.5 * total and settling < _MAX_SETTLING):
            settling += 1
            if settling > _MAX_SETTLING:
                break
        else:
            settling = 0
            is_free[entering] = True
    gradient(K, x, b, g)
    return box_gap(g, lower, upper, x), steps
