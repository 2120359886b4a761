"""Before and after: labels as given, and what the audit makes of them; for README and front page.

    python docs/images/found_labels.py

Writes ``docs/images/found_labels.png``. Every number in the titles is counted here.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import make_moons

from buttress import LabelAudit

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path(__file__).with_name("found_labels.png")
COLOURS = np.array(["#2166ac", "#d6604d"])
WRONG = 40


def main() -> None:
    X, true = make_moons(400, noise=0.1, random_state=0)
    rng = np.random.default_rng(0)
    given = true.copy()
    flipped = rng.choice(len(true), WRONG, replace=False)
    given[flipped] = 1 - given[flipped]
    found = LabelAudit(random_state=0).audit(X, given)
    right = np.isin(found.selected, flipped)

    figure, (before, after) = plt.subplots(1, 2, figsize=(9, 3.4), sharex=True, sharey=True)
    before.scatter(*X.T, c=COLOURS[given], s=14)
    before.set_title(f"400 labels as given, {WRONG} of them wrong", fontsize=10)
    rest = np.setdiff1d(np.arange(len(true)), found.selected)
    after.scatter(*X[rest].T, c=COLOURS[given[rest]], s=10, alpha=0.25)
    after.scatter(*X[found.selected].T, c=COLOURS[found.suggested[found.selected]], s=22)
    after.scatter(*X[found.selected].T, s=70, facecolors="none", edgecolors="black", linewidths=0.8)
    after.set_title(
        f"{len(found.selected)} named and recoloured: {right.sum()} wrong, "
        f"{(~right).sum()} false alarms",
        fontsize=10,
    )
    for axis in (before, after):
        axis.set(xticks=[], yticks=[])
    figure.tight_layout()
    figure.savefig(OUT, dpi=110)
    print(f"{OUT.name}: {right.sum()} of {WRONG} found, {(~right).sum()} false alarms")


if __name__ == "__main__":
    main()
