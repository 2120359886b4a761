"""
Learning from labels that are partly wrong
==========================================

A support vector machine pays for every row in proportion to how far it lies on the wrong side, so
a wrong label far from the boundary pulls hardest. The ramp stops rising at the margin ``s``: such
rows are ignored. :meth:`buttress.RampClassifier.suspects` says which labels to look at again.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from buttress import RampClassifier, RampClassifierCV
from buttress.datasets import flip_labels

X, truth = make_moons(500, noise=0.2, random_state=2)
y = flip_labels(truth, 0.15, random_state=2)
wrong = y != truth
X_test, y_test = make_moons(3000, noise=0.2, random_state=1)

# %%
# The boundary of the hinge follows the wrong labels, that of the ramp does not. Crosses are the
# rows that the ramp ignores.

grid = np.stack(np.meshgrid(np.linspace(-2, 3, 120), np.linspace(-1.5, 2, 120)), axis=-1)
figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained", sharey=True)
for ax, s, name in zip(axes, (-np.inf, -1.0), ("hinge", "ramp, s = -1"), strict=True):
    model = RampClassifier(C=30.0, s=s, gamma=2.0).fit(X, y)
    scores = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.contour(grid[..., 0], grid[..., 1], scores, levels=[0], colors="black")
    ax.scatter(*X.T, c=y, cmap="coolwarm", s=18)
    ax.scatter(*X[model.ignored_].T, marker="x", c="black", s=60)
    ax.set_title(f"{name}: accuracy {model.score(X_test, y_test):.3f}")

# %%
# Which labels are wrong? Every row is judged by models that were not trained on it. The list is
# cut where the expected share of false alarms reaches ``fdr``.

model = RampClassifierCV(Cs=[1.0, 10.0], gammas="auto", random_state=0).fit(X, y)
found = model.suspects(X, y, fdr=0.1)
print(f"labels wrong in truth    {wrong.mean():.3f}")
print(f"estimated noise rate     {found.noise_rate:.3f}")
print(f"rows named               {len(found.selected)}, of {wrong.sum()} wrong ones")
print(f"of these really wrong    {wrong[found.selected].sum()}")

# %%
# The evidence separates wrong from right labels; named rows are marked below.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
bins = np.linspace(found.scores.min(), found.scores.max(), 40)
ax.hist(found.scores[~wrong], bins, alpha=0.6, label="label right")
ax.hist(found.scores[wrong], bins, alpha=0.6, label="label wrong")
ax.plot(found.scores[found.selected], np.full(len(found.selected), -2.0), "k|")
ax.set_xlabel("evidence against the label")
ax.legend()
plt.show()
