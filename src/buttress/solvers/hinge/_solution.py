"""What the solutions of all hinge machines have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buttress._arrays import Array
from buttress.solvers.hinge.certificate import StepCertificate, Worth


@dataclass(frozen=True, eq=False)
class HingeSolution:
    """A minimiser, or a stationary point, of half the squared norm plus a sum of hinges.

    Attributes
    ----------
    c, g : arrays of shape (n,)
        Signed coefficients of the rows and ``K c``; ``f = g + b``.
    b : float
        The intercept, 0 without one.
    objective : float
        ``1/2 ||g||^2 + C sum loss`` at the point.
    gap : float
        Duality gap of the last convex step, in units of the objective.
    violation : float
        Violation of its optimality conditions, on the scale of f.
    n_iter : int
        Pair steps in all.
    converged : bool
        Whether the outer loop, if any, became stationary and the last step reached its tolerance.
    w : array of shape (p,) or None
        The function as a vector, where the kernel has features.
    certificate : StepCertificate
        Judges models; see `worth`.
    """

    c: Array
    g: Array
    b: float
    objective: float
    gap: float
    violation: float
    n_iter: int
    converged: bool
    w: Array | None
    certificate: StepCertificate

    def worth(self, g: Array, b: float, squared_norm: float) -> Worth:
        """Objective, gap and violation of a model with these row values, bias and norm."""
        threshold = np.array([b])[: self.certificate.terms.n_groups]
        return self.certificate.at(g, threshold, squared_norm)
