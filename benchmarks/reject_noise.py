"""The 0-d-1 risk of rules that refuse, with clean labels and with a tenth of them flipped.

Training parts (500 rows at most), widths and folds are those of noise.py; the penalties are the
default grid of DoubleRampClassifierCV, for the support vector machines too. Three rules start from
the same tuned support vector machine: Chow's rule on its calibrated scores, a band of its margin
whose width minimises the risk on the folds, and a rejector learned on its errors. Ten sets with
all rules; on 27 more the noise-aware classifier against its rivals, in all and set by set.
``--apart``: every second of these sets in the order of their names, on splits that no choice was
made in sight of.
Finished cells (rules, set, split, share of flips) are kept in results/reject_noise_cells.jsonl,
and a run that was interrupted goes on where it stopped; ``--fresh`` starts again. Needs
BUTTRESS_DATA.

    python benchmarks/reject_noise.py [--quick] [--splits N] [--apart] [--docs] [--fresh]
"""

from __future__ import annotations

import argparse
import inspect
import warnings
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
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
MORE_SETS = (
    "breast_cancer_ida",
    "hepatitis",
    "hungarian",
    "kr_vs_kp",
    "musk1",
    "parkinsons",
    "phishing",
    "spectf",
    "vertebral_2c",
    "magic",
    "flare_solar_ida",
    "titanic_ida",
    "bupa",
    "cleveland",
    "ionosphere",
    "sonar",
    "wdbc",
    "heart_ida",
    "thyroid_ida",
    "twonorm_ida",
    "adult",
    "elec2",
    "covtype_sample",
    "higgs_sample",
    "occupancy",
    "lsvt",
    "spect",
)
COSTS = (0.05, 0.1, 0.2, 0.3, 0.4)
RATES = (0.0, 0.1)
APART, APART_SPLITS = tuple(sorted(SETS + MORE_SETS)[1::2]), (20, 21, 22)
PENALTIES = inspect.signature(DoubleRampClassifierCV).parameters["Cs"].default
SIGMOID, ISOTONIC, BAND = "Chow, sigmoid SVC", "Chow, isotonic SVC", "margin band of the SVC"
AWARE, TWO_STAGE, RAMP = "NoiseAwareClassifier", "TwoStageRejector on the SVC", "double ramp CV"
RIVALS, OURS = (SIGMOID, ISOTONIC, BAND), (AWARE, TWO_STAGE, RAMP)


@lru_cache(maxsize=2)
def task(name: str, seed: int, rate: float) -> tuple[Any, Any, Any, Any, list[Any]]:
    """Training rows with labels as given, test rows with true labels, and folds."""
    X, y, X_test, y_test = split(name, seed)
    given = flip_labels(y, rate, random_state=seed) if rate else y
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, given))
    return X, given, X_test, y_test, folds


@lru_cache(maxsize=2)
def tuned(name: str, seed: int, rate: float) -> Any:
    X, given, _, _, folds = task(name, seed, rate)
    grid = {"C": list(PENALTIES), "gamma": widths(X)}
    return GridSearchCV(SVC(), grid, cv=folds).fit(X, given).best_estimator_


def band_width(margins: Any, y: Any, d: float) -> float:
    """The half width of smallest risk on margins of rows that were held out."""
    wrong = (margins > 0) != (y == y.max())
    candidates = np.concatenate([[0.0], np.abs(margins)])
    risks = [
        np.mean(np.where((np.abs(margins) <= width) & (width > 0), d, wrong))
        for width in candidates
    ]
    return float(candidates[int(np.argmin(risks))])


def scored(y_test: Any, d: float, decided: dict[str, tuple[Any, Any]]) -> dict[str, float]:
    """Risk and share refused of every rule's answers and refusals."""
    found = {}
    for label, (pred, rejected) in decided.items():
        found[f"{label}/{d:g}/risk"] = float(reject_risk(y_test, pred, rejected, d))
        found[f"{label}/{d:g}/rejected"] = float(np.mean(rejected))
    return found


def chow_scores(rule: Any, label: str, X_test: Any, y_test: Any) -> dict[str, float]:
    """One fit of a ChowRejector at every cost."""
    found = {}
    for d in COSTS:
        model = copy(rule).set_params(d=d)
        found |= scored(y_test, d, {label: (model.predict(X_test), model.reject(X_test))})
    return found


def rivals(name: str, seed: int, rate: float) -> dict[str, float]:
    X, given, X_test, y_test, folds = task(name, seed, rate)
    svc = tuned(name, seed, rate)
    found = {}
    for label, calibration in ((SIGMOID, "sigmoid"), (ISOTONIC, "isotonic")):
        rule = ChowRejector(svc, calibration=calibration).fit(X, given)
        found |= chow_scores(rule, label, X_test, y_test)
    margins = cross_val_predict(svc, X, given, cv=folds, method="decision_function")
    pred, on_test = svc.predict(X_test), np.abs(svc.decision_function(X_test))
    for d in COSTS:
        width = band_width(margins, given, d)
        found |= scored(y_test, d, {BAND: (pred, (on_test <= width) & (width > 0))})
    return found


def aware(name: str, seed: int, rate: float) -> dict[str, float]:
    X, given, X_test, y_test, _ = task(name, seed, rate)
    rule = ChowRejector(NoiseAwareClassifier(random_state=seed)).fit(X, given)
    return chow_scores(rule, AWARE, X_test, y_test)


