"""The 0-d-1 risk of tuned abstainers, with clean labels and with a tenth of them flipped.

The data sets, training parts, widths and folds are those of noise.py; the penalties are the
default grid of DoubleRampClassifierCV, for the support vector machines too. Finished cells
(set, split, share of flips) are kept in results/reject_noise_cells.jsonl, and a run that was
interrupted goes on where it stopped; ``--fresh`` starts again. Needs BUTTRESS_DATA.

    python benchmarks/reject_noise.py [--quick] [--sets NAME ...] [--splits N] [--docs]
"""

from __future__ import annotations

import argparse
import inspect
import warnings
from copy import copy
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from _common import Cells, difference, report
from buttress import ChowRejector, DoubleRampClassifierCV
from buttress.datasets import flip_labels
from buttress.metrics import reject_risk
from noise import SETS, split, widths

COSTS = (0.1, 0.2, 0.3, 0.4)
RATES = (0.0, 0.1)
PENALTIES = inspect.signature(DoubleRampClassifierCV).parameters["Cs"].default
SIGMOID, ISOTONIC, OURS = "Chow, sigmoid SVC", "Chow, isotonic SVC", "double ramp CV"


def cell(name: str, seed: int, rate: float) -> dict[str, float]:
    """Risk on the test part of every method at every cost, and the share it rejects."""
    X, y, X_test, y_test = split(name, seed)
    given = flip_labels(y, rate, random_state=seed) if rate else y
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, given))
    grid = {"C": list(PENALTIES), "gamma": widths(X)}
    svc = GridSearchCV(SVC(), grid, cv=folds).fit(X, given).best_estimator_
    rules = {
        label: ChowRejector(svc, calibration=calibration).fit(X, given)
        for label, calibration in ((SIGMOID, "sigmoid"), (ISOTONIC, "isotonic"))
    }
    found = {}
    for corrected in (False, True) if rate else (False,):
        for d in COSTS:
            # What a rule that sees the flipped labels must pay to act as if they were right.
            cost = d + rate * (1 - 2 * d) if corrected else d
            models: dict[str, Any] = {
                label: copy(rule).set_params(d=cost) for label, rule in rules.items()
            }
            models[OURS] = DoubleRampClassifierCV(d=cost, gammas=widths(X), cv=folds).fit(X, given)
            for label, model in models.items():
                rejected = model.reject(X_test)
                key = f"{label}{', corrected cost' if corrected else ''}/{d:g}"
                risk = reject_risk(y_test, model.predict(X_test), rejected, d)
                found[f"{key}/risk"] = float(risk)
                found[f"{key}/rejected"] = float(np.mean(rejected))
    return found


def table(cells: list[dict[str, float]]) -> list[dict[str, Any]]:
    """Mean risk and share rejected; then how far the double ramp is from each rule."""
    labels = list(dict.fromkeys(key.split("/")[0] for key in cells[0]))
    rows = []
    for label in labels:
        row: dict[str, Any] = {"risk / rejected": label}
        for d in COSTS:
            risk, share = (
                float(np.mean([scores[f"{label}/{d:g}/{what}"] for scores in cells]))
                for what in ("risk", "rejected")
            )
            row[f"d = {d:g}"] = f"{risk:.4f} / {share:.0%}"
        rows.append(row)
    for label in labels:
        if not label.startswith(OURS):
            ours = OURS + label.removeprefix(SIGMOID).removeprefix(ISOTONIC)
            rows.append(
                {"risk / rejected": f"double ramp minus {label}"}
                | {
                    f"d = {d:g}": difference(cells, f"{ours}/{d:g}/risk", f"{label}/{d:g}/risk")
                    for d in COSTS
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two sets, one split")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--fresh", action="store_true", help="forget the cells of earlier runs")
    parser.add_argument("--docs", action="store_true", help="write the documentation's tables")
    given = parser.parse_args()
    names, splits = (SETS[:2], 1) if given.quick else (given.sets, given.splits)
    warnings.simplefilter("ignore")
    cells = Cells("reject_noise", given.fresh)
    for rate in RATES:
        found = [cells.get((name, seed, rate), cell) for seed in range(splits) for name in names]
        settings = {"sets": names, "splits": splits, "flipped": rate}
        report(f"reject_noise_{100 * rate:.0f}", table(found), docs=given.docs, **settings)


if __name__ == "__main__":
    main()
