"""
A loss of your own
==================

The leaky hockey stick classifier takes any smooth convex margin loss: an object that knows its
value, derivative and curvature. Here it is the squared hinge, and a bound on how steep a loss may
get.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from buttress import LeakyHockeyStickClassifier
from buttress.losses import LeakyHockeyStick

# %%
# A loss is a function of the margin ``u = y f(x)``.


@dataclass(frozen=True)
class SquaredHinge:
    """``max(0, 1 - u)**2``."""

    curvature_bound: float = 2.0

    def value(self, u):
        return np.maximum(0.0, 1.0 - u) ** 2

    def derivative(self, u):
        return -2.0 * np.maximum(0.0, 1.0 - u)

    def curvature(self, u):
        return np.where(u < 1.0, 2.0, 0.0)


# %%
# Both losses on the same data, half a moon against the other.

X, y = make_moons(200, noise=0.25, random_state=0)
losses = {"leaky hockey stick": None, "squared hinge": SquaredHinge()}
models = {
    name: LeakyHockeyStickClassifier(alpha=1e-2, gamma=1.0, loss=loss).fit(X, y)
    for name, loss in losses.items()
}

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
u = np.linspace(-2, 3, 200)
axes[0].plot(u, LeakyHockeyStick().value(u), label="leaky hockey stick")
axes[0].plot(u, SquaredHinge().value(u), label="squared hinge")
axes[0].set(xlabel="margin", ylabel="loss", ylim=(-1.5, 5))
axes[0].legend()

grid = np.linspace(-2, 3, 120)
across, up = np.meshgrid(grid, grid)
points = np.column_stack([across.ravel(), up.ravel()])
axes[1].scatter(*X.T, c=y, cmap="coolwarm", s=12)
for model, colour in zip(models.values(), ("C0", "C1"), strict=True):
    scores = model.decision_function(points).reshape(across.shape)
    axes[1].contour(across, up, scores, levels=[0.0], colors=colour)
axes[1].set(xlim=(-1.7, 2.7), ylim=(-1.2, 1.7), title="where the answer changes")
plt.show()

# %%
# The certificate is there for the new loss too.

for name, model in models.items():
    kind = "duality_gap_" if hasattr(model, "duality_gap_") else "kkt_residual_"
    print(f"{name}: accuracy {model.score(X, y):.3f}, {kind} {getattr(model, kind):.1e}")
