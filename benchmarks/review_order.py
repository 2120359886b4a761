"""What reviewing buys: accuracy after k labels were checked, by the order in which they are.

Twenty per cent uniform flips. Orders: random, `LabelSuspects.next` by "errors" and by "value",
cleanlab's label quality, and its ActiveLab. Checked labels are corrected and the kernel machines
refitted.

python benchmarks/review_order.py [--splits N] [--docs]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from _common import report
from _noise_sets import DEVELOPMENT, split, spoil
from buttress import LabelAudit
from buttress.noise import KernelWitness

BUDGETS = (25, 50, 100)


def orders(X: Any, noisy: Any, seed: int) -> dict[str, Any]:
    """Rows in the order in which each way would have them checked."""
    from cleanlab.multiannotator import get_active_learning_scores
    from cleanlab.rank import get_label_quality_scores

    found = LabelAudit(KernelWitness(), random_state=0).audit(X, noisy)
    # the same held-out scores for all, as probabilities of the given labels
    clean = found.noise.clean_proba(found.held_out_scores)
    given = clean @ found.noise.transition_
    active, _ = get_active_learning_scores(noisy[:, None].astype(float), given)
    return {
        "random": np.random.default_rng(seed).permutation(len(noisy)),
        "errors": found.next(len(noisy)),
        "value": found.next(len(noisy), strategy="value"),
        "cleanlab quality": np.argsort(get_label_quality_scores(noisy, given), kind="stable"),
        "cleanlab ActiveLab": np.argsort(active, kind="stable"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    table: dict[tuple[str, int], list[float]] = {}
    for seed in range(arguments.splits):
        for name in DEVELOPMENT:
            X, y, X_test, y_test = split(name, seed)
            noisy = spoil(X, y, "20 %", seed)
            for order, rows in orders(X, noisy, seed).items():
                for budget in BUDGETS:
                    labels = noisy.copy()
                    labels[rows[:budget]] = y[rows[:budget]]
                    accuracy = KernelWitness().fit(X, labels).score(X_test, y_test)
                    table.setdefault((order, budget), []).append(accuracy)
    names = list(dict.fromkeys(order for order, _ in table))
    rows = [
        {"order": order} | {f"{k} checked": float(np.mean(table[order, k])) for k in BUDGETS}
        for order in names
    ]
    report("review_order", rows, docs=arguments.docs, sets=DEVELOPMENT, splits=arguments.splits)


if __name__ == "__main__":
    main()
