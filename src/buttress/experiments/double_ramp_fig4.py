"""Figure 4 of the double ramp paper: double ramp and double hinge on the synthetic set."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress.datasets import make_reject_synthetic
from buttress.experiments._figures import COLOURS, MARKERS, lettered
from buttress.experiments._grids import repeats, tasks_over
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Values
from buttress.experiments._sampling import seed_of


def _run(plan: Plan, repeat: int) -> Values:
    from buttress.classifiers import DoubleHingeClassifier, DoubleRampClassifier

    sample = make_reject_synthetic(300, random_state=seed_of(plan.seed, repeat, 3))
    values: Values = {"X": sample.X, "y": sample.y} if repeat == 0 else {}
    models = {
        "double ramp": DoubleRampClassifier(kernel="linear", d=0.2, C=2.0),
        "double hinge": DoubleHingeClassifier(kernel="linear", d=0.2, C=32.0),
    }
    for name, model in models.items():
        model.fit(sample.X, sample.y)
        line = np.append(model.coef_[0], model.intercept_[0])
        size = float(np.linalg.norm(model.coef_[0]))
        values[f"{name} line"] = line / size
        values[f"{name} half width"] = float(model.thresholds_[1]) / size
        values[f"{name} rejected"] = float(model.reject(sample.X).mean())
    return values


def _angle(line: Any) -> float:
    return float(np.degrees(np.arccos(np.clip(line[0], -1, 1))))


def _check(values: Runs) -> list[Check]:
    ramp, hinge = (np.mean(values[f"{n} rejected"]) for n in ("double ramp", "double hinge"))
    angle = {
        n: np.mean([_angle(line) for line in values[f"{n} line"]])
        for n in ("double ramp", "double hinge")
    }
    return [
        Check(
            "the double ramp finds the true boundary better than the double hinge",
            bool(angle["double ramp"] < angle["double hinge"]),
            f"mean angle to it: {angle['double ramp']:.1f} and {angle['double hinge']:.1f} degrees",
        ),
        Check(
            "the double hinge rejects most points, the double ramp few",
            bool(ramp < 0.5 < hinge),
            f"{ramp:.0%} and {hinge:.0%} rejected",
        ),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    X, y = np.array(values["X"][0]), np.array(values["y"][0])
    axes = figure.subplots(1, 3, sharey=True)
    for axis, name in zip(axes, ("the set", "double ramp", "double hinge"), strict=True):
        for k, label in enumerate((-1, 1)):
            axis.scatter(
                *X[y == label].T,
                s=8,
                marker=MARKERS[k],
                color=COLOURS[k],
                label=f"y = {label:+d}",
            )
        axis.set(title=name, ylim=(-5.5, 5.5), xlim=(-10.5, 10.5))
        if name == "the set":
            axis.axvline(0, color="black", lw=0.8)
            continue
        a, b, c = values[f"{name} line"][0]
        width = values[f"{name} half width"][0]
        height = np.array([-6.0, 6.0])
        for shift, style in ((0, "-"), (width, "--"), (-width, "--")):
            axis.plot((shift - c - b * height) / a, height, style, color="black", lw=0.8)
    axes[0].legend(loc="lower right", frameon=True)
    lettered(axes)


EXPERIMENT = Experiment.of(
    globals(),
    title="Double ramp, Figure 4: classifiers on the synthetic set",
    protocol=(
        "The set of Table 3, d = 0.2, C = 2 (double ramp) and 32 (double hinge), linear kernel.",
        "20 sets instead of one; the first is drawn. Rejection is counted on the training rows.",
    ),
    tasks=tasks_over("repeat {repeat}", "synthetic", repeat=repeats(20, 2)),
)
