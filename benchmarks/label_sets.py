"""Sets of labels with a promised coverage: ours beside MAPIE's, on three named sets.

One random forest per set and split; a third of the rows trains it, a third calibrates, a third is
tested. Labels are those of the files: 26 letters, 9 kinds of arrhythmia (those with at least nine
rows), and the two classes that the stored sample of covtype has. MAPIE's scores are LAC, APS and
RAPS, without randomisation where it allows. "worst class" is the smallest coverage of a class with
ten test rows or more, over all splits. Needs BUTTRESS_DATA and mapie.

    python benchmarks/label_sets.py [--quick] [--docs]
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from mapie.classification import SplitConformalClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split

from _common import report
from buttress import ChowRejector
from buttress.datasets import fetch_dataset, load_dataset

SETS = ("letter", "covtype_sample", "arrhythmia")
COVERAGE = 0.9


def labelled_rows(name: str) -> tuple[Any, Any]:
    """Rows without gaps and the labels of the file, of classes with nine rows or more."""
    data = load_dataset(name, variant="raw", categorical="onehot")
    X = np.asarray(data.X, dtype=float)
    # the loader makes two classes of them, as the papers do
    y = pd.read_csv(fetch_dataset(name), usecols=["label"], dtype=str)["label"].to_numpy(str)
    known = np.isin(y, [label for label in np.unique(y) if (y == label).sum() >= 9])
    return SimpleImputer().fit_transform(X[known]), np.unique(y[known], return_inverse=True)[1]


def parts(name: str, seed: int, most: int) -> Any:
    X, y = labelled_rows(name)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(y))[:most]
    X, y = X[chosen], y[chosen]
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=seed)
    X, X_held, y, y_held = train_test_split(X, y, test_size=0.5, random_state=seed)
    return X, y, X_held, y_held, X_test, y_test


@dataclass
class Outcome:
    """Whether the true label was in the set, the label, and the size, of every test row."""

    inside: Any
    y: Any
    size: Any

    @classmethod
    def of(cls, sets: Any, y: Any) -> Outcome:
        return cls(sets[np.arange(len(y)), y], y, sets.sum(axis=1))

    @classmethod
    def pooled(cls, parts: list[Outcome]) -> Outcome:
        return cls(
            *(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls))
        )

    def row(self) -> dict[str, str]:
        counts = np.bincount(self.y)
        by_class = np.bincount(self.y, weights=self.inside) / np.maximum(counts, 1)
        return {
            "coverage": f"{self.inside.mean():.3f}",
            "worst class": f"{by_class[counts >= 10].min():.3f}",
            "labels per row": f"{self.size.mean():.2f}",
            "one label": f"{(self.size == 1).mean():.0%}",
            "no label": f"{(self.size == 0).mean():.0%}",
        }


def split(name: str, seed: int, most: int) -> dict[str, Outcome]:
    X, y, X_held, y_held, X_test, y_test = parts(name, seed, most)
    seen = np.isin(y_held, np.unique(y)), np.isin(y_test, np.unique(y))
    codes = {label: k for k, label in enumerate(np.unique(y).tolist())}
    X_held, X_test = X_held[seen[0]], X_test[seen[1]]
    y, y_held, y_test = (
        np.array([codes[v] for v in part.tolist()])
        for part in (y, y_held[seen[0]], y_test[seen[1]])
    )
    forest = RandomForestClassifier(200, random_state=seed).fit(X, y)
    found = {}
    ours = ChowRejector(FrozenEstimator(forest)).fit(X, y)
    for label, by_class in (("buttress", False), ("buttress, by class", True)):
        ours.calibrate_sets(X_held, y_held, COVERAGE, by_class=by_class)
        found[label] = Outcome.of(ours.predict_set(X_test), y_test)
    # MAPIE takes only the first for two classes
    for score in ("lac", "aps", "raps") if len(codes) > 2 else ("lac",):
        rival = SplitConformalClassifier(
            forest,
            confidence_level=COVERAGE,
            conformity_score=score,
            prefit=True,
            random_state=seed,
        ).conformalize(X_held, y_held)
        found[f"MAPIE, {score}"] = Outcome.of(rival.predict_set(X_test)[1][:, :, 0], y_test)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one split of 1500 rows")
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    splits, most = (1, 1500) if given.quick else (5, 6000)
    rows = []
    for name in SETS:
        found = [split(name, seed, most) for seed in range(splits)]
        for label in found[0]:
            pooled = Outcome.pooled([one[label] for one in found])
            rows.append({"set": name, "method": label} | pooled.row())
    report("label_sets", rows, docs=given.docs, splits=splits, most_rows=most)


if __name__ == "__main__":
    main()
