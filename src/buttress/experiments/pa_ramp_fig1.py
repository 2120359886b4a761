"""Figure 1 of the PA-RAMP paper: hinge and ramp loss."""

from __future__ import annotations

import numpy as np

from buttress.experiments._figures import COLOURS, lettered
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values


def _run(plan: Plan) -> Values:
    from buttress.losses import Hinge, Ramp

    z = np.linspace(-4, 2, 241)
    return {
        "z": z,
        "hinge": Hinge().value(z),
        "ramp": Ramp(s=-2.0).value(z),
        "ramp far": Ramp(s=-1e9).value(z),
    }


def _check(values: Runs) -> list[Check]:
    hinge, ramp, far = (np.array(values[key][0]) for key in ("hinge", "ramp", "ramp far"))
    z = np.array(values["z"][0])
    limit = float(np.abs(hinge - far).max())
    shape = float(np.abs(ramp - np.minimum(hinge, 3.0)).max())
    return [
        Check("the hinge is the ramp with s to minus infinity", limit < 1e-9, f"{limit:.1e}"),
        Check("the ramp is the hinge cut at 1 - s", shape < 1e-12, f"{shape:.1e}"),
        Check("the ramp is flat below s", bool(np.ptp(ramp[z <= -2]) < 1e-12), "constant"),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    for axis, key, title in ((left, "hinge", "hinge"), (right, "ramp", "ramp, s = -2")):
        axis.plot(values["z"][0], values[key][0], color=COLOURS[0])
        axis.set(title=title, xlabel="y f(x)")
    left.set_ylabel("loss")
    lettered((left, right))


EXPERIMENT = Experiment.of(
    globals(),
    title="PA-RAMP, Figure 1: hinge and ramp loss",
    protocol=("Values of the library's losses on a grid.",),
    tasks=lambda plan: [Task("losses", "losses")],
)
