"""Figure 3 of the PA-RAMP paper: the calibration transform of the ramp loss and its hull."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from buttress.experiments._figures import lettered, line_style
from buttress.experiments._model import Check, Experiment, Plan, Task, Values
from buttress.experiments.pa_ramp_table1 import PAPER

_CUTS = (-2.0, -0.5)


def _run(arguments: Mapping[str, Any], plan: Plan) -> Values:
    from buttress.losses import Ramp

    b = np.linspace(0, 1, 101)
    eta = (1 + b) / 2
    a = np.linspace(-4, 4, 16_001)
    values: Values = {"b": b}
    for s in _CUTS:
        loss = Ramp(s=s)
        # conditional risk on a grid that holds every kink
        right, left = loss.value(a), loss.value(-a)
        best = np.array([np.min(p * right + (1 - p) * left) for p in eta])
        wrong = np.array([np.min((p * right + (1 - p) * left)[a <= 0]) for p in eta])
        values[f"psi {s:g}"] = wrong - best
    return values


def _check(values: Mapping[str, list[Any]]) -> list[Check]:
    b = np.array(values["b"][0])
    checks = []
    for s in _CUTS:
        psi = np.array(values[f"psi {s:g}"][0])
        below = float((b - psi).max())
        checks.append(
            Check(
                f"s = {s:g}: the transform is nowhere below b, its convex hull",
                below < 1e-9,
                f"{below:.1e}",
            )
        )
    equal = float(np.abs(np.array(values["psi -2"][0]) - b).max())
    checks.append(Check("for s < -1 the transform is b itself", equal < 1e-9, f"{equal:.1e}"))
    return checks


def _draw(figure: Any, values: Mapping[str, list[Any]]) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    for axis, s in zip(axes, _CUTS, strict=True):
        axis.plot(values["b"][0], values[f"psi {s:g}"][0], label="transform", **line_style(0))
        axis.plot([0, 1], [0, 1], label="convex hull", **line_style(1))
        axis.set(title=f"s = {s:g}", xlabel="b")
    axes[0].legend()
    lettered(axes)


EXPERIMENT = Experiment(
    name="pa-ramp-fig3",
    title="PA-RAMP, Figure 3: calibration of the ramp loss",
    paper=PAPER,
    protocol=(
        "The transform from the conditional risk by search over 16,001 values, without the "
        "paper's case distinction (one of its cases is misprinted).",
    ),
    tasks=lambda plan: [Task("transform", "transform")],
    run=_run,
    draw=_draw,
    check=_check,
)
