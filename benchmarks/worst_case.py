"""The slowest of many random fits, against the typical one of its size.

Random problems over the whole range of parameters (see ``random_problems.py``), 50 to 1000 rows,
for every family; the table says how the slowest fit compares with the median of fits of about
its size, and how long the slowest one of at most 500 rows takes.

python benchmarks/worst_case.py [--problems 2000] [--families ramp double_ramp ...] [--docs]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np

from _common import RESULTS, report
from buttress import (
    DoubleHingeClassifier,
    DoubleRampClassifier,
    GeneralizedHingeClassifier,
    MinimaxProbabilityMachine,
    RampClassifier,
    UncertaintySetClassifier,
)
from random_problems import RandomProblem, random_problem

SIZES = (50, 1000)
# Fits are compared with the median of those whose number of rows lies within this factor.
NEAR = 1.25
SMALL = 500
# Fits that take longer, in seconds, are timed twice.
AGAIN = 0.5
SET_LOSSES = ("ellipsoid", "truncated_quadratic", "exponential", "logistic", "reduced_hull")


def machine(family: str, seed: int, given: RandomProblem) -> Any:
    """An estimator of the family with the problem's parameters."""
    options = {**given.kernel, "C": given.C, "fit_intercept": given.fit_intercept}
    if family == "ramp":
        return RampClassifier(s=given.s, **options)
    if family == "double_ramp":
        return DoubleRampClassifier(d=given.d, mu=given.mu, **options)
    if family == "double_hinge":
        return DoubleHingeClassifier(d=given.d, **options)
    if family == "generalized_hinge":
        return GeneralizedHingeClassifier(d=given.d, **options)
    if family == "uncertainty_sets":
        return UncertaintySetClassifier(
            loss=SET_LOSSES[seed % len(SET_LOSSES)],
            h=given.h,
            omega=given.omega,
            nu=min(given.nu, 0.3),
            radius=given.radius,
            **given.kernel,
        )
    return MinimaxProbabilityMachine(**given.kernel)


FAMILIES = (
    "ramp",
    "double_ramp",
    "double_hinge",
    "generalized_hinge",
    "uncertainty_sets",
    "minimax",
)


def fit_times(family: str, problems: int) -> list[tuple[int, int, float]]:
    """Seed, number of rows and seconds of every fit."""
    machine(family, 0, random_problem(0, (50, 50))).fit(*_rows(random_problem(0, (50, 50))))
    found = []
    for seed in range(problems):
        given = random_problem(seed, SIZES)
        model = machine(family, seed, given)
        try:
            took = _seconds(model, given)
        except ValueError:  # nu is infeasible for very unequal classes
            continue
        if took > AGAIN:  # another process may have been in the way
            took = min(took, _seconds(model, given))
        found.append((seed, len(given.y), took))
    return found


def summary(family: str, found: list[tuple[int, int, float]]) -> dict[str, Any]:
    """One row of the table."""
    seeds, n, t = (np.array(column) for column in zip(*found, strict=True))
    near = [t[(n >= size / NEAR) & (n <= size * NEAR)] for size in n]
    ratio = t / np.array([np.median(others) for others in near])
    worst = int(np.argmax(ratio))
    small = np.flatnonzero(n <= SMALL)
    slowest = small[int(np.argmax(t[small]))]
    return {
        "family": family,
        "problems": len(t),
        "median [s]": float(np.median(t)),
        "99 % [s]": float(np.quantile(t, 0.99)),
        "slowest [s]": float(t.max()),
        "slowest, n <= 500 [s]": float(t[slowest]),
        "its seed": int(seeds[slowest]),
        "largest / median of its n": float(ratio[worst]),
        "at seed": int(seeds[worst]),
    }


def _seconds(model: Any, given: RandomProblem) -> float:
    """Wall or processor time of one fit, whichever is less."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wall, processor = time.perf_counter(), time.process_time()
        model.fit(*_rows(given))
    return min(time.perf_counter() - wall, time.process_time() - processor)


def _rows(given: RandomProblem) -> tuple[Any, Any]:
    return given.X, given.y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--docs", action="store_true", help="write the table of the documentation")
    options = parser.parse_args()
    stored = RESULTS / "worst_case.json"
    rows = json.loads(stored.read_text())["rows"] if stored.exists() else []
    for family in options.families:
        row = summary(family, fit_times(family, options.problems))
        print(row, flush=True)
        rows = [*(old for old in rows if old["family"] != family), row]
    rows.sort(key=lambda row: FAMILIES.index(row["family"]))
    report("worst_case", rows, docs=options.docs, problems=options.problems)


if __name__ == "__main__":
    main()
