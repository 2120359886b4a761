"""Where a column's objective is least over the plane of two steps, without a matrix product.

The columns of `_kernel_columns` and `_conjugate` move to the minimum over the plane of a new step
and the previous one. With the change of the scores along both known, the objective and its
derivatives in the plane are sums over the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress._compile import FAST, inner
from buttress.solvers.smooth.margins import set_slopes

# Trial points of the search; two or three are the rule.
_TRIALS = 6
# Rows summed in single precision before they are added in double.
BLOCK = 256


@inner(fastmath=FAST)
def _newton_step(g1: Any, g2: Any, h11: Any, h12: Any, h22: Any) -> tuple[float, float]:
    """The step to the minimum of a quadratic in the plane; along the first axis if it is flat."""
    determinant = h11 * h22 - h12 * h12
    if determinant > 1e-10 * h11 * h22:
        return -(h22 * g1 - h12 * g2) / determinant, -(h11 * g2 - h12 * g1) / determinant
    return (-g1 / h11 if h11 > 0.0 else 0.0), 0.0


@inner(fastmath=FAST, allocates=True)
def plane_minimum(
    loss: Any,
    f: Array,
    along: Array,
    before: Array,
    y: Array,
    omega: Array,
    gradient: tuple[Any, Any],
    hessian: tuple[Any, Any, Any],
) -> tuple[float, float, float]:
    """Multiples of two steps at which one column's objective is least, and the decrease promised.

    Parameters
    ----------
    f, along, before : arrays of shape (n,)
        Scores, and their change along the new and the previous step.
    y, omega : arrays of shape (n,)
        Labels and row weights.
    gradient, hessian : tuples of floats
        Of the penalty along the two steps (first and second; 11, 12 and 22).

    Returns
    -------
    first, second : float
    promise : float
        Decrease of the quadratic model in the plane at the first point, twice.
    """
    n = f.size
    zero = np.float32(0.0)
    work = np.empty((3, BLOCK), np.float32)
    u, t, kappa = work[0], work[1], work[2]
    first, second, promise, promised = 0.0, 0.0, 0.0, 0.0
    try1, try2 = 0.0, 0.0
    for trial in range(_TRIALS):
        h11, h12, h22 = hessian
        g1 = gradient[0] + try1 * h11 + try2 * h12
        g2 = gradient[1] + try1 * h12 + try2 * h22
        c1, c2 = np.float32(try1), np.float32(try2)
        for low in range(0, n, BLOCK):
            m = BLOCK if n - low > BLOCK else n - low
            scores, label, row_weight = f[low : low + m], y[low : low + m], omega[low : low + m]
            change1, change2 = along[low : low + m], before[low : low + m]
            for i in range(m):
                u[i] = label[i] * (scores[i] + c1 * change1[i] + c2 * change2[i])
            set_slopes(loss, u[:m], t, kappa)
            b1, b2, b3, b4, b5 = zero, zero, zero, zero, zero
            for i in range(m):
                p1, p2 = change1[i], change2[i]
                pull = row_weight[i] * t[i] * label[i]
                curved = row_weight[i] * kappa[i]
                b1 += pull * p1
                b2 += pull * p2
                b3 += curved * p1 * p1
                b4 += curved * p1 * p2
                b5 += curved * p2 * p2
            g1, g2 = g1 - b1, g2 - b2
            h11, h12, h22 = h11 + b3, h12 + b4, h22 + b5
        # By convexity the value has not risen since the accepted point unless this is
        # positive; then come back most of the way.
        move1, move2 = try1 - first, try2 - second
        if trial > 0 and move1 * g1 + move2 * g2 > 0.5 * promise:
            try1, try2 = first + 0.3 * move1, second + 0.3 * move2
            promise *= 0.3
            continue
        first, second = try1, try2
        step1, step2 = _newton_step(g1, g2, h11, h12, h22)
        # what the gradient at the accepted point promises along the step
        promise = -(g1 * step1 + g2 * step2)
        if trial == 0:
            promised = promise
        try1, try2 = first + step1, second + step2
        if trial > 0 and abs(step1) + abs(step2) <= 0.02 * (abs(first) + abs(second)):
            first, second = try1, try2
            break
    return first, second, promised
