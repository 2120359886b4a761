"""Convex losses for costs by class: two stacked hinges each, and the band that goes with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.classifiers.costs import class_costs, probability_band

# Weight and margin of a hinge.
Hinge = tuple[float, float]


@dataclass(frozen=True)
class CostHinges:
    """Losses of the rows of both classes, as functions of ``t = y f``.

    Attributes
    ----------
    of_first, of_second : tuple of (weight, margin)
        The hinges whose sum is the loss of a row of ``classes_[0]`` and of ``classes_[1]``.
    band : (float, float)
        Scores between which a row is rejected.
    """

    of_first: tuple[Hinge, ...]
    of_second: tuple[Hinge, ...]
    band: tuple[float, float]

    def terms(self, y: Array) -> tuple[tuple[Array, Array], ...]:
        """Weights and margins of every row, as `solve_stacked_hinge` takes them."""
        second = np.asarray(y) > 0
        return tuple(
            (np.where(second, b[0], a[0]), np.where(second, b[1], a[1]))
            for a, b in zip(self.of_first, self.of_second, strict=True)
        )


def generalized_cost_hinges(costs: Any) -> CostHinges:
    """The generalised hinge whose minimiser is the cheapest decision.

    Parameters
    ----------
    costs : array-like of shape (2, 3)

    Notes
    -----
    With costs a of a wrong answer and b of a refusal, right answers free, let the loss of the
    second class take the values a, b, 0 at ``f = -u, 0, v`` and that of the first 0, b, a, linear
    between and beyond. The expected loss is then linear between ``-u``, 0 and v, so its minimiser
    is one of them, and its values there are the expected costs of the three decisions. Both losses
    are convex when ``b_1/(a_1 - b_1) <= v/u <= (a_0 - b_0)/b_0``, which leaves room exactly when
    ``b_0/a_0 + b_1/a_1 <= 1``, that is when refusing can pay. The geometric mean of the two
    limits makes both kinks equally strong; equal costs give ``u = v = 1``. The unit of the costs
    does not matter: losses are divided by the geometric mean of the b.

    Examples
    --------
    >>> hinges = generalized_cost_hinges([[0, 1, 0.2], [1, 0, 0.2]])
    >>> [(round(w, 9), round(m, 9)) for w, m in hinges.of_first]
    [(1.0, 1.0), (3.0, 0.0)]
    """
    (error_first, error_second), (refusal_first, refusal_second) = class_costs(costs)
    lower = refusal_second / (error_second - refusal_second)
    upper = (error_first - refusal_first) / refusal_first
    ratio = float((lower * upper) ** 0.5)
    v, u = ratio**0.5, ratio**-0.5
    unit = float((refusal_first * refusal_second) ** 0.5)

    def stacked(error: float, refusal: float, right: float, wrong: float) -> tuple[Hinge, Hinge]:
        """From 0 at the right answer over the refusal's cost at 0 to the error's at the wrong."""
        slope, steep = refusal / right, (error - refusal) / wrong
        return (float(slope / unit), right), (float(max(steep - slope, 0.0) / unit), 0.0)

    return CostHinges(
        stacked(error_first, refusal_first, u, v),
        stacked(error_second, refusal_second, v, u),
        (-0.5 * u, 0.5 * v),
    )


def double_cost_hinges(costs: Any) -> CostHinges:
    """The double hinge that touches the logistic loss where the cheapest decision changes.

    Parameters
    ----------
    costs : array-like of shape (2, 3)

    Notes
    -----
    Refusing is cheapest between two probabilities ``p < q`` of the second class. The logistic
    loss is replaced by its tangents at their log-odds and by 0, whichever is largest: for the
    second class ``max(H(p) - (1 - p) f, H(q) - (1 - q) f, 0)``, for the first ``max(H(q) + q f,
    H(p) + p f, 0)``, H the entropy in nats. The band is between the two log-odds.

    References
    ----------
    Y. Grandvalet, A. Rakotomamonjy, J. Keshet and S. Canu, "Support vector machines with a
    reject option", Advances in Neural Information Processing Systems 21, 2008.

    Examples
    --------
    >>> hinges = double_cost_hinges([[0, 1, 0.2], [1, 0, 0.2]])
    >>> [round(w, 9) for w, _ in hinges.of_second], round(hinges.band[1], 3)
    ([0.2, 0.6], 1.386)
    """
    class_costs(costs)
    p, q = probability_band(np.asarray(costs, dtype=np.float64))
    entropy_p, entropy_q = (float(-x * np.log(x) - (1 - x) * np.log1p(-x)) for x in (p, q))
    kink = (entropy_p - entropy_q) / (q - p)
    return CostHinges(
        ((p, entropy_p / p), (q - p, -kink)),
        ((1.0 - q, entropy_q / (1.0 - q)), (q - p, kink)),
        (float(np.log(p / (1 - p))), float(np.log(q / (1 - q)))),
    )
