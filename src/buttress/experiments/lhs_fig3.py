"""Figure 3 of the leaky hockey stick paper: the family L_r."""

from __future__ import annotations

import numpy as np

from buttress.experiments._figures import GREY, draw_curves
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values

_EXPONENTS = (1.2, 2.0, 5.0)


def _run(plan: Plan) -> Values:
    from buttress.losses import LeakyHockeyStick

    u = np.linspace(-1, 10, 1101)
    values: Values = {"u": u, "LHS": LeakyHockeyStick().value(u)}
    for r in _EXPONENTS:
        values[f"r = {r:g}"] = LeakyHockeyStick(r=r).value(u)
    values["far"] = LeakyHockeyStick(r=1e6).value(u)
    return values


def _check(values: Runs) -> list[Check]:
    u, loss, far = (np.array(values[key][0]) for key in ("u", "LHS", "far"))
    gap = float(np.abs(loss - far).max())
    curves = [np.array(values[f"r = {r:g}"][0])[u > 1] for r in _EXPONENTS]
    ordered = all(np.all(a < b) for a, b in zip(curves, [*curves[1:], loss[u > 1]], strict=True))
    return [
        Check("L_r tends to the LHS loss as r grows", gap < 1e-4, f"{gap:.1e} at r = 1e6"),
        Check("a smaller r falls faster beyond margin 1", bool(ordered), "ordered at every point"),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    axis = figure.subplots()
    u = np.array(values["u"][0])
    axis.plot(u, 1 - u, color=GREY, lw=0.8, label="1 - u")
    draw_curves(axis, values, "u", (*(f"r = {r:g}" for r in _EXPONENTS), "LHS"))
    axis.set(xlabel="y f(x)", ylabel="loss")
    axis.legend()


EXPERIMENT = Experiment.of(
    globals(),
    title="Leaky hockey stick, Figure 3: other negatively divergent losses",
    protocol=("Values of the library's losses on a grid; the grey line is 1 - u.",),
    tasks=lambda plan: [Task("losses", "losses")],
)
