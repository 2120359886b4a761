"""Figure 1 of the double ramp paper: the convex losses against the 0-d-1 loss."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from buttress.experiments._figures import line_style, panels
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values

D = 0.2
_HALF_BANDS = (0.7, 2.0)


def _run(plan: Plan) -> Values:
    from buttress.losses import DoubleHinge, GeneralizedHinge
    from buttress.losses.ramp import zero_d_one

    t = np.linspace(-4, 4, 1601)
    values: Values = {
        "t": t,
        "generalised hinge": GeneralizedHinge(d=D).value(t),
        "double hinge": DoubleHinge(d=D).value(t),
    }
    for rho in _HALF_BANDS:
        values[f"0-d-1 {rho:g}"] = zero_d_one(t, D, rho)
    return values


def _check(values: Runs) -> Iterator[Check]:
    for name in ("generalised hinge", "double hinge"):
        loss = np.array(values[name][0])
        for rho, bounds in zip(_HALF_BANDS, (True, False), strict=True):
            short = float((np.array(values[f"0-d-1 {rho:g}"][0]) - loss).max())
            text = "bounds" if bounds else "does not bound"
            yield Check(
                f"the {name} {text} the 0-d-1 loss at rho = {rho:g}",
                (short <= 1e-12) == bounds,
                f"largest shortfall {max(short, 0):.3f}",
            )


def _draw(figure: Figure, values: Runs) -> None:
    for axis, rho in panels(figure, _HALF_BANDS, "loss", letters=True, sharey=True):
        names = ("generalised hinge", "double hinge", f"0-d-1 {rho:g}")
        for k, name in enumerate(names):
            label = "0-d-1 loss" if name.startswith("0-d-1") else name
            axis.plot(values["t"][0], values[name][0], label=label, **line_style(k))
        axis.set(title=f"rho = {rho:g}", xlabel="y f(x)", ylim=(-0.1, 5))


EXPERIMENT = Experiment.of(
    globals(),
    title="Double ramp, Figure 1: convex losses and the 0-d-1 loss",
    protocol=("Values of the library's losses on a grid, d = 0.2.",),
    tasks=lambda plan: [Task("losses", "losses")],
)
