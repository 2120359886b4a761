"""What changes for somebody who comes from scikit-learn, river or LIBSVM: the same job, both ways.

Three tables. "coming_sklearn": `SVC` and `RampClassifier(s=-inf)` solve one problem, so how far
apart are they, and what does each cost; and what a bounded loss gives when a tenth of the labels
is flipped. "coming_river": progressive accuracy (every row is answered before it is learnt) and
rows per processor second, one row at a time, in river's own loop, ours through `as_river`.
"coming_libsvm": processor seconds to read and write a LIBSVM file. Processor seconds, one thread.
Needs BUTTRESS_DATA and river.

    python benchmarks/coming_from.py [--only sklearn|river|libsvm] [--quick] [--docs]
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from river import evaluate, forest, linear_model, metrics, naive_bayes, preprocessing, tree
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from _common import report
from buttress import PARampClassifier, RampClassifier
from buttress.classifiers.online.river_bridge import as_river
from buttress.datasets import flip_labels, load_dataset
from buttress.tables import read_libsvm, write_libsvm

BATCH = ("sonar", "wdbc", "banana_ida", "qsar_biodeg")
STREAMS = ("elec2", "banana_ida", "occupancy")


def cpu(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    best, result = math.inf, None
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def rows_of(name: str, most: int = 10**9) -> tuple[Any, Any]:
    data = load_dataset(name, categorical="onehot")
    X = StandardScaler().fit_transform(np.asarray(data.X, dtype=float)[:most])
    return X, np.unique(np.asarray(data.y)[:most], return_inverse=True)[1]


def scikit_learn(splits: int) -> list[dict[str, Any]]:
    found = []
    for name in BATCH:
        X, y = rows_of(name, 3000)
        gaps, cost, right = [], {"SVC": 0.0, "ours": 0.0}, {"SVC": [], "ramp": []}
        for seed in range(splits):
            train, test, y_train, y_test = train_test_split(
                X, y, test_size=1 / 3, random_state=seed, stratify=y
            )
            svc = SVC(C=1.0, tol=1e-6, gamma="scale")
            ours = RampClassifier(C=1.0, s=-np.inf, gamma="scale")
            ours.fit(train, y_train)  # compiled
            spent, _ = cpu(lambda m=svc, a=train, b=y_train: m.fit(a, b))
            cost["SVC"] += spent
            spent, _ = cpu(lambda m=ours, a=train, b=y_train: m.fit(a, b))
            cost["ours"] += spent
            gaps.append(np.abs(svc.decision_function(test) - ours.decision_function(test)).max())
            noisy = flip_labels(y_train, 0.1, random_state=seed)
            right["SVC"].append(SVC(C=10.0).fit(train, noisy).score(test, y_test))
            ramp = RampClassifier(C=10.0, random_state=seed).fit(train, noisy)
            right["ramp"].append(ramp.score(test, y_test))
        found.append(
            {
                "set": name,
                "rows": len(y),
                "largest difference": float(max(gaps)),
                "SVC [s]": cost["SVC"] / splits,
                "ours / SVC": cost["ours"] / cost["SVC"],
                "SVC, 10 % flipped": float(np.mean(right["SVC"])),
                "ramp, 10 % flipped": float(np.mean(right["ramp"])),
            }
        )
    return found


def _learner(gamma: float, drift: str | None = None) -> PARampClassifier:
    return PARampClassifier(budget=300, gamma=gamma, drift=drift)


def river(most: int) -> list[dict[str, Any]]:
    found = []
    for name in STREAMS:
        X, y = rows_of(name, most)
        if name != "elec2":  # a stream in its own order; the others have none
            order = np.random.default_rng(0).permutation(len(y))
            X, y = X[order], y[order]
        ours = partial(_learner, 1.0 / X.shape[1])
        stream = [
            (dict(enumerate(row)), bool(label))
            for row, label in zip(X.tolist(), y.tolist(), strict=True)
        ]
        models = {
            "river logistic regression": preprocessing.StandardScaler()
            | linear_model.LogisticRegression(),
            "river naive Bayes": naive_bayes.GaussianNB(),
            "river Hoeffding tree": tree.HoeffdingTreeClassifier(),
            "river ARF, 10 trees": forest.ARFClassifier(n_models=10, seed=0),
            "PA-RAMP, budget 300": as_river(ours(), [False, True]),
            "PA-RAMP, budget 300, drift": as_river(ours("page-hinkley"), [False, True]),
        }
        as_river(ours(), [False, True]).learn_one(*stream[0])  # compiled
        for title, model in models.items():
            spent, score = cpu(
                lambda m=model, s=stream: evaluate.progressive_val_score(s, m, metrics.Accuracy()),
                1,
            )
            found.append(
                {
                    "set": name,
                    "rows": len(y),
                    "learner": title,
                    "accuracy": score.get(),
                    "rows/s": len(y) / spent,
                }
            )
        learner = ours()
        spent, _ = cpu(lambda m=learner, a=X, b=y: m.fit(a, b), 1)
        found.append(
            {
                "set": name,
                "rows": len(y),
                "learner": "PA-RAMP, budget 300, in blocks",
                "accuracy": 1.0 - learner.progressive_error_,
                "rows/s": len(y) / spent,
            }
        )
    return found


def libsvm() -> list[dict[str, Any]]:
    data = load_dataset("a9a", categorical="onehot")
    X = np.asarray(data.X, dtype=float)[:10_000]
    y = np.unique(np.asarray(data.y)[:10_000], return_inverse=True)[1]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours.svm", Path(folder) / "theirs.svm"
        for what, here, there in (
            (
                "write 10 000 rows of a9a",
                lambda: write_libsvm(ours, X, y),
                lambda: dump_svmlight_file(X, y, str(theirs), zero_based=False),
            ),
            (
                "read them",
                lambda: read_libsvm(ours, n_features=X.shape[1]),
                lambda: load_svmlight_file(str(theirs), zero_based=False),
            ),
        ):
            mine, result = cpu(here)
            other, _ = cpu(there)
            found.append({"job": what, "ours [s]": mine, "scikit-learn [s]": other})
        exact = bool((result[0].toarray() == X).all())
        found[-1]["same numbers"] = str(exact)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["sklearn", "river", "libsvm"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--docs", action="store_true")
    arguments = parser.parse_args()
    tables: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "sklearn": lambda: scikit_learn(2 if arguments.quick else 5),
        "river": lambda: river(1000 if arguments.quick else 3000),
        "libsvm": libsvm,
    }
    for name, measure in tables.items():
        if arguments.only in (None, name):
            report(f"coming_{name}", measure(), docs=arguments.docs)


if __name__ == "__main__":
    main()
