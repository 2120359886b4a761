"""Figure 1 of the uncertainty set paper: the boundary between the nearest points of two sets."""

from __future__ import annotations

import numpy as np

from buttress.experiments._figures import COLOURS, MARKERS
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values
from buttress.experiments._sampling import generator
from buttress.experiments.uncertainty_fig2 import two_classes


def _run(plan: Plan) -> Values:
    from buttress.classifiers import UncertaintySetClassifier

    X, y = two_classes(generator(plan.seed, 6), (40, 40), ([2.0, 1.5], [2.0, 1.0]), 0.6)
    model = UncertaintySetClassifier(kernel="linear", bias="bisect", radius=2.0).fit(X, y)
    weights = np.asarray(model.set_weights_)
    positive, negative = (weights[y == label] @ X[y == label] for label in (1, -1))
    sets = model.uncertainty_sets_
    return {
        "X": X,
        "y": y,
        "line": np.append(model.coef_[0], model.intercept_[0]),
        "nearest": np.stack([positive, negative]),
        "positive set": sets[0].boundary(120),
        "negative set": sets[1].boundary(120),
    }


def _check(values: Runs) -> list[Check]:
    w, b = np.array(values["line"][0][:2]), values["line"][0][2]
    positive, negative = np.array(values["nearest"][0])
    apart = positive - negative
    cosine = w @ apart / np.linalg.norm(w) / np.linalg.norm(apart)
    angle = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    middle = float(w @ (positive + negative) / 2 + b)
    near = (np.array(values["positive set"][0]) @ w).min()
    far = (np.array(values["negative set"][0]) @ w).max()
    gap = float(near - far - w @ apart)
    return [
        Check(
            "the normal is the difference of the nearest points",
            angle < 0.01,
            f"{angle:.1e} degrees",
        ),
        Check("the boundary bisects the segment between them", abs(middle) < 1e-6, f"{middle:.1e}"),
        Check(
            "no points of the two sets are nearer along the normal",
            gap > -1e-4 * float(np.linalg.norm(apart)),
            f"excess {gap:.1e}",
        ),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    axis = figure.subplots()
    X, y = np.array(values["X"][0]), np.array(values["y"][0])
    for label, name, colour, marker in (
        (1, "positive", COLOURS[1], MARKERS[0]),
        (-1, "negative", COLOURS[0], MARKERS[1]),
    ):
        axis.scatter(*X[y == label].T, s=12, color=colour, marker=marker, label=f"{name} rows")
        axis.fill(*np.array(values[f"{name} set"][0]).T, color=colour, alpha=0.25)
    axis.plot(
        *np.array(values["nearest"][0]).T, "o-", color="black", ms=4, lw=0.8, label="nearest points"
    )
    w, b = values["line"][0][:2], values["line"][0][2]
    height = np.array([X[:, 1].min(), X[:, 1].max()])
    axis.plot((-b - w[1] * height) / w[0], height, "--", color="black", label="boundary")
    axis.set_aspect("equal")
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))


EXPERIMENT = Experiment.of(
    globals(),
    title="Uncertainty sets, Figure 1: nearest points and boundary",
    protocol=(
        "Two normal samples of 40 rows in the plane, linear kernel, ellipsoid loss with h = 0, "
        "norm bound 2, bias by bisection.",
    ),
    tasks=lambda plan: [Task("sets", "sets")],
)
