"""The slowest of many random fits, against the typical one of its size.

Random problems over the whole range of parameters (see ``random_problems.py``), 50 to 1000 rows,
for every family; the table says how the slowest fit compares with the median of fits of about
its size, and how long the slowest one of at most 500 rows takes.

Every fit is kept as it is done, so an interrupted run goes on where it stopped.

python benchmarks/worst_case.py [--problems 2000] [--families ramp double_ramp ...] [--docs]
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _common import Cells, report
from buttress import (
    DoubleHingeClassifier,
    DoubleRampClassifier,
    GeneralizedHingeClassifier,
    LeakyHockeyStickClassifier,
    MinimaxProbabilityMachine,
    RampClassifier,
    UncertaintySetClassifier,
)
from random_problems import RandomProblem, random_problem

SIZES = (50, 1000)
# Fits are compared with the median of those whose number of rows lies within this factor.
NEAR = 1.25
SMALL = 500
# Every fit is timed so often, and the least time counts: the first may have to load code, and
# another process may be in the way.
REPEATS = 2
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
    if family == "leaky":
        # mean loss + alpha ||f||^2 with the same weight of the loss as C gives
        alpha = 1.0 / (2.0 * len(given.y) * given.C)
        r = (1.5, 2.0, float("inf"))[seed % 3]
        return LeakyHockeyStickClassifier(
            alpha=alpha, r=r, fit_intercept=given.fit_intercept, **given.kernel
        )
    return MinimaxProbabilityMachine(**given.kernel)


FAMILIES = (
    "leaky",
    "ramp",
    "double_ramp",
    "double_hinge",
    "generalized_hinge",
    "uncertainty_sets",
    "minimax",
)


def fit_times(family: str, problems: int, cells: Cells) -> list[dict[str, float]]:
    """Seed, number of rows, seconds and whether a warning was given, of every fit."""
    warm = random_problem(0, (50, 50))
    machine(family, 0, warm).fit(*_rows(warm))
    fits = [cells.get((family, seed), one_fit) for seed in range(problems)]
    return [fit for fit in fits if fit]


def one_fit(family: str, seed: int) -> dict[str, float]:
    """One problem; empty where the parameters allow no solution."""
    given = random_problem(seed, SIZES)
    model = machine(family, seed, given)
    try:
        runs = [_seconds(model, given) for _ in range(REPEATS)]
    except ValueError:  # nu is infeasible for very unequal classes
        return {}
    took, warned = min(took for took, _ in runs), runs[0][1]
    return {"seed": seed, "n": len(given.y), "seconds": took, "warned": warned}


def summary(family: str, fits: list[dict[str, float]]) -> dict[str, Any]:
    """One row of the table."""
    seeds, n, t, warned = (
        np.array([fit[key] for fit in fits]) for key in ("seed", "n", "seconds", "warned")
    )
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
        "above 20": int(np.sum(ratio > 20.0)),
        "warned": int(warned.sum()),
    }


def _seconds(model: Any, given: RandomProblem) -> tuple[float, bool]:
    """Wall or processor time of one fit, whichever is less; whether it fell short of `tol`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wall, processor = time.perf_counter(), time.process_time()
        model.fit(*_rows(given))
        took = min(time.perf_counter() - wall, time.process_time() - processor)
    return took, any(issubclass(each.category, ConvergenceWarning) for each in caught)


def _rows(given: RandomProblem) -> tuple[Any, Any]:
    return given.X, given.y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--fresh", action="store_true", help="forget the fits of earlier runs")
    parser.add_argument("--docs", action="store_true", help="write the table of the documentation")
    options = parser.parse_args()
    cells = Cells("worst_case", options.fresh)
    rows = []
    for family in options.families:
        rows.append(summary(family, fit_times(family, options.problems, cells)))
        print(rows[-1], flush=True)
    report("worst_case", rows, docs=options.docs, problems=options.problems)


if __name__ == "__main__":
    main()
