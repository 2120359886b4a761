"""Figure 3 of the uncertainty set paper: an ellipsoid, and the set it is revised to."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress.experiments._figures import COLOURS, panels
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values
from buttress.experiments._sampling import generator

_RADIUS = 1.5


def _run(plan: Plan) -> Values:
    from buttress.theory import EllipsoidLevels, UncertaintySet, revise_uncertainty_set

    random = generator(plan.seed, 7)
    points = random.standard_normal((40, 2)) @ np.array([[1.2, 0.7], [0.0, 0.5]]) + [1.0, 0.5]
    # means and covariances from elsewhere, which do not fit the sample
    means = np.array([1.6, -0.6]), np.array([-1.5, -1.0])
    covariances = np.diag([0.45, 1.1]), np.eye(2)
    levels = [
        EllipsoidLevels(mean, np.linalg.inv(covariance))
        for mean, covariance in zip(means, covariances, strict=True)
    ]
    loss = revise_uncertainty_set(levels[0], levels[1], 40, 40, means=means)
    turn = np.linspace(0, 2 * np.pi, 181)
    circle = _RADIUS * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    ellipse = means[0] + circle @ np.sqrt(covariances[0])
    # The revised set bounds the sum of squared weights; sample points within the same Mahalanobis
    # radius have sums up to (1 + radius^2) / 40.
    squares = (1 + _RADIUS**2) / 40
    level = loss.b1 + loss.b2 * 80 * squares
    revised = UncertaintySet(points, loss, level, n_samples=80)
    weights = revised.weights(np.array([1.0, 0.0]))
    return {
        "points": points,
        "original": ellipse,
        "revised": revised.boundary(180),
        "squares": float(weights @ weights),
        "allowed": squares,
    }


def _outside(boundary: Any, points: Any) -> float:
    """The largest distance by which a point of the boundary leaves the hull of the points."""
    from scipy.spatial import ConvexHull

    planes = ConvexHull(np.array(points)).equations
    return float((np.array(boundary) @ planes[:, :2].T + planes[:, 2]).max())


def _check(values: Runs) -> list[Check]:
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
        Check(
            "the revision of an ellipsoid bounds the sum of squared weights (Example 5)",
            abs(values["squares"][0] - values["allowed"][0]) < 1e-6,
            f"{values['squares'][0]:.6f} at a boundary point, {values['allowed'][0]:.6f} allowed",
        ),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    names = ("original", "revised")
    for axis, name in panels(
        figure, names, loc="upper left", letters=True, sharex=True, sharey=True
    ):
        axis.scatter(*np.array(values["points"][0]).T, s=12, color=COLOURS[1], label="sample")
        axis.fill(*np.array(values[name][0]).T, color=COLOURS[0], alpha=0.3, label=f"{name} set")
        axis.set(title=f"{name} set")
        axis.set_aspect("equal")


EXPERIMENT = Experiment.of(
    globals(),
    title="Uncertainty sets, Figure 3: revision of a set",
    protocol=(
        "40 points of one class. Left: an ellipsoid of Mahalanobis radius 1.5 from a mean and a "
        "covariance that come from elsewhere. Right: that ellipsoid revised as in Example 5 (and "
        "one of the other class, 40 rows, which enters the loss), at the level that allows sample "
        "points of the same Mahalanobis radius.",
        "The paper's data for this figure are not given.",
    ),
    tasks=lambda plan: [Task("sets", "sets")],
    version=2,
)
