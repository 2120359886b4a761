"""Whether the signs of held-out scores can still change.

Cross-validated accuracy reads nothing but the signs of the held-out scores, so that a model of a
fold is good enough when these are certain, and no model is before. By strong convexity a
solution that leaves the objective ``P - P* = left`` to gain is nearer than ``sqrt(left / lam)``
in the norm of the penalty ``lam ||f||²``, and no score is further off than that times the norm of
its row; the intercept that balances the classes then moves by no more than the scores. The bound
is taken twice for it, and twice again because `left` is itself an estimate.
"""

from __future__ import annotations

import numpy as np

from buttress._arrays import Array, IntArray
from buttress._compile import compiled

_BOUNDS = 4.0
# Rounding of the scores over the unit roundoff times the norm of the coefficients (measured: 5).
_ROUNDINGS = 8.0


def score_errors(left: Array, lam: Array, row_norm: float, coef: Array) -> tuple[Array, Array]:
    """How far the scores of each column may be from the solution's: by distance, by rounding.

    Parameters
    ----------
    left : array of shape (k,)
        Decrease of the objective that is left.
    lam : array of shape (k,)
        Penalties.
    row_norm : float
        Largest norm of a row.
    coef : array of shape (k, m)
        Coefficients, in the precision of the products.
    """
    rounding = _ROUNDINGS * np.finfo(coef.dtype).eps * np.linalg.norm(coef, axis=1)
    return row_norm * _BOUNDS * np.sqrt(left / lam), row_norm * rounding


@compiled()
def smallest_held_out(f: Array, omega: Array, problem: IntArray) -> Array:
    """The smallest size of a held-out score in each column; infinite where no row is held out."""
    found = np.full(f.shape[0], np.inf)
    for k in range(f.shape[0]):
        weight = omega[problem[k]]
        for i in range(f.shape[1]):
            if weight[i] == 0.0:
                found[k] = min(found[k], abs(f[k, i]))
    return found
