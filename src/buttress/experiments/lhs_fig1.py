"""Figure 1 of the leaky hockey stick paper: the loss beside the hinge."""

from __future__ import annotations

import numpy as np

from buttress.experiments._figures import GREY, draw_curves
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values


def _run(plan: Plan) -> Values:
    from buttress.losses import Hinge, LeakyHockeyStick

    u = np.linspace(-2, 5, 701)
    loss = LeakyHockeyStick()
    return {"u": u, "hinge": Hinge().value(u), "LHS": loss.value(u), "slope": loss.derivative(u)}


def _check(values: Runs) -> list[Check]:
    u, hinge, loss, slope = (np.array(values[k][0]) for k in ("u", "hinge", "LHS", "slope"))
    same = float(np.abs(loss - hinge)[u <= 1].max())
    jump = float(np.abs(np.diff(slope)).max())
    return [
        Check("it equals the hinge up to margin 1", same < 1e-12, f"{same:.1e}"),
        Check(
            "it is continuously differentiable", jump < 0.02, f"largest jump {jump:.3f} per 0.01"
        ),
        Check(
            "it is negative beyond margin 1 and keeps falling",
            bool(np.all(np.diff(loss) < 0) and loss[-1] < 0),
            f"{loss[-1]:.3f} at {u[-1]:g}",
        ),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    axis = figure.subplots()
    draw_curves(axis, values, "u", ("hinge", "LHS"))
    axis.axhline(0, color=GREY, lw=0.6)
    axis.set(xlabel="y f(x)", ylabel="loss")
    axis.legend()


EXPERIMENT = Experiment.of(
    globals(),
    title="Leaky hockey stick, Figure 1: the loss",
    protocol=("Values of the library's losses on a grid.",),
    tasks=lambda plan: [Task("losses", "losses")],
)
