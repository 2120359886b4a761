"""Accuracy and label-error detection under label noise, against tuned peers.

Training parts of at most 500 rows, labels of the test part clean, the same folds and the same
penalties and widths for all kernel machines. Needs the benchmark data (BUTTRESS_DATA);
cleanlab is compared when it is installed.

Every finished cell (set, split, kind of noise) is kept in results/NAME_cells.jsonl, and a run that
was interrupted goes on where it stopped; ``--fresh`` starts again.

python benchmarks/noise.py [--quick] [--sets NAME ...] [--splits N] [--kinds KIND ...] [--docs]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import average_precision_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    train_test_split,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from _common import Cells, difference, report
from buttress import LeakyHockeyStickClassifierCV, RampClassifierCV
from buttress.datasets import flip_labels, load_dataset

SETS = [
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
    "wdbc",
    "magic",
]
KINDS = ["clean", "10 %", "20 %", "30 %", "one class 30 %", "boundary 20 %"]
PENALTIES = [0.1, 1.0, 10.0, 100.0]
FACTORS = [0.25, 1.0, 4.0]


@lru_cache
def complete_rows(name: str) -> tuple[Any, Any]:
    data = load_dataset(name, categorical="onehot")
    X, y = np.asarray(data.X, dtype=float), np.asarray(data.y)
    complete = ~np.isnan(X).any(axis=1)
    return X[complete], y[complete]


def split(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    X, y = complete_rows(name)
    size = min(500, int(0.65 * len(y)))
    X, X_test, y, y_test = train_test_split(X, y, train_size=size, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test[:2000]), y_test[:2000]


def spoil(X: Any, y: Any, kind: str, seed: int) -> Any:
    if kind == "clean":
        return y.copy()
    if kind.startswith("one class"):
        return flip_labels(y, 0.3, "class", random_state=seed)
    if kind.startswith("boundary"):
        scores = SVC().fit(X, y).decision_function(X)
        return flip_labels(y, 0.2, "near_boundary", scores=scores, random_state=seed)
    return flip_labels(y, int(kind[:2]) / 100, random_state=seed)


def widths(X: Any) -> list[float]:
    return [factor / (X.shape[1] * X.var()) for factor in FACTORS]


def tuned_svc(X: Any, y: Any, folds: Any) -> Any:
    """The support vector machine whose parameters the peers take over."""
    return GridSearchCV(SVC(), {"C": PENALTIES, "gamma": widths(X)}, cv=folds).fit(X, y)


def models(X: Any, folds: Any, svc: Any) -> dict[str, Callable[[], Any]]:
    """Estimators that tune themselves; kernel machines over the same penalties and widths."""
    found: dict[str, Callable[[], Any]] = {
        "ramp": lambda: RampClassifierCV(cv=folds, random_state=0),
        "leaky": lambda: LeakyHockeyStickClassifierCV(gammas=widths(X), cv=folds),
        "forest": lambda: RandomForestClassifier(300, random_state=0),
        "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    }
    try:
        from cleanlab.classification import CleanLearning
    except ImportError:
        return found

    class Cleaned:
        """Cleanlab around the support vector machine with the parameters of the search."""

        def fit(self, X: Any, y: Any) -> Any:
            codes = np.unique(y, return_inverse=True)[1]
            self.classes_ = np.unique(y)
            machine = SVC(probability=True, random_state=0, **svc.best_params_)
            self.model_ = CleanLearning(machine, seed=0)
            self.model_.fit(X, codes)
            return self

        def predict(self, X: Any) -> Any:
            return self.classes_[self.model_.predict(X)]

    found["cleanlab"] = Cleaned
    return found


def detection(X: Any, y: Any, wrong: Any, folds: Any, ramp: Any, best: Any) -> dict[str, float]:
    """Average precision of scores of wrong labels; `best` are the SVC's parameters."""
    sign = np.where(y == np.unique(y)[1], 1.0, -1.0)
    margin = sign * cross_val_predict(SVC(**best), X, y, cv=folds, method="decision_function")
    suspects = ramp.suspects(X, y)
    false = (~wrong[suspects.selected]).mean() if len(suspects.selected) else 0.0
    found = {
        "AP ramp": average_precision_score(wrong, suspects.scores),
        "AP svc": average_precision_score(wrong, -margin),
        "noise found": suspects.noise_rate,
        "named": float(len(suspects.selected)),
        "false share": float(false),
    }
    try:
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        return found
    codes = np.unique(y, return_inverse=True)[1]
    for name, model in (
        ("svc", SVC(probability=True, random_state=0, **best)),
        ("forest", RandomForestClassifier(300, random_state=0)),
    ):
        proba = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
        quality = get_label_quality_scores(codes, proba)
        found[f"AP cleanlab {name}"] = average_precision_score(wrong, -quality)
    return found


