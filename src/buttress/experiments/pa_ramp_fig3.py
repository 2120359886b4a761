"""Figure 3 of the PA-RAMP paper: the calibration transform of the ramp loss and its hull."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from buttress.experiments._figures import line_style, panels
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values

_CUTS = (-2.0, -0.5)


def _run(plan: Plan) -> Values:
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


def _check(values: Runs) -> Iterator[Check]:
    b = np.array(values["b"][0])
    for s in _CUTS:
        psi = np.array(values[f"psi {s:g}"][0])
        below = float((b - psi).max())
        yield Check(
            f"s = {s:g}: the transform is nowhere below b, its convex hull",
            below < 1e-9,
            f"{below:.1e}",
        )
    equal = float(np.abs(np.array(values["psi -2"][0]) - b).max())
    yield Check("for s < -1 the transform is b itself", equal < 1e-9, f"{equal:.1e}")


def _draw(figure: Figure, values: Runs) -> None:
    for axis, s in panels(figure, _CUTS, letters=True, sharey=True):
        axis.plot(values["b"][0], values[f"psi {s:g}"][0], label="transform", **line_style(0))
        axis.plot([0, 1], [0, 1], label="convex hull", **line_style(1))
        axis.set(title=f"s = {s:g}", xlabel="b")


EXPERIMENT = Experiment.of(
    globals(),
    title="PA-RAMP, Figure 3: calibration of the ramp loss",
    protocol=(
        "The transform from the conditional risk by search over 16,001 values, without the "
        "paper's case distinction (one of its cases is misprinted).",
    ),
    tasks=lambda plan: [Task("transform", "transform")],
)
