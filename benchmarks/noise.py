"""Label noise against tuned peers: finding flips, lists, rates, accuracy and 0-d-1 risk.

Training parts of at most 500 rows, noise of six kinds, test labels clean. Peers (tuned SVC,
forest, boosting, and cleanlab around each) see the same rows, labels and folds. Every choice in
the library was made on the sets of `DEVELOPMENT`; those of `APART` are reported apart.

Every finished cell (set, split, kind of noise) is kept in results/noise_ours_cells.jsonl and
results/noise_peers_cells.jsonl, and a run that was interrupted goes on where it stopped;
``--fresh`` forgets our cells, ``--report`` computes nothing and prints what is known.

python benchmarks/noise.py [--sets NAME ...] [--splits N] [--kinds KIND ...] [--only ours|peers]
                           [--report] [--docs]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from _common import Cells, report
from _noise_peers import peer_cell
from _noise_sets import APART, COSTS, DEVELOPMENT, KINDS, chow_risk, split, spoil
from _noise_verdicts import accuracy_rows, finding_rows, verdicts
from buttress import NoiseAwareClassifier

TRUE_RATES = {"10 %": (0.1, 0.1), "20 %": (0.2, 0.2), "30 %": (0.3, 0.3), "clean": (0.0, 0.0)}
TRUE_RATES["one class 30 %"] = (0.0, 0.3)


def our_cell(name: str, seed: int, kind: str) -> dict[str, float]:
    """Everything that is promised of one split of one set, by one fit with default settings."""
    X, y, X_test, y_test = split(name, seed)
    noisy = spoil(X, y, kind, seed)
    wrong = noisy != y
    model = NoiseAwareClassifier(random_state=0).fit(X, noisy)
    positive = model.predict_proba(X_test)[:, 1]
    found, proba = model.suspects_, model.suspects_.probabilities
    cell: dict[str, Any] = {
        "accuracy": float(((positive > 0.5) == y_test).mean()),
        "risk": float(np.mean([chow_risk(positive, y_test, d) for d in COSTS])),
        "named": len(found.selected),
        "false": int((~wrong[found.selected]).sum()),
        "found": int(wrong[found.selected].sum()),
        "wrong": int(wrong.sum()),
        "errors covered": float(
            found.expected_errors.low <= wrong.sum() <= found.expected_errors.high
        ),
        "per class": float(model.noise_.kind == "per_class"),
    }
    if wrong.any():
        cell["AP"] = average_precision_score(wrong, found.scores)
    rates = list(model.noise_.rates_.values())
    cell |= {f"rate {k}": float(rate) for k, rate in enumerate(rates)}
    if kind in TRUE_RATES:
        truth = TRUE_RATES[kind]
        cell["rate error"] = float(np.mean([abs(r - t) for r, t in zip(rates, truth, strict=True)]))
        cell["rates covered"] = float(
            np.mean([r.low - 1e-9 <= t <= r.high + 1e-9 for r, t in zip(rates, truth, strict=True)])
        )
    # sums per tenth of P(wrong), from which calibration is pooled over cells
    tenth = np.minimum((10 * proba).astype(int), 9)
    for k in np.unique(tenth).tolist():
        rows = tenth == k
        cell[f"bin {k}"] = [int(rows.sum()), float(proba[rows].sum()), int(wrong[rows].sum())]
    return cell


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=[*DEVELOPMENT, *APART])
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--fresh", action="store_true", help="forget our cells of earlier runs")
    parser.add_argument("--only", choices=["ours", "peers"], help="compute these cells only")
    parser.add_argument("--report", action="store_true", help="only print what is known")
    parser.add_argument("--docs", action="store_true", help="write the documentation's tables")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    ours, peers = Cells("noise_ours", arguments.fresh), Cells("noise_peers", fresh=False)
    # splits come first, so that an interrupted run has all sets and kinds of its first ones
    for seed in range(0 if arguments.report else arguments.splits):
        for name in arguments.sets:
            for kind in arguments.kinds:
                if arguments.only != "peers":
                    ours.get((name, seed, kind), our_cell)
                if arguments.only != "ours":
                    peers.get((name, seed, kind), peer_cell)
    if arguments.only:
        return
    for group, names in (("development", DEVELOPMENT), ("apart", APART)):
        cells = {
            key: (ours.scores[key], peers.scores[key])
            for key in ours.scores
            if key in peers.scores
            and key[0] in names
            and key[1] < arguments.splits
            and key[2] in arguments.kinds
        }
        if not cells:
            continue
        settings = {"sets": sorted({key[0] for key in cells}), "cells": len(cells)}
        report(f"noise_{group}_accuracy", accuracy_rows(cells), docs=arguments.docs, **settings)
        report(f"noise_{group}_found", finding_rows(cells), docs=arguments.docs, **settings)
        report(f"noise_{group}_verdicts", verdicts(cells), docs=arguments.docs, **settings)


if __name__ == "__main__":
    main()