def cell(name: str, seed: int, kind: str) -> dict[str, float]:
    """Accuracies of all models and precisions of the evidence, one split of one set."""
    X, y, X_test, y_test = split(name, seed)
    noisy = spoil(X, y, kind, seed)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, noisy))
    svc = tuned_svc(X, noisy, folds)
    scores: dict[str, float] = {"svc": float((svc.predict(X_test) == y_test).mean())}
    for label, make in models(X, folds, svc).items():
        model = make().fit(X, noisy)
        scores[label] = float((model.predict(X_test) == y_test).mean())
        if label == "ramp" and kind != "clean":
            scores |= detection(X, noisy, noisy != y, folds, model, svc.best_params_)
    return {key: float(value) for key, value in scores.items()}


COLUMNS = ("ramp", "leaky", "svc", "forest", "boosting", "cleanlab")
DETECTION = ("AP ", "noise found", "named", "false share")


def tables(kind: str, cells: list[dict[str, float]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Means over the cells of one kind: accuracies, and what was found of the noise."""
    mean = {key: float(np.mean([scores[key] for scores in cells])) for key in cells[0]}
    accuracy: dict[str, Any] = {"noise": kind, "fits": len(cells)}
    accuracy |= {key: mean[key] for key in COLUMNS if key in mean}
    accuracy["ramp - svc"] = difference(cells, "ramp", "svc")
    if "cleanlab" in mean:
        accuracy["ramp - cleanlab"] = difference(cells, "ramp", "cleanlab")
    found: dict[str, Any] = {key: mean[key] for key in mean if key.startswith(DETECTION)}
    if found:
        found["AP ramp - svc"] = difference(cells, "AP ramp", "AP svc")
        shares = [scores["false share"] for scores in cells if scores["named"]]
        found["lists"] = len(shares)
        found["false share of lists"] = float(np.mean(shares)) if shares else None
    return accuracy, {"noise": kind, **found} if found else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sets, one split")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--name", default="noise", help="of the file of results")
    parser.add_argument("--fresh", action="store_true", help="forget the cells of earlier runs")
    parser.add_argument("--docs", action="store_true", help="write the documentation's tables")
    arguments = parser.parse_args()
    names, splits = arguments.sets, arguments.splits
    if arguments.quick:
        names, splits = ["australian", "banknote"], 1
    warnings.simplefilter("ignore")
    cells = Cells(arguments.name, arguments.fresh)
    # splits come last, so that an interrupted run has all sets and kinds of its first ones
    for seed in range(splits):
        for kind in arguments.kinds:
            for name in names:
                cells.get((name, seed, kind), cell)
        rows = [
            tables(k, [cells.get((s, i, k), cell) for s in names for i in range(seed + 1)])
            for k in arguments.kinds
        ]
        settings = {"sets": names, "splits": seed + 1}
        report(arguments.name, [row for row, _ in rows], docs=arguments.docs, **settings)
        found = [row for _, row in rows if row]
        if found:
            report(f"{arguments.name}_found", found, docs=arguments.docs, **settings)


if __name__ == "__main__":
    main()