def machines(name: str, seed: int, rate: float) -> dict[str, float]:
    X, given, X_test, y_test, folds = task(name, seed, rate)
    svc = tuned(name, seed, rate)
    found = {}
    for d in COSTS:
        models = {
            TWO_STAGE: TwoStageRejector(svc, d=d, random_state=seed),
            RAMP: DoubleRampClassifierCV(d=d, gammas=widths(X), cv=folds, tol=1e-4),
        }
        decided = {}
        for label, model in models.items():
            model.fit(X, given)
            decided[label] = model.predict(X_test), model.reject(X_test)
        found |= scored(y_test, d, decided)
    return found


WORK = {"rivals": rivals, "aware": aware, "machines": machines}


def cell(rules: str, name: str, seed: int, rate: float) -> dict[str, float]:
    """Risk on the test part of some rules at every cost, and the shares they refuse."""
    return WORK[rules](name, seed, rate)


def mean_risk(cells: list[dict[str, float]], label: str) -> float:
    """Over cells and costs."""
    return float(np.mean([scores[f"{label}/{d:g}/risk"] for scores in cells for d in COSTS]))


def table(cells: list[dict[str, float]], labels: tuple[str, ...]) -> list[dict[str, Any]]:
    """Mean risk and share refused by cost, and the mean over the costs against the best rival."""
    best = min(mean_risk(cells, label) for label in RIVALS)
    rows = []
    for label in labels:
        row = {"risk / refused": label}
        for d in COSTS:
            risk, share = (
                np.mean([scores[f"{label}/{d:g}/{what}"] for scores in cells])
                for what in ("risk", "rejected")
            )
            row[f"d = {d:g}"] = f"{risk:.4f} / {share:.0%}"
        overall = mean_risk(cells, label)
        row |= {"mean": f"{overall:.4f}", "against the best rival": f"{overall / best - 1:+.1%}"}
        rows.append(row)
    return rows


def by_set(found: dict[float, dict[str, list[dict[str, float]]]]) -> list[dict[str, Any]]:
    """The noise-aware classifier against the rival that is the best on the set itself."""
    rows = []
    for name in found[RATES[0]]:
        row = {"set": name}
        for rate, cells in found.items():
            risks = {label: mean_risk(cells[name], label) for label in RIVALS}
            rival = min(risks, key=lambda label: risks[label])
            ours = mean_risk(cells[name], AWARE)
            row |= {
                f"best rival, {rate:.0%} flipped": f"{risks[rival]:.4f} ({rival})",
                f"noise-aware, {rate:.0%} flipped": f"{ours:.4f} ({ours / risks[rival] - 1:+.0%})",
            }
        rows.append(row)
    return rows


def apart_rows(found: dict[float, list[dict[str, float]]]) -> list[dict[str, Any]]:
    """The mean risk of the noise-aware classifier and its rivals at every share of flips."""
    rows = []
    for label in (*RIVALS, AWARE):
        row: dict[str, Any] = {"mean risk": label}
        for rate, cells in found.items():
            best = min(mean_risk(cells, rival) for rival in RIVALS)
            risk = mean_risk(cells, label)
            row[f"{rate:.0%} flipped"] = f"{risk:.4f} ({risk / best - 1:+.1%})"
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two sets and two more, one split")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--apart", action="store_true", help="splits that no choice was made on")
    parser.add_argument("--fresh", action="store_true", help="forget the cells of earlier runs")
    parser.add_argument("--docs", action="store_true", help="write the documentation's tables")
    given = parser.parse_args()
    splits = 1 if given.quick else given.splits
    names, more = (SETS[:2], MORE_SETS[:2]) if given.quick else (SETS, MORE_SETS)
    warnings.simplefilter("ignore")
    kept = Cells("reject_noise", given.fresh)

    def cells_of(
        name: str, rate: float, rules: tuple[str, ...], seeds: Sequence[int] = range(splits)
    ) -> list[dict[str, float]]:
        found = []
        for seed in seeds:
            parts = [kept.get((part, name, seed, rate), cell) for part in rules]
            found.append({key: value for scores in parts for key, value in scores.items()})
        return found

    if given.apart:
        found = {
            rate: [
                scores
                for name in APART
                for scores in cells_of(name, rate, ("rivals", "aware"), APART_SPLITS)
            ]
            for rate in RATES
        }
        settings = {"sets": list(APART), "splits": list(APART_SPLITS)}
        report("reject_noise_apart", apart_rows(found), docs=given.docs, **settings)
        return
    seen: dict[float, dict[str, list[dict[str, float]]]] = {}
    for rate in RATES:
        ten = {name: cells_of(name, rate, ("rivals", "aware", "machines")) for name in names}
        others = {name: cells_of(name, rate, ("rivals", "aware")) for name in more}
        seen[rate] = ten | others
        for title, sets, labels in (
            ("", ten, RIVALS + OURS),
            ("_more", others, (*RIVALS, AWARE)),
        ):
            report(
                f"reject_noise{title}_{100 * rate:.0f}",
                table([scores for cells in sets.values() for scores in cells], labels),
                docs=given.docs,
                sets=list(sets),
                splits=splits,
                flipped=rate,
            )
    report("reject_noise_sets", by_set(seen), docs=given.docs, splits=splits)


if __name__ == "__main__":
    main()
