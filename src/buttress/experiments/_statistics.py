"""Our numbers against printed ones: standard errors that admit the overlap, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from buttress.experiments._model import Cell

AGREES, BETTER, WORSE = "agrees", "better", "worse"
UNKNOWN, NOT_PRINTED, NOT_RUN = "protocol unknown", "not printed", "not run"
TOO_FEW, DIFFERS = "too few runs", "differs"
# A standard error from fewer runs than this is itself too uncertain for a verdict.
ENOUGH_RUNS = 5
VERDICTS = (AGREES, BETTER, WORSE, DIFFERS, UNKNOWN, NOT_PRINTED, TOO_FEW, NOT_RUN)


def corrected_error(values: Sequence[float], overlap: float) -> float:
    """Standard error of the mean of resampled test scores.

    Nadeau and Bengio (2003): test scores of random splits of one data set are dependent, and
    ``sd * sqrt(1/k + n_test/n_train)`` is the usual correction. With `overlap` 0 it is the
    plain standard error.

    Examples
    --------
    >>> round(corrected_error([0.1, 0.2, 0.3, 0.4], 0.5), 4)
    0.1118
    """
    if len(values) < 2:
        return math.nan
    return float(np.std(values, ddof=1) * math.sqrt(1 / len(values) + overlap))


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
    """Standard error of the printed number, rounding included."""
    if cell.printed is None:
        return math.nan
    variance = rounding_unit(cell.printed) ** 2 / 12
    if cell.spread is not None:
        spread = float(cell.spread)
        if cell.spread_is == "sd":
            spread *= math.sqrt(1 / cell.paper_runs + cell.overlap)
        variance += spread**2
    if cell.one_draw and not math.isnan(our_deviation):
        variance += our_deviation**2
    return math.sqrt(variance)


def compare(cell: Cell, values: Sequence[Any]) -> dict[str, Any]:
    """Mean, errors, difference in combined standard errors and verdict of one cell."""
    numbers = [float(v) * cell.scale for v in values if v is not None and not math.isnan(v)]
    mean = float(np.mean(numbers)) if numbers else math.nan
    deviation = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else math.nan
    error = corrected_error(numbers, cell.overlap)
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
    if cell.unknown:
        if cell.spread is not None:
            result["difference_in_se"] = difference / _combined(result)
        return UNKNOWN, cell.unknown
    if len(numbers) < ENOUGH_RUNS:
        return TOO_FEW, f"defined in {len(numbers)} of {len(values)} runs only"
    result["difference_in_se"] = score = difference / _combined(result)
    result["chance"] = float(2 * stats.t.sf(2, len(numbers) - 1))
    if abs(score) <= 2:
        return AGREES, ""
    improved = (difference < 0) == (cell.better == "lower")
    return (BETTER if improved else WORSE), cell.remark


def _combined(result: dict[str, Any]) -> float:
    error = 0.0 if math.isnan(result["se"]) else result["se"]
    return math.hypot(error, result["paper_se"])


def count_verdicts(compared: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How many cells have each verdict."""
    return {name: sum(c["verdict"] == name for c in compared) for name in VERDICTS}


def expected_by_chance(compared: Sequence[dict[str, Any]]) -> float:
    """How many of the compared cells would be beyond two standard errors if all were equal."""
    return float(sum(c["chance"] for c in compared))
