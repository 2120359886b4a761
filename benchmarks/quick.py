"""What became slower: ratios of ours to a yardstick, against those stored in the repository.

Times differ between machines and moments; ratios within one run differ less. Every row sets one
job beside work of the same kind that does not change with this project (LIBSVM, scikit-learn, a
matrix product with an exponential, Cholesky factors), both timed in turn, the best of several
rounds each. What moved by more than 15 % is printed; nothing fails.

python benchmarks/quick.py            compares (``make bench-quick``)
python benchmarks/quick.py --store    writes benchmarks/baseline.json
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC

from _common import machine, report
from buttress import (
    DoubleHingeClassifier,
    DoubleRampClassifier,
    DoubleRampClassifierCV,
    LeakyHockeyStickClassifier,
    LeakyHockeyStickClassifierCV,
    MinimaxProbabilityMachine,
    PARampClassifier,
    RampClassifier,
    RampClassifierCV,
    UncertaintySetClassifier,
    UncertaintySetClassifierCV,
)

BASELINE = Path(__file__).parent / "baseline.json"
MOVED = 0.15
# Rounds of every pair, at least and at most.
FEWEST, MOST = 3, 40

Work = Callable[[], Any]


def rows(n: int) -> tuple[Any, Any]:
    """Twenty standardised features, a tenth of the labels wrong."""
    X, y = make_classification(n, 20, n_informative=8, flip_y=0.2, random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def product_and_exp(X: Any, Z: Any) -> None:
    """The floor of every prediction: one product and one exponential."""
    E = X @ Z.T
    np.exp(E, out=E)


def pairs() -> Iterator[tuple[str, str, Work, Work]]:
    """Job, yardstick, both as calls."""
    X, y = rows(400)
    gamma, C = 0.05, 1.0
    grid = 10.0 ** np.linspace(0, -7, 100)
    search = LeakyHockeyStickClassifierCV(alphas=grid, gamma=gamma, cv=5)
    several = [SVC(gamma=gamma, C=c) for c in (0.01, 0.1, 1.0, 10.0, 100.0)]

    def svcs() -> None:
        for each in several:
            each.fit(X, y)

    yield "leaky path, 5 folds, 400 rows", "5 SVC fits", lambda: search.fit(X, y), svcs
    linear = LeakyHockeyStickClassifierCV(alphas=grid, kernel="linear", cv=5)
    plain = LinearSVC(C=0.1, tol=1e-3)
    yield (
        "linear leaky path, 5 folds, 400 rows",
        "LinearSVC fit",
        lambda: linear.fit(X, y),
        lambda: plain.fit(X, y),
    )
    X1, y1 = rows(1000)
    svc = SVC(gamma=gamma, C=C)
    for name, model in (
        ("ramp", RampClassifier(gamma=gamma, C=C)),
        ("double ramp", DoubleRampClassifier(gamma=gamma, C=C)),
        ("double hinge", DoubleHingeClassifier(gamma=gamma, C=C)),
        ("leaky", LeakyHockeyStickClassifier(gamma=gamma, alpha=1e-3)),
    ):
        yield (
            f"{name} fit, 1000 rows",
            "SVC fit",
            lambda model=model: model.fit(X1, y1),
            lambda: svc.fit(X1, y1),
        )
    S = rbf_kernel(X1, gamma=gamma) + np.eye(len(X1))
    for name, model in (
        ("uncertainty set", UncertaintySetClassifier(gamma=gamma)),
        ("reduced hull", UncertaintySetClassifier("reduced_hull", gamma=gamma, nu=0.5)),
        ("minimax", MinimaxProbabilityMachine(gamma=gamma)),
    ):
        yield (
            f"{name} fit, 1000 rows",
            "Cholesky factor",
            lambda model=model: model.fit(X1, y1),
            lambda: linalg.cholesky(S, lower=True),
        )
    for name, model in (
        ("ramp", RampClassifierCV(gammas=[gamma], cv=3)),
        ("double ramp", DoubleRampClassifierCV(gammas=[gamma], cv=3)),
        ("uncertainty set", UncertaintySetClassifierCV(gammas=[gamma], cv=3)),
    ):
        yield (
            f"{name} search, 400 rows",
            "5 SVC fits",
            lambda model=model: model.fit(X, y),
            svcs,
        )
    X2, y2 = rows(4000)
    yield (
        "stream, 4000 rows",
        "product and exp",
        lambda: PARampClassifier(gamma=gamma).fit(X2, y2),
        lambda: product_and_exp(X2, X2[:2000]),
    )
    fitted = LeakyHockeyStickClassifier(gamma=gamma, alpha=1e-3).fit(X1, y1)
    yield (
        "prediction, 4000 rows x 1000 vectors",
        "product and exp",
        lambda: fitted.decision_function(X2),
        lambda: product_and_exp(X2, X1),
    )
    mapped = LeakyHockeyStickClassifier(
        gamma=gamma, alpha=1e-4, approximation="nystroem", n_components=200, random_state=0
    )
    yield (
        "Nystroem fit, 4000 rows x 200 components",
        "product and exp",
        lambda: mapped.fit(X2, y2),
        lambda: product_and_exp(X2, X1[:200]),
    )


def ratio(ours: Work, yardstick: Work, seconds: float) -> tuple[float, float]:
    """The ratio of the best processor times, in turn for so many seconds, and our time."""
    best = [np.inf, np.inf]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours()  # compiles
        start = time.perf_counter()
        for turn in range(MOST):
            for k, work in enumerate((ours, yardstick)):
                before = time.process_time()
                work()
                best[k] = min(best[k], time.process_time() - before)
            if turn + 1 >= FEWEST and time.perf_counter() - start > seconds:
                break
    return best[0] / best[1], best[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help="make this run the baseline")
    parser.add_argument("--seconds", type=float, default=6.0, help="for every pair")
    options = parser.parse_args()
    known = json.loads(BASELINE.read_text())["ratios"] if BASELINE.exists() else {}
    table = []
    for job, yardstick, ours, theirs in pairs():
        measured, took = ratio(ours, theirs, options.seconds)
        before = known.get(job)
        table.append(
            {
                "job": job,
                "processor [s]": took,
                "yardstick": yardstick,
                "ratio": measured,
                "stored": before,
                "change": "" if before is None else f"{measured / before - 1.0:+.0%}",
            }
        )
    report("quick", table)
    moved = [row for row in table if row["stored"] and _moved(row["ratio"] / row["stored"])]
    for row in moved:
        direction = "slower" if row["ratio"] > row["stored"] else "faster"
        print(f"{direction}: {row['job']}, {row['change']} against {row['yardstick']}")
    if not moved:
        print(f"nothing moved by more than {MOVED:.0%}")
    if options.store:
        ratios = {row["job"]: round(row["ratio"], 4) for row in table}
        BASELINE.write_text(json.dumps({"machine": machine(), "ratios": ratios}, indent=1) + "\n")
        print(f"stored in {BASELINE.name}")


def _moved(change: float) -> bool:
    return not 1.0 / (1.0 + MOVED) <= change <= 1.0 + MOVED


if __name__ == "__main__":
    main()
