"""Expected cost where a missed row of the rarer class costs five false alarms.

German credit (a missed bad risk) and two other sets. A refusal (a clerk looks at it) costs REFUSAL,
whatever the class. The rival is scikit-learn's TunedThresholdClassifierCV, its threshold tuned to
the costs of answers, with Chow's rule on the same probabilities, its d chosen by cross-validating
the whole cost. Test labels are clean; training labels are clean or flipped. Finished cells (set,
split, share of flips) are kept in results/reject_costs_cells.jsonl. Needs BUTTRESS_DATA.

    python benchmarks/reject_costs.py [--quick] [--splits N] [--fresh] [--docs]
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV, cross_val_predict

from _common import Cells, difference, report
from _noise_sets import split
from buttress import (
    ChowRejector,
    DoubleHingeClassifier,
    DoubleRampClassifierCV,
    GeneralizedHingeClassifier,
    NoiseAwareClassifier,
)
from buttress.datasets import flip_labels
from buttress.metrics import cost_risk, cost_scorer

SETS = ("german_ida", "diabetis_ida", "australian")
REFUSAL = 0.4
COSTS = np.array([[0.0, 1.0, REFUSAL], [5.0, 0.0, REFUSAL]])
RIVAL, CHOW, RAMP = "tuned threshold + Chow", "Chow with costs", "double ramp with costs"
AWARE = "Chow with costs, NoiseAwareClassifier"
DOUBLE, GENERALIZED = "double hinge with costs", "generalised hinge with costs"
RULES = (RIVAL, CHOW, AWARE, RAMP, DOUBLE, GENERALIZED)
# Of the convex machines, around 1/n_features for the width (the sets have 8 to 42).
GRID = {"C": [0.01, 0.1, 1.0, 10.0], "gamma": [0.005, 0.02, 0.08]}


def answer_cost(y: Any, pred: Any) -> float:
    return -float(cost_risk(y, pred, None, COSTS, labels=[0, 1]))


def rival(model: Any, X: Any, y: Any, X_test: Any) -> tuple[Any, Any]:
    """Answers by a tuned threshold, refusals by Chow's rule with a tuned d."""
    tuned = TunedThresholdClassifierCV(model, scoring=make_scorer(answer_cost), cv=5).fit(X, y)
    held_out = cross_val_predict(model, X, y, cv=5, method="predict_proba")
    seen, pred = held_out.max(axis=1), (held_out[:, 1] > tuned.best_threshold_).astype(int)
    paid = {
        d: float(cost_risk(y, pred, seen <= 1 - d, COSTS, labels=[0, 1]))
        for d in np.linspace(0.02, 0.5, 25)
    }
    d = min(paid, key=paid.__getitem__)
    top = tuned.estimator_.predict_proba(X_test).max(axis=1)
    return tuned.predict(X_test), top <= 1 - d


def tuned(machine: Any) -> GridSearchCV:
    return GridSearchCV(machine, GRID, scoring=cost_scorer(COSTS), cv=5)


def cell(name: str, seed: int, rate: float) -> dict[str, float]:
    X, y, X_test, y_test = split(name, seed)
    # the rarer class is the one not to miss
    bad = min(np.unique(y).tolist(), key=lambda label: int((y == label).sum()))
    y, y_test = (y == bad).astype(int), (y_test == bad).astype(int)
    given = flip_labels(y, rate, random_state=seed) if rate else y
    model = LogisticRegressionCV(Cs=10, cv=5, scoring="neg_log_loss", max_iter=1000)
    decided = {RIVAL: rival(model, X, given, X_test)}
    for label, one in (
        (CHOW, ChowRejector(model, costs=COSTS)),
        (AWARE, ChowRejector(NoiseAwareClassifier(random_state=seed), costs=COSTS)),
        (RAMP, DoubleRampClassifierCV(costs=COSTS, gammas="auto", tol=1e-4)),
        (DOUBLE, tuned(DoubleHingeClassifier(costs=COSTS, tol=1e-4))),
        (GENERALIZED, tuned(GeneralizedHingeClassifier(costs=COSTS, tol=1e-4))),
    ):
        one.fit(X, given)
        one = getattr(one, "best_estimator_", one)
        decided[label] = one.predict(X_test), one.reject(X_test)
    found = {}
    for label, (pred, rejected) in decided.items():
        paid = cost_risk(y_test, pred, rejected, COSTS, labels=[0, 1])
        found[f"{label}/cost"] = float(np.asarray(paid))
        found[f"{label}/refused"] = float(np.mean(rejected))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two splits")
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--fresh", action="store_true", help="forget the cells of earlier runs")
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = Cells("reject_costs", given.fresh)
    rows = []
    splits = 2 if given.quick else given.splits
    for name, rate in product(SETS, (0.0, 0.1)):
        found = [cells.get((name, seed, rate), cell) for seed in range(splits)]
        rows += [
            {
                "set": name,
                "labels flipped": f"{rate:.0%}",
                "rule": label,
                "cost": f"{np.mean([one[f'{label}/cost'] for one in found]):.3f}",
                "refused": f"{np.mean([one[f'{label}/refused'] for one in found]):.0%}",
                "against the first": difference(found, f"{label}/cost", f"{RIVAL}/cost"),
            }
            for label in RULES
        ]
    report("reject_costs", rows, docs=given.docs, splits=splits, refusal=REFUSAL)


if __name__ == "__main__":
    main()
