"""Sentences of a paper as checks that can fail: holds, does not hold, cannot tell.

A comparison of two columns is *clear* when the mean difference over paired runs is more than two
plain standard errors from zero. A sentence about a number of cases holds when so many clear ones
are there, does not when even all unclear ones would not do, and cannot be told in between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from buttress.experiments._model import Check, Pair, Runs

# A case: what it is called, the side that should be smaller, the side that should be larger.
Case = tuple[str, Sequence[Any], Sequence[Any]]


def gap(small: Sequence[Any], large: Sequence[Any]) -> tuple[float, float]:
    """Mean of ``small - large`` over paired runs, and its standard error.

    Examples
    --------
    >>> gap([1.0, 2.0], [2.0, 3.0])
    (-1.0, 0.0)
    """
    pairs = [(a, b) for a, b in zip(small, large, strict=False) if a is not None and b is not None]
    difference = np.array([a - b for a, b in pairs], dtype=float)
    if not difference.size:
        return math.nan, math.nan
    if difference.size == 1:
        return float(difference[0]), math.inf
    error = float(difference.std(ddof=1) / math.sqrt(difference.size))
    return float(difference.mean()), error


def verdict(difference: float, error: float) -> int:
    """-1 clearly below zero, 1 clearly above, 0 unclear."""
    if difference == 0 or math.isnan(difference) or abs(difference) <= 2 * error:
        return 0
    return -1 if difference < 0 else 1


def at_least(statement: str, needed: int, cases: Sequence[Case]) -> Check:
    """The first side is smaller in at least `needed` of the cases."""
    verdicts = [verdict(*gap(small, large)) for _, small, large in cases]
    lower = sum(gap(small, large)[0] < 0 for _, small, large in cases)
    wins, losses = verdicts.count(-1), verdicts.count(1)
    holds = True if wins >= needed else False if len(cases) - losses < needed else None
    measured = (
        f"smaller in {lower} of {len(cases)}; clearly smaller in {wins}, clearly larger in {losses}"
    )
    return Check(statement, holds, measured)


def always(
    statement: str, cases: Sequence[Case], unless: Sequence[str] = (), **about: Any
) -> Check:
    """The first side is smaller in every case but those named in `unless`; `about` is Check's."""
    judged = {name: verdict(*gap(small, large)) for name, small, large in cases}
    counted = {name: outcome for name, outcome in judged.items() if name not in unless}
    larger = [name for name, outcome in counted.items() if outcome > 0]
    unclear = [name for name, outcome in counted.items() if outcome == 0]
    holds = False if larger else None if unclear else True
    texts = [f"clearly smaller in {len(counted) - len(larger) - len(unclear)} of {len(counted)}"]
    if larger:
        texts.append(f"clearly larger at {', '.join(larger)}")
    if unclear:
        texts.append(f"unclear at {', '.join(unclear)}")
    return Check(statement, holds, "; ".join(texts), **about)


def cases(values: Runs, keys: Mapping[str, tuple[str, str]]) -> list[Case]:
    """The cases whose two sides were both measured."""
    return [
        (name, values[small], values[large])
        for name, (small, large) in keys.items()
        if values.get(small) and values.get(large)
    ]


def in_most(below: int, above: int, count: int) -> bool | None:
    """Whether a side is clearly smaller in more than half of the cases; None when unclear."""
    return True if below > count / 2 else False if above >= count / 2 else None


def in_points(values: Runs, columns: str, keys: Mapping[str, tuple[str, str]]) -> list[Pair]:
    """The differences of two columns of errors in points, where both were measured."""
    gaps = {what: gap(first, second) for what, first, second in cases(values, keys)}
    return [
        Pair(what, f"{columns} (points)", 100 * difference, 100 * error)
        for what, (difference, error) in gaps.items()
    ]
