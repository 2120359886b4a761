"""Rows of classes that were never seen: how many are refused, with and without `novelty`.

A fifth of the classes is kept out of training, others in every split. Chow's rule alone refuses the
rows about which a random forest is unsure; ``novelty=0.05`` adds those that are far from the
training rows. The last line lowers the threshold of Chow's rule until it refuses as many rows of
known classes as that, so that the two can be compared. Needs BUTTRESS_DATA.

    python benchmarks/novelty.py [--quick] [--docs]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from _common import report
from buttress import ChowRejector
from label_sets import labelled_rows

SETS = ("letter", "digits", "arrhythmia")
D, NOVELTY = 0.3, 0.05
ALONE, FAR, MATCHED = "Chow", f"Chow, novelty={NOVELTY:g}", "Chow, as many known rows refused"


def rows_of(name: str, seed: int) -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True) if name == "digits" else labelled_rows(name)
    chosen = np.random.default_rng(seed).permutation(len(y))[:4000]
    return X[chosen], y[chosen]


def split(name: str, seed: int) -> dict[str, tuple[float, float]]:
    """Shares refused, of rows of known and of unknown classes."""
    X, y = rows_of(name, seed)
    rng = np.random.default_rng(seed)
    labels = np.unique(y)
    unknown = np.isin(y, rng.choice(labels, max(1, len(labels) // 5), replace=False))
    X_train, X_known, y_train, _ = train_test_split(
        X[~unknown], y[~unknown], test_size=0.3, random_state=seed
    )
    forest = RandomForestClassifier(200, random_state=seed)
    model = ChowRejector(forest, d=D, novelty=NOVELTY).fit(X_train, y_train)
    sure = {
        part: model.predict_proba(rows).max(axis=1)
        for part, rows in (("k", X_known), ("u", X[unknown]))
    }
    far = model.reject(X_known), model.reject(X[unknown])
    level = np.quantile(sure["k"], far[0].mean())
    return {
        ALONE: tuple(float((sure[part] <= 1 - D).mean()) for part in "ku"),
        FAR: (float(far[0].mean()), float(far[1].mean())),
        MATCHED: tuple(float((sure[part] <= level).mean()) for part in "ku"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one split")
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    splits = 1 if given.quick else 5
    rows = []
    for name in SETS:
        found = [split(name, seed) for seed in range(splits)]
        for rule in (ALONE, FAR, MATCHED):
            known, unknown = np.mean([one[rule] for one in found], axis=0)
            shares = {"known classes": f"{known:.0%}", "unknown classes": f"{unknown:.0%}"}
            rows.append({"set": name, "rule": rule} | shares)
    report("novelty", rows, docs=given.docs, splits=splits)


if __name__ == "__main__":
    main()
