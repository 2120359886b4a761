"""
Learning from a stream with wrong labels
========================================

Four online learners take the same stream once, in order. A tenth of its labels are wrong. The
ramp refuses rows that contradict the model strongly, so PA-RAMP stays small and steady where
the Perceptron stores every contradiction.
"""

import numpy as np
from sklearn.datasets import make_moons
from sklearn.preprocessing import StandardScaler

from buttress import KernelPegasos, KernelPerceptron, Norma, PARampClassifier
from buttress.inspection import StreamDisplay

rng = np.random.default_rng(0)
X, y = make_moons(4000, noise=0.2, random_state=0)
X = X * [3.0, 50.0] + [100.0, -20.0]
wrong = rng.random(len(y)) < 0.1
labels = np.where(wrong, 1 - y, y)

# %%
# A stream has no "whole data" to fit a scaler on, and a scaler that keeps moving would
# invalidate the support vectors stored in the old units. Fit it on a warm-up window, then
# freeze it.

scaler = StandardScaler().fit(X[:200])
rows = scaler.transform(X)

# %%
# ``partial_fit`` takes the stream in pieces of any size; the model does not depend on them.

learners = [
    PARampClassifier(gamma=2.0),
    KernelPerceptron(gamma=2.0),
    KernelPegasos(gamma=2.0),
    Norma(gamma=2.0),
]
for learner in learners:
    for start in range(0, len(rows), 500):
        piece = slice(start, start + 500)
        learner.partial_fit(rows[piece], labels[piece], classes=[0, 1])
    print(
        f"{type(learner).__name__:>16}: accuracy on true labels {learner.score(rows, y):.3f}, "
        f"{len(learner.support_)} support vectors"
    )

# %%
# Error (against the noisy labels) and memory along the stream, as in Figure 2 of the paper.

display = StreamDisplay.from_estimators(learners)
display.figure_

# %%
# The rows the ramp refused are suspects. Count how many of them were really flipped.

model = PARampClassifier(gamma=2.0)
refused = []
for i in range(len(rows)):
    before = model.n_skipped_ if i else 0
    model.partial_fit(rows[i : i + 1], labels[i : i + 1], classes=[0, 1])
    if model.n_skipped_ > before:
        refused.append(i)
print(f"{len(refused)} rows refused, {np.mean(wrong[refused]):.0%} of them truly mislabelled")

# %%
# With a budget the memory is bounded for ever.

for policy in ("merge", "project", "forget"):
    small = PARampClassifier(gamma=2.0, budget=100, budget_policy=policy).fit(rows, labels)
    print(f"budget 100, {policy}: accuracy on true labels {small.score(rows, y):.3f}")
