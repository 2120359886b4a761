"""Figure 6 of the uncertainty set paper: the derivative of the revised loss."""

from __future__ import annotations

import numpy as np

from buttress.experiments._figures import COLOURS
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values


def _run(plan: Plan) -> Values:
    from buttress.losses import EllipsoidError

    z = np.linspace(-6, 6, 1201)
    loss = EllipsoidError(h=1.0, omega=1.0)
    return {"z": z, "derivative": loss.derivative(z), "bound": loss.curvature_bound}


def _check(values: Runs) -> list[Check]:
    z, slope = np.array(values["z"][0]), np.array(values["derivative"][0])
    steep = float(np.abs(np.diff(slope) / np.diff(z)).max())
    return [
        Check(
            "the derivative is Lipschitz continuous with constant 1/(2 omega)",
            steep <= 0.5 + 1e-9,
            f"largest slope {steep:.3f} at omega = 1 (in general the constant is "
            "1/(2 omega^2), a misprint that omega = 1 hides)",
        ),
        Check("the derivative is non-decreasing", bool(np.all(np.diff(slope) >= -1e-12)), "yes"),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    axis = figure.subplots()
    axis.plot(values["z"][0], values["derivative"][0], color=COLOURS[0])
    axis.set(xlabel="z", ylabel="u'(z; 1)")


EXPERIMENT = Experiment.of(
    globals(),
    title="Uncertainty sets, Figure 6: the derivative of the loss",
    protocol=("Values of the library's loss on a grid, h = 1, omega = 1.",),
    tasks=lambda plan: [Task("loss", "loss")],
)
