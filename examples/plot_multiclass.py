"""
More than two classes
=====================

Every classifier goes one against the rest beyond two classes, with one kernel matrix for all the
binary problems. Those that abstain do so where no class, or more than one, is accepted.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from buttress import DoubleRampClassifier, LeakyHockeyStickClassifierCV

X, y = load_iris(return_X_y=True)
X = X[:, 2:]  # petal length and width
X = (X - X.mean(axis=0)) / X.std(axis=0)

leaky = LeakyHockeyStickClassifierCV(cv=5).fit(X, y)
double = DoubleRampClassifier(d=0.15, C=10.0, gamma=0.5).fit(X, y)
print(f"leaky hockey stick: alpha {leaky.alpha_:.2g}, accuracy {leaky.score(X, y):.3f}")
print(f"double ramp: {double.reject(X).sum()} of {len(X)} rows without an answer")

# %%
# One penalty serves all classes; it is chosen by the multi-class score.

grid = np.linspace(-2.2, 2.4, 200)
across, up = np.meshgrid(grid, grid)
points = np.column_stack([across.ravel(), up.ravel()])
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
for axis, model, title in zip(
    axes, (leaky, double), ("always answers", "may abstain"), strict=True
):
    region = model.predict(points).astype(float)
    if hasattr(model, "reject"):
        region[model.reject(points)] = np.nan
    axis.pcolormesh(across, up, region.reshape(across.shape), cmap="viridis", alpha=0.3)
    axis.scatter(*X.T, c=y, cmap="viridis", s=14, edgecolor="white", linewidth=0.4)
    axis.set(title=title, xlabel="petal length")
axes[0].set(ylabel="petal width")
plt.show()
