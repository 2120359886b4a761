"""
More rows than a kernel matrix can hold
=======================================

Beyond some twenty thousand rows the kernel matrix no longer fits in memory. The same classifiers
then take ``approximation="nystroem"``: a few hundred landmarks stand in for all rows, and the
whole path of penalties is solved with all folds in the same passes over the data.
"""

# %%
# How many landmarks? Accuracy rises quickly and then levels off, at the exact kernel's value.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from buttress import LeakyHockeyStickClassifier

X, y = make_moons(3000, noise=0.3, random_state=0)
X_test, y_test = make_moons(3000, noise=0.3, random_state=1)

exact = LeakyHockeyStickClassifier(alpha=1e-3).fit(X[:1000], y[:1000])
counts = [3, 5, 10, 20, 40, 80]
curves = {}
for rule in ("uniform", "kmeans++"):
    curves[rule] = [
        LeakyHockeyStickClassifier(
            alpha=1e-3, approximation="nystroem", n_components=m, landmarks=rule
        )
        .fit(X, y)
        .score(X_test, y_test)
        for m in counts
    ]

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for rule, scores in curves.items():
    axes.semilogx(counts, scores, "o-", label=f"landmarks: {rule}")
axes.axhline(exact.score(X_test, y_test), color="grey", linestyle=":", label="exact, 1000 rows")
axes.set(xlabel="landmarks", ylabel="test accuracy")
axes.legend()

# %%
# The rows need not be in memory. A source hands them out in blocks; here a memory-mapped file, but
# a directory of Parquet files or a Dask collection gives the same coefficients.
import tempfile
from pathlib import Path

from buttress.blocks.base import ArrayBlocks

folder = Path(tempfile.mkdtemp())
stored = np.memmap(folder / "rows.bin", dtype=float, mode="w+", shape=X.shape)
stored[:] = X
options = {"alpha": 1e-3, "approximation": "nystroem", "n_components": 80}
from_file = LeakyHockeyStickClassifier(**options).fit(ArrayBlocks(stored, y, block_size=500), None)
from_memory = LeakyHockeyStickClassifier(**options).fit(X, y)
print("largest difference of a score:")
print(np.abs(from_file.decision_function(X) - from_memory.decision_function(X)).max())
