"""What ``buttress cost`` says, against what it takes: twenty cases that it was not fitted to.

    python benchmarks/cost.py [--docs]       twenty cases: predicted, measured, their ratio
    python benchmarks/cost.py --growth       the measurements behind the model, and its exponents
    python benchmarks/cost.py --fit          exponents from those measurements
    python benchmarks/cost.py --penalties    the leaky path with more and more penalties

Processor seconds of one thread; the probe of the machine's speed runs beside every case, so that
a machine that is busy or slow at the moment counts on both sides. Measurements are kept, so that a
run can be interrupted (``--fresh`` forgets them).
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from sklearn.datasets import make_classification

from _common import Cells, report
from buttress import LeakyHockeyStickClassifierCV
from buttress._threads import one_blas_thread
from buttress.model_selection.candidates import make_candidate, settled
from buttress.model_selection.cost_model import Size, probed_speed
from buttress.model_selection.planning import Planner

KINDS = ("leaky", "ramp", "reject", "uncertainty", "online")
# How strongly exponents of searches are drawn to 1.9.
_DRAWN = 0.05
# Seconds up to which work is timed twice.
_SHORT = 2.0
# Rows, features, classes.
GROWTH = (
    (250, 10, 2), (500, 10, 2), (1000, 10, 2), (1600, 10, 2), (3000, 10, 2), (700, 40, 2),
    (300, 10, 3), (800, 10, 3), (500, 10, 4), (300, 20, 6), (700, 20, 6),
)  # fmt: skip
# What, model, rows, features, classes; the further cases were fixed before they were measured.
FURTHER = (
    ("search", "leaky", 450, 12, 3),
    ("search", "leaky", 1100, 6, 2),
    ("search", "ramp", 500, 20, 4),
    ("search", "reject", 380, 18, 3),
    ("search", "uncertainty", 300, 8, 5),
    ("search", "online", 600, 14, 6),
    ("fit", "leaky", 700, 22, 4),
    ("fit", "ramp", 900, 12, 6),
    ("fit", "reject", 1000, 25, 2),
    ("fit", "uncertainty", 550, 16, 3),
)
CASES = (
    ("search", "leaky", 600, 8, 2),
    ("search", "leaky", 350, 16, 5),
    ("search", "ramp", 420, 25, 2),
    ("search", "reject", 800, 15, 2),
    ("search", "uncertainty", 650, 12, 2),
    ("search", "online", 900, 20, 2),
    ("fit", "leaky", 1300, 30, 2),
    ("fit", "ramp", 1400, 14, 2),
    ("fit", "reject", 600, 9, 3),
    ("fit", "uncertainty", 1200, 20, 2),
)


def rows(n: int, p: int, k: int, seed: int) -> tuple[Any, Any]:
    """Standardised rows, a twentieth of the labels wrong."""
    X, y = make_classification(
        n, p, n_informative=min(8, p), n_redundant=0, n_classes=k, flip_y=0.1, random_state=seed
    )
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def measured(kind: str, n: int, p: int, k: int, seed: int) -> dict[str, float]:
    """Processor seconds of a search and of a fit with what it chose, and the machine's factor."""
    X, y = rows(n, p, k, seed)
    small = rows(300, p, k, seed)  # enough rows for every solver
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        warm = make_candidate(kind).fit(*small)  # compiles
        settled(warm).fit(*small)
        before = probed_speed()[0]
        search_took, search = _processor_seconds(lambda: make_candidate(kind).fit(X, y))
        fit_took, _ = _processor_seconds(lambda: settled(search).fit(X, y))
        speed = 0.5 * (before + probed_speed()[0])
    return {"search": search_took, "fit": fit_took, "speed": speed}


