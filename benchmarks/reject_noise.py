"""The 0-d-1 risk of rules that refuse, with clean labels and with a tenth of them flipped.

Ten sets; training parts (500 rows at most), widths and folds are those of noise.py; the penalties
are the default grid of DoubleRampClassifierCV, for the support vector machines too. Three rules
start from the same tuned support vector machine: Chow's rule on its calibrated scores, a band of
its margin whose width minimises the risk on the folds, and a rejector learned on its errors.
Finished cells (set, split, share of flips) are kept in results/reject_noise_cells.jsonl, and a run
that was interrupted goes on where it stopped; ``--fresh`` starts again. Needs BUTTRESS_DATA.

    python benchmarks/reject_noise.py [--quick] [--sets NAME ...] [--splits N] [--docs]
"""

from __future__ import annotations

import argparse
import inspect
import warnings
from copy import copy
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from _common import Cells, report
from _noise_peers import widths
from _noise_sets import split
from buttress import ChowRejector, DoubleRampClassifierCV, NoiseAwareClassifier, TwoStageRejector
from buttress.datasets import flip_labels
from buttress.metrics import reject_risk

SETS = (
    "banana_ida",
    "german_ida",
    "image_ida",
    "ringnorm_ida",
    "splice_ida",
    "waveform_ida",
    "diabetis_ida",
    "australian",
    "banknote",
    "qsar_biodeg",
)
COSTS = (0.05, 0.1, 0.2, 0.3, 0.4)
RATES = (0.0, 0.1)
PENALTIES = inspect.signature(DoubleRampClassifierCV).parameters["Cs"].default
SIGMOID, ISOTONIC, BAND = "Chow, sigmoid SVC", "Chow, isotonic SVC", "margin band of the SVC"
AWARE, TWO_STAGE, RAMP = "NoiseAwareClassifier", "TwoStageRejector on the SVC", "double ramp CV"
RIVALS, OURS = (SIGMOID, ISOTONIC, BAND), (AWARE, TWO_STAGE, RAMP)


def band_width(margins: Any, y: Any, d: float) -> float:
    """The half width of smallest risk on margins of rows that were held out."""
    wrong = (margins > 0) != (y == y.max())
    candidates = np.concatenate([[0.0], np.abs(margins)])
    risks = [
        np.mean(np.where((np.abs(margins) <= width) & (width > 0), d, wrong))
        for width in candidates
    ]
    return float(candidates[int(np.argmin(risks))])


def cell(name: str, seed: int, rate: float) -> dict[str, float]:
    """Risk on the test part of every rule at every cost, and the share it refuses."""
    X, y, X_test, y_test = split(name, seed)
    given = flip_labels(y, rate, random_state=seed) if rate else y
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, given))
    grid = {"C": list(PENALTIES), "gamma": widths(X)}
    svc = GridSearchCV(SVC(), grid, cv=folds).fit(X, given).best_estimator_
    margins = cross_val_predict(svc, X, given, cv=folds, method="decision_function")
    on_test = np.abs(svc.decision_function(X_test))
    rules: dict[str, Any] = {
        label: ChowRejector(svc, calibration=calibration).fit(X, given)
        for label, calibration in ((SIGMOID, "sigmoid"), (ISOTONIC, "isotonic"))
    }
    rules[AWARE] = ChowRejector(NoiseAwareClassifier(random_state=seed)).fit(X, given)
    found = {}
    for d in COSTS:
        models = {label: copy(rule).set_params(d=d) for label, rule in rules.items()}
        models[TWO_STAGE] = TwoStageRejector(svc, d=d, random_state=seed).fit(X, given)
        models[RAMP] = DoubleRampClassifierCV(d=d, gammas=widths(X), cv=folds, tol=1e-4)
        models[RAMP].fit(X, given)
        decided = {
            label: (model.predict(X_test), model.reject(X_test)) for label, model in models.items()
        }
        width = band_width(margins, given, d)
        decided[BAND] = svc.predict(X_test), (on_test <= width) & (width > 0)
        for label, (pred, rejected) in decided.items():
            found[f"{label}/{d:g}/risk"] = float(reject_risk(y_test, pred, rejected, d))
            found[f"{label}/{d:g}/rejected"] = float(np.mean(rejected))
    return found


def table(cells: list[dict[str, float]]) -> list[dict[str, Any]]:
    """Mean risk and share refused by cost, and the mean over the costs against the best rival."""
    means = {
        label: {
            d: tuple(
                float(np.mean([scores[f"{label}/{d:g}/{what}"] for scores in cells]))
                for what in ("risk", "rejected")
            )
            for d in COSTS
        }
        for label in (*RIVALS, *OURS)
    }
    overall = {
        label: np.mean([risk for risk, _ in found.values()]) for label, found in means.items()
    }
    best = min(overall[label] for label in RIVALS)
    return [
        {"risk / refused": label}
        | {f"d = {d:g}": f"{risk:.4f} / {share:.0%}" for d, (risk, share) in found.items()}
        | {
            "mean": f"{overall[label]:.4f}",
            "against the best rival": f"{overall[label] / best - 1:+.1%}",
        }
        for label, found in means.items()
    ]


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
