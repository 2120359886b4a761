"""Figure 4 of the uncertainty set paper: the loss u with h = 1."""

from __future__ import annotations

import numpy as np

from buttress.experiments._figures import GREY, draw_curves
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values


def _run(plan: Plan) -> Values:
    from buttress.losses import EllipsoidError, TruncatedQuadratic

    z = np.linspace(-6, 6, 601)
    return {
        "z": z,
        "h = 1": EllipsoidError(h=1.0).value(z),
        "h = 0": EllipsoidError(h=0.0).value(z),
        "truncated quadratic at z/2": TruncatedQuadratic().value(z / 2),
    }


def _check(values: Runs) -> list[Check]:
    z, loss, plain, quadratic = (
        np.array(values[key][0]) for key in ("z", "h = 1", "h = 0", "truncated quadratic at z/2")
    )
    middle = loss[np.abs(z) <= 2]
    bend = float(np.abs(np.diff(middle, 2)).max())
    gap = float(np.abs(plain - quadratic).max())
    return [
        Check("u is linear around zero (|z| <= 2h)", bend < 1e-12, f"second difference {bend:.1e}"),
        Check(
            "u is quadratic on both sides, zero below -2h - 2",
            bool(np.all(loss[z <= -4] == 0)),
            "zero",
        ),
        Check(
            "for h = 0 it is the truncated quadratic loss, up to scale", gap < 1e-12, f"{gap:.1e}"
        ),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    axis = figure.subplots()
    draw_curves(axis, values, "z", ("h = 1", "h = 0"))
    for k in (-4, -2, 2):
        axis.axvline(k, color=GREY, lw=0.8, ls=":")
    axis.set(xlabel="z", ylabel="u(z; h)", ylim=(-0.5, 12))
    axis.legend()


EXPERIMENT = Experiment.of(
    globals(),
    title="Uncertainty sets, Figure 4: the revised loss",
    protocol=("Values of the library's loss on a grid, omega = 1.",),
    tasks=lambda plan: [Task("loss", "loss")],
)
