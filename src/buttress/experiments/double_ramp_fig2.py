"""Figure 2 of the double ramp paper: the loss for several slopes."""

from __future__ import annotations

import numpy as np

from buttress.experiments._figures import draw_curves
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values
from buttress.experiments.double_ramp_fig1 import D

_RHO = 2.0
_MUS = (1.0, 0.5, 0.1)


def _run(plan: Plan) -> Values:
    from buttress.losses import DoubleRamp
    from buttress.losses.ramp import zero_d_one

    t = np.linspace(-5, 5, 2001)
    values: Values = {"t": t, "0-d-1": zero_d_one(t, D, _RHO)}
    for mu in _MUS:
        values[f"mu = {mu:g}"] = DoubleRamp(d=D, mu=mu, rho=_RHO).value(t)
    grid = np.linspace(-6, 6, 1201)
    short = 0.0
    for rho in np.linspace(0, 4, 9):
        for mu in (1.0, 0.7, 0.3, 0.05):
            gap = zero_d_one(grid, D, rho) - DoubleRamp(d=D, mu=mu, rho=float(rho)).value(grid)
            short = max(short, float(gap.max()))
    values["shortfall"] = short
    return values


def _check(values: Runs) -> list[Check]:
    t = np.array(values["t"][0])
    flat = np.array(values["mu = 1"][0])[(t > -_RHO + 1) & (t < _RHO - 1)]
    shortfall = values["shortfall"][0]
    near = [
        float(np.abs(np.array(values[f"mu = {mu:g}"][0]) - values["0-d-1"][0]).mean())
        for mu in _MUS
    ]
    return [
        Check(
            "the double ramp bounds the 0-d-1 loss for every mu and rho tried",
            shortfall <= 1e-12,
            f"largest shortfall {shortfall:.1e}",
        ),
        Check(
            "it is flat inside the rejection region", bool(np.ptp(flat) < 1e-12), f"{flat[0]:.2f}"
        ),
        Check(
            "a smaller mu is nearer to the 0-d-1 loss",
            near == sorted(near, reverse=True),
            ", ".join(f"{x:.3f}" for x in near),
        ),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    axis = figure.subplots()
    draw_curves(axis, values, "t", ("0-d-1", *(f"mu = {mu:g}" for mu in _MUS)))
    axis.set(xlabel="y f(x)", ylabel="loss", title="double ramp loss, d = 0.2, rho = 2")
    axis.legend()


EXPERIMENT = Experiment.of(
    globals(),
    title="Double ramp, Figure 2: the loss",
    protocol=("Values of the library's losses on a grid, d = 0.2, rho = 2.",),
    tasks=lambda plan: [Task("losses", "losses")],
)
