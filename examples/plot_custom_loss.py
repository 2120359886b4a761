"""
A loss of your own
==================

The leaky hockey stick classifier takes any smooth convex margin loss, written as three functions of
one number: its value, derivative and curvature. They are compiled, and so are the solvers for them.
Here it is the squared hinge.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from buttress import LeakyHockeyStickClassifier
from buttress.losses import LeakyHockeyStick, ScalarLoss

# %%
# A loss is a function of the margin ``u = y f(x)``; the squared hinge is ``max(0, 1 - u)**2``.


def value(u):
    return max(0.0, 1.0 - u) ** 2


def derivative(u):
    return -2.0 * max(0.0, 1.0 - u)


def curvature(u):
    return 2.0 if u < 1.0 else 0.0


squared_hinge = ScalarLoss(value, derivative, curvature, curvature_bound=2.0)

# %%
# Both losses on the same data, half a moon against the other.

X, y = make_moons(200, noise=0.25, random_state=0)
losses = {"leaky hockey stick": None, "squared hinge": squared_hinge}
models = {
    name: LeakyHockeyStickClassifier(alpha=1e-2, gamma=1.0, loss=loss).fit(X, y)
    for name, loss in losses.items()
}

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
u = np.linspace(-2, 3, 200)
axes[0].plot(u, LeakyHockeyStick().value(u), label="leaky hockey stick")
axes[0].plot(u, squared_hinge.value(u), label="squared hinge")
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