def _processor_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Of one run, or of the faster of two short ones: the first may have to load code."""
    took = np.inf
    for _ in range(2):
        start = time.process_time()
        result = work()
        took = min(took, time.process_time() - start)
        if took > _SHORT:
            break
    return took, result


def cases(cells: Cells) -> list[dict[str, Any]]:
    """Predicted and measured seconds of the cases."""
    table = []
    for what, kind, n, p, k in (*CASES, *FURTHER):
        took = cells.get((kind, n, p, k, 1), measured)
        size = Size(n, p, k)
        planner = Planner(size, 120.0, speed=took["speed"], clock=lambda: 0.0)
        said = planner.search_seconds if what == "search" else planner.fit_seconds
        predicted = said(kind, n)
        ratio = took[what] / predicted
        table.append(
            {
                "what": what,
                "model": kind,
                "rows": n,
                "features": p,
                "classes": k,
                "predicted [s]": predicted,
                "measured [s]": took[what],
                "measured / predicted": ratio,
                "within 1.5": "yes" if 1 / 1.5 <= ratio <= 1.5 else "no",
            }
        )
    return table


def growth(cells: Cells) -> list[dict[str, Any]]:
    """All measurements of the model, in seconds of the reference machine, two draws of rows."""
    table = []
    for kind, seed in product(KINDS, (0, 2)):
        for n, p, k in GROWTH:
            took = cells.get((kind, n, p, k, seed), measured)
            table.append(
                {
                    "model": kind,
                    "rows": n,
                    "features": p,
                    "classes": k,
                    "search [s]": took["search"] / took["speed"],
                    "one fit [s]": took["fit"] / took["speed"],
                }
            )
    return table


def constants(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The constants of the model, by least squares of logarithms: see `cost_model._Cost`.

    A search has a part that does not depend on the rows. Sizes up to 1600 hardly tell it from a
    small exponent, so that exponents are drawn a little to that of products of matrices.
    """
    fitted = []
    for kind, what in product(KINDS, ("search [s]", "one fit [s]")):
        points = [row for row in table if row["model"] == kind]
        seconds = np.log([row[what] for row in points])
        n, p = (np.array([row[name] for row in points]) for name in ("rows", "features"))
        problems = np.array([1 if row["classes"] == 2 else row["classes"] for row in points])
        starts = what.startswith("search")

        def said(z: Any) -> Any:
            growth = np.exp(z[1]) * (n / 1000) ** z[2] * (p / 10) ** z[3]  # noqa: B023
            return np.log((starts * np.exp(z[0]) + growth) * problems ** z[4])  # noqa: B023

        def errors(z: Any) -> Any:
            return np.append(said(z) - seconds, starts * _DRAWN * (z[2] - 1.9))  # noqa: B023

        first = [-3.0, -0.7, 1.6, 0.0, 0.8]
        z = least_squares(errors, first, loss="soft_l1", f_scale=0.3).x
        fitted.append(
            {
                "model": kind,
                "what": what.removesuffix(" [s]"),
                "start [s]": starts * float(np.exp(z[0])),
                "1000 rows [s]": float(np.exp(z[1])),
                "rows": float(z[2]),
                "features": float(z[3]),
                "problems": float(z[4]),
                "largest error": float(np.exp(np.abs(said(z) - seconds).max())),
            }
        )
    return fitted


def penalties() -> list[dict[str, Any]]:
    """Processor seconds of a search, and its largest arrays, as penalties are added."""
    X, y = rows(600, 10, 2, 0)
    table: list[dict[str, Any]] = []
    for count in (10, 30, 100, 300):
        model = LeakyHockeyStickClassifierCV(alphas=10.0 ** np.linspace(0, -7, count), cv=5)
        with warnings.catch_warnings(), one_blas_thread():
            warnings.simplefilter("ignore")
            model.fit(X, y)  # compiles
            start = time.process_time()
            model.fit(X, y)
            took = time.process_time() - start
            tracemalloc.start()
            model.fit(X, y)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        last = table[-1] if table else None
        grown = np.log(count / last["penalties"]) if last else np.nan
        table.append(
            {
                "penalties": count,
                "search [s]": took,
                "exponent": np.log(took / last["search [s]"]) / grown if last else None,
                "peak of the arrays [MB]": peak / 1e6,
            }
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--growth", action="store_true", help="the measurements behind the model")
    parser.add_argument("--fit", action="store_true", help="its constants from them")
    parser.add_argument("--penalties", action="store_true", help="growth with the penalties")
    parser.add_argument("--fresh", action="store_true", help="forget earlier measurements")
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    options = parser.parse_args()
    cells = Cells("cost", options.fresh)
    if options.growth or options.fit:
        table = growth(cells)
        report("cost_growth", table)
        if options.fit:
            report("cost_exponents", constants(table), docs=options.docs)
        return
    if options.penalties:
        report("cost_penalties", penalties(), docs=options.docs)
        return
    report("cost", cases(cells), docs=options.docs)


if __name__ == "__main__":
    main()
