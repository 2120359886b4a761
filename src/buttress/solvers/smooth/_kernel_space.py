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
from buttress.solvers.smooth import _space as path
from buttress.solvers.smooth._space import NewtonPoint, Problem, implements
from buttress.solvers.smooth.margins import set_slopes

# Signs are settled when all scores are so many times what a step leaves to go away from zero.
_MARGIN = 20.0
# A factor serves once more after a step that left so small a share of its change.
_CONTRACTION = 0.2
# Places of a space's numbers: the penalty of the factor (zero: none yet), whether there is an older
# solution, the logarithm of its penalty, its intercept, and how many rows are active.
_FACTOR, _KNOWN, _OLDER_LOG, _OLDER_B, _ACTIVE = range(5)


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
        The active rows, then the others.
    vectors : array of shape (5, n)
        The roots D of the active rows, what solves the equations for them, a right-hand side,
        and the coefficients and margins of the solution before the last.
    factor : array of shape (n, row_length)
    numbers : array of shape (5,)
        See the places above.
    contraction : float
    """

    K: Array
    out: Array
    curvature: Array
    rows: IntArray
    vectors: Array
    factor: Array
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
        np.empty((5, n)),
        np.empty((n, row_length(n, 8))),
        np.zeros(5),
        _CONTRACTION,
    )


@implements(path.set_flat_point, KernelSpace)
def _set_flat_point(space: KernelSpace, problem: Problem, lam: float, point: NewtonPoint) -> None:
    x, u, y, omega, every = point.x, point.u, problem.y, problem.omega, space.rows[0]
    for i in range(u.size):
        x[i], u[i], every[i] = omega[i] * y[i] / (2.0 * lam), 0.0, i
    add_rows(space.K, every, x, u)
    for i in range(u.size):
        u[i] *= y[i]
    space.numbers[_KNOWN] = space.numbers[_FACTOR] = 0.0


@implements(path.refresh, KernelSpace)
def _refresh(space: KernelSpace, problem: Problem, point: NewtonPoint) -> None:
    return


@implements(path.arrive, KernelSpace)
def _arrive(space: KernelSpace, problem: Problem, point: NewtonPoint, lam: float) -> None:
    return


@implements(path.predict, KernelSpace)
def _predict(
    space: KernelSpace, loss: object, problem: Problem, point: NewtonPoint, index: int
) -> tuple[bool, bool]:
    """Go on as far as the path went between the last two solutions, in log penalty."""
    numbers, older_x, older_u = space.numbers, space.vectors[3], space.vectors[4]
    x, u, kappa, curvature = point.x, point.u, point.kappa, space.curvature
    lam, share = problem.lambdas[index], 0.0
    if index > 0:
        last = np.log(problem.lambdas[index - 1])
        if numbers[_KNOWN] > 0.0 and numbers[_OLDER_LOG] != last:
            share = (np.log(lam) - last) / (last - numbers[_OLDER_LOG])
        numbers[_KNOWN], numbers[_OLDER_LOG] = 1.0, last
    b = point.b[0]
    point.b[0] += share * (b - numbers[_OLDER_B])
    numbers[_OLDER_B] = b
    for i in range(u.size):
        old_x, old_u = x[i], u[i]
        if share != 0.0:
            x[i] += share * (old_x - older_x[i])
            u[i] += share * (old_u - older_u[i])
        older_x[i], older_u[i] = old_x, old_u
    if share != 0.0:
        set_slopes(loss, u, point.t, kappa)
    # Curvatures over the penalty change little along the path, so the last penalty's factor
    # often settles signs.
    if not problem.signs_only or numbers[_FACTOR] == 0.0:
        return False, False
    steady = True
    for i in range(curvature.size):
        curvature[i] *= lam / numbers[_FACTOR]
        steady = steady and (curvature[i] > 0.0) == (kappa[i] > 0.0)
    numbers[_FACTOR] = lam
    return False, steady


@implements(path.renew, KernelSpace)
def _renew(
    space: KernelSpace, problem: Problem, point: NewtonPoint, lam: float, steps: int
) -> None:
    K, factor, d, lift = space.K, space.factor, space.vectors[0], space.vectors[1]
    active, others = space.rows[0], space.rows[1]
    curvature, kappa, omega = space.curvature, point.kappa, problem.omega
    m, left = 0, 0
    for i in range(kappa.size):
        curvature[i] = kappa[i]
        if kappa[i] > 0.0:
            active[m] = i
            d[m] = np.sqrt(omega[i] * kappa[i] / (2.0 * lam))
            lift[m] = d[m]
            m += 1
        else:
            others[left] = i
            left += 1
    space.numbers[_FACTOR], space.numbers[_ACTIVE] = lam, m
    for j in range(m):
        row, target, share = K[active[j]], factor[j], d[j]
        for k in range(j):
            target[k] = share * d[k] * row[active[k]]
        target[j] = 1.0 + share * share * row[active[j]]
    if m > 0:
        factorise(factor[:m])
        solve(factor[:m], lift[:m])


@implements(path.propose, KernelSpace)
def _propose(
    space: KernelSpace, problem: Problem, point: NewtonPoint, lam: float, trial: NewtonPoint
) -> float:
    """Minimise the quadratic model with the slopes at `point` and the factor's curvatures."""
    y, omega, t, curvature = problem.y, problem.omega, point.t, space.curvature
    d, lift, right, x, u = space.vectors[0], space.vectors[1], space.vectors[2], trial.x, trial.u
    before, b, total = point.u, point.b[0], 0.0
    m = int(space.numbers[_ACTIVE])
    left = u.size - m
    active, others = space.rows[0, :m], space.rows[1, :left]
    for i in range(u.size):
        u[i] = 0.0
    for k in range(left):
        i = others[k]
        right[k] = omega[i] * y[i] * t[i] / (2.0 * lam)
        x[i] = right[k]
        total += right[k]
    add_rows(space.K, others, right, u)
    if m > 0:
        for j in range(m):
            i = active[j]
            right[j] = d[j] * (y[i] * (t[i] / curvature[i] + before[i]) - u[i])
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
    space: KernelSpace, problem: Problem, point: NewtonPoint, trial: NewtonPoint
) -> tuple[float, float]:
    pull, growth, y = 0.0, 0.0, problem.y
    x, u, new_x, new_u = point.x, point.u, trial.x, trial.u
    b, db = point.b[0], trial.b[0] - point.b[0]
    for i in range(u.size):
        dx = new_x[i] - x[i]
        pull += (y[i] * u[i] - b) * dx
        growth += (y[i] * (new_u[i] - u[i]) - db) * dx
    return pull, growth


@inner(fastmath=FAST)
def _score(row: Array, x: Array) -> float:
    total = 0.0
    for i in range(x.size):
        total += row[i] * x[i]
    return total


@implements(path.settled, KernelSpace)
def _settled(
    space: KernelSpace,
    problem: Problem,
    before: NewtonPoint,
    point: NewtonPoint,
    lam: float,
    left: float,
) -> bool:
    moved, smallest, out, x, old_x = 0.0, np.inf, space.out, point.x, before.x
    b, old_b = point.b[0], before.b[0]
    for i in range(len(out)):
        new = _score(out[i], x) + b
        old = _score(out[i], old_x) + old_b
        moved, smallest = max(moved, abs(new - old)), min(smallest, abs(new))
    return smallest > _MARGIN * left * moved
