"""What the options that choose and judge models accept."""

from __future__ import annotations

import re
from typing import Any, Literal

import typer

from buttress.cli._inputs import names

# What ``--model``, ``--metric`` and ``--approximation`` accept.
Model = Literal["auto", "leaky", "ramp", "reject", "uncertainty", "online"]
Metric = Literal["accuracy", "balanced-accuracy", "f1", "average-precision", "cost"]
Approximation = Literal["auto", "nystroem", "fourier"]


def seconds_of(text: str) -> float:
    """A length of time, as ``90``, ``60s``, ``5m`` or ``1.5h``.

    Examples
    --------
    >>> seconds_of("90"), seconds_of("2m"), seconds_of("1.5h")
    (90.0, 120.0, 5400.0)
    """
    said = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|sec|m|min|h)?\s*", text)
    seconds = float(said[1]) * {"m": 60, "h": 3600}.get((said[2] or "s")[0], 1) if said else 0
    if not 1 <= seconds <= 7 * 24 * 3600:
        raise typer.BadParameter(f"--time {text}: expected at least a second, as 60s, 5m or 1h")
    return seconds


def measure_of(metric: Metric | None, d: float | None, abstains: bool = False) -> Any:
    """The measure that decides: the cost when one of no answer is given, else the error.

    A model that abstains is judged by the cost in any case: its error alone would count the rows
    that it leaves unanswered as if it had answered them.
    """
    from buttress.model_selection import Measure

    if metric is None:
        metric = "accuracy" if d is None and not abstains else "cost"
    return Measure(metric, d=0.2 if d is None else d)


def check_cost(d: float | None) -> None:
    """Refuse a cost of no answer that is out of range."""
    if d is not None and not 0 < d <= 0.5:
        raise typer.BadParameter(f"--d {d:g} is out of range: a number in (0, 0.5]")


def check_coverage(target_coverage: float | None, model: Model) -> None:
    """Refuse a coverage that is out of range or that nobody would keep."""
    if target_coverage is None:
        return
    if not 0 < target_coverage <= 1:
        raise typer.BadParameter(
            f"--target-coverage {target_coverage:g} is out of range: a share in (0, 1]"
        )
    if model != "reject":
        raise typer.BadParameter(
            "--target-coverage is for the model that abstains: add --model reject"
        )


def class_weights_of(text: str | None, labels: Any) -> Any:
    """``balanced``, or ``label=weight,label=weight`` with the labels of the file."""
    if text is None:
        return None
    if text.strip() == "balanced":
        return "balanced"
    import numpy as np

    known = {str(label): label for label in np.unique(labels).tolist()}
    weights: dict[Any, float] = {}
    for entry in names(text) or [""]:
        label, mark, weight = entry.rpartition("=")
        try:
            value = float(weight)
        except ValueError:
            value = -1.0
        if not mark or not 0 < value < float("inf"):
            raise typer.BadParameter(
                f"--class-weight {text}: expected 'balanced' or label=weight with positive "
                f"numbers, as {','.join(f'{name}=1' for name in list(known)[:2])}"
            )
        if label.strip() not in known:
            raise typer.BadParameter(
                f"--class-weight {text}: there is no class {label.strip()!r}; there are "
                f"{', '.join(map(repr, list(known)[:10]))}"
            )
        weights[known[label.strip()]] = value
    return {label: weights.get(label, 1.0) for label in known.values()}
