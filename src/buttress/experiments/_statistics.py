"""Our numbers against printed ones: plain standard errors, half-widths and verdicts.

Two laboratories that split the same data set at random differ by the plain standard errors of
their means: what a new sample of the population would give (the correction of Nadeau and Bengio,
2003) is another question. Where the paper's data are one unknown draw of a distribution, the
spread between draws is added to the uncertainty of its number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from buttress.experiments._model import Cell

AGREES, BETTER, WORSE, DIFFERS = "agrees", "better", "worse", "differs"
CANNOT_TELL, OTHER_MACHINE, UNKNOWN = "cannot tell", "other machine", "protocol unknown"
NOT_PRINTED, NOT_RUN, TOO_FEW = "not printed", "not run", "too few runs"
# A standard error from fewer runs than this is itself too uncertain for a verdict.
ENOUGH_RUNS = 5
# Agreement means something only where this share of the printed value would have been noticed.
TELLING = 0.15
VERDICTS = (
    AGREES, BETTER, WORSE, DIFFERS, CANNOT_TELL, UNKNOWN, OTHER_MACHINE, NOT_PRINTED, TOO_FEW,
    NOT_RUN,
)  # fmt: skip
# Those that say something about the paper's number.
DECIDED = (AGREES, BETTER, WORSE, DIFFERS)


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean of runs.

    Examples
    --------
    >>> round(standard_error([0.1, 0.2, 0.3, 0.4]), 4)
    0.0645
    """
    if len(values) < 2:
        return math.nan
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def rounding_unit(printed: str) -> float:
    """Size of the last digit of a printed number.

    Examples
    --------
    >>> rounding_unit("0.068"), rounding_unit("100")
    (0.001, 1.0)
    """
    _, _, decimals = printed.partition(".")
    return float(10.0 ** -len(decimals))


def paper_error(cell: Cell, our_deviation: float) -> float:
    """Standard error of the printed number, rounding included.

    Where the paper prints no spread, its runs are taken to vary as ours do.
    """
    if cell.printed is None:
        return math.nan
    variance = rounding_unit(cell.printed) ** 2 / 12
    deviation = 0.0 if math.isnan(our_deviation) else our_deviation
    if cell.spread is None:
        variance += deviation**2 / cell.paper_runs
    elif cell.spread_is == "sd":
        variance += float(cell.spread) ** 2 / cell.paper_runs
    else:
        variance += float(cell.spread) ** 2
    if cell.one_draw:
        variance += deviation**2
    return math.sqrt(variance)


def compare(cell: Cell, values: Sequence[Any]) -> dict[str, Any]:
    """Mean, errors, difference in combined standard errors and verdict of one cell."""
    numbers = [float(v) * cell.scale for v in values if v is not None and not math.isnan(v)]
    mean = float(np.mean(numbers)) if numbers else math.nan
    deviation = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else math.nan
    error = standard_error(numbers)
    result: dict[str, Any] = {
        "id": cell.id,
        "group": cell.group,
        "labels": dict(cell.labels),
        "unit": cell.unit,
        "runs": len(values),
        "values": [None if v is None or math.isnan(v) else round(float(v), 6) for v in values],
        "mean": mean,
        "sd": deviation,
        "se": error,
        "paper": cell.printed,
        "paper_spread": cell.spread,
        "paper_spread_is": cell.spread_is if cell.spread is not None else None,
        "paper_se": paper_error(cell, deviation),
        "difference": math.nan,
        "difference_in_se": math.nan,
        "accepted": math.nan,
        "chance": 0.0,
    }
    verdict, reason = _judge(cell, values, numbers, result)
    return result | {"verdict": verdict, "reason": reason}


def _judge(
    cell: Cell, values: Sequence[Any], numbers: Sequence[float], result: dict[str, Any]
) -> tuple[str, str]:
    if not values:
        return NOT_RUN, cell.unknown
    if cell.printed is None:
        return NOT_PRINTED, ""
    if cell.printed == "NA":
        # nothing was accepted, so there is no accuracy to print
        return (DIFFERS, cell.remark) if numbers else (AGREES, "")
    if not numbers:
        return DIFFERS, cell.remark or "ours is not defined: nothing was accepted"
    printed = float(cell.printed)
    difference = result["difference"] = result["mean"] - printed
    if cell.exact:
        same = abs(difference) <= rounding_unit(cell.printed) / 2 + 1e-12
        return (AGREES, "") if same else (DIFFERS, cell.remark)
    if cell.other_machine:
        return OTHER_MACHINE, cell.unknown
    combined = _combined(result)
    result["difference_in_se"] = difference / combined if combined else math.nan
    result["accepted"] = 2 * combined
    if cell.unknown:
        return UNKNOWN, cell.unknown
    if len(numbers) < ENOUGH_RUNS:
        return TOO_FEW, f"defined in {len(numbers)} of {len(values)} runs only"
    result["chance"] = float(2 * stats.t.sf(2, len(numbers) - 1))
    if abs(difference) > 2 * combined:
        if cell.better is None:
            return DIFFERS, cell.remark
        improved = (difference < 0) == (cell.better == "lower")
        return (BETTER if improved else WORSE), cell.remark
    # A number printed with few digits is not asked for more than ten units of the last one.
    size = max(abs(printed), 10 * rounding_unit(cell.printed))
    return (CANNOT_TELL, "") if result["accepted"] > TELLING * size else (AGREES, "")


def _combined(result: dict[str, Any]) -> float:
    error = 0.0 if math.isnan(result["se"]) else result["se"]
    return math.hypot(error, result["paper_se"])


def count_verdicts(compared: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How many cells have each verdict."""
    return {name: sum(c["verdict"] == name for c in compared) for name in VERDICTS}


def expected_by_chance(compared: Sequence[dict[str, Any]]) -> float:
    """How many of the compared cells would be beyond two standard errors if all were equal."""
    return float(sum(c["chance"] for c in compared))


def compare_times(compared: Sequence[dict[str, Any]]) -> dict[str, float] | None:
    """Times of another computer: their rank correlation with ours, and the typical ratio."""
    pairs = [
        (c["mean"], float(c["paper"]))
        for c in compared
        if c["verdict"] == OTHER_MACHINE and c["mean"] > 0 and float(c["paper"]) > 0
    ]
    if len(pairs) < 3:
        return None
    ours, theirs = np.array(pairs).T
    return {
        "cells": len(pairs),
        "rank_correlation": float(stats.spearmanr(ours, theirs).statistic),
        "ratio": float(np.exp(np.median(np.log(theirs / ours)))),
    }
