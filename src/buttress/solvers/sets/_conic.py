"""The dual problem for a general conic solver (Clarabel), for comparison and as an option.

Variables are the weights ``alpha``, a bound ``t`` on the distance, and what the loss's
conjugate needs; the loss decides the cones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from buttress._arrays import Array
from buttress.losses import (
    EllipsoidError,
    Exponential,
    HardMargin,
    Logistic,
    NuHinge,
    TruncatedQuadratic,
)


class _Program:
    """Constraints ``A x + s = b`` with ``s`` in a product of cones, collected by blocks."""

    def __init__(self, n_variables: int) -> None:
        self.n = n_variables
        self.quadratic = np.zeros(n_variables)  # objective ½ x' diag x + linear x
        self.linear = np.zeros(n_variables)
        self.blocks: list[Any] = []
        self.right: list[Array] = []
        self.cones: list[tuple[str, int]] = []

    def add(self, cone: str, A: Any, b: Array, size: int | None = None) -> None:
        """Require ``b - A x`` in `cone`; `size` splits the rows into cones of that size."""
        self.blocks.append(sparse.csc_matrix(A))
        self.right.append(np.asarray(b, dtype=np.float64))
        rows = self.blocks[-1].shape[0]
        self.cones += [(cone, size)] * (rows // size) if size else [(cone, rows)]

    def solve(self, max_iter: int) -> tuple[Array, int]:
        try:
            import clarabel
        except ImportError:
            raise ImportError(
                "solver='conic' needs Clarabel: install buttress with the extra 'conic'."
            ) from None

        kinds = {
            "zero": clarabel.ZeroConeT,
            "nonnegative": clarabel.NonnegativeConeT,
            "second_order": clarabel.SecondOrderConeT,
        }
        cones = [
            clarabel.ExponentialConeT() if kind == "exponential" else kinds[kind](size)
            for kind, size in self.cones
        ]
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_iter = max_iter
        settings.max_threads = 1
        for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
            setattr(settings, name, 1e-11)
        solver = clarabel.DefaultSolver(
            sparse.diags(self.quadratic, format="csc"),
            self.linear,
            sparse.vstack(self.blocks, format="csc"),
            np.concatenate(self.right),
            cones,
            settings,
        )
        solution = solver.solve()
        return np.asarray(solution.x), int(solution.iterations)


def conic_weights(
    features: Array, y: Array, w: Array, loss: Any, radius: float, max_iter: int
) -> tuple[Array, int]:
    """Solve the dual; returns ``alpha`` (class sums exact) and the number of iterations.

    Raises
    ------
    TypeError
        When the loss has no conic form here.
    """
    n, r = features.shape
    total = float(w.sum())
    eye, zero = sparse.identity(n, format="csc"), sparse.csc_matrix((n, n))
    extra = 2 * n if isinstance(loss, Logistic) else n
    program = _Program(n + 1 + extra)
    pad = sparse.csc_matrix((n, 1))

    def row(alpha: Any, first: Any = None, second: Any = None) -> Any:
        blocks = [alpha, pad, zero if first is None else first]
        if extra == 2 * n:
            blocks.append(zero if second is None else second)
        return sparse.hstack(blocks, format="csc")

    program.linear[n] = radius
    classes = np.zeros((2, program.n))
    classes[0, :n], classes[1, :n] = y > 0, y < 0
    program.add("zero", classes, np.ones(2))
    program.add("nonnegative", row(-eye), np.zeros(n))
    norm = np.zeros((r + 1, program.n))
    norm[0, n] = -1.0
    norm[1:, :n] = -(features * y[:, None]).T
    program.add("second_order", norm, np.zeros(r + 1))
    e = slice(n + 1, 2 * n + 1)
    if isinstance(loss, (NuHinge, HardMargin)):
        if isinstance(loss, NuHinge):
            program.add("nonnegative", row(eye), loss.slope_bound * w / total)
        program.add("zero", row(zero, eye), np.zeros(n))
    elif isinstance(loss, TruncatedQuadratic):
        program.linear[:n] = loss.b1
        program.quadratic[:n] = 2.0 * loss.b2 * total / w
        program.add("zero", row(zero, eye), np.zeros(n))
    elif isinstance(loss, EllipsoidError):
        # e >= |a - 1| with a = omega M alpha / (scale w)
        a = sparse.diags(loss.omega * total / (loss.scale * w))
        program.add("nonnegative", row(a, -eye), np.ones(n))
        program.add("nonnegative", row(-a, -eye), -np.ones(n))
        program.quadratic[e] = 2.0 * loss.scale * w / total
        program.linear[e] = 2.0 * loss.h * loss.scale * w / total
    elif isinstance(loss, Exponential):
        _entropy(program, row(eye), w / total, e, row(zero, eye))
        program.linear[:n] = -1.0
    elif isinstance(loss, Logistic):
        cap = loss.slope * w / total
        _entropy(program, row(eye), cap, e, row(zero, eye))
        second = slice(2 * n + 1, 3 * n + 1)
        _entropy(program, row(-eye), cap, second, row(zero, zero, eye), shift=cap)
    else:
        raise TypeError(
            f"solver='conic' knows no conic form of {type(loss).__name__}: use solver='newton'."
        )
    x, iterations = program.solve(max_iter)
    alpha = np.maximum(x[:n], 0.0)
    for mask in (y > 0, y < 0):
        alpha[mask] /= alpha[mask].sum()
    return alpha, iterations


def _entropy(
    program: _Program, x: Any, scale: Array, e: slice, bound: Any, shift: Array | None = None
) -> None:
    """``e_i >= q_i log(q_i / scale_i)`` for ``q = shift + x``, and ``e`` in the objective.

    The cone {(u, v, s): v exp(u / v) <= s} with u = -e, v = q, s = scale says this.
    """
    n = len(scale)
    shift = np.zeros(n) if shift is None else shift
    program.linear[e] = 1.0
    nothing = sparse.csc_matrix(x.shape)
    stacked = sparse.vstack([bound, -x, nothing], format="csr")
    right = np.concatenate([np.zeros(n), shift, scale])
    order = np.arange(3 * n).reshape(3, n).T.ravel()
    program.add("exponential", stacked[order], right[order], size=3)
