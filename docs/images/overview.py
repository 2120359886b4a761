"""Draws docs/images/overview.png: python docs/images/overview.py."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from buttress import DoubleRampClassifier, RampClassifier
from buttress.datasets import flip_labels, make_banana

X, clean = (data := make_banana(300, random_state=0)).X, data.y
noisy = flip_labels(clean, 0.15, random_state=0)
ramp = RampClassifier(gamma=0.3, s=-0.2).fit(X, noisy)
careful = DoubleRampClassifier(d=0.2, gamma=0.5, C=2.0).fit(X, noisy)

low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
grid_x, grid_y = np.meshgrid(np.linspace(low[0], high[0], 400), np.linspace(low[1], high[1], 400))
grid = np.column_stack([grid_x.ravel(), grid_y.ravel()])

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
panels = [
    (None, "training data: 15 % of the labels are wrong"),
    (ramp, "RampClassifier: circled rows have no influence"),
    (careful, "DoubleRampClassifier: grey means no answer"),
]
for ax, (model, title) in zip(axes, panels, strict=True):
    if model is not None:
        region = (model.decision_function(grid) > 0).astype(float)
        if model is careful:
            region[model.reject(grid)] = 0.5
        colours = ["#f4c7b0", "#dddddd", "#b9d3ec"]
        levels = [-0.1, 0.25, 0.75, 1.1]
        ax.contourf(grid_x, grid_y, region.reshape(grid_x.shape), levels=levels, colors=colours)
    for label, colour in ((-1, "#c8511b"), (1, "#1f6fb5")):
        ax.scatter(*X[noisy == label].T, s=8, color=colour)
    if model is ramp:
        ax.scatter(*X[ramp.ignored_].T, s=45, facecolors="none", edgecolors="k", linewidths=0.8)
    ax.set_title(title, fontsize=10)
    ax.set(xticks=[], yticks=[], xlim=(low[0], high[0]), ylim=(low[1], high[1]))
figure.savefig(Path(__file__).with_suffix(".png"), dpi=90, metadata={"Software": None})
