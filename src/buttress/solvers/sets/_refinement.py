"""Newton directions from an older factorisation, made exact by conjugate gradients.

Along a path neighbouring problems have nearly the same Hessian. A step of preconditioned
conjugate gradients costs two products with n x n matrices, a fresh Cholesky factorisation as
much as many such steps; with the multiplier divided by 1.3 three or four steps are enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress._compile import compiled
from buttress.solvers.sets._spaces import Function, KernelFactor, LabelledRows

# Below this many rows a factorisation costs no more than a few steps.
REFINED_ROWS = 300
# An older factor serves while the multiplier has not changed by more than this factor.
_LARGEST_CHANGE = 8.0
# So many steps at most; the factor of a solve that took more than the second is not used again.
_GRADIENT_STEPS, _TIRED = 20, 10


def serves(old: KernelFactor, mu: float) -> bool:
    """Whether an older factor is worth refining at the multiplier `mu`."""
    return not old.tired and 1.0 / _LARGEST_CHANGE < mu / old.mu < _LARGEST_CHANGE


class RefinedFactor:
    """``H^-1`` at given curvatures and multiplier, with `old` as preconditioner.

    The system is that of `KernelFactor`, on all rows (those without curvature have an identity
    there), and the class sums are kept by projecting every preconditioned residual.
    """

    def __init__(
        self,
        old: KernelFactor,
        mu: float,
        curvature: Array,
        rows: LabelledRows,
        accuracy: tuple[float, float],
    ) -> None:
        self.old, self.mu, self.accuracy = old, mu, accuracy
        self.scale = 1.0 / (2.0 * mu * rows.total)
        self.root = np.sqrt(curvature)
        e = np.stack([self.root * m for m in rows.masks if curvature[m].any()])
        self.solved = self._apply_old(e)
        self.e, self.gram = e, e @ self.solved.T

    def descent(self, *functions: Function) -> list[Function] | None:
        """``-H^-1 f`` for every function; None when the older factor is too far off."""
        r = np.stack([self.root * f[1] for f in functions]) / (2.0 * self.mu)
        x = np.zeros_like(r)
        z = self._precondition(r)
        p, rz = z, np.sum(r * z, axis=1)
        # the accuracy of the first, a step, and that of the tangent that may follow it
        goal, steps = np.array(self.accuracy[: len(r)]) ** 2 * rz, 0
        unsolved = np.arange(len(r))
        while True:
            steps += 1
            image = self._product(p)
            curved = np.sum(p * image, axis=1)
            length = np.divide(rz, curved, out=np.zeros_like(rz), where=curved > 0)[:, None]
            x[unsolved] += length * p
            r -= length * image
            z = self._precondition(r)
            new = np.sum(r * z, axis=1)
            going = new > goal
            if not going.any():
                break
            if steps == _GRADIENT_STEPS:
                self.old.tired = True
                return None
            p = z + np.divide(new, rz, out=np.zeros_like(rz), where=rz > 0)[:, None] * p
            rz = new
            if not going.all():
                unsolved, p, r, rz, goal = (
                    unsolved[going],
                    p[going],
                    r[going],
                    rz[going],
                    goal[going],
                )
        self.old.tired = steps > _TIRED
        steps_down = []
        for f, s in zip(functions, x, strict=True):
            change = (self.root * self.scale) * s - f[0] / (2.0 * self.mu)
            steps_down.append((change, np.asarray(self.old.K @ change)))
        return steps_down

    def _product(self, v: Array) -> Array:
        image = np.empty_like(v)
        multiply_rows(self.old.K, self.root * v, image)
        return v + (self.scale * self.root) * image

    def _apply_old(self, v: Array) -> Array:
        out = v.copy()
        curved = np.ascontiguousarray(v[:, self.old.q])
        solve_rounded(self.old.rounded(), curved)
        out[:, self.old.q] = curved
        return out

    def _precondition(self, r: Array) -> Array:
        z = self._apply_old(r)
        return np.asarray(z - np.linalg.solve(self.gram, self.e @ z.T).T @ self.solved)


@compiled(fastmath=True)
def multiply_rows(K: Array, v: Array, out: Array) -> None:
    """``out = v K`` for a symmetric matrix and one or two rows, reading the matrix once."""
    n = len(K)
    if len(v) == 1:
        for i in range(n):
            row, a = K[i], v[0]
            first = 0.0
            for j in range(n):
                first += row[j] * a[j]
            out[0, i] = first
    else:
        for i in range(n):
            row, a, b = K[i], v[0], v[1]
            first, second = 0.0, 0.0
            for j in range(n):
                first += row[j] * a[j]
                second += row[j] * b[j]
            out[0, i] = first
            out[1, i] = second


@compiled(fastmath=True)
def solve_rounded(factor: Any, right: Array) -> None:
    """Overwrite the rows of `right` with solutions for ``L L'``, L in single precision.

    The time is that of reading L twice, whatever the number of rows; LAPACK's solver, made for
    many, takes four times as long for two.
    """
    count, n = right.shape
    for i in range(n):
        row = factor[i]
        for k in range(count):
            y = right[k]
            total = 0.0
            for j in range(i):
                total += row[j] * y[j]
            y[i] = (y[i] - total) / row[i]
    for i in range(n - 1, -1, -1):
        row = factor[i]
        for k in range(count):
            y = right[k]
            y[i] /= row[i]
            x = y[i]
            for j in range(i):
                y[j] -= x * row[j]
