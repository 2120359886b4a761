"""Newton's method in kernel form: coefficients of the rows.

Margins are ``u = y (K x + b)`` with coefficients x of the rows that count. Only rows whose loss
is curved (active) enter the Newton equations, whose matrix ``I + D K_AA D`` is Cholesky's friend.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import FAST, inner
from buttress.solvers.numerics.cholesky import factorise, row_length, solve
from buttress.solvers.numerics.rows import add_rows
from buttress.solvers.smooth import _newton_path as path
from buttress.solvers.smooth._newton_path import Point, Problem, implements
from buttress.solvers.smooth.margins import set_slopes

# Signs are settled when all scores are so many times what a step leaves to go away from zero.
_MARGIN = 20.0
# A factor serves once more after a step that left so small a share of its change.
_CONTRACTION = 0.2
# Places of a space's numbers: the penalty of the factor (zero: none yet), whether there is an older
# solution, the logarithm of its penalty, and its intercept.
_FACTOR, _KNOWN, _OLDER_LOG, _OLDER_B = range(4)


class KernelSpace(NamedTuple):
    """A Gram matrix, and the factor of its active part.

    Attributes
    ----------
    K : array of shape (n, n)
        Of the rows that count.
    out : array of shape (rows without weight, n)
        Similarities of the rows whose signs are wanted to those that count.
    curvature : array of shape (n,)
        Of the factor.
    rows : array of shape (2, n)
        The active rows, then the others; how many there are of each is in `counts`.
    d, lift : arrays of shape (n,)
        Roots D of the active rows, and what solves the equations for them.
    right, factor : arrays of shapes (n,) and (n, row_length)
    older_x, older_u : arrays of shape (n,)
        The solution before the last.
    numbers : array of shape (4,)
    contraction : float
    """

    K: Array
    out: Array
    curvature: Array
    rows: IntArray
    counts: IntArray
    d: Array
    lift: Array
    right: Array
    factor: Array
    older_x: Array
    older_u: Array
    numbers: Array
    contraction: float


def kernel_space(K: Array, held: IntArray, out: IntArray) -> KernelSpace:
    """The space of the rows `held` of a Gram matrix, with signs wanted at the rows `out`."""
    n = len(held)
    return KernelSpace(
        K if n == len(K) else K[held[:, None], held],
        K[out[:, None], held],
        np.zeros(n),
        np.empty((2, n), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty((n, row_length(n, 8))),
        np.empty(n),
        np.empty(n),
        np.zeros(4),
        _CONTRACTION,
    )


@implements(path.set_flat_point, KernelSpace)
def _set_flat_point(space: KernelSpace, problem: Problem, lam: float, point: Point) -> None:
    for i in range(point.u.size):
        point.x[i] = problem.omega[i] * problem.y[i] / (2.0 * lam)
        point.u[i] = 0.0
        space.rows[0, i] = i
    add_rows(space.K, space.rows[0], point.x, point.u)
    for i in range(point.u.size):
        point.u[i] *= problem.y[i]
    space.numbers[_KNOWN] = space.numbers[_FACTOR] = 0.0


@implements(path.refresh, KernelSpace)
def _refresh(space: KernelSpace, problem: Problem, point: Point) -> None:
    return


@implements(path.arrive, KernelSpace)
def _arrive(space: KernelSpace, problem: Problem, point: Point, lam: float) -> None:
    return


@implements(path.predict, KernelSpace)
def _predict(
    space: KernelSpace, loss: object, problem: Problem, point: Point, index: int
) -> tuple[bool, bool]:
    """Go on as far as the path went between the last two solutions, in log penalty."""
    numbers, older_x, older_u = space.numbers, space.older_x, space.older_u
    lam = problem.lambdas[index]
    ahead, share = np.log(lam), 0.0
    if index > 0:
        last = np.log(problem.lambdas[index - 1])
        if numbers[_KNOWN] > 0.0 and numbers[_OLDER_LOG] != last:
            share = (ahead - last) / (last - numbers[_OLDER_LOG])
        numbers[_KNOWN], numbers[_OLDER_LOG] = 1.0, last
    older_b = numbers[_OLDER_B]
    numbers[_OLDER_B] = point.b[0]
    for i in range(point.u.size):
        x, u = point.x[i], point.u[i]
        if share != 0.0:
            point.x[i] += share * (x - older_x[i])
            point.u[i] += share * (u - older_u[i])
        older_x[i], older_u[i] = x, u
    if share != 0.0:
        point.b[0] += share * (point.b[0] - older_b)
        set_slopes(loss, point.u, point.t, point.kappa)
    # Curvatures over the penalty change little along the path, so the last penalty's factor
    # often settles signs.
    if not problem.signs_only or numbers[_FACTOR] == 0.0:
        return False, False
    steady, curvature = True, space.curvature
    for i in range(curvature.size):
        curvature[i] *= lam / numbers[_FACTOR]
        steady = steady and (curvature[i] > 0.0) == (point.kappa[i] > 0.0)
    numbers[_FACTOR] = lam
    return False, steady


@implements(path.renew, KernelSpace)
def _renew(space: KernelSpace, problem: Problem, point: Point, lam: float, steps: int) -> None:
    K, d, lift, factor = space.K, space.d, space.lift, space.factor
    active, others = space.rows[0], space.rows[1]
    m, left = 0, 0
    for i in range(point.u.size):
        kappa = point.kappa[i]
        space.curvature[i] = kappa
        if kappa > 0.0:
            active[m] = i
            d[m] = np.sqrt(problem.omega[i] * kappa / (2.0 * lam))
            lift[m] = d[m]
            m += 1
        else:
            others[left] = i
            left += 1
    space.counts[0], space.counts[1] = m, left
    space.numbers[_FACTOR] = lam
    for j in range(m):
        row, target, share = K[active[j]], factor[j], d[j]
        for k in range(j):
            target[k] = share * d[k] * row[active[k]]
        target[j] = 1.0 + share * share * row[active[j]]
    if m > 0:
        factorise(factor[:m])
        solve(factor[:m], lift[:m])


@implements(path.propose, KernelSpace)
def _propose(space: KernelSpace, problem: Problem, point: Point, lam: float, trial: Point) -> float:
    """Minimise the quadratic model with the slopes at `point` and the factor's curvatures."""
    y, d, lift, right, x, u = problem.y, space.d, space.lift, space.right, trial.x, trial.u
    m, left = space.counts[0], space.counts[1]
    active, others = space.rows[0, :m], space.rows[1, :left]
    total = 0.0
    for i in range(u.size):
        u[i] = 0.0
    for k in range(left):
        i = others[k]
        x[i] = problem.omega[i] * y[i] * point.t[i] / (2.0 * lam)
        right[k] = x[i]
        total += x[i]
    add_rows(space.K, others, right, u)
    b = point.b[0]
    if m > 0:
        for j in range(m):
            i = active[j]
            right[j] = d[j] * (y[i] * (point.t[i] / space.curvature[i] + point.u[i]) - u[i])
        solve(space.factor[:m], right[:m])
        if problem.fit_intercept:
            lifted = 0.0
            for j in range(m):
                total += d[j] * right[j]
                lifted += d[j] * lift[j]
            b = total / lifted
        for j in range(m):
            right[j] = d[j] * (right[j] - b * lift[j])
            x[active[j]] = right[j]
        add_rows(space.K, active, right, u)
    trial.b[0] = b
    for i in range(u.size):
        u[i] = y[i] * (u[i] + b)
    return 0.0


@implements(path.penalty_slopes, KernelSpace)
def _penalty_slopes(
    space: KernelSpace, problem: Problem, point: Point, trial: Point
) -> tuple[float, float]:
    pull, growth = 0.0, 0.0
    b, db = point.b[0], trial.b[0] - point.b[0]
    for i in range(point.u.size):
        dx = trial.x[i] - point.x[i]
        pull += (problem.y[i] * point.u[i] - b) * dx
        growth += (problem.y[i] * (trial.u[i] - point.u[i]) - db) * dx
    return pull, growth


@inner(fastmath=FAST)
def _score(row: Array, x: Array) -> float:
    total = 0.0
    for i in range(x.size):
        total += row[i] * x[i]
    return total


@implements(path.settled, KernelSpace)
def _settled(
    space: KernelSpace, problem: Problem, before: Point, point: Point, lam: float, left: float
) -> bool:
    moved, smallest = 0.0, np.inf
    for i in range(len(space.out)):
        new = _score(space.out[i], point.x) + point.b[0]
        old = _score(space.out[i], before.x) + before.b[0]
        moved, smallest = max(moved, abs(new - old)), min(smallest, abs(new))
    return smallest > _MARGIN * left * moved
