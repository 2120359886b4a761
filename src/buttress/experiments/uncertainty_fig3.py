"""Figure 3 of the uncertainty set paper: an ellipsoid, and the set it is revised to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from buttress.experiments._figures import COLOURS
from buttress.experiments._ida import PAPER
from buttress.experiments._model import Check, Experiment, Plan, Task, Values
from buttress.experiments._sampling import generator


def _run(arguments: Mapping[str, Any], plan: Plan) -> Values:
    from buttress.losses import TruncatedQuadratic
    from buttress.theory.uncertainty_sets import UncertaintySet

    random = generator(plan.seed, 7)
    points = random.standard_normal((40, 2)) @ np.array([[1.2, 0.7], [0.0, 0.5]]) + [1.0, 0.5]
    # a prior guess of mean and covariance that does not fit the sample
    turn = np.linspace(0, 2 * np.pi, 181)
    ellipse = np.array([1.6, -0.6]) + np.stack([1.0 * np.cos(turn), 1.6 * np.sin(turn)], axis=1)
    revised = UncertaintySet(points, TruncatedQuadratic(), 1.0)
    return {"points": points, "original": ellipse, "revised": revised.boundary(180)}


def _outside(boundary: Any, points: Any) -> float:
    """The largest distance by which a point of the boundary leaves the hull of the points."""
    from scipy.spatial import ConvexHull

    planes = ConvexHull(np.array(points)).equations
    return float((np.array(boundary) @ planes[:, :2].T + planes[:, 2]).max())


def _check(values: Mapping[str, list[Any]]) -> list[Check]:
    points = np.array(values["points"][0])
    before, after = (_outside(values[key][0], points) for key in ("original", "revised"))
    centre = np.array(values["revised"][0]).mean(axis=0) - points.mean(axis=0)
    return [
        Check("the original set leaves the hull of the points", before > 0, f"by {before:.2f}"),
        Check("the revised set is inside the hull", after < 1e-6, f"by {after:.1e}"),
        Check(
            "the revised set follows the sample",
            float(np.linalg.norm(centre)) < 0.5,
            f"its centre is {np.linalg.norm(centre):.2f} from the sample mean",
        ),
    ]


def _draw(figure: Any, values: Mapping[str, list[Any]]) -> None:
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for axis, name in zip(axes, ("original", "revised"), strict=True):
        axis.scatter(*np.array(values["points"][0]).T, s=8, color=COLOURS[1])
        axis.fill(*np.array(values[name][0]).T, color=COLOURS[0], alpha=0.25)
        axis.set(title=f"{name} set")
        axis.set_aspect("equal")


EXPERIMENT = Experiment(
    name="uncertainty-fig3",
    title="Uncertainty sets, Figure 3: revision of a set",
    paper=PAPER,
    protocol=(
        "40 points of one class. Left: an ellipsoid from a prior mean and covariance. Right: the "
        "set of the truncated quadratic loss at level 1, which is what Example 5 revises "
        "ellipsoids to (weights with a bounded sum of squares).",
        "The paper's data for this figure are not given.",
    ),
    cells=(),
    tasks=lambda plan: [Task("sets", "sets")],
    run=_run,
    draw=_draw,
    check=_check,
)
