"""Where the time of one fit goes in every family, and how far it is from its floor.

The floor is work that no method of its kind avoids, timed in the same run: the Gram matrix by one
product and one exponential, and for machines of smooth losses and sets one Cholesky factor of
it; for hinge-shaped ones one product of the matrix with the coefficients; for streams and
landmarks one product and exponential of all rows with the vectors kept. The shares are those of
the most expensive functions by their own time (products of matrices count with the function
that asks for them), compiled loops included.

python benchmarks/profiles.py [--rows 1000] [--docs]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import linalg

from _common import report
from buttress import (
    DoubleHingeClassifier,
    DoubleRampClassifier,
    GeneralizedHingeClassifier,
    LeakyHockeyStickClassifier,
    LeakyHockeyStickClassifierCV,
    MinimaxProbabilityMachine,
    PARampClassifier,
    RampClassifier,
    UncertaintySetClassifier,
)
from quick import product_and_exp, rows

GAMMA = 0.05
SHOWN = 3


def families() -> Iterator[tuple[str, Any, str]]:
    """Name, estimator and the kind of its floor."""
    one = {"gamma": GAMMA}
    yield "leaky", LeakyHockeyStickClassifier(alpha=1e-3, **one), "factor"
    alphas = 10.0 ** np.linspace(0, -7, 100)
    yield (
        "leaky path, 5 folds x 100",
        LeakyHockeyStickClassifierCV(alphas=alphas, cv=5, **one),
        "factor",
    )
    yield "ramp", RampClassifier(**one), "product"
    yield "double ramp", DoubleRampClassifier(**one), "product"
    yield "double hinge", DoubleHingeClassifier(**one), "product"
    yield "generalised hinge", GeneralizedHingeClassifier(**one), "product"
    yield "uncertainty set, ellipsoid", UncertaintySetClassifier(**one), "factor"
    yield (
        "uncertainty set, reduced hull",
        UncertaintySetClassifier("reduced_hull", nu=0.5, **one),
        "factor",
    )
    yield "minimax", MinimaxProbabilityMachine(**one), "factor"
    yield "stream", PARampClassifier(**one), "vectors"
    yield (
        "leaky on 200 landmarks",
        LeakyHockeyStickClassifier(
            alpha=1e-3, approximation="nystroem", n_components=200, random_state=0, **one
        ),
        "landmarks",
    )


def floor(kind: str, X: Any, model: Any) -> float:
    """Seconds of the work that cannot be avoided, the best of five."""
    n = len(X)
    S = np.exp(-GAMMA * ((X[:, None, :5] - X[None, :, :5]) ** 2).sum(axis=2)) + np.eye(n)
    kept = {"vectors": lambda: len(model.support_), "landmarks": lambda: 200}
    best = np.inf
    for _ in range(5):
        start = time.process_time()
        if kind in kept:
            product_and_exp(X, X[: kept[kind]()])
        else:
            product_and_exp(X, X)
            linalg.cholesky(S, lower=True, check_finite=False) if kind == "factor" else S @ S[0]
        best = min(best, time.process_time() - start)
    return best


def profiled(model: Any, X: Any, y: Any) -> tuple[float, str]:
    """Processor seconds of a fit (the best of two) and its most expensive functions."""
    took = np.inf
    for _ in range(2):
        start = time.process_time()
        model.fit(X, y)
        took = min(took, time.process_time() - start)
    profile = cProfile.Profile()
    profile.enable()
    model.fit(X, y)
    profile.disable()
    stats = pstats.Stats(profile)
    entries = [
        (own, name if file == "~" else f"{Path(file).stem}.{name}")
        for (file, _, name), (_, _, own, _, _) in stats.stats.items()  # type: ignore[attr-defined]
    ]
    total = sum(own for own, _ in entries)
    most = sorted(entries, reverse=True)[:SHOWN]
    named = [f"``{_short(name)}`` {own / total:.0%}" for own, name in most]
    return took, ", ".join(named)


def _short(name: str) -> str:
    return name.removeprefix("<").removesuffix(">").replace("built-in method ", "").strip("{}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    options = parser.parse_args()
    X, y = rows(options.rows)
    table = []
    for name, model, kind in families():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)  # compiles
            took, where = profiled(model, X, y)
        least = floor(kind, X, model)
        table.append(
            {
                "family": name,
                "processor [s]": took,
                "floor [s]": least,
                "times the floor": took / least,
                "where the time goes": where,
            }
        )
    report("profiles", table, docs=options.docs, rows=options.rows)


if __name__ == "__main__":
    main()
