"""
Uncertainty sets and the losses behind them
===========================================

A class can be described by a set of plausible means: weighted means of its rows, with weights
that are not too far from uniform. How far is decided by a loss, through its conjugate. The
classifier is the hyperplane between the nearest points of two such sets.
"""

# %%
# Two sets, their nearest points and the boundary
# -----------------------------------------------
# ``bias="bisect"`` puts the boundary half-way between the nearest points.

import matplotlib.pyplot as plt
import numpy as np

from buttress import MinimaxProbabilityMachine, UncertaintySetClassifier
from buttress.datasets import make_skewed_gaussians
from buttress.inspection import UncertaintySetDisplay
from buttress.losses import EllipsoidError, Exponential, LogBarrier, NuHinge
from buttress.theory import UncertaintySet, confidence_region, convex_hull

sample = make_skewed_gaussians(120, random_state=0)
X, y = sample.X + 2.0 * (sample.y[:, None] < 0), sample.y

model = UncertaintySetClassifier(h=1.0, radius=2.0, kernel="linear", bias="bisect").fit(X, y)
UncertaintySetDisplay.from_estimator(model)
plt.title(f"duality gap {model.duality_gap_:.0e}")

# %%
# One class, several losses
# -------------------------
# From the conjugate of a loss to its set. The last one, with conjugate ``-log``, is the set
# behind the leaky hockey stick loss: it bounds the geometric mean of the weights.

points = X[y > 0]
total = len(X)
losses = {
    "reduced hull": NuHinge(0.3),
    "ellipsoid, h = 1": EllipsoidError(h=1.0),
    "exponential": Exponential(),
    "-log (leaky hockey stick)": LogBarrier(),
}
figure, axes = plt.subplots(1, len(losses), figsize=(13, 3.4), sharex=True, sharey=True)
for (name, loss), ax in zip(losses.items(), axes, strict=True):
    ax.scatter(*points.T, s=6, color="0.6")
    ax.fill(*convex_hull(points).boundary().T, fill=False, edgecolor="0.8")
    lowest = UncertaintySet(points, loss, 1e3, n_samples=total).minimum_level()
    for extra in (0.1, 0.4) if not isinstance(loss, NuHinge) else (0.0,):
        shape = UncertaintySet(points, loss, lowest + extra, n_samples=total)
        ax.fill(*shape.boundary().T, color="C1", alpha=0.3)
    ax.fill(*confidence_region(points).boundary().T, fill=False, linestyle=":")
    ax.set(title=name, aspect="equal")

# %%
# Equal guarantees are not least error
# ------------------------------------
# The minimax probability machine gives both classes the same guarantee. Where one class is rare
# this costs many errors; the bias of least training error repairs it.

rare = make_skewed_gaussians(400, positive_rate=0.2, random_state=1)
test = make_skewed_gaussians(5000, positive_rate=0.2, random_state=2)
machines = {
    "minimax": MinimaxProbabilityMachine(gamma=0.1, covariance_ridge=1e-2),
    "unbiased": MinimaxProbabilityMachine(gamma=0.1, covariance_ridge=1e-2, bias="error_rate"),
    "uncertainty sets": UncertaintySetClassifier(gamma=0.1, radius=30.0),
}
for name, machine in machines.items():
    error = 1 - machine.fit(rare.X, rare.y).score(test.X, test.y)
    print(f"{name:17s} {100 * error:.1f} % test errors")
print(f"{'Bayes':17s} {100 * rare.bayes_error:.1f} %")
print(f"guarantee of the minimax machine: {machines['minimax'].worst_case_accuracy_:.2f}")
print(np.round(machines["minimax"].kappa_, 2), "deviations from either mean")
plt.show()
